#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// dot_general(lhs, rhs) {lhs_batching_dimensions, rhs_batching_dimensions,
// lhs_contracting_dimensions, rhs_contracting_dimensions, precision_config, algorithm,
// result_dtype}: sums of products over the contracting dimensions; result dimensions are batch,
// lhs free, rhs free. An absent list is empty; the result has the operands' dtype unless
// `result_dtype` says otherwise. The reference multiplies and adds exactly in double (f64: long
// double; integers: wrapping) and rounds once; bool: or of ands; no contraction gives products, an
// empty one zeros.
extern const OpDef kDotGeneral;

}  // namespace xylem::ir::ops
