#pragma once

#include <span>
#include <utility>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/convolution.h"
#include "xylem/core/internal/function_ref.h"

// Reductions by functions of one's own, over axes or windows, and the pools of flax.linen. The
// function is traced on scalars, must be associative, and may use arrays from outside.
namespace xylem::internal {

using Computation = FunctionRef<std::vector<Array>(std::span<const Array>, std::span<const Array>)>;
std::vector<Array> reduce_by(std::span<const Array> operands, std::span<const Array> init,
                             Computation f, const std::vector<int>& axes, SourceLoc where);
struct Window {
  Dims dimensions, strides, base_dilation, window_dilation;
};
std::vector<Array> reduce_window_by(std::span<const Array> operands, std::span<const Array> init,
                                    Computation f, const Window& window,
                                    const lax::Padding& padding, SourceLoc where);

template <class F>
auto of_one(F& f) {
  return [&f](std::span<const Array> a, std::span<const Array> b) {
    return std::vector<Array>{f(a[0], b[0])};
  };
}
template <class F>
auto of_vectors(F& f) {
  return [&f](std::span<const Array> a, std::span<const Array> b) {
    return f(std::vector<Array>(a.begin(), a.end()), std::vector<Array>(b.begin(), b.end()));
  };
}

}  // namespace xylem::internal

namespace xylem::lax {

// f(… f(f(init, x0), x1) …) over axes. The initial value is a scalar, converted to x's dtype.
template <class F>
Array reduce(const ArrayArg& x, const ArrayArg& init, F&& f, const std::vector<int>& axes) {
  auto flat = internal::of_one(f);
  return internal::reduce_by({&x.array, 1}, {&init.array, 1}, flat, axes, x.where)[0];
}
// Of several operands of one shape: f(accumulators, elements) -> accumulators.
template <class F>
std::vector<Array> reduce(const std::vector<Array>& xs, const std::vector<Array>& init, F&& f,
                          const std::vector<int>& axes, SourceLoc where = SourceLoc::current()) {
  auto flat = internal::of_vectors(f);
  return internal::reduce_by(xs, init, flat, axes, where);
}

struct ReduceWindowOptions {
  Dims base_dilation = {}, window_dilation = {};  // 1 if empty
};
// The same over windows of a size in every dimension. Padding and holes are no elements.
template <class F>
Array reduce_window(const ArrayArg& x, const ArrayArg& init, F&& f, const Dims& window_dimensions,
                    const Dims& window_strides, const Padding& padding,
                    const ReduceWindowOptions& o = {}) {
  auto flat = internal::of_one(f);
  return internal::reduce_window_by(
      {&x.array, 1}, {&init.array, 1}, flat,
      {window_dimensions, window_strides, o.base_dilation, o.window_dilation}, padding, x.where)[0];
}
template <class F>
std::vector<Array> reduce_window(const std::vector<Array>& xs, const std::vector<Array>& init,
                                 F&& f, const Dims& window_dimensions, const Dims& window_strides,
                                 const Padding& padding, const ReduceWindowOptions& o = {},
                                 SourceLoc where = SourceLoc::current()) {
  auto flat = internal::of_vectors(f);
  return internal::reduce_window_by(
      xs, init, flat, {window_dimensions, window_strides, o.base_dilation, o.window_dilation},
      padding, where);
}

}  // namespace xylem::lax
