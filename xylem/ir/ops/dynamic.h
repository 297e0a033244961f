#pragma once

#include "xylem/ir/op_def.h"

// Ops whose result sizes are values. Their written result types stand in `result_types`; sizes that
// are known statically there must be what the values say. Each means its static counterpart with
// the values of its operands as attributes.

namespace xylem::ir::ops {

// dynamic_reshape(x, shape i[n]) {result_types}
extern const OpDef kDynamicReshape;
// dynamic_broadcast_in_dim(x, shape i[n]) {broadcast_dimensions, known_expanding_dimensions,
// known_nonexpanding_dimensions, result_types}
extern const OpDef kDynamicBroadcastInDim;
// dynamic_iota(shape i[n]) {iota_dimension, result_types}
extern const OpDef kDynamicIota;
// dynamic_pad(x, value, low i[n], high i[n], interior i[n]) {result_types}
extern const OpDef kDynamicPad;
// dynamic_gather(x, indices, slice_sizes i[n]) with gather's dimension numbers, result_types
extern const OpDef kDynamicGather;
// real_dynamic_slice(x, start i[n], limit i[n], strides i[n]) {result_types}
extern const OpDef kRealDynamicSlice;
// get_dimension_size(x) {dimension} -> i32[]
extern const OpDef kGetDimensionSize;
// set_dimension_size(x, size i32[]) {dimension, result_types}: keeps the first `size` slices.
extern const OpDef kSetDimensionSize;

}  // namespace xylem::ir::ops
