#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// log2(x) of x > 0 in f64 with a relative error of 2^-40, x normal; +-0 gives -inf.
V log2_lite(V x) {
  constexpr std::int64_t kTwoThirds = 0x3fe5555555555555;
  V i = bits(x) - kTwoThirds;
  V f = from_bits((i & 0x000fffffffffffff) + kTwoThirds) - 1;
  V e = convert(sar(i, 52), DType::kF64);
  V y = fma(poly(f, kLog2Lite), f, e);
  return select(x == 0, -kInf, select(x < kInf, y, x));
}

// 2^z in f64 with a relative error of 2^-34.
V exp2_lite(V z) {
  V cut = at_most(at_least(z, -1100), 1100);
  V n = rint(cut);
  V r = cut - n;
  return ldexp(fma(poly(r, kExp2Lite), r, 1), convert(n, DType::kI32));
}

// C's special cases of x^y, given y log2|x| -> |x|^y: the sign of odd powers of negative numbers, NaN
// for other powers of them, 1 for x = 1 and y = 0 whatever the other is.
template <class F>
V power_cases(V x, V y, F magnitude) {
  V integer = rint(y) == y;
  V half = y * 0.5;
  V odd = integer & (rint(half) != half);
  V p = magnitude(abs(x));
  p = select((bits(x) < 0) & odd, -p, p);
  p = select((x < 0) & (x > -kInf) & ~integer, kNaN, p);
  return select((x == 1) | (y == 0), 1, p);
}

}  // namespace

V rsqrt(V x) { return 1 / sqrt(x); }

// In f64, where 2^(y log2 |x|) needs no more care.
V power(V x, V y) {
  V a = convert(x, DType::kF64), b = convert(y, DType::kF64);
  V p = power_cases(a, b, [&](V c) {
    // |x| = 1 to an infinite power is 1, not 2^(0 * inf).
    return exp2_lite(select(c == 1, 0, log2_lite(c) * b));
  });
  return convert(p, DType::kF32);
}

}  // namespace xylem::compiler::math
