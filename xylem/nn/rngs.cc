#include "xylem/nn/rngs.h"

#include <fmt/format.h>

#include "xylem/base/error.h"

namespace xylem::nn {

Rngs::Rngs(std::int64_t default_seed)
    : Rngs(std::map<std::string, std::int64_t>{{"default", default_seed}}) {}

Rngs::Rngs(const std::map<std::string, std::int64_t>& seeds) {
  for (const auto& [name, seed] : seeds) streams_[name] = {random::key(seed), 0};
}

random::Key Rngs::operator()(const std::string& name) {
  auto it = streams_.find(name);
  if (it == streams_.end()) it = streams_.find("default");
  if (it == streams_.end())
    throw_user_error({"Rngs", "a stream of that name, or a default stream, is needed",
                      fmt::format("there is no stream '{}'", name),
                      "Construct Rngs with a default seed, or name the stream"});
  Stream& s = it->second;
  std::uint32_t n = s.count++;
  return random::fold_in(s.key, Array(HostArray::scalar(n)));
}

}  // namespace xylem::nn
