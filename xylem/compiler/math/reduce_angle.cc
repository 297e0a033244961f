#include "xylem/compiler/math/reduce_angle.h"

#include <array>
#include <limits>

#include "xylem/compiler/math/coefficients.h"

// Up to a bound the reduction subtracts n pi/2 in three parts with fma (W. Cody and W. Waite,
// Software Manual for the Elementary Functions, 1980); beyond, the product of the argument's
// significand with a window of the binary digits of 1 / (2 pi) is taken in integers (M. Payne and
// R. Hanek, Radian reduction for trigonometric functions, 1983). The latter runs only if some
// element needs it.

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTwoPi1 = 0x1.921fb54442d18p+2;
constexpr double kTwoPi2 = 0x1.1a62633145c07p-52;

// The binary digits of 1 / (2 pi) behind a word of zeros, 32 a word.
constexpr std::array<std::uint32_t, 40> kInverseTwoPi = {
    0x00000000, 0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea,
    0xf7aef158, 0x6dc91b8e, 0x909374b8, 0x01924bba, 0x82746487, 0x3f877ac7, 0x2c4a69cf, 0xba208d7d,
    0x4baed121, 0x3a671c09, 0xad17df90, 0x4e64758e, 0x60d4ce7d, 0x272117e2, 0xef7e4a0e, 0xc7fe25ff,
    0xf7816603, 0xfbcbc462, 0xd6829b47, 0xdb4d9fb3, 0xc9f2c26d, 0xd3d18fd9, 0xa797fa8b, 0x5d49eeb1,
    0xfaf97c5e, 0xcf41ce7d, 0xe294a4ba, 0x9afed7ec, 0x47e35742, 0x1580cc11, 0xbf1edaea, 0xfc33ef08,
};

// Words index, index + 1, … of the table, `count` of them, as i64: the table is shifted down by one
// binary digit of the index after the other. `limit` is larger than any index.
std::vector<V> table_words(V index, int limit, int count) {
  std::vector<V> w;
  for (int i = 0; i < limit - 1 + count; ++i)
    w.push_back(index.like_bits(kInverseTwoPi[static_cast<std::size_t>(i)], DType::kI64));
  int step = 1;
  while (2 * step < limit) step *= 2;
  for (; step > 0; step /= 2) {
    V move = (index & step) != 0;
    const std::size_t keep = static_cast<std::size_t>(step - 1 + count);
    for (std::size_t i = 0; i < keep && i + static_cast<std::size_t>(step) < w.size(); ++i)
      w[i] = select(move, w[i + static_cast<std::size_t>(step)], w[i]);
    if (w.size() > keep) w.resize(keep);
  }
  return w;
}

// `count` words of 32 digits of 1 / (2 pi), the first digit having the weight 2^-(e + 1). e >= -32.
std::vector<V> digits_from(V e, int limit, int count) {
  V position = e + 32;
  std::vector<V> w = table_words(shr(position, 5), limit, count + 1);
  V shift = position & 31;
  for (int i = 0; i < count; ++i) {
    V two = shl(w[static_cast<std::size_t>(i)], 32) | w[static_cast<std::size_t>(i + 1)];
    w[static_cast<std::size_t>(i)] = shr(shl(two, shift), 32);
  }
  w.pop_back();
  return w;
}

// The quarter turns in a fraction of a turn times 2^64, rounded, and the signed rest.
struct Turn {
  V n, rest;
};
Turn quarters(V turn) {
  V n = shr(turn + (std::int64_t{1} << 61), 62);
  return {n, turn - shl(n, 62)};
}

// For a of f32, a >= 2^16. With a = m 2^e, m of 24 bits, the digits of weight 2^-e and above make
// whole turns; 96 digits from there on give the fraction of a turn to 2^-72, and no float is closer
// to a multiple of pi/2 than 2^-31 or so of a turn. r is f64.
Quadrant reduce_large_f32(V a) {
  V b = convert(bits(a), DType::kI64);
  V m = (b & 0x7fffff) | 0x800000;
  std::vector<V> d = digits_from((shr(b, 23) & 0xff) - 150, 5, 3);
  auto [n, rest] = quarters(shl(m * d[0], 32) + (m * d[1] + shr(m * d[2], 32)));
  return {{convert(rest, DType::kF64) * (kTwoPi1 * 0x1p-64), V()}, n};
}

// For a of f64, a >= 2^26. m has 53 bits in two words; the product with 192 digits is formed by
// columns of 32 bits, of which the four upper ones are kept: 2^-126 of a turn, where no double is
// closer than 2^-63 or so to a multiple of pi/2.
Quadrant reduce_large_f64(V a) {
  V b = bits(a);
  V m = (b & 0x000fffffffffffff) | 0x0010000000000000;
  V m0 = m & 0xffffffff, m1 = shr(m, 32);
  std::vector<V> d = digits_from((shr(b, 52) & 0x7ff) - 1075, 32, 6);
  V column[4];
  V carry = b.like_bits(0, DType::kI64);
  // p[i] = m0 d[i], q[i] = m1 d[i]; their low halves belong to columns i and i - 1.
  std::vector<V> p, q;
  for (std::size_t i = 0; i < 6; ++i) {
    p.push_back(m0 * d[i]);
    q.push_back(m1 * d[i]);
  }
  for (int i = 3; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    V sum = ((p[k] & 0xffffffff) + (q[k + 1] & 0xffffffff)) +
            (shr(p[k + 1], 32) + shr(q[k + 2], 32)) + carry;
    column[i] = sum & 0xffffffff;
    carry = shr(sum, 32);
  }
  auto [n, rest] = quarters(shl(column[0], 32) | column[1]);
  // rest + low 2^-64 as the sum of two doubles.
  V high = convert(sar(rest, 32), DType::kF64) * 0x1p32;
  V low = convert(rest & 0xffffffff, DType::kF64) +
          fma(convert(column[3], DType::kF64), 0x1p-32, convert(column[2], DType::kF64)) * 0x1p-32;
  DD turn = fast_two_sum(high, low);
  DD r = two_product(turn.hi, turn.hi.like(kTwoPi1 * 0x1p-64));
  r.lo = r.lo + fma(turn.hi, kTwoPi2 * 0x1p-64, turn.lo * (kTwoPi1 * 0x1p-64));
  return {r, n};
}

// Adding 1.5 2^23 (2^52) rounds to an integer and leaves its low bits in the low bits of the sum.
struct Rounded {
  V k, n;
};
Rounded quarter_turns(V a) {
  const bool f64 = a.is_f64();
  const double shift = f64 ? 0x1.8p52 : 0x1.8p23;
  V shifted = fma(a, f64 ? kTwoOverPiF64 : kTwoOverPiF32, shift);
  return {shifted - shift, bits(shifted)};
}

Quadrant reduce_f32(V a) {
  auto [k, n] = quarter_turns(a);
  V r = fma(k, -kHalfPiPart1F32, a);
  r = fma(k, -kHalfPiPart2F32, r);
  r = fma(k, -kHalfPiPart3F32, r);
  V large = (a > 1e5) & (a < kInf);
  std::array<V, 4> operands = {a, r, n, large};
  std::vector<V> out = when_any(large, operands, 2, [](std::span<const V> in) -> std::vector<V> {
    Quadrant q = reduce_large_f32(in[0]);
    return {select(in[3], convert(q.r.hi, DType::kF32), in[1]),
            select(in[3], convert(q.n, DType::kI32), in[2])};
  });
  return {{out[0], V()}, out[1]};
}

Quadrant reduce_f64(V a) {
  auto [k, n] = quarter_turns(a);
  V first = fma(k, -kHalfPiPart1F64, a);
  V r = fma(k, -kHalfPiPart2F64, first);
  V low = fma(k, -kHalfPiPart3F64, fma(k, -kHalfPiPart2F64, first - r));
  V large = (a > 1e8) & (a < kInf);
  std::array<V, 5> operands = {a, r, low, n, large};
  std::vector<V> out = when_any(large, operands, 3, [](std::span<const V> in) -> std::vector<V> {
    Quadrant q = reduce_large_f64(in[0]);
    return {select(in[4], q.r.hi, in[1]), select(in[4], q.r.lo, in[2]), select(in[4], q.n, in[3])};
  });
  return {{out[0], out[1]}, out[2]};
}

}  // namespace

Quadrant reduce_angle(V a) { return a.is_f64() ? reduce_f64(a) : reduce_f32(a); }

Quadrant reduce_angle_lite(V a) {
  V b = convert(a, DType::kF64);
  auto [k, n] = quarter_turns(b);
  V r = fma(k, -kHalfPiPart2F64, fma(k, -kHalfPiPart1F64, b));
  V large = (a > 1e8) & (a < kInf);
  std::array<V, 4> operands = {a, r, n, large};
  std::vector<V> out = when_any(large, operands, 2, [](std::span<const V> in) -> std::vector<V> {
    Quadrant q = reduce_large_f32(in[0]);
    return {select(in[3], q.r.hi, in[1]), select(in[3], q.n, in[2])};
  });
  return {{out[0], V()}, out[1]};
}

}  // namespace xylem::compiler::math
