#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// sort(inputs × N, captures) {dimension (may be negative; -1 if absent), is_stable, num_captures}
// region(lhs_0, rhs_0, lhs_1, rhs_1, …, captures) -> i1[]: lhs goes before rhs. The inputs are
// permuted together. The reference is always stable.
extern const OpDef kSort;

// chlo.top_k(x) {k} -> (values, i32 indices): the k largest along the last dimension, descending
// by the total order of floats (+NaN first, -NaN last); ties by lower index.
extern const OpDef kTopK;

}  // namespace xylem::ir::ops
