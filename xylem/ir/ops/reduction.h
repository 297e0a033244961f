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

// select_and_scatter(x, source, init, captures) {window_dimensions, window_strides, padding
// (i64[rank, 2]), num_captures}. Region 0 (select): (a, b, captures) -> i1[], whether a stays
// selected; region 1 (scatter): (old, new, captures) -> new value, perhaps in a wider type. Each
// element of the source is combined into the position of x that its window selects, walked in
// row-major order; all other positions hold the init value. A window of padding selects nothing.
extern const OpDef kSelectAndScatter;

// The op that a reduction region consists of: its body is this one op applied to accumulator and
// element (in either order) of one input without captures; null otherwise. Lets evaluations and
// passes treat sums, products, maxima and so on directly.
const OpDef* single_op_reducer(const Graph& region);

}  // namespace xylem::ir::ops
