#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// Roots and powers.

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// log(x) for finite x > 0 to a relative error of about 2^-64: with m = (1 + s) / (1 - s),
// log(m) = 2 s + s^3 (2/3 + s^2 p(s^2)); s, s^2 and all but the last term are pairs.
DD log_pair(V x) {
  constexpr std::int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  V subnormal = x < 0x1p-1022;
  V i = bits(select(subnormal, x * 0x1p54, x)) - kRootHalf;
  V e = convert(sar(i, 52), DType::kF64);
  e = select(subnormal, e - 54, e);
  V m = from_bits((i & 0x000fffffffffffff) + kRootHalf);
  V f = m - 1;
  DD s = divide(DD{f, f.like(0)}, fast_two_sum(f.like(2), f));
  DD u = two_product(s.hi, s.hi);
  u.lo = fma(s.hi + s.hi, s.lo, u.lo);
  DD a = fast_two_sum(f.like(kTwoThirdsPart1F64), u.hi * poly(u.hi, kLogRatioF64));
  a.lo = a.lo + kTwoThirdsPart2F64;
  DD p = two_product(u.hi, a.hi);
  p.lo = p.lo + fma(u.hi, a.lo, u.lo * a.hi);
  DD t = two_product(s.hi, p.hi);
  t.lo = t.lo + fma(s.hi, p.lo, s.lo * p.hi);
  DD log_m = fast_two_sum(s.hi + s.hi, t.hi);
  log_m.lo = log_m.lo + fma(s.lo, 2, t.lo);
  // e ln 2 in three parts, the first with so few bits that its product is exact.
  DD sum = fast_two_sum(e * kLn2Short1F64, log_m.hi);
  return {sum.hi, sum.lo + fma(e, kLn2Short2F64, log_m.lo)};
}

// x^y for x >= 0.
V power_f64(V x, V y) {
  DD l = log_pair(x);
  V special = (x == 0) | (x == kInf);
  V hi = select(special, select(x == 0, x.like(-kInf), kInf), l.hi);
  hi = select(x == x, hi, x);
  V z = y * hi;
  V low = fma(y, l.hi, -z) + y * l.lo;
  V cut = at_most(at_least(z, -746), 710);
  low = select((z == cut) & ~special, low, 0);
  ExpReduced e = exp_reduce(cut);
  DD r = fast_two_sum(e.r, low);
  return ldexp(1 + (r.hi + (exp_tail(r.hi) + (e.low() + r.lo))), e.n.integer);
}

// C's special cases of x^y, given |x| -> |x|^y: the sign of odd powers of negative numbers, NaN for
// other powers of them, 1 for x = 1 and y = 0 whatever the other is.
template <class F>
V power_cases(V x, V y, F magnitude) {
  V a = abs(x);
  V integer = rint(y) == y;
  V half = y * 0.5;
  V odd = integer & (rint(half) != half);
  // 1 to an infinite power is 1, not e^(0 * inf).
  V p = select((a == 1) & (y == y), 1, magnitude(a, y));
  p = select((bits(x) < 0) & odd, -p, p);
  p = select((x < 0) & (x > -kInf) & ~integer, kNaN, p);
  return select((x == 1) | (y == 0), 1, p);
}

}  // namespace

V rsqrt(V x) { return 1 / sqrt(x); }

// In f32 through f64, where 2^(y log2 |x|) needs no more care.
V power(V x, V y) {
  if (x.is_f64()) return power_cases(x, y, power_f64);
  V p = power_cases(convert(x, DType::kF64), convert(y, DType::kF64),
                    [](V a, V b) { return exp2_lite(log2_lite(a) * b); });
  return convert(p, DType::kF32);
}

// |x| = 2^(3 q) z with 1 <= z < 8. A polynomial gives the root of the significand to 2^-19, a
// constant that of the rest of the exponent. A step of Newton's iteration for y^3 = z, written as
// y - y (y^3 - z) / (3 z), doubles the digits; the last one computes y^3 - z exactly enough to
// leave little but the rounding of its own sum.
V cbrt(V x) {
  const bool f64 = x.is_f64();
  V a = convert(abs(x), DType::kF64);
  V subnormal = a < 0x1p-1022;  // never in f32
  V b = f64 ? bits(select(subnormal, a * 0x1p54, a)) : bits(a);
  V e = convert(shr(b, 52) - 1023, DType::kF64);
  V m = from_bits((b & 0x000fffffffffffff) | 0x3ff0000000000000);
  // Never a tie: e / 3 - 1/3 is rounded, which is the floor of e / 3.
  Rounded q = round_to_int(fma(e, 0x1.5555555555555p-2, -0x1.5555555555555p-2));
  V rest = fma(q.value, -3, e);
  V one = rest == 1, two = rest == 2;
  V z = m * select(two, a.like(4), select(one, a.like(2), 1));
  V y = poly(m, kCbrt) *
        select(two, a.like(0x1.965fea53d6e3dp+0), select(one, a.like(0x1.428a2f98d728bp+0), 1));
  V third = 1 / (z * 3);
  y = y - y * ((y * y * y - z) * third);
  if (f64) {
    DD square = two_product(y, y);
    DD cube = two_product(square.hi, y);
    V error = (cube.hi - z) + fma(square.lo, y, cube.lo);
    y = y - y * (error * third);
    q.integer = select(subnormal, q.integer - 18, q.integer);
  }
  y = ldexp(y, q.integer);
  y = select((a == 0) | (a == kInf), a, y);
  y = select(a == a, y, a);
  return with_sign_of(convert(y, x.dtype()), x);
}

}  // namespace xylem::compiler::math
