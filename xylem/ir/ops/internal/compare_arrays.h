#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "xylem/base/host_array.h"
#include "xylem/ir/type.h"

// The comparisons of StableHLO's check dialect.

namespace xylem::ir::ops {

// The number of representable values of the array's float type between two elements, the larger of
// both parts for complex: 0 for equal bits, -0 against +0, and two NaNs; the greatest number where
// one of them is NaN or infinite and the other something else.
std::uint64_t ulp_distance(const HostArray& a, const HostArray& b, std::int64_t at);

// What is wrong with `got` where it should equal `expected`; empty if nothing. All name the first
// index that differs, both values and, of floats, their distance in ulp.
// Integers and bools by value, floats by IEEE comparison (NaN equals nothing).
std::string check_equal(const HostArray& got, const HostArray& expected);
// Equal, both NaN, or at most `tolerance` apart; complex by parts.
std::string check_almost_equal(const HostArray& got, const HostArray& expected, double tolerance);
// Distances in [min_ulp, max_ulp].
std::string check_close(const HostArray& got, const HostArray& expected, std::uint64_t min_ulp,
                        std::uint64_t max_ulp);

// Throws UserError "OPERATION: …" if `fault` is not empty.
void require_check(std::string_view operation, const std::string& fault);

// The value as the interpreter prints it: "tensor<2x2xi8> {", nested brackets with one row a line,
// "}"; scalars on one line.
std::string value_text(const HostArray& a, const Type& type);

}  // namespace xylem::ir::ops
