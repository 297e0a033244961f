#include <fmt/format.h>

#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using internal::keep;
using internal::reduce;
using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

ArrayArg at(const Array& a, SourceLoc where) { return {a, where}; }

// bool and small integers add up as the default integer of their sign.
DType sum_dtype(DType t) {
  if (is_bool(t)) return DType::kI32;
  if (is_signed_int(t) && dtype_bits(t) < 32) return DType::kI32;
  if (is_unsigned_int(t) && dtype_bits(t) < 32) return DType::kU32;
  return t;
}

bool half_width(DType t) { return is_float(t) && dtype_bits(t) <= 16; }

// Half-width floats accumulate in f32 and are rounded once.
Array accumulate(const ir::OpDef& def, const ArrayArg& x, const char* what, const AxisArg& axis,
                 bool keepdims) {
  DType t = x.array.dtype();
  Dims axes = axis.resolve(x.array.ndim(), what, x.where);
  Array wide = x.array.astype(half_width(t) ? DType::kF32 : sum_dtype(t), x.where);
  Array r = reduce(def, internal::with_weak(wide, x.array.weak_type()), axes, x.where);
  r = half_width(t) ? r.astype(t, x.where) : r;
  return keep(r, x.array.shape(), axes, keepdims, x.where);
}

std::int64_t count(const Array& x, const Dims& axes) {
  std::int64_t n = 1;
  for (std::int64_t a : axes) n *= x.shape()[a];
  return n;
}

Array extremum(const ir::OpDef& def, const char* what, const ArrayArg& x, const AxisArg& axis,
               bool keepdims) {
  Dims axes = axis.resolve(x.array.ndim(), what, x.where);
  if (count(x.array, axes) == 0)
    throw UserError(ErrorParts{what, "an empty reduction has no value",
                               fmt::format("given {}", x.array.type_string()),
                               "Reduce over axes that have elements"},
                    internal::CallSite::outermost(x.where));
  return keep(reduce(def, x.array, axes, x.where), x.array.shape(), axes, keepdims, x.where);
}

Array arg_extremum(const ir::OpDef& def, const char* what, const ArrayArg& x,
                   std::optional<int> axis, bool keepdims) {
  Array a = axis ? x.array : ravel(x);
  int ax = axis.value_or(0);
  Dims axes = AxisArg(ax).resolve(a.ndim(), what, x.where);
  Array r = internal::apply_one(
      def, std::span<const Array>(&a, 1),
      Attrs{{"dimension", Attr(axes[0])}, {"index_dtype", Attr(DType::kI32)}}, x.where);
  if (!keepdims) return r;
  if (!axis) return r.reshape(Dims(x.array.shape().size(), 1), x.where);
  return keep(r, a.shape(), axes, true, x.where);
}

Array cumulative(const ir::OpDef& def, const char* what, const ArrayArg& x,
                 std::optional<int> axis) {
  Array a = axis ? x.array : ravel(x);
  if (is_bool(a.dtype())) a = a.astype(DType::kI32, x.where);
  Dims axes = AxisArg(axis.value_or(0)).resolve(a.ndim(), what, x.where);
  return internal::apply_one(def, std::span<const Array>(&a, 1),
                             Attrs{{"dimension", Attr(axes[0])}, {"reverse", Attr(false)}}, x.where,
                             a.weak_type());
}

}  // namespace

Array sum(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return accumulate(ops::kAdd, x, "sum", axis, keepdims);
}
Array prod(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return accumulate(ops::kMultiply, x, "prod", axis, keepdims);
}

Array mean(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  DType t = x.array.dtype();
  Dims axes = axis.resolve(x.array.ndim(), "mean", x.where);
  DType wide = half_width(t) || !is_inexact(t) ? DType::kF32 : t;
  Array total = reduce(ops::kAdd, x.array.astype(wide, x.where), axes, x.where);
  Array r = divide(at(total, x.where), static_cast<double>(count(x.array, axes)));
  if (half_width(t)) r = r.astype(t, x.where);
  return keep(r, x.array.shape(), axes, keepdims, x.where);
}

// Two passes: the mean, then the squares of the differences from it.
Array var(const ArrayArg& x, const AxisArg& axis, double ddof, bool keepdims) {
  DType t = x.array.dtype();
  Dims axes = axis.resolve(x.array.ndim(), "var", x.where);
  DType wide = half_width(t) || !is_inexact(t) ? DType::kF32 : t;
  ArrayArg a = at(x.array.astype(wide, x.where), x.where);
  Array centered = subtract(a, mean(a, axis, true));
  Array squares =
      is_complex(wide)
          ? real(at(multiply(at(centered, x.where), conj(at(centered, x.where))), x.where))
          : square(at(centered, x.where));
  double n = static_cast<double>(count(x.array, axes)) - ddof;
  Array total = reduce(ops::kAdd, squares, axes, x.where);
  Array r = divide(at(total, x.where), n > 0 ? n : std::numeric_limits<double>::quiet_NaN());
  if (half_width(t)) r = r.astype(t, x.where);
  return keep(r, x.array.shape(), axes, keepdims, x.where);
}

Array std(const ArrayArg& x, const AxisArg& axis, double ddof, bool keepdims) {
  return sqrt(at(var(x, axis, ddof, keepdims), x.where));
}

Array max(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return extremum(ops::kMaximum, "max", x, axis, keepdims);
}
Array min(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return extremum(ops::kMinimum, "min", x, axis, keepdims);
}

Array any(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  Dims axes = axis.resolve(x.array.ndim(), "any", x.where);
  Array b = logical_not(at(logical_not(x), x.where));
  return keep(reduce(ops::kOr, b, axes, x.where), x.array.shape(), axes, keepdims, x.where);
}
Array all(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  Dims axes = axis.resolve(x.array.ndim(), "all", x.where);
  Array b = logical_not(at(logical_not(x), x.where));
  return keep(reduce(ops::kAnd, b, axes, x.where), x.array.shape(), axes, keepdims, x.where);
}

Array argmax(const ArrayArg& x, std::optional<int> axis, bool keepdims) {
  return arg_extremum(ops::kArgmax, "argmax", x, axis, keepdims);
}
Array argmin(const ArrayArg& x, std::optional<int> axis, bool keepdims) {
  return arg_extremum(ops::kArgmin, "argmin", x, axis, keepdims);
}

// max + log sum exp(x - max); where the maximum is not finite, 0 is subtracted instead.
Array logsumexp(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  SourceLoc w = x.where;
  Array a = is_inexact(x.array.dtype()) ? x.array : x.array.astype(DType::kF32, w);
  Dims axes = axis.resolve(a.ndim(), "logsumexp", w);
  if (count(a, axes) == 0)
    return keep(reduce(ops::kMaximum, a, axes, w), a.shape(), axes, keepdims, w);
  Array m = keep(reduce(ops::kMaximum, a, axes, w), a.shape(), axes, true, w);
  m = stop_gradient(at(where(at(isfinite(at(m, w)), w), m, zeros_like(m)), w));
  Array e = exp(at(subtract(at(a, w), m), w));
  Array r =
      add(at(log(at(keep(reduce(ops::kAdd, e, axes, w), a.shape(), axes, true, w), w)), w), m);
  if (keepdims) return r;
  Dims shape;
  for (int d = 0; d < a.ndim(); ++d)
    if (!axes.contains(d)) shape.push_back(a.shape()[d]);
  return r.reshape(shape, w);
}

Array count_nonzero(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return sum(at(logical_not(at(logical_not(x), x.where)), x.where), axis, keepdims);
}

Array cumsum(const ArrayArg& x, std::optional<int> axis) {
  return cumulative(ops::kCumsum, "cumsum", x, axis);
}
Array cumprod(const ArrayArg& x, std::optional<int> axis) {
  return cumulative(ops::kCumprod, "cumprod", x, axis);
}

}  // namespace xylem
