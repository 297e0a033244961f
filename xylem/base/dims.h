#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "xylem/base/small_vec.h"

namespace xylem {

// A short list of 64-bit integers (dimensions, strides, permutations).
using Dims = SmallVec<std::int64_t, 6>;

// Product of the dimensions; throws UserError on overflow of 63 bits or a negative dimension.
std::int64_t num_elements(std::span<const std::int64_t> dims);
// Row-major strides in elements.
Dims row_major_strides(std::span<const std::int64_t> dims);
// "2,3" / "[2,3]".
std::string to_string(const Dims& d);

}  // namespace xylem
