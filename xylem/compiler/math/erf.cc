#include <limits>
#include <numbers>

#include "xylem/compiler/math/coefficients.h"
#include "xylem/compiler/math/functions.h"

namespace xylem::compiler::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Giles' approximation of erf_inv in single precision: p(w) for w < 5 in w - 2.5 and for larger w
// in sqrt(w) - 3, w = -log(1 - x^2). M. Giles, "Approximating the erfinv function", GPU Computing
// Gems 2, 2011.
constexpr double kErfInvCentralF32[] = {
    1.50140941f,     0.246640727f,   -0.00417768164f, -0.00125372503f, 0.00021858087f,
    -4.39150654e-6f, -3.5233877e-6f, 3.43273939e-7f,  2.81022636e-8f,
};
constexpr double kErfInvTailF32[] = {
    2.83297682f,     1.00167406f,    0.00943887047f,  -0.0076224613f,   0.00573950773f,
    -0.00367342844f, 0.00134934322f, 0.000100950558f, -0.000200214257f,
};

// log(x) of a normal x in (0, 1), after Cephes (S. Moshier, logf.c), with the fused steps of XLA on
// CPUs: the bits of random normals depend on each of them.
V cephes_log_f32(V x) {
  static constexpr double kP[] = {7.0376836292E-2f,  -1.1514610310E-1f, 1.1676998740E-1f,
                                  -1.2420140846E-1f, 1.4249322787E-1f,  -1.6668057665E-1f,
                                  2.0000714765E-1f,  -2.4999993993E-1f, 3.3333331174E-1f};
  V code = bits(x);
  V half = from_bits((code & 0x7fffff) | 0x3f000000);  // in [1/2, 1)
  V below = half < static_cast<double>(std::numbers::sqrt2_v<float> / 2);
  V exponent = shr(code, 23) - 126;
  V e = convert(select(below, exponent - 1, exponent), DType::kF32);
  V less_one = half - 1;
  V m = select(below, less_one + half, less_one);
  V square = m * m;
  V cube = square * m;
  auto three = [&](int i) { return fma(fma(m.like(kP[i]), m, kP[i + 1]), m, kP[i + 2]); };
  V y = fma(fma(three(0), cube, three(3)), cube, three(6));
  y = fma(y, cube, e * static_cast<double>(-2.12194440e-4f));
  return fma(e.like(0.693359375), e, fma(square.like(-0.5), square, m) + y);
}

// log(1 + x) for -1 < x <= 0 in the same manner (unity.c).
V cephes_log1p_f32(V x) {
  static constexpr double kP[] = {4.5270000862445199635215E-5f, 4.9854102823193375972212E-1f,
                                  6.5787325942061044846969E0f,  2.9911919328553073277375E1f,
                                  6.0949667980987787057556E1f,  5.7112963590585538103336E1f,
                                  2.0039553499201281259648E1f};
  static constexpr double kQ[] = {1.0f,
                                  1.5062909083469192043167E1f,
                                  8.3047565967967209469434E1f,
                                  2.2176239823732856465394E2f,
                                  3.0909872225312059774938E2f,
                                  2.1642788614495947685003E2f,
                                  6.0118660497603843919306E1f};
  V p = x.like(kP[0]), q = x.like(kQ[0]), square = x * x;
  for (int i = 1; i < 7; ++i) {
    p = fma(p, x, kP[i]);
    q = fma(q, x, kQ[i]);
  }
  V small = x + fma(square.like(-0.5), square, x * square * (p / q));
  V far = abs(x) >= static_cast<double>(std::numbers::sqrt2_v<float> - 1);
  return select(far, cephes_log_f32(x + 1), small);
}

// Every step as XLA rounds it on a CPU, so that normal random numbers agree with JAX; near |x| = 1
// the rounding of x^2 dominates the error.
V erf_inv_f32(V x) {
  V w = -cephes_log1p_f32(-(x * x));
  V central = w < 5;
  V t = select(central, w - 2.5, sqrt(w) - 3);
  V p = select(central, t.like(kErfInvCentralF32[8]), kErfInvTailF32[8]);
  for (int i = 7; i >= 0; --i)
    p = fma(p, t, select(central, t.like(kErfInvCentralF32[i]), kErfInvTailF32[i]));
  V a = abs(x);
  V outside = select(a == 1, x * kInf, x.like(std::numeric_limits<double>::quiet_NaN()));
  return select(a < 1, p * x, outside);
}

// x p(x^2) below 1/2; else x p(w), w = -log(1 - x^2), in Giles' ranges with minimax polynomials of
// w or its root: c + t q(t), where c and the product with x are pairs. Near |x| = 1 the product (1
// - x)(1 + x) keeps what x^2 would lose.
V erf_inv_f64(V x) {
  V a = abs(x);
  V w = -log((1 - a) * (1 + a));
  V root = sqrt(w);
  struct Range {
    V center, low, q;
  };
  auto range = [](V t, double center, double low, std::span<const double> q) {
    return Range{t.like(center), t.like(low), poly(t, q) * t};
  };
  auto choose = [](V condition, const Range& yes, const Range& no) {
    return Range{select(condition, yes.center, no.center), select(condition, yes.low, no.low),
                 select(condition, yes.q, no.q)};
  };
  Range p = choose(
      w < 16, range(root - 3.25, kErfInvLargeCenter1F64, kErfInvLargeCenter2F64, kErfInvLargeF64),
      range(root - 5, kErfInvTailCenter1F64, kErfInvTailCenter2F64, kErfInvTailF64));
  p = choose(w < 6.25,
             range(w - 3.125, kErfInvMiddleCenter1F64, kErfInvMiddleCenter2F64, kErfInvMiddleF64),
             p);
  p = choose(a < 0.5, range(x * x, kHalfRootPiPart1F64, kHalfRootPiPart2F64, kErfInvSmallF64), p);
  DD product = two_product(x, p.center);
  V y = product.hi + fma(x, p.q + p.low, product.lo);
  // The pair is of no use where the product is subnormal.
  y = select(a < 0x1p-900, x * kHalfRootPiPart1F64, y);
  return select(a == 1, x * kInf, y);
}

// (1 + 2 a) e^(a^2) erfc(a) is a polynomial in (a - k) / (a + k). One division serves both
// quotients. The polynomial's last sum, the quotient by 1 + 2 a and the exponent keep their
// rounding errors.
V erfc_tail(V a) {
  constexpr double k = 4;
  DD d = fast_two_sum(a + a, a.like(1));
  V inverse = 1 / ((a + k) * d.hi);
  V t = (a - k) * d.hi * inverse;
  V p = poly(t, kErfcF64);
  V h = fma(p, t, kErfcCenter1F64);
  V h_low = fma(p, t, kErfcCenter1F64 - h) + kErfcCenter2F64;
  V reciprocal = (a + k) * inverse;
  V q = h * reciprocal;
  V q_low = (fma(-q, d.hi, h) + fma(-q, d.lo, h_low)) * reciprocal;
  DD square = two_product(a, a);
  ExpReduced e = exp_reduce(-square.hi);
  DD r = fast_two_sum(e.r, -square.lo);
  V rest = exp_tail(r.hi) + (e.low() + r.lo);
  return ldexp(q + fma(q, r.hi, fma(q, rest, fma(q_low, r.hi, q_low))), e.n.integer);
}

V erfc_tail_lite(V a) {
  constexpr double k = 2;
  V d = fma(a, 2, 1);
  V inverse = 1 / ((a + k) * d);
  V h = poly((a - k) * d * inverse, kErfcLite);
  return exp2_lite(a * a * -kLog2eF64) * (h * (a + k) * inverse);
}

}  // namespace

V erf(V x) {
  V a = abs(x);
  V b = at_most(a, 1);
  V u = b * b;
  V small = fma(x.is_f64() ? poly(u, kErfF64) : poly(u, kErfF32), b, b);
  V large = x.is_f64() ? 1 - erfc_tail(at_most(at_least(a, 1), 6.5))
                       : poly(at_most(a, 3.9375) - 2.375, kErfTailF32);
  return with_sign_of(select(a < 1, small, large), x);
}

V erfc(V x) {
  V y = convert(x, DType::kF64);
  V a = abs(y);
  V b = at_most(a, 1);
  V p = poly(b * b, kErfF64) * b;
  DD complement = fast_two_sum(y.like(1), -b);
  V small = select(y < 0, 1 + (b + p), complement.hi + (complement.lo - p));
  V c = at_least(a, 0.75);
  V tail = x.is_f64() ? erfc_tail(at_most(c, 27.5)) : erfc_tail_lite(at_most(c, 10.5));
  V large = select(y < 0, 2 - tail, tail);
  return convert(select(a < 0.75, small, large), x.dtype());
}

V erf_inv(V x) { return x.is_f64() ? erf_inv_f64(x) : erf_inv_f32(x); }

}  // namespace xylem::compiler::math
