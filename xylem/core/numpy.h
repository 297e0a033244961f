#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/indexing.h"
#include "xylem/core/internal/function_ref.h"

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
// Of floats (f32, or the dtype) if one of the numbers is a float: arange(3.0), arange(0, 1, 0.25).
namespace internal {
Array float_range(double start, double stop, double step, std::optional<DType> dtype);
}
template <std::floating_point S>
Array arange(S stop) {
  return internal::float_range(0.0, static_cast<double>(stop), 1.0, std::nullopt);
}
template <class A, class B, class C = int>
requires((std::is_floating_point_v<A> || std::is_floating_point_v<B> ||
          std::is_floating_point_v<C>)&&std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>&&
             std::is_arithmetic_v<C>) Array
    arange(A start, B stop, C step = 1, std::optional<DType> dtype = std::nullopt) {
  return internal::float_range(static_cast<double>(start), static_cast<double>(stop),
                               static_cast<double>(step), dtype);
}
template <class S>
requires std::is_arithmetic_v<S> Array arange(S stop, DType dtype) {
  return internal::float_range(0.0, static_cast<double>(stop), 1.0, dtype);
}
template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) Array
    arange(A start, B stop, DType dtype) {
  return internal::float_range(static_cast<double>(start), static_cast<double>(stop), 1.0, dtype);
}
Array linspace(double start, double stop, std::int64_t num = 50, bool endpoint = true);
Array logspace(double start, double stop, std::int64_t num = 50, bool endpoint = true,
               double base = 10.0);
Array geomspace(double start, double stop, std::int64_t num = 50, bool endpoint = true);
Array identity(std::int64_t n, DType dtype = DType::kF32);
// Zeros, as in JAX.
Array empty(Dims shape, DType dtype = DType::kF32);
Array empty_like(const ArrayArg& x);
Array asarray(const ArrayArg& x, std::optional<DType> dtype = std::nullopt);
Array copy(const ArrayArg& x);
// Coordinate arrays; "xy" indexing swaps the first two axes.
std::vector<Array> meshgrid(std::span<const Array> axes, std::string_view indexing = "xy");
std::vector<Array> meshgrid(std::initializer_list<Array> axes, std::string_view indexing = "xy");
// i32[rank, shape…]: the coordinates of each element.
Array indices(Dims shape);
// Row and column indices of a triangle or the diagonal of n×m (n×n) matrices.
std::pair<Array, Array> tril_indices(std::int64_t n, int k = 0, std::int64_t m = -1);
std::pair<Array, Array> triu_indices(std::int64_t n, int k = 0, std::int64_t m = -1);
std::pair<Array, Array> diag_indices(std::int64_t n);
Array vander(const ArrayArg& x, std::int64_t n = -1, bool increasing = false);
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
inline Array pow(const ArrayArg& x, const ArrayArg& y) { return power(x, y); }
template <std::floating_point F>
Array pow(const ArrayArg& x, F y) {
  return power(x, y);
}
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

Array remainder(const ArrayArg& x, const ArrayArg& y);  // mod
Array float_power(const ArrayArg& x, const ArrayArg& y);
Array fmax(const ArrayArg& x, const ArrayArg& y);  // NaN only where both are
Array fmin(const ArrayArg& x, const ArrayArg& y);
Array logaddexp2(const ArrayArg& x, const ArrayArg& y);
Array heaviside(const ArrayArg& x, const ArrayArg& at_zero);
Array copysign(const ArrayArg& x, const ArrayArg& y);
Array nextafter(const ArrayArg& x, const ArrayArg& y);
Array ldexp(const ArrayArg& x, const ArrayArg& exponent);
Array gcd(const ArrayArg& x, const ArrayArg& y);
Array lcm(const ArrayArg& x, const ArrayArg& y);
std::pair<Array, Array> divmod(const ArrayArg& x, const ArrayArg& y);
std::pair<Array, Array> modf(const ArrayArg& x);  // fraction, whole part
Array isclose(const ArrayArg& x, const ArrayArg& y, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
Array allclose(const ArrayArg& x, const ArrayArg& y, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
Array array_equal(const ArrayArg& x, const ArrayArg& y, bool equal_nan = false);
Array array_equiv(const ArrayArg& x, const ArrayArg& y);

Array negative(const ArrayArg& x);
Array fabs(const ArrayArg& x);
Array signbit(const ArrayArg& x);
Array sinc(const ArrayArg& x);  // sin(πx) / πx
Array deg2rad(const ArrayArg& x);
Array rad2deg(const ArrayArg& x);
Array angle(const ArrayArg& x);
Array rint(const ArrayArg& x);  // as round; integers become floats
Array isposinf(const ArrayArg& x);
Array isneginf(const ArrayArg& x);
Array isreal(const ArrayArg& x);
Array iscomplex(const ArrayArg& x);
Array bitwise_count(const ArrayArg& x);
Array bitwise_not(const ArrayArg& x);
Array bitwise_left_shift(const ArrayArg& x, const ArrayArg& y);
Array bitwise_right_shift(const ArrayArg& x, const ArrayArg& y);
Array conjugate(const ArrayArg& x);
Array polyval(const ArrayArg& p, const ArrayArg& x);  // highest power first
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
Array round(const ArrayArg& x, int decimals = 0);  // half to even
Array trunc(const ArrayArg& x);
Array real(const ArrayArg& x);
Array imag(const ArrayArg& x);
Array conj(const ArrayArg& x);
Array isnan(const ArrayArg& x);
Array isinf(const ArrayArg& x);
Array isfinite(const ArrayArg& x);
Array where(const ArrayArg& condition, const ArrayArg& x, const ArrayArg& y);
Array clip(const ArrayArg& x, const ArrayArg& min, const ArrayArg& max);
Array nan_to_num(const ArrayArg& x, double nan = 0.0, std::optional<double> posinf = std::nullopt,
                 std::optional<double> neginf = std::nullopt);
// The first choice whose condition holds, else `otherwise`.
Array select(std::span<const Array> conditions, std::span<const Array> choices,
             const ArrayArg& otherwise = 0);
// The bits as another type of the same width, or with the last axis longer or shorter.
Array view(const ArrayArg& x, DType dtype);
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
// The array-API forms: small integers become i32; the axis is needed unless there is one only.
Array cumulative_sum(const ArrayArg& x, std::optional<int> axis = std::nullopt,
                     bool include_initial = false);
Array cumulative_prod(const ArrayArg& x, std::optional<int> axis = std::nullopt,
                      bool include_initial = false);
Array diff(const ArrayArg& x, int n = 1, int axis = -1);
Array ediff1d(const ArrayArg& x);
Array trapezoid(const ArrayArg& y, double dx = 1.0, int axis = -1);
Array trapezoid(const ArrayArg& y, const Array& x, int axis = -1);
Array gradient(const ArrayArg& x, double spacing = 1.0, int axis = 0);

// --- shape --------------------------------------------------------------------------------------
Array reshape(const ArrayArg& x, Dims shape);
Array ravel(const ArrayArg& x);
Array permute_dims(const ArrayArg& x, Dims permutation);
Array matrix_transpose(const ArrayArg& x);
Array moveaxis(const ArrayArg& x, const std::vector<int>& from, const std::vector<int>& to);
Array rollaxis(const ArrayArg& x, int axis, int start = 0);
Array atleast_1d(const ArrayArg& x);
Array atleast_2d(const ArrayArg& x);
Array atleast_3d(const ArrayArg& x);
std::vector<Array> broadcast_arrays(std::span<const Array> xs);
std::vector<Array> broadcast_arrays(std::initializer_list<Array> xs);
Dims broadcast_shapes(std::initializer_list<Dims> shapes);
Array concat(std::span<const Array> parts, int axis = 0, SourceLoc where = SourceLoc::current());
Array append(const ArrayArg& x, const ArrayArg& values, std::optional<int> axis = std::nullopt);
Array vstack(std::span<const Array> parts, SourceLoc where = SourceLoc::current());
Array hstack(std::span<const Array> parts, SourceLoc where = SourceLoc::current());
Array dstack(std::span<const Array> parts, SourceLoc where = SourceLoc::current());
Array column_stack(std::span<const Array> parts, SourceLoc where = SourceLoc::current());
// A matrix of blocks: rows of arrays, joined along the last axis and then the one before.
Array block(const std::vector<std::vector<Array>>& rows, SourceLoc where = SourceLoc::current());
std::vector<Array> array_split(const ArrayArg& x, int sections, int axis = 0);
std::vector<Array> vsplit(const ArrayArg& x, int sections);
std::vector<Array> hsplit(const ArrayArg& x, int sections);
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
// Each slice its own number of times; under jit the total must be given.
Array repeat(const ArrayArg& x, const Array& repeats, int axis,
             std::optional<std::int64_t> total = std::nullopt);
Array fliplr(const ArrayArg& x);
Array flipud(const ArrayArg& x);
Array rot90(const ArrayArg& x, int k = 1, int axis0 = 0, int axis1 = 1);
Array roll(const ArrayArg& x, std::int64_t shift);  // of the flat array
Array roll(const ArrayArg& x, const Array& shift, int axis);
Array flip(const ArrayArg& x, const AxisArg& axis = {});
Array roll(const ArrayArg& x, std::int64_t shift, int axis);
Array pad(const ArrayArg& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
          const ArrayArg& value = 0);
// Modes of NumPy: "constant", "edge", "reflect", "symmetric", "wrap", "empty".
Array pad(const ArrayArg& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
          std::string_view mode);
Array insert(const ArrayArg& x, std::int64_t index, const ArrayArg& values, int axis = 0);
Array delete_(const ArrayArg& x, std::int64_t index, int axis = 0);
Array resize(const ArrayArg& x, Dims shape);
Array tril(const ArrayArg& x, int k = 0);
Array triu(const ArrayArg& x, int k = 0);
Array diag(const ArrayArg& x, int k = 0);
Array diagflat(const ArrayArg& x, int k = 0);
Array diagonal(const ArrayArg& x, int offset = 0, int axis1 = 0, int axis2 = 1);
Array trace(const ArrayArg& x, int offset = 0, int axis1 = 0, int axis2 = 1);
// Coordinates of flat positions, and back.
std::vector<Array> unravel_index(const ArrayArg& positions, Dims shape);
Array ravel_multi_index(std::span<const Array> coordinates, Dims shape);
// Bits of u8, the most significant first unless `little`.
Array packbits(const ArrayArg& x, std::optional<int> axis = std::nullopt, bool little = false);
Array unpackbits(const ArrayArg& x, std::optional<int> axis = std::nullopt, bool little = false);

// --- products -----------------------------------------------------------------------------------
Array matmul(const ArrayArg& x, const ArrayArg& y);
Array dot(const ArrayArg& x, const ArrayArg& y);
Array vdot(const ArrayArg& x, const ArrayArg& y);
Array inner(const ArrayArg& x, const ArrayArg& y);
Array outer(const ArrayArg& x, const ArrayArg& y);
Array tensordot(const ArrayArg& x, const ArrayArg& y, int axes = 2);
Array tensordot(const ArrayArg& x, const ArrayArg& y, const std::vector<int>& x_axes,
                const std::vector<int>& y_axes);
Array vecdot(const ArrayArg& x, const ArrayArg& y, int axis = -1);
Array matvec(const ArrayArg& x, const ArrayArg& y);
Array vecmat(const ArrayArg& x, const ArrayArg& y);
Array kron(const ArrayArg& x, const ArrayArg& y);
Array cross(const ArrayArg& x, const ArrayArg& y, int axis = -1);
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
// Where each value belongs in a sorted vector: before equal ones, or behind them (right). NaN comes
// last.
Array searchsorted(const ArrayArg& sorted, const ArrayArg& values, bool right = false);
// side: "left" or "right".
Array searchsorted(const ArrayArg& sorted, const ArrayArg& values, const char* side);
Array put_along_axis(const ArrayArg& x, const ArrayArg& indices, const ArrayArg& values, int axis);
Array partition(const ArrayArg& x, int kth, int axis = -1);
Array argpartition(const ArrayArg& x, int kth, int axis = -1);
Array choose(const ArrayArg& which, std::span<const Array> choices);

// x with its flat elements at the indices set to the values, repeated as needed; out of range:
// dropped, or moved (kClip, kWrap).
Array put(const ArrayArg& x, const ArrayArg& indices, const ArrayArg& values,
          IndexMode mode = IndexMode::kDefault);
// x with the elements where the mask holds set to the values in order, repeated as needed.
Array place(const ArrayArg& x, const ArrayArg& mask, const ArrayArg& values);
// x with its diagonal (of the smallest axis) set to a value or to values, repeated as needed.
Array fill_diagonal(const ArrayArg& x, const ArrayArg& value);
// Vectors as axes of their own, so that x(…) of them is a rectangle.
std::vector<Array> ix_(std::span<const Array> vectors);
std::pair<Array, Array> tril_indices_from(const ArrayArg& x, int k = 0);
std::pair<Array, Array> triu_indices_from(const ArrayArg& x, int k = 0);
Array sort_complex(const ArrayArg& x);

// --- other names, functions of slices ------------------------------------------------------------
inline Array absolute(const ArrayArg& x) { return abs(x); }
inline Array acos(const ArrayArg& x) { return arccos(x); }
inline Array acosh(const ArrayArg& x) { return arccosh(x); }
inline Array asin(const ArrayArg& x) { return arcsin(x); }
inline Array asinh(const ArrayArg& x) { return arcsinh(x); }
inline Array atan(const ArrayArg& x) { return arctan(x); }
inline Array atanh(const ArrayArg& x) { return arctanh(x); }
inline Array atan2(const ArrayArg& y, const ArrayArg& x) { return arctan2(y, x); }
inline Array around(const ArrayArg& x, int decimals = 0) { return round(x, decimals); }
inline Array degrees(const ArrayArg& x) { return rad2deg(x); }
inline Array radians(const ArrayArg& x) { return deg2rad(x); }
inline Array true_divide(const ArrayArg& x, const ArrayArg& y) { return divide(x, y); }
inline Array bitwise_invert(const ArrayArg& x) { return invert(x); }
inline Array amax(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false) {
  return max(x, axis, keepdims);
}
inline Array amin(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false) {
  return min(x, axis, keepdims);
}
std::vector<Array> dsplit(const ArrayArg& x, int sections);
// Mantissa in [½, 1) and exponent, i32.
std::pair<Array, Array> frexp(const ArrayArg& x);
// To the next number away from zero.
Array spacing(const ArrayArg& x);
Array i0(const ArrayArg& x);

namespace internal {
using EachFunction = FunctionRef<Array(const Array&)>;
Array apply_along_axis(EachFunction f, int axis, const ArrayArg& x);
Array piecewise(const ArrayArg& x, std::span<const Array> conditions,
                std::span<const EachFunction> functions);
}  // namespace internal

// f of each vector along an axis; the axes of its result stand where the axis stood.
template <class F>
Array apply_along_axis(F&& f, int axis, const ArrayArg& x) {
  return internal::apply_along_axis([&f](const Array& line) { return Array(f(line)); }, axis, x);
}
// The function of the last condition that holds, of x; one more function stands for none of them,
// which otherwise give 0. The result has x's dtype.
template <class... F>
Array piecewise(const ArrayArg& x, std::span<const Array> conditions, F&&... functions) {
  [[maybe_unused]] auto one = [](auto& f) { return [&f](const Array& v) { return Array(f(v)); }; };
  std::tuple held{one(functions)...};
  return std::apply(
      [&](auto&... f) {
        std::array<internal::EachFunction, sizeof...(F)> all{internal::EachFunction(f)...};
        return internal::piecewise(x, conditions, all);
      },
      held);
}

// --- types ---------------------------------------------------------------------------------------
struct FloatInfo {
  double max, min, eps, epsneg, tiny, smallest_subnormal;
  int bits, nmant, nexp;
};
FloatInfo finfo(DType dtype);
struct IntInfo {
  std::int64_t min;
  std::uint64_t max;
  int bits;
};
IntInfo iinfo(DType dtype);
enum class DTypeGroup : std::uint8_t {
  kBool,
  kInteger,
  kSignedInteger,
  kUnsignedInteger,
  kFloating,
  kComplexFloating,
  kInexact,
  kNumber
};
bool issubdtype(DType dtype, DTypeGroup group);
DType result_type(std::initializer_list<ArrayArg> xs);
inline const Dims& shape(const Array& x) { return x.shape(); }
inline int ndim(const Array& x) { return x.ndim(); }
inline std::int64_t size(const Array& x) { return x.size(); }
inline bool isscalar(const Array& x) { return x.ndim() == 0; }
bool iscomplexobj(const Array& x);
inline bool isrealobj(const Array& x) { return !iscomplexobj(x); }

}  // namespace xylem
