#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// Functions made of e^x. The argument is written as x = n ln 2 + r with |r| <= ln(2) / 2 and n an
// integer; then e^x = 2^n (1 + t) with t = e^r - 1 = r + r^2 q(r). The functions differ in how they
// put 2^n and t together without losing t's bits.

namespace xylem::compiler::math {

Rounded round_to_int(V x) {
  const bool f64 = x.is_f64();
  const double shift = f64 ? 0x1.8p52 : 0x1.8p23;
  const std::int64_t shift_bits = f64 ? 0x4338000000000000 : 0x4b400000;
  V sum = x + shift;
  return {sum - shift, convert(bits(sum) - shift_bits, DType::kI32)};
}

// The first fma is exact (n * part1 needs 24 + 8 or 53 + 11 bits, and the difference fits the
// format), so r carries one rounding.
ExpReduced exp_reduce(V x) {
  const bool f64 = x.is_f64();
  Rounded n = round_to_int(x * (f64 ? kLog2eF64 : kLog2eF32));
  V r = fma(n.value, f64 ? -kLn2Part1F64 : -kLn2Part1F32, x);
  return {n, fma(n.value, f64 ? -kLn2Part2F64 : -kLn2Part2F32, r), r};
}

V ExpReduced::low() const {
  return fma(n.value, r.is_f64() ? -kLn2Part2F64 : -kLn2Part2F32, unrounded - r);
}

V exp_tail(V r) {
  V q = r.is_f64() ? poly(r, kExpF64) : poly(r, kExpF32);
  return (r * r) * q;
}

V exp_minus_one_reduced(V r) {
  V q = r.is_f64() ? poly(r, kExpF64) : poly(r, kExpF32);
  return fma(r * r, q, r);
}

V pow2(V like, V k) { return ldexp(like.like(1), k); }

V exp2_lite(V z) {
  V cut = at_most(at_least(z, -1100), 1100);
  Rounded n = round_to_int(cut);
  V r = cut - n.value;
  return ldexp(fma(poly(r, kExp2Lite), r, 1), n.integer);
}

// Arguments are cut to a range in which n is harmless; the cut ones overflow or underflow by
// ldexp, which rounds once and gives subnormals.
V exponential(V x) {
  const bool f64 = x.is_f64();
  x = at_most(at_least(x, f64 ? -746 : -104), f64 ? 710 : 89);
  ExpReduced e = exp_reduce(x);
  return ldexp(1 + exp_minus_one_reduced(e.r), e.n.integer);
}

// 2^n (1 + t) - 1 = 2 ((s - 1/2) + s r + s (t - r)) with s = 2^(n-1), which does not overflow for
// n = 128 (1024). The sum of the first two terms is kept with its rounding error, as is r, which
// counts twice where n = 1. Tiny arguments, which s would make subnormal, are their own result; so
// is -0.
V exponential_minus_one(V x) {
  const bool f64 = x.is_f64();
  V cut = at_most(at_least(x, f64 ? -40 : -20), f64 ? 710 : 89);
  ExpReduced e = exp_reduce(cut);
  V s = pow2(x, e.n.integer - 1);
  V h = s - 0.5;
  V y = fma(s, e.r, h);
  y = y + fma(s, exp_tail(e.r) + e.low(), fma(s, e.r, h - y));
  return select(abs(x) < (f64 ? 0x1p-60 : 0x1p-30), x, y + y);
}

// With -x = -n ln 2 - r: 1 / (1 + e^-x) = z / (1 + z + t) where z = 2^n, t = e^-r - 1. What 1 + z
// loses of a small z goes to t, which is smaller.
V logistic(V x) {
  const bool f64 = x.is_f64();
  V cut = at_most(at_least(x, f64 ? -746 : -104), f64 ? 40 : 20);
  ExpReduced e = exp_reduce(cut);
  V z = pow2(x, e.n.integer);
  V s = 1 + z;
  return z / (s + (exp_minus_one_reduced(-e.r) + (z - (s - 1))));
}

}  // namespace xylem::compiler::math
