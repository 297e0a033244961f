#pragma once

#include <span>

#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// For every window over x the flat position that `select` keeps, walked in row-major order: i64 of
// the windows' shape, -1 where a window lies in the padding alone. `attrs` has window_dimensions,
// window_strides, base_dilations, window_dilations and padding as reduce_window takes them.
// `select`: (a, b, captures) -> i1[], whether a stays selected.
ValueId selected_places(Builder& b, const Attrs& attrs, const Graph& select, ValueId x,
                        std::span<const ValueId> captures = {});

// select_and_scatter as selected_places and a scatter to them.
ValueId expand_select_and_scatter(Builder& b, const Op& op, std::span<const ValueId> operands);

}  // namespace xylem::ir::ops
