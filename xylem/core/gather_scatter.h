#pragma once

#include <optional>

#include "xylem/core/array.h"
#include "xylem/core/indexing.h"
#include "xylem/core/internal/function_ref.h"

// The general gather and scatter of jax.lax; x(…) and x.at(…) of indexing.h are made for daily use.
// The last axis of the indices holds the components of an index. As in JAX, an index below zero
// does not count from the end.
namespace xylem::lax {

struct GatherDimensionNumbers {
  Dims offset_dims;           // axes of the result that run within a slice
  Dims collapsed_slice_dims;  // axes of the operand that are dropped from the slice
  Dims start_index_map;       // axis of the operand for each component of an index
  Dims operand_batching_dims = {}, start_indices_batching_dims = {};  // axes that walk together
};
struct GatherOptions {
  bool unique_indices = false, indices_are_sorted = false;
  // kDefault as kPromiseInBounds and kClip: slices are moved to lie inside. kFill (kDrop): those
  // that do not lie inside are filled.
  IndexMode mode = IndexMode::kDefault;
  std::optional<double> fill_value = std::nullopt;  // as GetOptions'
};
Array gather(const ArrayArg& operand, const ArrayArg& start_indices,
             const GatherDimensionNumbers& dimensions, const Dims& slice_sizes,
             const GatherOptions& options = {});

struct ScatterDimensionNumbers {
  Dims update_window_dims;            // axes of the updates that run within a window
  Dims inserted_window_dims;          // axes of the operand that a window has not
  Dims scatter_dims_to_operand_dims;  // axis of the operand for each component of an index
  Dims operand_batching_dims = {}, scatter_indices_batching_dims = {};
};
// Windows that do not lie inside are dropped, by kDefault too; kClip moves them inside.
using ScatterOptions = UpdateOptions;
// The operand with windows set, added to, multiplied, … Where windows overlap, `scatter` keeps one
// value and the others apply all. Updates are converted to the operand's dtype.
Array scatter(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
              const ScatterDimensionNumbers& dimensions, const ScatterOptions& options = {});
Array scatter_add(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& dimensions, const ScatterOptions& options = {});
Array scatter_sub(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& dimensions, const ScatterOptions& options = {});
Array scatter_mul(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& dimensions, const ScatterOptions& options = {});
Array scatter_min(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& dimensions, const ScatterOptions& options = {});
Array scatter_max(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& dimensions, const ScatterOptions& options = {});

}  // namespace xylem::lax

namespace xylem::internal {
Array scatter_apply(const ArrayArg& operand, const ArrayArg& indices,
                    FunctionRef<Array(const Array&)> f,
                    const lax::ScatterDimensionNumbers& dimensions, const Dims& update_shape,
                    const lax::ScatterOptions& options);
}  // namespace xylem::internal

namespace xylem::lax {

// f of each element of the windows, once for each window that has it. `update_shape`: the shape
// that updates would have.
template <class F>
Array scatter_apply(const ArrayArg& operand, const ArrayArg& indices, F&& f,
                    const ScatterDimensionNumbers& dimensions, const Dims& update_shape,
                    const ScatterOptions& options = {}) {
  return internal::scatter_apply(
      operand, indices, [&f](const Array& x) { return Array(f(x)); }, dimensions, update_shape,
      options);
}

}  // namespace xylem::lax
