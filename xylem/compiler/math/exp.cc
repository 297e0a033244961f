#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// Functions made of e^x. The argument is written as x = n ln 2 + r with |r| <= ln(2) / 2 and n an
// integer; then e^x = 2^n (1 + t) with t = e^r - 1 = r + r^2 q(r). The functions differ in how they
// put 2^n and t together without losing t's bits.

namespace xylem::compiler::math {
namespace {

// x = n ln 2 + r. The first fma is exact (n * part1 needs 24 + 8 or 53 + 11 bits, and the
// difference fits the format), so r carries one rounding.
struct Reduced {
  V n;  // in the dtype of x
  V r;
};

Reduced reduce(V x) {
  const bool f64 = x.is_f64();
  V n = rint(x * (f64 ? kLog2eF64 : kLog2eF32));
  V r = fma(n, f64 ? -kLn2Part1F64 : -kLn2Part1F32, x);
  return {n, fma(n, f64 ? -kLn2Part2F64 : -kLn2Part2F32, r)};
}

// e^r - 1 - r.
V exp_tail(V r) {
  V q = r.is_f64() ? poly(r, kExpF64) : poly(r, kExpF32);
  return (r * r) * q;
}

// e^r - 1.
V exp_minus_one_reduced(V r) {
  V q = r.is_f64() ? poly(r, kExpF64) : poly(r, kExpF32);
  return fma(r * r, q, r);
}

V to_int(V n) { return convert(n, DType::kI32); }

// 2^n of the dtype of n, which holds an integer.
V pow2(V n) { return ldexp(n.like(1), to_int(n)); }

}  // namespace

// Arguments are cut to a range in which n is harmless; the cut ones overflow or underflow by
// ldexp, which rounds once and gives subnormals.
V exponential(V x) {
  const bool f64 = x.is_f64();
  x = at_most(at_least(x, f64 ? -746 : -104), f64 ? 710 : 89);
  auto [n, r] = reduce(x);
  return ldexp(1 + exp_minus_one_reduced(r), to_int(n));
}

// 2^n (1 + t) - 1 = 2 ((s - 1/2) + s r + s (t - r)) with s = 2^(n-1), which does not overflow for
// n = 128 (1024). The sum of the first two terms is kept with its rounding error. Tiny arguments,
// which s would make subnormal, are their own result; so is -0.
V exponential_minus_one(V x) {
  const bool f64 = x.is_f64();
  V cut = at_most(at_least(x, f64 ? -40 : -20), f64 ? 710 : 89);
  auto [n, r] = reduce(cut);
  V s = pow2(n - 1);
  V h = s - 0.5;
  V y = fma(s, r, h);
  y = y + fma(s, exp_tail(r), fma(s, r, h - y));
  return select(abs(x) < (f64 ? 0x1p-60 : 0x1p-30), x, y + y);
}

// With -x = -n ln 2 - r: 1 / (1 + e^-x) = z / (1 + z + t) where z = 2^n, t = e^-r - 1. What 1 + z
// loses of a small z goes to t, which is smaller.
V logistic(V x) {
  const bool f64 = x.is_f64();
  V cut = at_most(at_least(x, f64 ? -746 : -104), f64 ? 40 : 20);
  auto [n, r] = reduce(cut);
  V z = pow2(n);
  V s = 1 + z;
  return z / (s + (exp_minus_one_reduced(-r) + (z - (s - 1))));
}

// 1 - 2 / (e^(2|x|) + 1) = 1 - 2 z / (1 + z + t) with z = 2^-n; a polynomial below 0.55.
V tanh(V x) {
  const bool f64 = x.is_f64();
  V a = abs(x);
  V b = at_most(a, f64 ? 20 : 10);
  V small;
  {
    V u = b * b;
    V p = f64 ? u : poly(u, kTanhF32);
    small = fma(p * u, b, b);
  }
  auto [n, r] = reduce(b * -2);
  V z = pow2(n);
  V large = 1 - (z + z) / ((1 + z) + exp_minus_one_reduced(-r));
  return with_sign_of(select(b < 0.55, small, large), x);
}

}  // namespace xylem::compiler::math
