#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

// Logarithms. x = 2^e (1 + f) with -1/4 <= f < 1/2.

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Bits of 3/4: subtracting them makes the exponent field count in [3/4, 3/2) 2^k, where 1 + x needs
// no more bits than x has.
constexpr std::int64_t kThreeQuartersF32 = 0x3f400000;
constexpr std::int64_t kThreeQuartersF64 = 0x3fe8000000000000;

std::int64_t three_quarters(V x) { return x.is_f64() ? kThreeQuartersF64 : kThreeQuartersF32; }
int mantissa_bits(V x) { return x.is_f64() ? 52 : 23; }

// e as an integer of x's width, and 1 + f, for normal x > 0.
struct Split {
  V e, m;
};
Split split(V x) {
  const std::int64_t base = three_quarters(x);
  V i = bits(x) - base;
  V m = from_bits((i & ((std::int64_t{1} << mantissa_bits(x)) - 1)) + base);
  return {sar(i, mantissa_bits(x)), m};
}

// log(2^e (1 + f)) + low for -1/4 <= f <= 1/2, e in the dtype of f:
// e ln 2 + (f - f^2 / 2 + f^3 q(f)). The first two terms may cancel to 0.4 ln 2, so their sum keeps
// its rounding error.
V log_terms(V e, V f, const V* low = nullptr) {
  const bool f64 = f.is_f64();
  V f2 = f * f;
  V tail = (f2 * f) * (f64 ? poly(f, kLogF64) : poly(f, kLogF32));
  if (low) tail = tail + *low;
  V rest = fma(f2, -0.5, fma(e, f64 ? kLn2Part2F64 : kLn2Part2F32, tail));
  V sum = fma(e, f64 ? kLn2Part1F64 : kLn2Part1F32, f);
  V error = f - fma(e, f64 ? -kLn2Part1F64 : -kLn2Part1F32, sum);
  return sum + (error + rest);
}

}  // namespace

V log_sum(DD x, V k) {
  auto [e, m] = split(x.hi);
  // x.lo / x.hi, to the few bits that matter.
  V low = x.lo / x.hi;
  return log_terms(convert(e, m.dtype()) + k, m - 1, &low);
}

V log_sum(DD x) {
  auto [e, m] = split(x.hi);
  V low = x.lo / x.hi;
  return log_terms(convert(e, m.dtype()), m - 1, &low);
}

V log(V x) {
  const bool f64 = x.is_f64();
  V subnormal = x < (f64 ? 0x1p-1022 : 0x1p-126);
  const double shift = f64 ? 54 : 23;
  auto [e, m] = split(select(subnormal, x * (f64 ? 0x1p54 : 0x1p23), x));
  V n = convert(e, x.dtype());
  V y = log_terms(select(subnormal, n - shift, n), m - 1);
  V special = select(x == 0, -kInf, select(x < 0, kNaN, x));  // +inf, NaN: themselves
  return select((x > 0) & (x < kInf), y, special);
}

// With u = 1 + x = 2^k m: log(1 + x) = k ln 2 + log(1 + f), f = x 2^-k + (2^-k - 1). The latter
// difference is exact or far below x 2^-k, so f is 1 + x reduced with one rounding although u was
// rounded.
V log_plus_one(V x) {
  const bool f64 = x.is_f64();
  V u = 1 + x;
  V k = sar(bits(u) - three_quarters(x), mantissa_bits(x));
  V s = ldexp(x.like(1), convert(-k, DType::kI32));
  V f = fma(x, s, s - 1);
  V y = log_terms(convert(k, x.dtype()), f);
  V special = select(x == -1, -kInf, select(x < -1, kNaN, x));
  // Tiny arguments, -0 among them, are their own result.
  return select((x > -1) & (x < kInf) & (abs(x) >= (f64 ? 0x1p-60 : 0x1p-30)), y, special);
}

namespace {

// e and m = 1 + f with |f| <= 1/3 of a normal f64.
Split split_lite(V x) {
  constexpr std::int64_t kTwoThirds = 0x3fe5555555555555;
  V i = bits(x) - kTwoThirds;
  return {sar(i, 52), from_bits((i & 0x000fffffffffffff) + kTwoThirds)};
}

}  // namespace

V log2_lite(V x) {
  auto [e, m] = split_lite(x);
  V f = m - 1;
  V y = fma(poly(f, kLog2Lite), f, convert(e, DType::kF64));
  return select(x == 0, -kInf, select(x < kInf, y, x));
}

// As log_plus_one; the arguments have no subnormals, and 2^-k comes from bits.
V log_plus_one_lite(V x) {
  auto [k, m] = split_lite(1 + x);
  V s = from_bits(shl(1023 - k, 52));
  V f = fma(x, s, s - 1);
  V y = fma(poly(f, kLog2Lite), f, convert(k, DType::kF64)) * 0x1.62e42fefa39efp-1;
  V special = select(x == -1, -kInf, select(x < -1, kNaN, x));
  return select((x > -1) & (x < kInf), y, special);
}

}  // namespace xylem::compiler::math
