#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/lax.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"
#include "xylem/core/transforms.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using internal::binary;
using internal::compare;
using internal::select;
using internal::unary;
using internal::weak_dtype;
using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

// Complex numbers are ordered by their real parts, equal ones by their imaginary parts.
Array ordered(const char* what, const ArrayArg& x, const ArrayArg& y, const char* direction) {
  if (!is_complex(x.array.dtype()) && !is_complex(y.array.dtype()))
    return compare(what, x, y, direction);
  internal::CallSite site(x.where);
  DType t = promote_types(weak_dtype(x.array), weak_dtype(y.array), x.where).dtype;
  Array a = x.array.astype(t), b = y.array.astype(t);
  return where(real(a) == real(b), compare(what, imag(a), imag(b), direction),
               compare(what, real(a), real(b), direction));
}

}  // namespace

// clang-format off
Array add(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kAdd, "add", x, y); }
Array subtract(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kSubtract, "subtract", x, y); }
Array multiply(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kMultiply, "multiply", x, y); }
Array divide(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kDivide, "divide", x, y, true); }
Array maximum(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kMaximum, "maximum", x, y); }
Array minimum(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kMinimum, "minimum", x, y); }
Array arctan2(const ArrayArg& y, const ArrayArg& x) { return binary(ops::kAtan2, "arctan2", y, x, true); }
Array bitwise_and(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kAnd, "bitwise_and", x, y); }
Array bitwise_or(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kOr, "bitwise_or", x, y); }
Array bitwise_xor(const ArrayArg& x, const ArrayArg& y) { return binary(ops::kXor, "bitwise_xor", x, y); }
Array equal(const ArrayArg& x, const ArrayArg& y) { return compare("equal", x, y, "EQ"); }
Array not_equal(const ArrayArg& x, const ArrayArg& y) { return compare("not_equal", x, y, "NE"); }
Array less(const ArrayArg& x, const ArrayArg& y) { return ordered("less", x, y, "LT"); }
Array less_equal(const ArrayArg& x, const ArrayArg& y) { return ordered("less_equal", x, y, "LE"); }
Array greater(const ArrayArg& x, const ArrayArg& y) { return ordered("greater", x, y, "GT"); }
Array greater_equal(const ArrayArg& x, const ArrayArg& y) { return ordered("greater_equal", x, y, "GE"); }

Array negative(const ArrayArg& x) { return unary(ops::kNegate, x); }
Array positive(const ArrayArg& x) { return x.array; }
Array exp(const ArrayArg& x) { return unary(ops::kExponential, x, true); }
Array expm1(const ArrayArg& x) { return unary(ops::kExponentialMinusOne, x, true); }
Array log(const ArrayArg& x) { return unary(ops::kLog, x, true); }
Array log1p(const ArrayArg& x) { return unary(ops::kLogPlusOne, x, true); }
Array sqrt(const ArrayArg& x) { return unary(ops::kSqrt, x, true); }
Array sin(const ArrayArg& x) { return unary(ops::kSine, x, true); }
Array cos(const ArrayArg& x) { return unary(ops::kCosine, x, true); }
Array tan(const ArrayArg& x) { return unary(ops::kTan, x, true); }
Array arcsin(const ArrayArg& x) { return unary(ops::kAsin, x, true); }
Array arccos(const ArrayArg& x) { return unary(ops::kAcos, x, true); }
Array arctan(const ArrayArg& x) { return unary(ops::kAtan, x, true); }
Array sinh(const ArrayArg& x) { return unary(ops::kSinh, x, true); }
Array cosh(const ArrayArg& x) { return unary(ops::kCosh, x, true); }
Array tanh(const ArrayArg& x) { return unary(ops::kTanh, x, true); }
Array arcsinh(const ArrayArg& x) { return unary(ops::kAsinh, x, true); }
Array arccosh(const ArrayArg& x) { return unary(ops::kAcosh, x, true); }
Array arctanh(const ArrayArg& x) { return unary(ops::kAtanh, x, true); }
Array invert(const ArrayArg& x) { return unary(ops::kNot, x); }

Array operator+(const ArrayArg& x, const ArrayArg& y) { return add(x, y); }
Array operator-(const ArrayArg& x, const ArrayArg& y) { return subtract(x, y); }
Array operator*(const ArrayArg& x, const ArrayArg& y) { return multiply(x, y); }
Array operator/(const ArrayArg& x, const ArrayArg& y) { return divide(x, y); }
Array operator%(const ArrayArg& x, const ArrayArg& y) { return mod(x, y); }
Array operator-(const ArrayArg& x) { return negative(x); }
Array operator==(const ArrayArg& x, const ArrayArg& y) { return equal(x, y); }
Array operator!=(const ArrayArg& x, const ArrayArg& y) { return not_equal(x, y); }
Array operator<(const ArrayArg& x, const ArrayArg& y) { return less(x, y); }
Array operator<=(const ArrayArg& x, const ArrayArg& y) { return less_equal(x, y); }
Array operator>(const ArrayArg& x, const ArrayArg& y) { return greater(x, y); }
Array operator>=(const ArrayArg& x, const ArrayArg& y) { return greater_equal(x, y); }
Array operator&(const ArrayArg& x, const ArrayArg& y) { return bitwise_and(x, y); }
Array operator|(const ArrayArg& x, const ArrayArg& y) { return bitwise_or(x, y); }
Array operator^(const ArrayArg& x, const ArrayArg& y) { return bitwise_xor(x, y); }
Array operator~(const ArrayArg& x) { return invert(x); }
Array operator<<(const ArrayArg& x, const ArrayArg& y) { return left_shift(x, y); }
Array operator>>(const ArrayArg& x, const ArrayArg& y) { return right_shift(x, y); }
Array& operator+=(Array& x, const ArrayArg& y) { return x = add(x, y); }
Array& operator-=(Array& x, const ArrayArg& y) { return x = subtract(x, y); }
Array& operator*=(Array& x, const ArrayArg& y) { return x = multiply(x, y); }
Array& operator/=(Array& x, const ArrayArg& y) { return x = divide(x, y); }
// clang-format on

namespace {

ArrayArg at(const Array& a, SourceLoc where) { return {a, where}; }

// bool as i32: for functions that NumPy computes in an integer.
ArrayArg counted(const ArrayArg& x) {
  return is_bool(x.array.dtype()) ? at(x.array.astype(DType::kI32, x.where), x.where) : x;
}

// x in the inexact dtype of functions of real numbers.
Array inexact(const ArrayArg& x) {
  return internal::with_dtype(x.array, to_inexact(weak_dtype(x.array)), x.where);
}

[[noreturn]] void refuse(const char* what, const char* expected, const Array& given,
                         const char* advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given.type_string(), advice},
                  internal::CallSite::outermost(where));
}

// x as bool: x != 0.
Array as_bool(const ArrayArg& x) {
  return is_bool(x.array.dtype()) ? x.array : not_equal(x, at(zeros_like(x), x.where));
}

}  // namespace

Array logical_and(const ArrayArg& x, const ArrayArg& y) {
  return bitwise_and(at(as_bool(x), x.where), as_bool(y));
}
Array logical_or(const ArrayArg& x, const ArrayArg& y) {
  return bitwise_or(at(as_bool(x), x.where), as_bool(y));
}
Array logical_xor(const ArrayArg& x, const ArrayArg& y) {
  return bitwise_xor(at(as_bool(x), x.where), as_bool(y));
}
Array logical_not(const ArrayArg& x) { return invert(at(as_bool(x), x.where)); }

Array cbrt(const ArrayArg& x) {
  if (is_complex(x.array.dtype()))
    refuse("cbrt", "a real array is needed", x.array, "Use power(x, 1.0 / 3)", x.where);
  return unary(ops::kCbrt, x, true);
}

// Two bools are powers of i32. An exponent that is an integer array makes the result strong.
Array power(const ArrayArg& base, const ArrayArg& exponent) {
  DType e = exponent.array.dtype();
  bool integral = !exponent.array.weak_type() &&
                  (is_integer(e) || (is_bool(e) && !is_inexact(base.array.dtype())));
  bool bools = is_bool(base.array.dtype()) && is_bool(e);
  Array r = binary(ops::kPower, "power", bools ? counted(base) : base,
                   bools ? counted(exponent) : exponent);
  bool strong = integral || (!is_inexact(r.dtype()) && !base.array.weak_type());
  return strong ? internal::with_weak(r, false) : r;
}

Array left_shift(const ArrayArg& x, const ArrayArg& y) {
  bool bools = is_bool(x.array.dtype()) && is_bool(y.array.dtype());
  return binary(ops::kShiftLeft, "left_shift", bools ? counted(x) : x, bools ? counted(y) : y);
}

Array right_shift(const ArrayArg& a, const ArrayArg& b) {
  bool bools = is_bool(a.array.dtype()) && is_bool(b.array.dtype());
  ArrayArg x = bools ? counted(a) : a, y = bools ? counted(b) : b;
  WeakDType t = promote_types(weak_dtype(x.array), weak_dtype(y.array), x.where);
  return binary(is_unsigned_int(t.dtype) ? ops::kShiftRightLogical : ops::kShiftRightArithmetic,
                "right_shift", x, y);
}

Array abs(const ArrayArg& x) {
  DType t = x.array.dtype();
  return is_bool(t) || is_unsigned_int(t) ? x.array : unary(ops::kAbs, x);
}
Array sign(const ArrayArg& x) {
  if (!is_unsigned_int(x.array.dtype())) return unary(ops::kSign, x);
  return internal::with_weak(minimum(x, ones_like(x)), x.array.weak_type());
}
Array square(const ArrayArg& x) { return multiply(counted(x), counted(x)); }
Array reciprocal(const ArrayArg& x) { return divide(at(ArrayArg(1.0).array, x.where), inexact(x)); }
Array exp2(const ArrayArg& x) {
  return exp(at(multiply(at(inexact(x), x.where), std::log(2.0)), x.where));
}
Array log2(const ArrayArg& x) { return divide(at(log(x), x.where), std::log(2.0)); }
Array log10(const ArrayArg& x) { return divide(at(log(x), x.where), std::log(10.0)); }

namespace {

Array rounding(const ir::OpDef& def, const ArrayArg& x) {
  DType t = x.array.dtype();
  if (is_complex(t))
    refuse(std::string(def.name).c_str(), "a real array is needed", x.array,
           "Round real and imag by themselves", x.where);
  return is_float(t) ? unary(def, x) : x.array;
}

}  // namespace

Array floor(const ArrayArg& x) { return rounding(ops::kFloor, x); }
Array ceil(const ArrayArg& x) { return rounding(ops::kCeil, x); }
Array round(const ArrayArg& x, int decimals) {
  DType t = x.array.dtype();
  if (is_bool(t))
    refuse("round", "an array of numbers is needed", x.array, "Convert it with astype", x.where);
  if (is_integer(t) && decimals < 0)
    refuse("round", "decimals of integers must not be negative", x.array,
           "Convert to a float dtype", x.where);
  if (is_complex(t))
    return binary(ops::kComplex, "round", at(round(at(real(x), x.where), decimals), x.where),
                  round(at(imag(x), x.where), decimals));
  if (decimals == 0 || is_integer(t) || decimals > std::log10(finfo(t).max))
    return decimals == 0 ? rounding(ops::kRoundNearestEven, x) : x.array;
  // f16 would overflow when scaled.
  Array wide = t == DType::kF16 ? x.array.astype(DType::kF32, x.where) : x.array;
  double factor = std::pow(10.0, decimals);
  Array scaled = rounding(ops::kRoundNearestEven, at(multiply(at(wide, x.where), factor), x.where));
  Array r = divide(at(scaled, x.where), factor);
  return t == DType::kF16 ? r.astype(t, x.where) : r;
}
Array trunc(const ArrayArg& x) {
  if (!is_float(x.array.dtype())) return rounding(ops::kFloor, x);
  return select(less(x, at(zeros_like(x), x.where)), ceil(x), floor(x), x.where);
}

Array real(const ArrayArg& x) {
  return is_complex(x.array.dtype()) ? unary(ops::kReal, x) : x.array;
}
Array imag(const ArrayArg& x) {
  return is_complex(x.array.dtype()) ? unary(ops::kImag, x) : zeros_like(x);
}
Array conj(const ArrayArg& x) {
  if (!is_complex(x.array.dtype())) return x.array;
  return binary(ops::kComplex, "conj", at(real(x), x.where), negative(at(imag(x), x.where)));
}
Array isnan(const ArrayArg& x) { return not_equal(x, x); }
Array isfinite(const ArrayArg& x) {
  if (!is_inexact(x.array.dtype())) return ones_like(x, DType::kBool);
  if (is_complex(x.array.dtype()))
    return logical_and(at(isfinite(at(real(x), x.where)), x.where), isfinite(imag(x)));
  return unary(ops::kIsFinite, x);
}
Array isinf(const ArrayArg& x) {
  if (!is_inexact(x.array.dtype())) return zeros_like(x, DType::kBool);
  return equal(at(abs(x), x.where), std::numeric_limits<double>::infinity());
}

Array floor_divide(const ArrayArg& a, const ArrayArg& b) {
  SourceLoc w = a.where;
  bool bools = is_bool(a.array.dtype()) && is_bool(b.array.dtype());
  WeakDType t = promote_types(weak_dtype(counted(a).array), weak_dtype(counted(b).array), w);
  if (!bools) t = promote_types(weak_dtype(a.array), weak_dtype(b.array), w);
  ArrayArg x = at(internal::with_dtype(a.array, t, w), w);
  ArrayArg y = at(internal::with_dtype(b.array, t, w), w);
  if (is_unsigned_int(t.dtype)) return binary(ops::kDivide, "floor_divide", x, y);
  if (is_float(t.dtype)) {
    // As NumPy: from the exact remainder, so that the quotient is the floor of the true one.
    Array r = fmod(x, y);
    Array q = divide(at(subtract(x, r), w), y);
    Array fix = logical_and(at(not_equal(at(r, w), 0.0), w),
                            not_equal(at(less(at(r, w), 0.0), w), less(y, 0.0)));
    q = select(fix, subtract(at(q, w), 1.0), q, w);
    return where(at(equal(y, 0.0), w), divide(x, y), round(at(q, w)));
  }
  Array q = binary(ops::kDivide, "floor_divide", x, y);
  Array fix = logical_and(
      at(not_equal(at(sign(at(binary(ops::kRemainder, "floor_divide", x, y), w)), w), 0), w),
      not_equal(at(sign(x), w), sign(y)));
  return select(fix, subtract(at(q, w), 1), q, w);
}

namespace {

// The remainder of the truncated division; 0 of integers by 0, as NumPy.
Array remainder(const char* what, const ArrayArg& x, const ArrayArg& y) {
  bool bools = is_bool(x.array.dtype()) && is_bool(y.array.dtype());
  Array r = binary(ops::kRemainder, what, bools ? counted(x) : x, bools ? counted(y) : y);
  if (!is_integer(r.dtype())) return r;
  Array zero = internal::with_weak(zeros_like(r), r.weak_type());
  return where(at(equal(y, zeros_like(y)), x.where), zero, r);
}

}  // namespace

Array fmod(const ArrayArg& x, const ArrayArg& y) { return remainder("fmod", x, y); }

Array mod(const ArrayArg& x, const ArrayArg& y) {
  SourceLoc w = x.where;
  Array r = remainder("mod", x, y);
  if (is_unsigned_int(r.dtype())) return r;
  Array zero = internal::with_weak(zeros_like(at(r, w)), r.weak_type());
  Array divisor =
      internal::broadcast(internal::with_dtype(y.array, weak_dtype(r), w), r.shape(), w);
  Array fix = logical_and(at(not_equal(at(r, w), zero), w),
                          not_equal(at(less(at(r, w), zero), w), less(divisor, zero)));
  return select(fix, add(at(r, w), divisor), r, w);
}

Array pow(const ArrayArg& x, int n) {
  if (n < 0 && !is_inexact(x.array.dtype()))
    refuse("pow", "a negative power of integers is not an integer", x.array,
           "Convert the array to a float dtype", x.where);
  ArrayArg number = counted(x);
  if (n == 0) return ones_like(number);
  bool invert_result = n < 0;
  auto k = static_cast<unsigned>(invert_result ? -n : n);
  Array acc, base = number.array;
  while (k) {
    if (k & 1) acc = acc.defined() ? multiply(at(acc, x.where), base) : base;
    k >>= 1;
    if (k) base = multiply(at(base, x.where), base);
  }
  return invert_result ? divide(at(ArrayArg(1.0).array, x.where), acc) : acc;
}

Array hypot(const ArrayArg& x, const ArrayArg& y) {
  SourceLoc w = x.where;
  for (const Array& a : {x.array, y.array})
    if (is_complex(a.dtype())) refuse("hypot", "real arrays are needed", a, "Use abs(x)", w);
  Array a = abs(x), b = abs(y);
  Array hi = maximum(at(a, w), b), lo = minimum(at(a, w), b);
  Array safe = where(at(equal(at(hi, w), 0.0), w), 1.0, hi);
  Array ratio = divide(at(lo, w), safe);
  Array r = multiply(at(hi, w), sqrt(at(add(at(square(at(ratio, w)), w), 1.0), w)));
  Array infinite = logical_or(at(isinf(at(a, w)), w), isinf(b));
  return where(at(infinite, w), std::numeric_limits<double>::infinity(), r);
}

namespace {

constexpr double kPi = 3.14159265358979323846;

// x moved into [-half, half) by multiples of 2 half.
Array wrapped(const Array& x, double half) { return mod(x + half, 2 * half) - half; }

Array logaddexp_value(const Array& x, const Array& y) {
  Array hi = maximum(x, y);
  if (is_complex(x.dtype())) {
    Array r = hi + log1p(exp(x + y - 2.0 * hi));
    return lax::complex(real(r), wrapped(imag(r), kPi));
  }
  Array d = subtract(x, y);
  Array sum = add(hi, log1p(exp(negative(abs(d)))));
  // Equal infinities have an undefined difference.
  return where(isnan(d), add(x, y), sum);
}

}  // namespace

// The derivatives are the shares of the terms in the sum: also where both are equal.
Array logaddexp(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  WeakDType t = to_inexact(promote_types(weak_dtype(x.array), weak_dtype(y.array), x.where));
  Dims shapes[2] = {x.array.shape(), y.array.shape()};
  Dims shape = internal::broadcast_shapes(shapes, "logaddexp", x.where);
  auto operand = [&](const ArrayArg& a) {
    return internal::broadcast(internal::with_dtype(a.array, t, x.where), shape, x.where);
  };
  using Pair = std::tuple<Array, Array>;
  // Value and shares as functions without a kink where both are equal, for higher derivatives.
  auto by_logistic = [](const Pair& primals, const Pair& tangents) {
    const auto& [a, b] = primals;
    Array d = subtract(a, b), m = stop_gradient(maximum(a, b));
    m = where(isfinite(m), m, 0.0);
    return std::pair{add(m, log(add(exp(subtract(a, m)), exp(subtract(b, m))))),
                     add(multiply(std::get<0>(tangents), special::expit(d)),
                         multiply(std::get<1>(tangents), special::expit(negative(d))))};
  };
  auto rule = [by_logistic](const Pair& primals, const Pair& tangents) {
    const auto& [a, b] = primals;
    Array r = custom_jvp(logaddexp_value, by_logistic)(a, b);
    auto finite = [](const Array& v) {
      return where(equal(v, std::numeric_limits<double>::infinity()), 0.0, v);
    };
    auto share = [&](const Array& term) { return exp(subtract(finite(term), finite(r))); };
    Array dot =
        add(multiply(std::get<0>(tangents), share(a)), multiply(std::get<1>(tangents), share(b)));
    return std::pair{r, dot};
  };
  return custom_jvp(logaddexp_value, rule)(operand(x), operand(y));
}

Array where(const ArrayArg& condition, const ArrayArg& x, const ArrayArg& y) {
  SourceLoc w = condition.where;
  WeakDType t =
      promote_types(weak_dtype(x.array), weak_dtype(y.array), internal::CallSite::outermost(w));
  Array p = as_bool(condition);
  Dims shapes[3] = {p.shape(), x.array.shape(), y.array.shape()};
  Dims shape = internal::broadcast_shapes(shapes, "where", w);
  return select(internal::broadcast(p, shape, w),
                internal::broadcast(internal::with_dtype(x.array, t, w), shape, w),
                internal::broadcast(internal::with_dtype(y.array, t, w), shape, w), w);
}

Array clip(const ArrayArg& x, const ArrayArg& min, const ArrayArg& max) {
  for (const Array& a : {x.array, min.array, max.array})
    if (is_complex(a.dtype()))
      refuse("clip", "real arrays are needed: complex numbers have no order", a,
             "Clip real and imag", x.where);
  return minimum(at(maximum(x, min), x.where), max);
}

Array nan_to_num(const ArrayArg& x, double nan, std::optional<double> posinf,
                 std::optional<double> neginf) {
  DType t = x.array.dtype();
  if (is_complex(t))
    return binary(ops::kComplex, "nan_to_num",
                  at(nan_to_num(at(real(x), x.where), nan, posinf, neginf), x.where),
                  nan_to_num(at(imag(x), x.where), nan, posinf, neginf));
  if (!is_float(t)) return x.array;
  FloatInfo info = finfo(t);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Array r = where(at(isnan(x), x.where), nan, x);
  r = where(at(equal(at(r, x.where), kInf), x.where), posinf.value_or(info.max), r);
  return where(at(equal(at(r, x.where), -kInf), x.where), neginf.value_or(info.min), r);
}

Array astype(const ArrayArg& x, DType dtype) { return x.array.astype(dtype, x.where); }
Array stop_gradient(const ArrayArg& x) {
  return is_inexact(x.array.dtype()) ? unary(ops::kStopGradient, x) : x.array;
}
Array checkpoint_name(const ArrayArg& x, std::string_view name) {
  return internal::apply_one(ops::kCheckpointName, std::span<const Array>(&x.array, 1),
                             Attrs{{"name", Attr(name)}}, x.where, x.array.weak_type());
}

}  // namespace xylem
