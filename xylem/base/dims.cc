#include "xylem/base/dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "xylem/base/error.h"

namespace xylem {

std::int64_t num_elements(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  bool zero = false;
  for (std::int64_t d : dims) {
    if (d < 0)
      throw_user_error({"shape", "every dimension must be zero or positive",
                        fmt::format("the shape is [{}]", fmt::join(dims, ",")),
                        "Give a concrete size for each dimension"});
    zero = zero || d == 0;
  }
  if (zero) return 0;
  for (std::int64_t d : dims) {
    if (__builtin_mul_overflow(n, d, &n))
      throw_user_error({"shape", "the number of elements must fit 63 bits",
                        fmt::format("the shape is [{}]", fmt::join(dims, ",")),
                        "Use smaller dimensions"});
  }
  return n;
}

Dims row_major_strides(std::span<const std::int64_t> dims) {
  Dims s(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) {
    // Wraps only for an empty array with huge other dimensions, where no stride is ever used.
    s[i - 1] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(s[i]) *
                                  static_cast<std::uint64_t>(std::max<std::int64_t>(dims[i], 1)));
  }
  return s;
}

std::string to_string(const Dims& d) { return fmt::format("[{}]", fmt::join(d, ",")); }

}  // namespace xylem
