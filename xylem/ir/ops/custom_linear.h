#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// xylem.custom_linear(residuals…, tangents…) {num_residuals}: the derivative of a custom_vjp call,
// known only by its transpose. Region 0: residuals…, cotangents… -> one cotangent per tangent. One
// result per cotangent parameter, of its type. Cannot be evaluated: reverse mode replaces it by
// region 0.
extern const OpDef kCustomLinear;

}  // namespace xylem::ir::ops
