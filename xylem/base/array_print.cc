#include "xylem/base/internal/array_print.h"

#include <fmt/format.h>

namespace xylem::internal {

std::string print_array(const HostArray& a) {
  std::string s = "[";
  for (std::int64_t i = 0; i < a.size(); ++i) s += fmt::format("{}{}", i ? " " : "", a.at(i));
  return s + "]";
}

}  // namespace xylem::internal
