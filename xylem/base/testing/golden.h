#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/host_array.h"

namespace xylem::testing {

// A value of a recorded file of tests/goldens: object, list, array, string or number. The encoding
// of arrays is described there. Throws UserError naming the key where a value is not what is asked.
class Golden {
 public:
  // tests/goldens/NAME.
  static Golden load(const std::string& name);

  Golden operator[](std::string_view key) const;
  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;
  std::size_t size() const;
  Golden at(std::size_t i) const;
  std::string str() const;
  double number() const;
  bool flag() const;
  HostArray array() const;

 private:
  struct Node;
  explicit Golden(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// Largest |a - b| over the largest |b|, as doubles.
double relative_error(const HostArray& a, const HostArray& b);
// Largest distance in units of the last place of b's elements, which are floats; infinite where
// only one of two is finite.
double max_ulp(const HostArray& a, const HostArray& b);

}  // namespace xylem::testing
