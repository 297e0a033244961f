#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// xylem.custom_linear(residuals…, tangents…) {num_residuals}: the derivative of a custom_vjp call,
// known only by its transpose. Region 0: residuals…, cotangents… -> one cotangent per tangent. One
// result per cotangent parameter, of its type. Cannot be evaluated: reverse mode replaces it by
// region 0.
extern const OpDef kCustomLinear;

// xylem.linear_solve(consts…, b…) {num_consts}: x with matvec(x) = b, where matvec is linear in x.
// Region 0, solve: consts…, b… -> x…, of the types of b. Region 1, matvec: consts…, x… -> b….
// Region 2, optional: solve of the transposed system; without it there is no reverse mode.
extern const OpDef kLinearSolve;

// xylem.custom_vmap(args) {rule}: region 0 (args) -> results. Mapping it asks the front's rule of
// that number for a graph; otherwise it is a call.
extern const OpDef kCustomVmap;

}  // namespace xylem::ir::ops
