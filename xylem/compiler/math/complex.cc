#include "xylem/compiler/math/complex.h"

#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// Complex functions from real ones. Where a real factor may overflow although the product with the
// other does not, the factor is kept as a significand and a power of two.

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfPi = kHalfPiPart1F64;

C operator*(const C& a, const C& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
C operator+(const C& a, double b) { return {a.re + b, a.im}; }
C operator-(double a, const C& b) { return {a - b.re, -b.im}; }
C times_i(const C& z) { return {-z.im, z.re}; }
C times_minus_i(const C& z) { return {z.im, -z.re}; }
C select(V condition, const C& a, const C& b) {
  return {select(condition, a.re, b.re), select(condition, a.im, b.im)};
}

V finite(V x) { return abs(x) < kInf; }
V larger(V a, V b) { return select(a > b, a, b); }
V negative(V x) { return bits(x) < 0; }

// Exponent field of the larger of |x|, |y| as an i32 k, so that 2^-k brings it near 1.
V exponent(V magnitude) { return convert(shr(bits(magnitude), 52), DType::kI32) - 1023; }

// a / b, each part of the quotient with b scaled near 1.
C divide(const C& a, const C& b) {
  V k = -exponent(larger(abs(b.re), abs(b.im)));
  V c = ldexp(b.re, k), d = ldexp(b.im, k);
  V norm = fma(c, c, d * d);
  return {ldexp(fma(a.re, c, a.im * d) / norm, k), ldexp(fma(a.im, c, -(a.re * d)) / norm, k)};
}

// e^x = m 2^n for any x but NaN; beyond +-1500, where products over- and underflow anyway, as
// there.
struct Scaled {
  V m, n;
};
Scaled scaled_exp(V x) {
  ExpReduced e = exp_reduce(at_most(at_least(x, -1500), 1500));
  return {1 + exp_minus_one_reduced(e.r), e.n.integer};
}

// sinh(x) = s 2^n and cosh(x) = c 2^n.
struct SinhCosh {
  V s, c, n;
};
SinhCosh scaled_sinh_cosh(V x) {
  V a = abs(x);
  ExpReduced e = exp_reduce(at_most(a, 1500));
  V t = exp_minus_one_reduced(e.r);
  DD h = fast_two_sum(t.like(1), t);
  V z = pow2(a, e.n.integer * -2) / h.hi;
  V n = e.n.integer - 1;
  V small = sinh(at_most(a, 1));
  V s = select(a < 1, ldexp(small, -n), h.hi + (h.lo - z));
  return {with_sign_of(s, x), h.hi + (h.lo + z), n};
}

// log|z|. Near |z| = 1 as log1p(|z|^2 - 1) / 2, the difference formed from exact squares.
V log_abs(V x, V y) {
  V ax = abs(x), ay = abs(y);
  V a = larger(ax, ay);
  V b = select(ax > ay, ay, ax);
  V k = exponent(a);
  V p = ldexp(a, -k), q = ldexp(b, -k);
  V far = fma(convert(k, DType::kF64), 0x1.62e42fefa39efp-1, log(fma(p, p, q * q)) * 0.5);
  V c = at_most(a, 2), d = at_most(b, 2);
  DD square = two_product(c, c), other = two_product(d, d);
  DD difference = two_sum(square.hi, c.like(-1));
  DD sum = two_sum(difference.hi, other.hi);
  V near = log_plus_one(sum.hi + (sum.lo + (difference.lo + square.lo + other.lo))) * 0.5;
  V r = select((a < 1.5) & (a > 0.5) & (abs(sum.hi) < 0.5), near, far);
  r = select(a == 0, -kInf, r);
  return select((ax == kInf) | (ay == kInf), kInf, r);
}

// m 2^n times a sine or cosine. m is finite, so that infinity times 0 is 0, as C wants it.
V product(V m, V wave, V n) { return ldexp(m * wave, n); }

}  // namespace

// e^x (cos y + i sin y); 0 for x = -inf whatever y is.
C complex_exponential(C z) {
  auto [m, n] = scaled_exp(z.re);
  C r = {product(m, cosine(z.im), n), select(z.im == 0, z.im, product(m, sine(z.im), n))};
  V unknown_angle = ~finite(z.im);
  V zero = z.re.like(0);
  r = select((z.re == -kInf) & unknown_angle, {zero, zero}, r);
  return {select((z.re == kInf) & unknown_angle, kInf, r.re), r.im};
}

// (e^x - 1) cos y - 2 sin^2(y / 2) + i e^x sin y
C complex_exponential_minus_one(C z) {
  C e = complex_exponential(z);
  V half = sine(z.im * 0.5);
  V re = fma(exponential_minus_one(z.re), cosine(z.im), half * half * -2);
  return {select(abs(z.re) < 1, re, e.re - 1), e.im};
}

C complex_log(C z) { return {log_abs(z.re, z.im), atan2(z.im, z.re)}; }

// log1p(x (2 + x) + y^2) / 2 for small z.
C complex_log_plus_one(C z) {
  V u = 1 + z.re;
  V small = (abs(z.re) < 0.5) & (abs(z.im) < 0.5);
  V x = select(small, z.re, 0), y = select(small, z.im, 0);
  V near = log_plus_one(fma(x, 2 + x, y * y)) * 0.5;
  return {select(small, near, log_abs(u, z.im)), atan2(z.im, u)};
}

// 1 / (1 + e^-z) for x >= 0, e^z / (1 + e^z) for x < 0: the exponential does not overflow.
C complex_logistic(C z) {
  V back = negative(z.re);
  C w = complex_exponential({-abs(z.re), select(back, z.im, -z.im)});
  C one = {z.re.like(1), z.re.like(0)};
  C r = divide(select(back, w, one), w + 1);
  return {select(z.re == z.re, r.re, z.re), select(z.re == z.re, r.im, z.re)};
}

// W. Kahan, Branch cuts for complex elementary functions, 1987: t = sqrt((|z| + |x|) / 2) is one
// part, y / (2 t) the other; z is scaled by an even power of two.
C complex_sqrt(C z) {
  V ax = abs(z.re), ay = abs(z.im);
  V a = larger(ax, ay);
  V k = sar(exponent(a), 1);
  V x = ldexp(ax, k * -2), y = ldexp(ay, k * -2);
  V t = sqrt((sqrt(fma(x, x, y * y)) + x) * 0.5);
  V other = y / (t + t);
  V first = ldexp(t, k), second = ldexp(other, k);
  V back = negative(z.re);
  C r = {select(back, second, first), with_sign_of(select(back, first, second), z.im)};
  r = select(a == 0, {ax, z.im}, r);
  C x_infinite = {
      select(back, select(z.im == z.im, z.re.like(0), kNaN), kInf),
      with_sign_of(select(back, z.re.like(kInf), select(z.im == z.im, z.re.like(0), kNaN)), z.im)};
  r = select(ax == kInf, x_infinite, r);
  return select(ay == kInf, {z.re.like(kInf), z.im}, r);
}

// conj(sqrt(z)) / |z|
C complex_rsqrt(C z) { return divide({z.re.like(1), z.re.like(0)}, complex_sqrt(z)); }

C complex_cbrt(C z) {
  V ax = abs(z.re), ay = abs(z.im);
  V a = larger(ax, ay);
  V q = exponent(a);
  V x = ldexp(ax, -q), y = ldexp(ay, -q);
  // |z|^(1/3) = 2^(q/3) (x^2 + y^2)^(1/6); cbrt of a scaled modulus, then of the power of two.
  V modulus = cbrt(ldexp(sqrt(fma(x, x, y * y)), q));
  V angle = atan2(z.im, z.re) * 0x1.5555555555555p-2;
  C r = {modulus * cosine(angle), modulus * sine(angle)};
  return select(a == 0, z, r);
}

// sinh x cos y + i cosh x sin y. A zero part stays zero whatever the other is.
C complex_sinh(C z) {
  auto [s, c, n] = scaled_sinh_cosh(z.re);
  return {select(z.re == 0, z.re, product(s, cosine(z.im), n)), product(c, sine(z.im), n)};
}

// cosh x cos y + i sinh x sin y
C complex_cosh(C z) {
  auto [s, c, n] = scaled_sinh_cosh(z.re);
  V im = product(s, sine(z.im), n);
  return {product(c, cosine(z.im), n), select((z.re == 0) & ~finite(z.im), z.re, im)};
}

C complex_sine(C z) { return times_minus_i(complex_sinh(times_i(z))); }

C complex_cosine(C z) { return complex_cosh(times_i(z)); }

// With t = tan y, b = 1 + t^2, s = sinh x: (b s cosh x + i t) / (1 + b s^2) (Kahan); for large |x|
// sign(x) + 4 i sin y cos y e^-2|x|.
C complex_tanh(C z) {
  V x = at_most(at_least(z.re, -20), 20);
  V t = tan(z.im);
  V b = fma(t, t, 1);
  V s = sinh(x);
  V d = 1 / fma(b * s, s, 1);
  C near = {b * s * cosh(x) * d, t * d};
  V tail = exponential(abs(z.re) * -2) * 4 * (sine(z.im) * cosine(z.im));
  tail = select((abs(z.re) == kInf) & ~finite(z.im), 0, tail);
  C r = select(abs(z.re) > 20, {with_sign_of(z.re.like(1), z.re), tail}, near);
  return {r.re, select(z.im == 0, z.im, r.im)};
}

C complex_tan(C z) { return times_minus_i(complex_tanh(times_i(z))); }

// Kahan's formulas: with p = sqrt(1 - z), q = sqrt(1 + z),
// atan(x / Re(p q)) + i asinh(Im(conj(p) q)).
C complex_asin(C z) {
  C p = complex_sqrt(1 - z), q = complex_sqrt(z + 1);
  return {atan2(z.re, p.re * q.re - p.im * q.im), asinh(p.re * q.im - p.im * q.re)};
}

// 2 atan(Re(p) / Re(q)) + i asinh(Im(conj(q) p)).
C complex_acos(C z) {
  C p = complex_sqrt(1 - z), q = complex_sqrt(z + 1);
  return {atan2(p.re, q.re) * 2, asinh(q.re * p.im - q.im * p.re)};
}

// With p = sqrt(z - 1), q = sqrt(z + 1): asinh(Re(conj(p) q)) + 2 i atan(Im(p) / Re(q)).
C complex_acosh(C z) {
  C p = complex_sqrt(z + -1.0), q = complex_sqrt(z + 1);
  return {asinh(fma(p.re, q.re, p.im * q.im)), atan2(p.im, q.re) * 2};
}

C complex_asinh(C z) { return times_minus_i(complex_asin(times_i(z))); }

// log1p(4 x / ((1 - x)^2 + y^2)) / 4 + i atan2(2 y, (1 - x)(1 + x) - y^2) / 2; huge z give +-i
// pi/2.
C complex_atanh(C z) {
  V ax = abs(z.re);
  V huge = larger(ax, abs(z.im)) > 0x1p500;
  V x = select(huge, 0, ax), y = select(huge, 0, z.im);
  V d = 1 - x;
  V re = with_sign_of(log_plus_one((x * 4) / fma(d, d, y * y)) * 0.25, z.re);
  V im = atan2(y + y, fma(d, 1 + x, -(y * y))) * 0.5;
  re = select(huge, with_sign_of(z.re.like(0), z.re), re);
  return {re, select(huge, with_sign_of(z.re.like(kHalfPi), z.im), im)};
}

C complex_atan(C z) { return times_minus_i(complex_atanh(times_i(z))); }

// e^(w log z), 0 for z = 0 and w != 0 with a positive real part, 1 for w = 0.
C complex_power(C z, C w) {
  C r = complex_exponential(w * complex_log(z));
  V base_zero = (z.re == 0) & (z.im == 0);
  V zero = z.re.like(0), one = z.re.like(1);
  r = select(base_zero & (w.re > 0), {zero, zero}, r);
  return select((w.re == 0) & (w.im == 0), {one, zero}, r);
}

// -i log((x + i y) / sqrt(x^2 + y^2)), which is atan(y / x) + k pi. The former tells k, the latter
// keeps small results accurate.
C complex_atan2(C y, C x) {
  C iy = times_i(y);
  C numerator = {x.re + iy.re, x.im + iy.im};
  C xx = x * x, yy = y * y;
  C root = complex_sqrt({xx.re + yy.re, xx.im + yy.im});
  C rough = times_minus_i(complex_log(divide(numerator, root)));
  C fine = complex_atan(divide(y, x));
  V k = rint((rough.re - fine.re) * (1 / (2 * kHalfPi)));
  fine.re = fma(k, 2 * kHalfPi, fine.re);
  return select(finite(fine.re) & finite(fine.im), fine, rough);
}

}  // namespace xylem::compiler::math
