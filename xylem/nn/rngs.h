#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "xylem/core/random.h"

namespace xylem::nn {

// Named streams of keys, as Flax NNX's Rngs: draw n of a stream is fold_in(key of the stream, n). A
// name without a stream of its own draws from `default`. Not thread safe.
class Rngs {
 public:
  explicit Rngs(std::int64_t default_seed);
  explicit Rngs(const std::map<std::string, std::int64_t>& seeds);

  random::Key operator()(const std::string& name = "default");
  random::Key params() { return (*this)("params"); }
  random::Key dropout() { return (*this)("dropout"); }

 private:
  struct Stream {
    random::Key key;
    std::uint32_t count = 0;
  };
  std::map<std::string, Stream> streams_;
};

}  // namespace xylem::nn
