#include <array>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// sin and cos. |x| = n pi/2 + r with |r| <= pi/4; the quadrant n mod 4 chooses polynomial and sign.
// Up to kSmall the reduction subtracts n pi/2 in three parts with fma (Cody and Waite); beyond, where
// n needs more bits than a float has, the product of x's significand with a window of the binary
// digits of 1 / (2 pi) is taken in integers (Payne and Hanek). The latter runs only if some element
// needs it.

namespace xylem::compiler::math {
namespace {

struct Quadrant {
  V r;
  V n;  // integer; only the two lowest bits count
};

// --- f32 ---------------------------------------------------------------------------------------------

constexpr double kSmallF32 = 1e5;

// The binary digits of 1 / (2 pi) behind a word of zeros, 32 a word.
constexpr std::array<std::uint32_t, 8> kInverseTwoPi = {
    0x00000000, 0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea,
};

// For a >= 2^16. With a = m 2^e, m of 24 bits, the digits of 1 / (2 pi) of weight 2^-e and above make
// whole turns; 96 digits from there on give the fraction of a turn to 2^-72, and no float is closer
// to a multiple of pi/2 than 2^-31 or so of a turn.
Quadrant reduce_large_f32(V a) {
  V b = bits(a);
  V m = convert((b & 0x7fffff) | 0x800000, DType::kI64);
  V e = (shr(b, 23) & 0xff) - (150 - 32);
  V index = shr(e, 5);
  V w[8];
  for (std::size_t i = 0; i < 8; ++i) w[i] = b.like_bits(kInverseTwoPi[i], DType::kI32);
  // Shifts the table down by `index` (0 … 4) words, one binary digit of it after the other.
  V four = (index & 4) != 0, two = (index & 2) != 0, one = (index & 1) != 0;
  for (int i = 0; i < 4; ++i) w[i] = select(four, w[i + 4], w[i]);
  for (int i = 0; i < 5; ++i) w[i] = select(two, w[i + 2], w[i]);
  for (int i = 0; i < 4; ++i) w[i] = select(one, w[i + 1], w[i]);
  V shift = convert(e & 31, DType::kI64);
  V digits[3];
  for (int i = 0; i < 3; ++i) {
    V high = convert(w[i], DType::kI64);
    V low = convert(w[i + 1], DType::kI64) & 0xffffffff;
    digits[i] = shr(shl(shl(high, 32) | low, shift), 32);
  }
  // The fraction of a turn, times 2^64.
  V turn = shl(m * digits[0], 32) + (m * digits[1] + shr(m * digits[2], 32));
  V n = shr(turn + (std::int64_t{1} << 61), 62);
  V rest = convert(turn - shl(n, 62), DType::kF64);
  constexpr double kTwoPiOver2To64 = 0x1.921fb54442d18p+2 * 0x1p-64;
  return {convert(rest * kTwoPiOver2To64, DType::kF32), convert(n, DType::kI32)};
}

Quadrant reduce_f32(V a) {
  // Adding 1.5 2^23 rounds to an integer and leaves its low bits in the low bits of the sum.
  constexpr double kShift = 0x1.8p23;
  V shifted = fma(a, kTwoOverPiF32, kShift);
  V k = shifted - kShift;
  V r = fma(k, -kHalfPiPart1F32, a);
  r = fma(k, -kHalfPiPart2F32, r);
  r = fma(k, -kHalfPiPart3F32, r);
  V n = bits(shifted);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  V large = (a > kSmallF32) & (a < kInf);
  std::array<V, 4> captures = {a, r, n, large};
  std::vector<V> out = when_any(large, captures, 2, [](std::span<const V> in) -> std::vector<V> {
    Quadrant q = reduce_large_f32(in[0]);
    return {select(in[3], q.r, in[1]), select(in[3], q.n, in[2])};
  });
  return {out[0], out[1]};
}

// +-sin(r) or +-cos(r): the bits of n tell which.
V wave_f32(const Quadrant& q) {
  V u = q.r * q.r;
  V s = fma(poly(u, kSinF32) * u, q.r, q.r);
  V c = fma(u * u, poly(u, kCosF32), fma(u, -0.5, 1));
  V y = select((q.n & 1) != 0, c, s);
  return from_bits(bits(y) ^ (shl(q.n, 30) & INT32_MIN));
}

}  // namespace

V sine(V x) {
  V y = wave_f32(reduce_f32(abs(x)));
  return from_bits(bits(y) ^ (bits(x) & INT32_MIN));
}

V cosine(V x) {
  Quadrant q = reduce_f32(abs(x));
  return wave_f32({q.r, q.n + 1});
}

}  // namespace xylem::compiler::math
