// Special functions of CHLO.

#include <cmath>
#include <numbers>

#include "xylem/ir/expr.h"
#include "xylem/ir/ops/chlo.h"
#include "xylem/ir/ops/elementary.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/internal/elementwise.h"

namespace xylem::ir::ops {
namespace {

using Wide = long double;
constexpr Wide kPi = std::numbers::pi_v<long double>;

// (2k)! / B(2k), k = 1 … 12: the Euler-Maclaurin formula's divisors.
constexpr Wide kEulerMaclaurin[] = {12.0L,
                                    -720.0L,
                                    30240.0L,
                                    -1209600.0L,
                                    47900160.0L,
                                    -1307674368000.0L * 1000 / 691,
                                    74724249600.0L,
                                    -10670622842880000.0L * 1000 / 3617,
                                    5109094217170944000.0L * 1000 / 43867,
                                    -802857662698291200000.0L * 1000 / 174611,
                                    14101100039391805440000.0L * 11000 / 854513,
                                    -1693824136731743669452800000.0L / 236364091};

// zeta(x, q) for x > 1: a direct sum, then Euler-Maclaurin.
Wide zeta(Wide x, Wide q) {
  if (std::isnan(x) || std::isnan(q)) return NAN;
  if (x == 1) return INFINITY;
  if (x < 1) return NAN;
  if (q <= 0) {
    if (q == std::floor(q)) return INFINITY;
    if (x != std::floor(x)) return NAN;
  }
  constexpr int kTerms = 24;
  Wide sum = 0;
  int i = 0;
  // Negative q take terms until the sum runs over positive numbers.
  for (; i < kTerms || q + i < 9; ++i) {
    if (i > 100000) return NAN;
    sum += std::pow(q + i, -x);
  }
  Wide a = q + i;
  Wide power = std::pow(a, -x);
  sum += power * a / (x - 1) + power / 2;
  Wide factor = x, scale = power / a;
  for (int k = 0; k < 12; ++k) {
    Wide term = factor * scale / kEulerMaclaurin[k];
    sum += term;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
    scale /= a * a;
  }
  return sum;
}

Wide digamma(Wide x) {
  if (std::isinf(x)) return x > 0 ? x : NAN;
  if (x <= 0 && x == std::floor(x))
    return x == 0 ? std::copysign(static_cast<Wide>(INFINITY), -x) : NAN;
  if (x < 0.5L) {  // reflection, on the fraction alone
    Wide f = x - std::floor(x);
    return digamma(1 - x) - kPi / std::tan(kPi * f);
  }
  Wide r = 0;
  for (; x < 24; x += 1) r -= 1 / x;
  Wide y = 1 / (x * x), s = 0;
  // Bernoulli numbers B(2k) / 2k, from the last term.
  constexpr Wide kB[] = {1.0L / 12,       -1.0L / 120, 1.0L / 252,      -1.0L / 240,     1.0L / 132,
                         -691.0L / 32760, 1.0L / 12,   -3617.0L / 8160, 43867.0L / 14364};
  for (int k = 8; k >= 0; --k) s = (s + kB[k]) * y;
  return r + std::log(x) - 1 / (2 * x) - s;
}

Wide polygamma(Wide n, Wide x) {
  if (n != std::floor(n) || n < 0) return NAN;
  if (n == 0) return digamma(x);
  Wide sign = std::fmod(n, 2) == 1 ? 1 : -1;
  return sign * std::exp(std::lgamma(n + 1)) * zeta(n + 1, x);
}

Wide bessel_i1e(Wide x) {
  Wide a = std::abs(x), r;
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return std::copysign(0.0L, x);
  if (a < 40) {
    Wide term = a / 2, q = a * a / 4;
    r = term;
    for (int k = 1; k < 200 && term > r * 1e-22L; ++k) r += term *= q / (k * (k + 1.0L));
    r *= std::exp(-a);
  } else {
    Wide term = 1, sum = 1;
    for (int k = 1; k < 40; ++k) {
      Wide next = -term * (4 - (2 * k - 1.0L) * (2 * k - 1)) / (8 * a * k);
      if (std::abs(next) >= std::abs(term)) break;
      sum += term = next;
    }
    r = sum / std::sqrt(2 * kPi * a);
  }
  return std::copysign(r, x);
}

struct Lgamma {
  template <class T>
  T operator()(T x) const {
    int sign;
    return static_cast<T>(lgammal_r(x, &sign));
  }
};
struct Digamma {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(digamma(x));
  }
};
struct BesselI1e {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(bessel_i1e(x));
  }
};
struct Polygamma {
  template <class T>
  T operator()(T n, T x) const {
    return static_cast<T>(polygamma(n, x));
  }
};
struct Zeta {
  template <class T>
  T operator()(T x, T q) const {
    return static_cast<T>(zeta(x, q));
  }
};

// Decompositions: narrow floats are computed in f32.
// -----------------------------------------------

// C. Lanczos, "A precision approximation of the gamma function", 1964, with g = 7 and 9 terms.
constexpr double kG = 7;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

DType work_type(DType t) { return dtype_bits(t) < 32 ? DType::kF32 : t; }

template <class Fn>
std::vector<ValueId> in_work_type(Builder& b, std::span<const ValueId> v, const Fn& fn) {
  DType own = b.type(v[0]).dtype(), work = work_type(own);
  std::vector<Expr> x;
  for (ValueId id : v) x.push_back(convert(Expr{&b, id}, work));
  return {convert(fn(x), own).v};
}

Expr floor_of(Expr x) { return unary(kFloor, x); }
Expr abs_of(Expr x) { return unary(kAbs, x); }
Expr log_of(Expr x) { return unary(kLog, x); }
Expr exp_of(Expr x) { return unary(kExponential, x); }
Expr pow_of(Expr x, Expr y) { return binary(kPower, x, y); }

// log of (g + 1/2 + z).
Expr log_t(Expr z) { return unary(kLogPlusOne, z / (kG + 0.5)) + std::log(kG + 0.5); }

Expr lgamma_expr(Expr x) {
  Expr reflect = compare(x, 0.5, "LT");
  Expr z = select(reflect, -x, x - 1);
  Expr series = like(x, kLanczosBase);
  for (int i = 0; i < 8; ++i) series = series + kLanczos[i] / (z + (i + 1.0));
  Expr t = z + (kG + 0.5), log = log_t(z);
  Expr y = (z + 0.5 - t / log) * log + log_of(series) + std::log(std::sqrt(2 * std::numbers::pi));
  Expr fraction = abs_of(x) - floor_of(abs_of(x));
  fraction = select(compare(fraction, 0.5, "GT"), 1 - fraction, fraction);
  Expr sine = log_of(unary(kSine, fraction * std::numbers::pi));
  Expr finite = unary(kIsFinite, sine);
  Expr reflected = select(finite, std::log(std::numbers::pi) - sine - y, -sine);
  Expr r = select(reflect, reflected, y);
  return select(compare(abs_of(x), INFINITY, "EQ"), like(x, INFINITY), r);
}

Expr digamma_expr(Expr x) {
  Expr reflect = compare(x, 0.5, "LT");
  Expr z = select(reflect, -x, x - 1);
  Expr numerator = like(x, 0), denominator = like(x, kLanczosBase);
  for (int i = 0; i < 8; ++i) {
    Expr d = z + (i + 1.0);
    numerator = numerator - kLanczos[i] / (d * d);
    denominator = denominator + kLanczos[i] / d;
  }
  Expr t = z + (kG + 0.5);
  Expr y = log_t(z) + numerator / denominator - kG / t;
  Expr fraction = x - floor_of(x + 0.5);
  Expr angle = fraction * std::numbers::pi;
  Expr reflected = y - std::numbers::pi * unary(kCosine, angle) / unary(kSine, angle);
  Expr pole = binary(kAnd, compare(x, 0, "LE"), compare(x, floor_of(x), "EQ"));
  Expr r = select(pole, like(x, NAN), select(reflect, reflected, y));
  return select(compare(x, 0, "EQ"), -1.0 / x, r);
}

Expr zeta_expr(Expr x, Expr q) {
  constexpr int kTerms = 10;
  Expr a = q, sum = pow_of(q, -x);
  for (int i = 1; i < kTerms; ++i) {
    a = a + 1;
    sum = sum + pow_of(a, -x);
  }
  a = a + 1;
  Expr power = pow_of(a, -x);
  sum = sum + power * a / (x - 1) + power * 0.5;
  Expr factor = x, scale = power / a, square = a * a;
  for (int k = 0; k < 12; ++k) {
    sum = sum + factor * scale / static_cast<double>(kEulerMaclaurin[k]);
    factor = factor * ((x + (2.0 * k + 1)) * (x + (2.0 * k + 2)));
    scale = scale / square;
  }
  Expr bad = compare(q, 0, "LE");
  Expr whole = compare(q, floor_of(q), "EQ");
  Expr real_power = compare(x, floor_of(x), "NE");
  Expr at_poles = select(whole, like(x, INFINITY), select(real_power, like(x, NAN), sum));
  Expr r = select(bad, at_poles, sum);
  r = select(compare(x, 1, "LT"), like(x, NAN), r);
  return select(compare(x, 1, "EQ"), like(x, INFINITY), r);
}

Expr bessel_expr(Expr x) {
  bool f64 = x.dtype() == DType::kF64;
  double border = f64 ? 40 : 12;
  int terms = f64 ? 110 : 45;
  Expr a = abs_of(x);
  Expr small = select(compare(a, border, "LT"), a, like(a, 1));
  Expr q = small * small * 0.25;
  // Horner: 1 + q / (1 2) (1 + q / (2 3) (…)); all terms are positive.
  Expr series = like(a, 1);
  for (int k = terms; k >= 1; --k) series = q * series / (k * (k + 1.0)) + 1;
  series = small * 0.5 * series * exp_of(-small);
  Expr large = select(compare(a, border, "LT"), like(a, border), a);
  Expr tail = like(a, 1);
  for (int k = f64 ? 28 : 14; k >= 1; --k)
    tail = 1 - tail * (4 - (2 * k - 1.0) * (2 * k - 1)) / (large * (8.0 * k));
  tail = tail / unary(kSqrt, large * (2 * std::numbers::pi));
  Expr r = select(compare(a, border, "LT"), series, tail);
  r = select(compare(a, INFINITY, "EQ"), like(a, 0), r);
  r = select(compare(x, 0, "LT"), -r, r);
  return select(compare(x, x, "NE"), x, r);
}

std::vector<ValueId> expand_lgamma(Builder& b, const Op&, std::span<const ValueId> v) {
  return in_work_type(b, v, [](const std::vector<Expr>& x) { return lgamma_expr(x[0]); });
}
std::vector<ValueId> expand_digamma(Builder& b, const Op&, std::span<const ValueId> v) {
  return in_work_type(b, v, [](const std::vector<Expr>& x) { return digamma_expr(x[0]); });
}
std::vector<ValueId> expand_zeta(Builder& b, const Op&, std::span<const ValueId> v) {
  return in_work_type(b, v, [](const std::vector<Expr>& x) { return zeta_expr(x[0], x[1]); });
}
std::vector<ValueId> expand_polygamma(Builder& b, const Op&, std::span<const ValueId> v) {
  return in_work_type(b, v, [](const std::vector<Expr>& x) {
    Expr n = x[0], next = n + 1;
    Expr half = n * 0.5;
    Expr sign = select(compare(half, floor_of(half), "EQ"), like(n, -1), like(n, 1));
    Expr r = sign * exp_of(lgamma_expr(next)) * zeta_expr(next, x[1]);
    r = select(compare(n, 0, "EQ"), digamma_expr(x[1]), r);
    Expr bad = binary(kOr, compare(n, 0, "LT"), compare(n, floor_of(n), "NE"));
    return select(bad, like(n, NAN), r);
  });
}
std::vector<ValueId> expand_bessel(Builder& b, const Op&, std::span<const ValueId> v) {
  return in_work_type(b, v, [](const std::vector<Expr>& x) { return bessel_expr(x[0]); });
}

OpDef special(std::string_view name, int operands, ShapeRule shape, EvalRule eval,
              ExpandRule expand, std::string_view labels) {
  return {.name = name,
          .traits = kPointwise | kTranscendental,
          .min_operands = operands,
          .max_operands = operands,
          .shape = shape,
          .eval = eval,
          .max_ulp = 1024,
          .labels = labels,
          .expand = expand,
          .result_labels = "c1"};
}

}  // namespace

const OpDef kLgamma = special("chlo.lgamma", 1, unary_shape_rule<kElFloat>,
                              unary_eval<Lgamma, kElFloat, true>, expand_lgamma, "lgamma_i1");
const OpDef kDigamma = special("chlo.digamma", 1, unary_shape_rule<kElFloat>,
                               unary_eval<Digamma, kElFloat, true>, expand_digamma, "digamma_i1");
const OpDef kBesselI1e =
    special("chlo.bessel_i1e", 1, unary_shape_rule<kElFloat>, unary_eval<BesselI1e, kElFloat, true>,
            expand_bessel, "bessel_i1e_i1");
const OpDef kPolygamma = special("chlo.polygamma", 2, binary_shape_rule<kElFloat>,
                                 binary_eval<Polygamma, kElFloat, true>, expand_polygamma,
                                 "polygamma_i1 polygamma_i2 polygamma_c1");
const OpDef kZeta =
    special("chlo.zeta", 2, binary_shape_rule<kElFloat>, binary_eval<Zeta, kElFloat, true>,
            expand_zeta, "zeta_i1 zeta_i2 zeta_c1");

}  // namespace xylem::ir::ops
