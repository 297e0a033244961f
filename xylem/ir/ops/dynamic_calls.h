#pragma once

#include <optional>
#include <span>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// Whether an op is custom_call @stablehlo.dynamic_reduce_window(inputs…, inits…, window_dimensions,
// window_strides, base_dilations, window_dilations, padding) with the reducer as its called
// computation: how JAX writes windows over dimensions of unknown size.
bool is_dynamic_reduce_window(const Op& op);

// How many of its operands are inputs and inits; the five behind them are sizes.
std::size_t num_window_operands(const Op& op);

// The reduce_window that the call is for these sizes. `operands` are inputs and inits.
std::vector<ValueId> expand_dynamic_reduce_window(Builder& b, const Op& op,
                                                  std::span<const ValueId> operands,
                                                  std::span<const HostArray> sizes);

// The value of such a call.
std::vector<HostArray> evaluate_dynamic_reduce_window(const EvalCall& call);

// The operands that hold the shapes of a custom call's results, one for each
// (`indices_of_shape_operands`): how JAX writes calls whose results have dimensions of unknown
// size. Nothing if the call has none, or not one 1-dimensional integer operand for each result.
std::optional<Dims> shape_operands(const Op& op);

// The call without these operands, for results of these shapes. Its operands are those of `op`
// without them, whose numbers `kept` gets.
Op with_result_shapes(const Op& op, const Dims& shape_operands, std::span<const Dims> shapes,
                      std::vector<std::size_t>& kept);

// The elements of a 1-dimensional integer array.
Dims as_dims(const HostArray& a);

}  // namespace xylem::ir::ops
