#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// log(2^e (1 + f)) for -1/4 <= f <= 1/2, e in the dtype of f:
// e ln 2 + (f - f^2 / 2 + f^3 q(f)). The first two terms may cancel to a third of ln 2, so their sum
// keeps its rounding error.
V log_sum(V e, V f) {
  V f2 = f * f;
  V tail = (f2 * f) * poly(f, kLogF32);
  V low = fma(f2, -0.5, fma(e, kLn2Part2F32, tail));
  V sum = fma(e, kLn2Part1F32, f);
  V error = f - fma(e, -kLn2Part1F32, sum);
  return sum + (error + low);
}

// Bits of 3/4: subtracting them makes the exponent field count in [3/4, 3/2) 2^k, where 1 + x needs
// no more bits than x has.
constexpr std::int64_t kThreeQuartersF32 = 0x3f400000;
constexpr std::int64_t kMantissaF32 = 0x007fffff;

}  // namespace

V log(V x) {
  V subnormal = x < 0x1p-126;
  V scaled = select(subnormal, x * 0x1p23, x);
  V i = bits(scaled) - kThreeQuartersF32;
  V f = from_bits((i & kMantissaF32) + kThreeQuartersF32) - 1;
  V e = convert(sar(i, 23), DType::kF32);
  e = select(subnormal, e - 23, e);
  V y = log_sum(e, f);
  V special = select(x == 0, -kInf, select(x < 0, kNaN, x));  // +inf, NaN: themselves
  return select((x > 0) & (x < kInf), y, special);
}

// With u = 1 + x = 2^k m: log(1 + x) = k ln 2 + log(1 + f), f = x 2^-k + (2^-k - 1). The latter
// difference is exact or far below x 2^-k, so f is 1 + x reduced with one rounding although u was
// rounded.
V log_plus_one(V x) {
  V u = 1 + x;
  V k = sar(bits(u) - kThreeQuartersF32, 23);
  V s = ldexp(x.like(1), -k);
  V f = fma(x, s, s - 1);
  V y = log_sum(convert(k, DType::kF32), f);
  V special = select(x == -1, -kInf, select(x < -1, kNaN, x));
  // Tiny arguments, -0 among them, are their own result.
  return select((x > -1) & (x < kInf) & (abs(x) >= 0x1p-30), y, special);
}

}  // namespace xylem::compiler::math
