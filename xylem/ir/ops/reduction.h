#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// reduce(inputs × N, inits × N, captures) {dimensions, num_captures}
// region(accumulators × N, elements × N, captures) -> accumulators × N, on scalars.
// The result dtypes are the region's, which may be wider than the inputs' (promotion). The
// reference starts from the init and takes elements in row-major order.
extern const OpDef kReduce;

// reduce_window(inputs × N, inits × N, captures) {window_dimensions, window_strides,
// base_dilations, window_dilations, padding (i64[rank, 2]), num_captures} and a region as reduce.
// All attributes but the first may be absent (1, 1, 1, 0). Padding and holes hold the init value;
// so positions there do not count. Windows are visited in row-major order.
extern const OpDef kReduceWindow;

// The op that a reduction region consists of: its body is this one op applied to accumulator and
// element (in either order) of one input without captures; null otherwise. Lets evaluations and
// passes treat sums, products, maxima and so on directly.
const OpDef* single_op_reducer(const Graph& region);

}  // namespace xylem::ir::ops
