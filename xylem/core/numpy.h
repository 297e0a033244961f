#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/indexing.h"

// The functions of jax.numpy that live in xylem:: itself: names, defaults, promotion and edge
// behaviour are JAX's. Arguments promote by promotion.h and broadcast as NumPy's do; axes may be
// negative. All throw UserError with the call's place on shapes or dtypes that do not fit.

namespace xylem {

// One axis, several, or all of them (the default).
class AxisArg {
 public:
  AxisArg() = default;
  AxisArg(int axis) : axes_({axis}), all_(false) {}
  AxisArg(std::initializer_list<int> axes) : axes_(axes), all_(false) {}
  AxisArg(std::vector<int> axes) : axes_(std::move(axes)), all_(false) {}
  // Axes in [0, rank), ascending. UserError if out of range or repeated.
  Dims resolve(int rank, const char* what, SourceLoc where) const;
  // How many are named; -1 for all.
  int count() const { return all_ ? -1 : static_cast<int>(axes_.size()); }

 private:
  std::vector<int> axes_;
  bool all_ = true;
};
inline const AxisArg all_axes{};

// --- creation -----------------------------------------------------------------------------------
Array zeros(Dims shape, DType dtype = DType::kF32);
Array ones(Dims shape, DType dtype = DType::kF32);
Array full(Dims shape, const ArrayArg& value, std::optional<DType> dtype = std::nullopt);
Array zeros_like(const ArrayArg& x, std::optional<DType> dtype = std::nullopt);
Array ones_like(const ArrayArg& x, std::optional<DType> dtype = std::nullopt);
Array full_like(const ArrayArg& x, const ArrayArg& value);
Array arange(std::int64_t stop);
Array arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1,
             DType dtype = DType::kI32);
Array linspace(double start, double stop, std::int64_t num = 50, bool endpoint = true);
Array eye(std::int64_t n, std::int64_t m = -1, int k = 0, DType dtype = DType::kF32);
Array tri(std::int64_t n, std::int64_t m, int k = 0, DType dtype = DType::kF32);
Array array(std::initializer_list<double> values, DType dtype = DType::kF32);

// --- elementwise --------------------------------------------------------------------------------
Array add(const ArrayArg& x, const ArrayArg& y);
Array subtract(const ArrayArg& x, const ArrayArg& y);
Array multiply(const ArrayArg& x, const ArrayArg& y);
Array divide(const ArrayArg& x, const ArrayArg& y);  // true division
Array floor_divide(const ArrayArg& x, const ArrayArg& y);
Array mod(const ArrayArg& x, const ArrayArg& y);   // sign of the divisor
Array fmod(const ArrayArg& x, const ArrayArg& y);  // sign of the dividend
Array power(const ArrayArg& x, const ArrayArg& y);
Array pow(const ArrayArg& x, int n);  // integer power by multiplication (lax.integer_pow)
Array maximum(const ArrayArg& x, const ArrayArg& y);
Array minimum(const ArrayArg& x, const ArrayArg& y);
Array arctan2(const ArrayArg& y, const ArrayArg& x);
Array hypot(const ArrayArg& x, const ArrayArg& y);
Array logaddexp(const ArrayArg& x, const ArrayArg& y);
Array equal(const ArrayArg& x, const ArrayArg& y);
Array not_equal(const ArrayArg& x, const ArrayArg& y);
Array less(const ArrayArg& x, const ArrayArg& y);
Array less_equal(const ArrayArg& x, const ArrayArg& y);
Array greater(const ArrayArg& x, const ArrayArg& y);
Array greater_equal(const ArrayArg& x, const ArrayArg& y);
Array logical_and(const ArrayArg& x, const ArrayArg& y);
Array logical_or(const ArrayArg& x, const ArrayArg& y);
Array logical_xor(const ArrayArg& x, const ArrayArg& y);
Array logical_not(const ArrayArg& x);
Array bitwise_and(const ArrayArg& x, const ArrayArg& y);
Array bitwise_or(const ArrayArg& x, const ArrayArg& y);
Array bitwise_xor(const ArrayArg& x, const ArrayArg& y);
Array invert(const ArrayArg& x);
Array left_shift(const ArrayArg& x, const ArrayArg& y);
Array right_shift(const ArrayArg& x, const ArrayArg& y);  // arithmetic for signed

Array negative(const ArrayArg& x);
Array positive(const ArrayArg& x);
Array abs(const ArrayArg& x);
Array sign(const ArrayArg& x);
Array exp(const ArrayArg& x);
Array exp2(const ArrayArg& x);
Array expm1(const ArrayArg& x);
Array log(const ArrayArg& x);
Array log2(const ArrayArg& x);
Array log10(const ArrayArg& x);
Array log1p(const ArrayArg& x);
Array sqrt(const ArrayArg& x);
Array cbrt(const ArrayArg& x);
Array square(const ArrayArg& x);
Array reciprocal(const ArrayArg& x);
Array sin(const ArrayArg& x);
Array cos(const ArrayArg& x);
Array tan(const ArrayArg& x);
Array arcsin(const ArrayArg& x);
Array arccos(const ArrayArg& x);
Array arctan(const ArrayArg& x);
Array sinh(const ArrayArg& x);
Array cosh(const ArrayArg& x);
Array tanh(const ArrayArg& x);
Array arcsinh(const ArrayArg& x);
Array arccosh(const ArrayArg& x);
Array arctanh(const ArrayArg& x);
Array floor(const ArrayArg& x);
Array ceil(const ArrayArg& x);
Array round(const ArrayArg& x);  // half to even
Array trunc(const ArrayArg& x);
Array real(const ArrayArg& x);
Array imag(const ArrayArg& x);
Array conj(const ArrayArg& x);
Array isnan(const ArrayArg& x);
Array isinf(const ArrayArg& x);
Array isfinite(const ArrayArg& x);
Array where(const ArrayArg& condition, const ArrayArg& x, const ArrayArg& y);
Array clip(const ArrayArg& x, const ArrayArg& min, const ArrayArg& max);
Array nan_to_num(const ArrayArg& x, double nan = 0.0);
Array astype(const ArrayArg& x, DType dtype);
Array stop_gradient(const ArrayArg& x);
Array checkpoint_name(const ArrayArg& x, std::string_view name);

// --- reductions ---------------------------------------------------------------------------------
Array sum(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array prod(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array mean(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array var(const ArrayArg& x, const AxisArg& axis = {}, double ddof = 0, bool keepdims = false);
Array std(const ArrayArg& x, const AxisArg& axis = {}, double ddof = 0, bool keepdims = false);
Array max(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array min(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array any(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array all(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array argmax(const ArrayArg& x, std::optional<int> axis = std::nullopt, bool keepdims = false);
Array argmin(const ArrayArg& x, std::optional<int> axis = std::nullopt, bool keepdims = false);
Array logsumexp(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array count_nonzero(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array cumsum(const ArrayArg& x, std::optional<int> axis = std::nullopt);
Array cumprod(const ArrayArg& x, std::optional<int> axis = std::nullopt);

// --- shape --------------------------------------------------------------------------------------
Array reshape(const ArrayArg& x, Dims shape);
Array ravel(const ArrayArg& x);
Array transpose(const ArrayArg& x, Dims permutation);
Array transpose(const ArrayArg& x);
Array swapaxes(const ArrayArg& x, int a, int b);
Array moveaxis(const ArrayArg& x, int from, int to);
Array expand_dims(const ArrayArg& x, const AxisArg& axis);
Array squeeze(const ArrayArg& x, const AxisArg& axis = {});
Array broadcast_to(const ArrayArg& x, Dims shape);
Array concatenate(std::span<const Array> parts, int axis = 0,
                  SourceLoc where = SourceLoc::current());
Array concatenate(std::initializer_list<Array> parts, int axis = 0,
                  SourceLoc where = SourceLoc::current());
Array stack(std::span<const Array> parts, int axis = 0, SourceLoc where = SourceLoc::current());
Array stack(std::initializer_list<Array> parts, int axis = 0,
            SourceLoc where = SourceLoc::current());
std::vector<Array> split(const ArrayArg& x, int sections, int axis = 0);
std::vector<Array> split(const ArrayArg& x, const std::vector<std::int64_t>& indices, int axis);
std::vector<Array> unstack(const ArrayArg& x, int axis = 0);
Array tile(const ArrayArg& x, Dims reps);
Array repeat(const ArrayArg& x, std::int64_t repeats, int axis);
Array flip(const ArrayArg& x, const AxisArg& axis = {});
Array roll(const ArrayArg& x, std::int64_t shift, int axis);
Array pad(const ArrayArg& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
          const ArrayArg& value = 0);
Array tril(const ArrayArg& x, int k = 0);
Array triu(const ArrayArg& x, int k = 0);
Array diag(const ArrayArg& x, int k = 0);

// --- products -----------------------------------------------------------------------------------
Array matmul(const ArrayArg& x, const ArrayArg& y);
Array dot(const ArrayArg& x, const ArrayArg& y);
Array vdot(const ArrayArg& x, const ArrayArg& y);
Array inner(const ArrayArg& x, const ArrayArg& y);
Array outer(const ArrayArg& x, const ArrayArg& y);
Array tensordot(const ArrayArg& x, const ArrayArg& y, int axes = 2);
// "ij,jk->ik": any number of operands, repeated and summed labels, ellipsis.
Array einsum(std::string_view subscripts, std::initializer_list<Array> operands,
             SourceLoc where = SourceLoc::current());

// --- indexing, sorting ---------------------------------------------------------------------------
// Rows of x along axis by an integer array; out of range gives NaN (integers: the least), as
// jnp.take's default. Negative indices count from the end (but for kClip: there they are 0).
Array take(const ArrayArg& x, const ArrayArg& indices, std::optional<int> axis = std::nullopt,
           IndexMode mode = IndexMode::kDefault, std::optional<double> fill = std::nullopt);
Array take_along_axis(const ArrayArg& x, const ArrayArg& indices, int axis,
                      IndexMode mode = IndexMode::kDefault,
                      std::optional<double> fill = std::nullopt);
Array sort(const ArrayArg& x, int axis = -1, bool descending = false);
Array argsort(const ArrayArg& x, int axis = -1, bool descending = false);
Array searchsorted(const ArrayArg& sorted, const ArrayArg& values, bool right = false);

}  // namespace xylem
