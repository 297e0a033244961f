#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// Hyperbolic functions and their inverses.

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// x + x^3 p(x^2).
V odd_poly(V x, std::span<const double> p) {
  V u = x * x;
  return fma(poly(u, p) * u, x, x);
}

// (e^a -+ e^-a) / 2 for a >= 0 (minus: a >= 1): with e^a = 2^n (1 + t) it is
// 2^(n-1) (h + (l -+ 2^-2n / h)) where h + l = 1 + t exactly.
V sinh_cosh(V a, bool minus) {
  ExpReduced e = exp_reduce(at_most(a, a.is_f64() ? 712 : 91));
  V t = exp_minus_one_reduced(e.r);
  DD h = fast_two_sum(t.like(1), t);
  V z = pow2(a, e.n.integer * -2) / h.hi;
  return ldexp(h.hi + (minus ? h.lo - z : h.lo + z), e.n.integer - 1);
}

// x + sqrt(x^2 + c) for 1/2 <= x < 2^28.
DD plus_sqrt(V x, double c) {
  DD square = two_product(x, x);
  DD sum = two_sum(square.hi, x.like(c));
  DD root = sqrt(DD{sum.hi, sum.lo + square.lo});
  DD y = c > 0 ? fast_two_sum(root.hi, x) : fast_two_sum(x, root.hi);
  return {y.hi, y.lo + root.lo};
}

// log(x + sqrt(x^2 + c)) for x >= 1/2. From 2^28 on that is log(2 x).
V log_plus_sqrt(V x, double c) {
  constexpr double kLarge = 0x1p28;
  DD y = plus_sqrt(at_most(x, kLarge), c);
  V large = x > kLarge;
  V r = log_sum(DD{select(large, x, y.hi), select(large, 0, y.lo)}, select(large, x.like(1), 0));
  return select(x < kInf, r, x);
}

}  // namespace

// 1 - 2 / (e^(2|x|) + 1) = 1 - 2 z / (1 + z + t) with z = 2^-n; a polynomial below 0.55.
V tanh(V x) {
  const bool f64 = x.is_f64();
  V a = abs(x);
  V b = at_most(a, f64 ? 20 : 10);
  V small = f64 ? odd_poly(b, kTanhF64) : odd_poly(b, kTanhF32);
  ExpReduced e = exp_reduce(b * -2);
  V z = pow2(x, e.n.integer);
  V large = 1 - (z + z) / ((1 + z) + exp_minus_one_reduced(-e.r));
  return with_sign_of(select(b < 0.55, small, large), x);
}

V sinh(V x) {
  V a = abs(x);
  V b = at_most(a, 1);
  V small = x.is_f64() ? odd_poly(b, kSinhF64) : odd_poly(b, kSinhF32);
  return with_sign_of(select(a < 1, small, sinh_cosh(a, true)), x);
}

V cosh(V x) { return sinh_cosh(abs(x), false); }

V asinh(V x) {
  V a = abs(x);
  if (!x.is_f64()) {
    V b = convert(a, DType::kF64);
    V u = b * b;
    V y = log_plus_one_lite(b + u / (1 + sqrt(1 + u)));
    return with_sign_of(select(a < kInf, convert(y, DType::kF32), a), x);
  }
  V small = odd_poly(at_most(a, 0.5), kAsinhF64);
  V large = log_plus_sqrt(at_least(a, 0.5), 1);
  return with_sign_of(select(a < 0.5, small, large), x);
}

// Close to 1, acosh(1 + t) = sqrt(2 t) (1 + t p(t)).
V acosh(V x) {
  if (!x.is_f64()) {
    V t = convert(x, DType::kF64) - 1;
    return convert(log_plus_one_lite(t + sqrt(t) * sqrt(t + 2)), DType::kF32);
  }
  V t = at_most(x - 1, 0.5);
  V w = t + t;
  V s = sqrt(w);
  V s_low = fma(-s, s, w) / at_least(s + s, 0x1p-60);
  V small = s + fma(s, poly(t, kAcoshF64) * t, s_low);
  V large = log_plus_sqrt(at_least(x, 1.5), -1);
  return select(x > 1.5, large, small);
}

V atanh(V x) {
  V a = abs(x);
  if (!x.is_f64()) {
    V b = convert(a, DType::kF64);
    V y = log_plus_one_lite((b + b) / (1 - b)) * 0.5;
    return with_sign_of(convert(y, DType::kF32), x);
  }
  V small = odd_poly(at_most(a, 0.5), kAtanhF64);
  V b = at_least(a, 0.5);
  DD q = divide(fast_two_sum(x.like(1), b), DD{1 - b, x.like(0)});
  V large = log_sum(q) * 0.5;
  large = select(a < 1, large, select(a == 1, kInf, kNaN + a));
  return with_sign_of(select(a < 0.5, small, large), x);
}

}  // namespace xylem::compiler::math
