#include <cmath>
#include <limits>
#include <numbers>

#include "xylem/ir/expr.h"
#include "xylem/ir/ops/elementary.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/internal/elementary_expand.h"

namespace xylem::ir::ops {
namespace {

using Values = std::vector<ValueId>;
using Operands = std::span<const ValueId>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2 = std::numbers::ln2;
constexpr double kPi = std::numbers::pi;

Expr exp(Expr x) { return unary(kExponential, x); }
Expr expm1(Expr x) { return unary(kExponentialMinusOne, x); }
Expr log(Expr x) { return unary(kLog, x); }
Expr log1p(Expr x) { return unary(kLogPlusOne, x); }
Expr sqrt(Expr x) { return unary(kSqrt, x); }
Expr abs(Expr x) { return unary(kAbs, x); }
Expr real(Expr x) { return unary(kReal, x); }
Expr imag(Expr x) { return unary(kImag, x); }
Expr atan2(Expr y, Expr x) { return binary(kAtan2, y, x); }
Expr complex(Expr re, Expr im) { return binary(kComplex, re, im); }
Expr sign(Expr x) { return unary(kSign, x); }

// i z and -i z.
Expr times_i(Expr z) { return complex(-imag(z), real(z)); }
Expr times_minus_i(Expr z) { return complex(imag(z), -real(z)); }

template <class F>
Values with_range(Builder& b, Operands v, F&& f) {
  Expr x{&b, v[0]};
  const DType t = x.dtype();
  if (is_complex(t) || dtype_bits(t) >= 32) return {f(x).v};
  return {convert(f(convert(x, DType::kF32)), t).v};
}

template <std::size_t N>
Expr polynomial(Expr x, const double (&c)[N]) {
  Expr p = like(x, c[0]);
  for (std::size_t i = 1; i < N; ++i) p = p * x + c[i];
  return p;
}

// W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969).

// erf(x) / x on |x| <= 0.46875.
Expr erf_over_x(Expr x2) {
  constexpr double kP[] = {1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
                           3.77485237685302021e2, 3.20937758913846947e3};
  constexpr double kQ[] = {1, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
                           2.84423683343917062e3};
  return polynomial(x2, kP) / polynomial(x2, kQ);
}

// exp(-y²) for y >= 0: the square of y's leading part is exact.
Expr exp_minus_square(Expr y) {
  const double scale = y.dtype() == DType::kF64 ? 16 : 8;
  Expr head = unary(kFloor, y * scale) / scale;
  return exp(-(head * head)) * exp(-((y - head) * (y + head)));
}

// erfc(y) for y >= 0.46875.
Expr erfc_tail(Expr y) {
  constexpr double kC[] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
                           6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
                           1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
  constexpr double kD[] = {1,
                           1.57449261107098347e1,
                           1.17693950891312499e2,
                           5.37181101862009858e2,
                           1.62138957456669019e3,
                           3.29079923573345963e3,
                           4.36261909014324716e3,
                           3.43936767414372164e3,
                           1.23033935480374942e3};
  constexpr double kP[] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                           1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4};
  constexpr double kQ[] = {1,
                           2.56852019228982242e0,
                           1.87295284992346725e0,
                           5.27905102951428412e-1,
                           6.05183413124413191e-2,
                           2.33520497626869185e-3};
  // Away from their ranges neither form may overflow.
  Expr near = binary(kMinimum, y, like(y, 4));
  Expr far = binary(kMaximum, y, like(y, 4));
  Expr middle = polynomial(near, kC) / polynomial(near, kD);
  Expr z = 1.0 / (far * far);
  Expr tail = (1 / std::sqrt(kPi) - z * (polynomial(z, kP) / polynomial(z, kQ))) / far;
  const double zero_from = y.dtype() == DType::kF64 ? 26.6 : 10.1;
  Expr value = exp_minus_square(binary(kMinimum, y, like(y, zero_from))) *
               select(compare(y, 4, "LE"), middle, tail);
  return select(compare(y, zero_from, "GE"), like(y, 0), value);
}

Expr erf_of(Expr x) {
  Expr y = abs(x);
  Expr small = x * erf_over_x(x * x);
  Expr large = sign(x) * (1.0 - erfc_tail(y));
  return select(compare(x, x, "NE"), x, select(compare(y, 0.46875, "LE"), small, large));
}

Expr erfc_of(Expr x) {
  Expr y = abs(x);
  Expr small = 1.0 - x * erf_over_x(x * x);
  Expr tail = erfc_tail(y);
  Expr large = select(compare(x, 0, "LT"), 2.0 - tail, tail);
  return select(compare(x, x, "NE"), x, select(compare(y, 0.46875, "LE"), small, large));
}

// M. Giles, "Approximating the erfinv function" (2010); f64 adds Halley's steps on erf.
Expr erf_inv_of(Expr x) {
  constexpr double kCentral[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                 -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                 -0.00417768164,  0.246640727,    1.50140941};
  constexpr double kTail[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                              -0.00367342844,  0.00573950773,  -0.0076224613,
                              0.00943887047,   1.00167406,     2.83297682};
  Expr w = -log1p(-(x * x));
  Expr y = select(compare(w, 5, "LT"), polynomial(w - 2.5, kCentral),
                  polynomial(sqrt(binary(kMaximum, w, like(w, 5))) - 3.0, kTail)) *
           x;
  if (x.dtype() == DType::kF64) {
    Expr a = abs(x);
    Expr r = abs(y);
    for (int i = 0; i < 2; ++i) {
      Expr f = select(compare(a, 0.5, "GT"), (1.0 - a) - erfc_of(r), erf_of(r) - a);
      Expr d = f * (std::sqrt(kPi) / 2) * exp(r * r);
      r = r - d / (1.0 + r * d);
    }
    y = sign(x) * r;
  }
  Expr edge = select(compare(abs(x), 1, "EQ"), sign(x) * kInf, like(x, kNaN));
  return select(compare(abs(x), 1, "LT"), y, edge);
}

Expr sinh_of(Expr x) {
  if (is_complex(x.dtype())) return (exp(x) - exp(-x)) * 0.5;
  Expr u = expm1(abs(x));
  Expr small = (u + u / (u + 1.0)) * 0.5;
  // Half of exp, before it overflows.
  Expr large = exp(abs(x) - kLog2);
  return sign(x) * select(compare(abs(x), 20, "LT"), small, large);
}

Expr cosh_of(Expr x) {
  if (is_complex(x.dtype())) return (exp(x) + exp(-x)) * 0.5;
  Expr y = abs(x) - kLog2;
  return exp(y) + exp(-abs(x)) * 0.5;
}

Expr asinh_of(Expr x) {
  if (is_complex(x.dtype())) return log(x + sqrt(x * x + 1.0));
  Expr y = abs(x);
  Expr bounded = binary(kMinimum, y, like(y, 1e8));
  Expr near = log1p(bounded + bounded * bounded / (1.0 + sqrt(bounded * bounded + 1.0)));
  return select(compare(y, 1e8, "LT"), sign(x) * near, sign(x) * (log(y) + kLog2));
}

Expr acosh_of(Expr x) {
  if (is_complex(x.dtype())) return log(x + sqrt(x + 1.0) * sqrt(x - 1.0));
  Expr bounded = binary(kMinimum, x, like(x, 1e8));
  Expr t = bounded - 1.0;
  Expr near = log1p(t + sqrt(t * (t + 2.0)));
  Expr value = select(compare(x, 1e8, "LT"), near, log(x) + kLog2);
  return select(compare(x, 1, "LT"), like(x, kNaN), value);
}

Expr atanh_of(Expr x) { return (log1p(x) - log1p(-x)) * 0.5; }

Expr asin_of(Expr x) {
  if (is_complex(x.dtype())) return times_minus_i(asinh_of(times_i(x)));
  return 2.0 * atan2(x, 1.0 + sqrt((1.0 - x) * (1.0 + x)));
}

Expr acos_of(Expr x) {
  if (is_complex(x.dtype())) return kPi / 2 - asin_of(x);
  return select(compare(x, -1, "EQ"), like(x, kPi),
                2.0 * atan2(sqrt((1.0 - x) * (1.0 + x)), 1.0 + x));
}

Expr atan_of(Expr x) {
  if (is_complex(x.dtype())) return times_minus_i(atanh_of(times_i(x)));
  return atan2(x, like(x, 1));
}

Expr square_of(Expr x) {
  if (!is_complex(x.dtype())) return x * x;
  Expr re = real(x), im = imag(x);
  // Where the sum overflows the difference is still 0.
  Expr equal = binary(kAnd, compare(abs(re), abs(im), "EQ"), compare(abs(re), kInf, "LT"));
  Expr product = re * im;
  return complex(select(equal, like(re, 0), (re - im) * (re + im)), product + product);
}

}  // namespace

Values expand_erf(Builder& b, const Op&, Operands v) { return with_range(b, v, erf_of); }
Values expand_erfc(Builder& b, const Op&, Operands v) { return with_range(b, v, erfc_of); }
Values expand_erf_inv(Builder& b, const Op&, Operands v) { return with_range(b, v, erf_inv_of); }
Values expand_asin(Builder& b, const Op&, Operands v) { return with_range(b, v, asin_of); }
Values expand_acos(Builder& b, const Op&, Operands v) { return with_range(b, v, acos_of); }
Values expand_atan(Builder& b, const Op&, Operands v) { return with_range(b, v, atan_of); }
Values expand_sinh(Builder& b, const Op&, Operands v) { return with_range(b, v, sinh_of); }
Values expand_cosh(Builder& b, const Op&, Operands v) { return with_range(b, v, cosh_of); }
Values expand_asinh(Builder& b, const Op&, Operands v) { return with_range(b, v, asinh_of); }
Values expand_acosh(Builder& b, const Op&, Operands v) { return with_range(b, v, acosh_of); }
Values expand_atanh(Builder& b, const Op&, Operands v) { return with_range(b, v, atanh_of); }
Values expand_square(Builder& b, const Op&, Operands v) { return {square_of(Expr{&b, v[0]}).v}; }

}  // namespace xylem::ir::ops
