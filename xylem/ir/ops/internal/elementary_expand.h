#pragma once

#include <span>
#include <vector>

#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

// Elementary functions of CHLO in StableHLO's: what portable artifacts hold of them. Types under
// 32 bits compute in f32 and round once. Good to a few ulp; evaluation and compiled code have more
// exact ways of their own.

namespace xylem::ir::ops {

using Expansion = std::vector<ValueId>(Builder& b, const Op& op, std::span<const ValueId> operands);

Expansion expand_erf, expand_erfc, expand_erf_inv;
Expansion expand_asin, expand_acos, expand_atan, expand_sinh, expand_cosh;
Expansion expand_asinh, expand_acosh, expand_atanh;
Expansion expand_square;

}  // namespace xylem::ir::ops
