#pragma once

#include "xylem/ir/op_def.h"

// Constants and ops that move elements without arithmetic.

namespace xylem::ir::ops {

// constant {value}
extern const OpDef kConstant;
// iota {iota_dimension, shape, result_dtype}: the index along one dimension, wrapped or rounded to
// the dtype.
extern const OpDef kIota;
// broadcast_in_dim {broadcast_dimensions, shape}: operand dimension d is result dimension
// broadcast_dimensions[d]; size 1 is stretched; the others are new.
extern const OpDef kBroadcastInDim;
// reshape {shape}: row-major order is kept.
extern const OpDef kReshape;
// transpose {permutation}: result dimension i is operand dimension permutation[i].
extern const OpDef kTranspose;
// reverse {dimensions}
extern const OpDef kReverse;
// concatenate {dimension}
extern const OpDef kConcatenate;
// slice {start_indices, limit_indices, strides}
extern const OpDef kSlice;
// dynamic_slice(x, i_0, …) {slice_sizes}: starts are clamped to [0, dim - size].
extern const OpDef kDynamicSlice;
// dynamic_update_slice(x, update, i_0, …): starts are clamped to [0, dim - update dim].
extern const OpDef kDynamicUpdateSlice;
// pad(x, value) {edge_padding_low, edge_padding_high, interior_padding}: interior first, then
// edges; negative edges cut.
extern const OpDef kPad;

}  // namespace xylem::ir::ops
