#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// gather(operand, start_indices) {offset_dims, collapsed_slice_dims, operand_batching_dims,
// start_indices_batching_dims, start_index_map, index_vector_dim, slice_sizes,
// indices_are_sorted}. Starts are clamped so that every slice lies inside.
extern const OpDef kGather;

// scatter(inputs × N, indices, updates × N, captures) {update_window_dims, inserted_window_dims,
// input_batching_dims, scatter_indices_batching_dims, scatter_dims_to_operand_dims,
// index_vector_dim, indices_are_sorted, unique_indices, num_captures}
// region(old × N, update × N, captures) -> new × N, on scalars.
// A window that is not wholly inside is skipped. Updates are applied in row-major order of the
// updates, so the last of several for one element wins.
extern const OpDef kScatter;

}  // namespace xylem::ir::ops
