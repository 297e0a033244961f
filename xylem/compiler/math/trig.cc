#include <array>
#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"
#include "xylem/compiler/math/reduce_angle.h"

// sin, cos and tan: |x| = n pi/2 + r with |r| <= pi/4; the quadrant n mod 4 chooses function and
// sign.

namespace xylem::compiler::math {
namespace {

V odd(V n) { return (n & 1) != 0; }

// y with its sign changed where bit `bit` of the integer n is set.
V flip_sign(V y, V n, int bit) {
  const int width = y.is_f64() ? 64 : 32;
  const std::int64_t mask = width == 64 ? INT64_MIN : INT32_MIN;
  return from_bits(bits(y) ^ (shl(n, width - 1 - bit) & mask));
}

struct SinCos {
  V sin, cos;
};

// 1 - r^2 / 2 + …: the rounding error of the difference is given back.
SinCos sin_cos_f32(V r) {
  V u = r * r;
  V w = fma(u, -0.5, 1);
  V rest = fma(u, -0.5, 1 - w);
  return {fma(poly(u, kSinF32) * u, r, r), w + fma(u * u, poly(u, kCosF32), rest)};
}

// sin(r + l) = r + (r^3 s + l); cos(r + l) = 1 - r^2 / 2 + (r^4 c - r l), as unevaluated last sums.
struct SinCosDD {
  DD sin, cos;
};

SinCosDD sin_cos_f64(DD r) {
  V u = r.hi * r.hi;
  DD s = {r.hi, fma(poly(u, kSinF64) * u, r.hi, r.lo)};
  V w = fma(u, -0.5, 1);
  V rest = fma(u, -0.5, 1 - w);
  return {s, {w, fma(u * u, poly(u, kCosF64), fma(-r.hi, r.lo, rest))}};
}

// +-sin(r) or +-cos(r): the bits of n tell which.
V wave(const Quadrant& q) {
  V y;
  if (q.r.hi.is_f64()) {
    auto [s, c] = sin_cos_f64(q.r);
    V is_cos = odd(q.n);
    y = select(is_cos, c.hi, s.hi) + select(is_cos, c.lo, s.lo);
  } else {
    auto [s, c] = sin_cos_f32(q.r.hi);
    y = select(odd(q.n), c, s);
  }
  return flip_sign(y, q.n, 1);
}

V with_sign_flipped_by(V y, V x) {
  const std::int64_t mask = y.is_f64() ? INT64_MIN : INT32_MIN;
  return from_bits(bits(y) ^ (bits(x) & mask));
}

}  // namespace

V sine(V x) { return with_sign_flipped_by(wave(reduce_angle(abs(x))), x); }

V cosine(V x) {
  Quadrant q = reduce_angle(abs(x));
  return wave({q.r, q.n + 1});
}

// tan(r), or -1 / tan(r) in odd quadrants.
V tan(V x) {
  V y;
  if (x.is_f64()) {
    Quadrant q = reduce_angle(abs(x));
    auto [s, c] = sin_cos_f64(q.r);
    s = fast_two_sum(s.hi, s.lo);
    c = fast_two_sum(c.hi, c.lo);
    V swap = odd(q.n);
    DD t = divide(DD{select(swap, c.hi, s.hi), select(swap, c.lo, s.lo)},
                  DD{select(swap, s.hi, c.hi), select(swap, s.lo, c.lo)});
    y = flip_sign(t.hi + t.lo, q.n, 0);
  } else {
    Quadrant q = reduce_angle_lite(abs(x));
    V r = q.r.hi;
    V u = r * r;
    V s = fma(poly(u, kSinLite) * u, r, r);
    V c = fma(u * u, poly(u, kCosLite), fma(u, -0.5, 1));
    V swap = odd(q.n);
    y = convert(flip_sign(select(swap, c, s) / select(swap, s, c), q.n, 0), DType::kF32);
  }
  return with_sign_flipped_by(y, x);
}

}  // namespace xylem::compiler::math
