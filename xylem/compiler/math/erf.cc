#include <limits>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

namespace xylem::compiler::math {
namespace {

// Giles' approximation of erf_inv in single precision: p(w) for w < 5 in w - 2.5 and for larger w in
// sqrt(w) - 3, w = -log(1 - x^2). M. Giles, "Approximating the erfinv function", GPU Computing Gems
// 2, 2011.
constexpr double kErfInvCentralF32[] = {
    1.50140941f,     0.246640727f,   -0.00417768164f, -0.00125372503f, 0.00021858087f,
    -4.39150654e-6f, -3.5233877e-6f, 3.43273939e-7f,  2.81022636e-8f,
};
constexpr double kErfInvTailF32[] = {
    2.83297682f,     1.00167406f,    0.00943887047f,  -0.0076224613f,   0.00573950773f,
    -0.00367342844f, 0.00134934322f, 0.000100950558f, -0.000200214257f,
};

}  // namespace

V erf(V x) {
  V a = abs(x);
  V u = a * a;
  V small = fma(poly(u, kErfF32), a, a);
  V large = poly(at_most(a, 3.9375) - 2.375, kErfTailF32);
  return with_sign_of(select(a < 1, small, large), x);
}

// In the order of the source, multiplications and additions rounded apart, so that normal random
// numbers agree with JAX; near |x| = 1 the rounding of x^2 dominates the error.
V erf_inv(V x) {
  V w = -log_plus_one(-(x * x));
  V central = w < 5;
  V t = select(central, w - 2.5, sqrt(w) - 3);
  V p = select(central, t.like(kErfInvCentralF32[8]), kErfInvTailF32[8]);
  for (int i = 7; i >= 0; --i) p = select(central, t.like(kErfInvCentralF32[i]), kErfInvTailF32[i]) + p * t;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return select(abs(x) == 1, x * kInf, p * x);
}

}  // namespace xylem::compiler::math
