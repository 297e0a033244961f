// Elementwise functions that are made of others.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/control_flow.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using internal::CallSite;
using internal::constant;
using internal::weak_dtype;
using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

constexpr double kPi = 3.14159265358979323846;

Array inexact(const ArrayArg& x) {
  return internal::with_dtype(x.array, to_inexact(weak_dtype(x.array)), x.where);
}

// Both operands in their common dtype and shape.
std::pair<Array, Array> promoted(const char* what, const ArrayArg& x, const ArrayArg& y,
                                 bool as_inexact = false) {
  WeakDType t =
      promote_types(weak_dtype(x.array), weak_dtype(y.array), CallSite::outermost(x.where));
  if (as_inexact) t = to_inexact(t);
  Dims shapes[2] = {x.array.shape(), y.array.shape()};
  Dims shape = internal::broadcast_shapes(shapes, what, x.where);
  auto one = [&](const Array& a) {
    return internal::broadcast(internal::with_dtype(a, t, x.where), shape, x.where);
  };
  return {one(x.array), one(y.array)};
}

Array cast_bits(const Array& x, DType to) {
  return internal::apply_one(ops::kBitcastConvert, std::span<const Array>(&x, 1),
                             Attrs{{"result_dtype", Attr(to)}});
}

DType bits_of(DType t) {
  int n = dtype_bits(t);
  return n == 8 ? DType::kU8 : n == 16 ? DType::kU16 : n == 32 ? DType::kU32 : DType::kU64;
}

void need_real(const char* what, const Array& x, SourceLoc where) {
  if (is_complex(x.dtype()))
    throw UserError(
        ErrorParts{what, "a real array is needed", x.type_string(), "Take real, imag or abs first"},
        CallSite::outermost(where));
}

}  // namespace

Array remainder(const ArrayArg& x, const ArrayArg& y) { return mod(x, y); }
Array bitwise_not(const ArrayArg& x) { return invert(x); }
Array bitwise_left_shift(const ArrayArg& x, const ArrayArg& y) { return left_shift(x, y); }
Array bitwise_right_shift(const ArrayArg& x, const ArrayArg& y) { return right_shift(x, y); }
Array conjugate(const ArrayArg& x) { return conj(x); }
Array isposinf(const ArrayArg& x) {
  CallSite site(x.where);
  need_real("isposinf", x.array, x.where);
  if (!is_float(x.array.dtype())) return zeros_like(x, DType::kBool);
  return equal(x, std::numeric_limits<double>::infinity());
}
Array isneginf(const ArrayArg& x) {
  CallSite site(x.where);
  need_real("isneginf", x.array, x.where);
  if (!is_float(x.array.dtype())) return zeros_like(x, DType::kBool);
  return equal(x, -std::numeric_limits<double>::infinity());
}
Array isreal(const ArrayArg& x) {
  CallSite site(x.where);
  return equal(imag(x), 0);
}
Array iscomplex(const ArrayArg& x) {
  CallSite site(x.where);
  return not_equal(imag(x), 0);
}

Array float_power(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  auto [a, b] = promoted("float_power", x, y, true);
  return power(a, b);
}

Array fmax(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  auto [a, b] = promoted("fmax", x, y);
  return where(logical_or(greater(a, b), isnan(b)), a, b);
}
Array fmin(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  auto [a, b] = promoted("fmin", x, y);
  return where(logical_or(less(a, b), isnan(b)), a, b);
}

Array logaddexp2(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  auto [a, b] = promoted("logaddexp2", x, y, true);
  double ln2 = std::log(2.0);
  return logaddexp(a * ln2, b * ln2) / ln2;
}

Array heaviside(const ArrayArg& x, const ArrayArg& at_zero) {
  CallSite site(x.where);
  auto [a, b] = promoted("heaviside", x, at_zero, true);
  need_real("heaviside", a, x.where);
  return where(isnan(a), a, where(less(a, 0.0), zeros_like(a), where(a == 0.0, b, ones_like(a))));
}

Array signbit(const ArrayArg& x) {
  CallSite site(x.where);
  DType t = x.array.dtype();
  need_real("signbit", x.array, x.where);
  if (!is_float(t)) return is_signed_int(t) ? less(x, 0) : zeros_like(x, DType::kBool);
  DType u = bits_of(t);
  return right_shift(cast_bits(x.array, u), constant(u, {}, dtype_bits(t) - 1))
      .astype(DType::kBool);
}

Array copysign(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  auto [a, b] = promoted("copysign", x, y, true);
  need_real("copysign", a, x.where);
  return where(signbit(b), -abs(a), abs(a));
}

Array nextafter(const ArrayArg& x, const ArrayArg& y) { return special::nextafter(x, y); }

Array ldexp(const ArrayArg& x, const ArrayArg& exponent) {
  CallSite site(x.where);
  if (!is_integer(exponent.array.dtype()) || is_complex(x.array.dtype()))
    throw_user_error({"ldexp", "a real array and an integer exponent",
                      fmt::format("{} and {}", x.array.type_string(), exponent.array.type_string()),
                      "Convert the exponent with astype"},
                     CallSite::outermost(x.where));
  Array a = inexact(x);
  // In two steps, so that the factor does not overflow where the result does not.
  Array e = exponent.array.astype(DType::kI32);
  Array half = floor_divide(e, 2);
  auto two_to = [&](const Array& n) {
    return power(constant(a.dtype(), {}, 2), n.astype(a.dtype()));
  };
  return internal::with_dtype(a * two_to(half) * two_to(e - half), {a.dtype(), a.weak_type()}, {});
}

namespace {

void need_integers(const char* what, const ArrayArg& x, const ArrayArg& y) {
  for (const Array* a : {&x.array, &y.array})
    if (!is_integer(a->dtype()))
      throw UserError(
          ErrorParts{what, "integer arrays are needed", a->type_string(), "Convert with astype"},
          CallSite::outermost(x.where));
}

}  // namespace

Array gcd(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  need_integers("gcd", x, y);
  auto [a, b] = promoted("gcd", x, y);
  using Pair = std::pair<Array, Array>;
  Pair r = while_loop([](const Pair& p) { return any(p.second != 0); },
                      [](const Pair& p) {
                        Array done = p.second == 0;
                        Array rest = fmod(p.first, where(done, ones_like(p.second), p.second));
                        return Pair{where(done, p.first, p.second), where(done, p.second, rest)};
                      },
                      Pair{astype(abs(a), a.dtype()), astype(abs(b), a.dtype())});
  return r.first;
}

Array lcm(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  need_integers("lcm", x, y);
  auto [a, b] = promoted("lcm", x, y);
  Array d = gcd(a, b), none = d == 0;
  Array safe = where(none, ones_like(d), d);
  return where(none, zeros_like(d), abs(a) * floor_divide(abs(b), safe));
}

std::pair<Array, Array> divmod(const ArrayArg& x, const ArrayArg& y) {
  return {floor_divide(x, y), mod(x, y)};
}

std::pair<Array, Array> modf(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = inexact(x), whole = trunc(a);
  return {a - whole, whole};
}

Array isclose(const ArrayArg& x, const ArrayArg& y, double rtol, double atol, bool equal_nan) {
  CallSite site(x.where);
  auto [a, b] = promoted("isclose", x, y, true);
  DType t = is_complex(a.dtype()) ? abs(a).dtype() : a.dtype();
  Array near = abs(a - b).astype(t) <= constant(t, {}, atol) + constant(t, {}, rtol) * abs(b);
  Array close = (a == b) | (isfinite(b) & near);
  return equal_nan ? close | (isnan(a) & isnan(b)) : close;
}

Array allclose(const ArrayArg& x, const ArrayArg& y, double rtol, double atol, bool equal_nan) {
  return all(isclose(x, y, rtol, atol, equal_nan));
}

Array array_equal(const ArrayArg& x, const ArrayArg& y, bool equal_nan) {
  CallSite site(x.where);
  if (x.array.shape() != y.array.shape()) return zeros({}, DType::kBool);
  Array same = equal(x, y);
  if (equal_nan) same = same | (isnan(x) & isnan(y));
  return all(same);
}

Array array_equiv(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  try {
    return all(equal(x, y));
  } catch (const UserError&) {
    return zeros({}, DType::kBool);  // shapes that do not broadcast are not equivalent
  }
}

Array fabs(const ArrayArg& x) {
  CallSite site(x.where);
  need_real("fabs", x.array, x.where);
  return abs(inexact(x));
}

// At 0 its Taylor polynomial, whose value and first seven derivatives there are those of sinc.
Array sinc(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = inexact(x);
  Array zero = a == 0.0, t = a * kPi, safe = where(zero, ones_like(t), t), t2 = t * t;
  Array series = 1.0 - t2 / 6.0 * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0));
  return where(zero, series, sin(safe) / safe);
}

Array deg2rad(const ArrayArg& x) {
  CallSite site(x.where);
  return inexact(x) * (kPi / 180);
}
Array rad2deg(const ArrayArg& x) {
  CallSite site(x.where);
  return inexact(x) * (180 / kPi);
}
Array angle(const ArrayArg& x) {
  CallSite site(x.where);
  if (is_complex(x.array.dtype())) return arctan2(imag(x), real(x));
  // As in JAX, a scalar is at least f32.
  Array a = inexact(x);
  if (a.ndim() == 0 && dtype_bits(a.dtype()) < 32) a = a.astype(DType::kF32);
  return arctan2(zeros_like(a), a);
}
Array rint(const ArrayArg& x) {
  CallSite site(x.where);
  return round(is_complex(x.array.dtype()) ? x.array : inexact(x));
}

Array bitwise_count(const ArrayArg& x) {
  CallSite site(x.where);
  if (is_bool(x.array.dtype())) return x.array.astype(DType::kU8);
  if (!is_integer(x.array.dtype()))
    throw_user_error({"bitwise_count", "an integer array is needed", x.array.type_string(),
                      "Convert with astype"},
                     CallSite::outermost(x.where));
  Array a = is_signed_int(x.array.dtype()) ? abs(x) : x.array;
  return internal::unary(ops::kPopcnt, a).astype(DType::kU8);
}

Array polyval(const ArrayArg& p, const ArrayArg& x) {
  CallSite site(p.where);
  if (p.array.ndim() != 1)
    throw_user_error(
        {"polyval", "a vector of coefficients is needed", p.array.type_string(), "Flatten them"},
        CallSite::outermost(p.where));
  WeakDType t = promote_types(weak_dtype(p.array), weak_dtype(x.array), p.where);
  Array a = internal::with_dtype(x.array, t, {}), y = zeros(a.shape(), t.dtype);
  for (std::int64_t i = 0; i < p.array.dim(0); ++i) y = y * a + p.array[i].astype(t.dtype);
  return y;
}

Array select(std::span<const Array> conditions, std::span<const Array> choices,
             const ArrayArg& otherwise) {
  CallSite site(otherwise.where);
  if (conditions.size() != choices.size() || conditions.empty())
    throw_user_error(
        {"select", "as many choices as conditions, one at least",
         fmt::format("{} conditions, {} choices", conditions.size(), choices.size()), "Pair them"},
        CallSite::outermost(otherwise.where));
  Array r = otherwise.array;
  for (std::size_t i = choices.size(); i-- > 0;) r = where(conditions[i], choices[i], r);
  return r;
}

Array choose(const ArrayArg& which, std::span<const Array> choices) {
  CallSite site(which.where);
  if (choices.empty())
    throw_user_error({"choose", "at least one choice is needed", "none was given",
                      "Pass the arrays to choose from"},
                     CallSite::outermost(which.where));
  if (!is_integer(which.array.dtype()))
    throw_user_error({"choose", "an array of integers is needed", which.array.type_string(),
                      "Convert with astype"},
                     CallSite::outermost(which.where));
  Array r = choices[0];
  for (std::size_t i = 1; i < choices.size(); ++i)
    r = where(greater_equal(which, static_cast<int>(i)), choices[i], r);
  return r;
}

Array view(const ArrayArg& x, DType to) {
  CallSite site(x.where);
  if (is_bool(x.array.dtype()) && !is_bool(to)) return view(x.array.astype(DType::kU8), to);
  if (is_bool(to) && !is_bool(x.array.dtype())) return view(x, DType::kU8) != 0;
  Array a = x.array;
  int from_bits = dtype_bits(a.dtype()), to_bits = dtype_bits(to);
  if (from_bits < to_bits) {
    int n = to_bits / from_bits;
    if (a.ndim() == 0 || a.dim(-1) % n != 0)
      throw_user_error({"view", fmt::format("the last axis must be a multiple of {}", n),
                        fmt::format("{} as {}", a.type_string(), dtype_name(to)),
                        "Pad it, or view a type of the same width"},
                       CallSite::outermost(x.where));
    Dims shape = a.shape();
    shape[shape.size() - 1] /= n;
    shape.push_back(n);
    return cast_bits(a.reshape(shape), to);
  }
  if (from_bits == to_bits) return cast_bits(a, to);
  if (a.ndim() == 0)
    throw_user_error(
        {"view", "an array with an axis is needed to view a narrower type",
         fmt::format("{} as {}", a.type_string(), dtype_name(to)), "Use lax::bitcast_convert_type"},
        CallSite::outermost(x.where));
  Array r = cast_bits(a, to);
  Dims shape = a.shape();
  shape[shape.size() - 1] *= from_bits / to_bits;
  return r.reshape(shape);
}

}  // namespace xylem
