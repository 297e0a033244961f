#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// asin, acos, atan and atan2. f32 goes through one arctangent in f64.

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

V negative(V x) { return bits(x) < 0; }

// The larger and the smaller of |y| and |x|, prepared for b / a: both infinite is 1 / 1, both zero
// 0 / 1, and b / inf is 0 / 1.
struct Ratio {
  V a, b;
  V swapped;  // |y| > |x|
};
Ratio ratio(V y, V x) {
  V ay = abs(y), ax = abs(x);
  V swapped = ay > ax;
  V a = select(swapped, ay, ax), b = select(swapped, ax, ay);
  V infinite = a == kInf;
  b = select(infinite, select(b == kInf, b.like(1), 0), b);
  a = select(infinite | (a == 0), 1, a);
  return {a, b, swapped};
}

V nan_if_unordered(V result, V y, V x) { return select((x == x) & (y == y), result, kNaN); }

V atan2_lite(V y, V x) {
  auto [a, b, swapped] = ratio(y, x);
  V t = b / a;
  V u = t * t;
  V r = fma(poly(u, kAtanLite) * u, t, t);
  r = select(swapped, 0x1.921fb54442d18p+0 - r, r);
  r = select(negative(x), 0x1.921fb54442d18p+1 - r, r);
  return with_sign_of(nan_if_unordered(r, y, x), y);
}

// The angle is j pi/4 +- atan(q) with |q| <= 1/2, where q = b / a or (b - a) / (b + a); q, its
// rounding error and that of the last sum are kept.
V atan2_f64(V y, V x) {
  auto [a, b, swapped] = ratio(y, x);
  V scale = select(a > 0x1p1000, a.like(0x1p-100), select(a < 0x1p-900, a.like(0x1p100), 1));
  a = a * scale;
  b = b * scale;
  V big = b > a * 0.5;  // then b - a is exact
  DD sum = fast_two_sum(a, b);
  DD q = divide(DD{select(big, b - a, b), a.like(0)},
                DD{select(big, sum.hi, a), select(big, sum.lo, 0)});
  V u = q.hi * q.hi;
  V small = fma(poly(u, kAtanF64) * u, q.hi, q.lo);
  V j = select(big, a.like(1), 0);
  j = select(swapped, 2 - j, j);
  V back = negative(x);
  j = select(back, 4 - j, j);
  V minus = swapped ^ back;
  DD h = fast_two_sum(j * kPi4Part1F64, select(minus, -q.hi, q.hi));
  V r = h.hi + (h.lo + fma(j, kPi4Part2F64, select(minus, -small, small)));
  return with_sign_of(nan_if_unordered(r, y, x), y);
}

// asin(s) for 0 <= s <= 1/2 without its leading term: s^3 p(s^2).
V asin_tail(V s, V s2) { return poly(s2, kAsinF64) * s2 * s; }

// For |x| > 1/2: asin(x) = pi/2 - 2 asin(s), s = sqrt((1 - |x|) / 2). Returns asin(s) as s.hi and
// the rest.
DD asin_complement(V a) {
  V z = (1 - a) * 0.5;  // exact for a >= 1/2
  V s = sqrt(z);
  V s_low = fma(-s, s, z) / at_least(s + s, 0x1p-500);
  return {s, asin_tail(s, z) + s_low};
}

constexpr double kHalfPi1 = kHalfPiPart1F64, kHalfPi2 = kHalfPiPart2F64;

V asin_f64(V x) {
  V a = abs(x);
  V b = at_most(a, 0.5);
  V small = b + asin_tail(b, b * b);
  DD c = asin_complement(at_least(a, 0.5));
  DD h = fast_two_sum(a.like(kHalfPi1), c.hi * -2);
  V large = h.hi + (h.lo + fma(c.lo, -2, kHalfPi2));
  return with_sign_of(select(a <= 0.5, small, large), x);
}

V acos_f64(V x) {
  V a = abs(x);
  V b = select(a < 0.5, x, 0);
  DD h = fast_two_sum(x.like(kHalfPi1), -b);
  V small = h.hi + (h.lo + (kHalfPi2 - asin_tail(b, b * b)));
  DD c = asin_complement(at_least(a, 0.5));
  V near_one = (c.hi + c.lo) * 2;
  DD g = fast_two_sum(x.like(2 * kHalfPi1), c.hi * -2);
  V near_minus_one = g.hi + (g.lo + fma(c.lo, -2, 2 * kHalfPi2));
  return select(a < 0.5, small, select(x < 0, near_minus_one, near_one));
}

V to_f64(V x) { return convert(x, DType::kF64); }
V to_f32(V x) { return convert(x, DType::kF32); }

// sqrt(1 - x^2).
V other_leg(V x) { return sqrt((1 - x) * (1 + x)); }

}  // namespace

V asin(V x) {
  if (x.is_f64()) return asin_f64(x);
  V y = to_f64(x);
  return to_f32(atan2_lite(y, other_leg(y)));
}

V acos(V x) {
  if (x.is_f64()) return acos_f64(x);
  V y = to_f64(x);
  return to_f32(atan2_lite(other_leg(y), y));
}

V atan2(V y, V x) {
  if (x.is_f64()) return atan2_f64(y, x);
  return to_f32(atan2_lite(to_f64(y), to_f64(x)));
}

V atan(V x) { return atan2(x, x.like(1)); }

}  // namespace xylem::compiler::math
