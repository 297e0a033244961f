#include "xylem/ir/ops/elementary.h"

#include <cmath>
#include <numbers>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/elementary_expand.h"
#include "xylem/ir/ops/internal/elementwise.h"

namespace xylem::ir::ops {
namespace {

// A function of <cmath> or <complex> for every compute type.
#define XYLEM_LIBM(Name, function) \
  struct Name {                    \
    template <class T>             \
    T operator()(T x) const {      \
      return std::function(x);     \
    }                              \
  }

XYLEM_LIBM(Log, log);
XYLEM_LIBM(Tanh, tanh);
XYLEM_LIBM(Sine, sin);
XYLEM_LIBM(Cosine, cos);
XYLEM_LIBM(Tan, tan);
XYLEM_LIBM(Asin, asin);
XYLEM_LIBM(Acos, acos);
XYLEM_LIBM(Atan, atan);
XYLEM_LIBM(Sinh, sinh);
XYLEM_LIBM(Cosh, cosh);
XYLEM_LIBM(Asinh, asinh);
XYLEM_LIBM(Acosh, acosh);
XYLEM_LIBM(Atanh, atanh);
XYLEM_LIBM(Erf, erf);
XYLEM_LIBM(Erfc, erfc);
#undef XYLEM_LIBM

struct Exponential {
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
  // No angle follows from an infinite imaginary part, even where the modulus is 0: as XLA has it.
  template <class T>
  std::complex<T> operator()(std::complex<T> z) const {
    if (std::isinf(z.real()) && std::isinf(z.imag())) return {T(NAN), T(NAN)};
    return std::exp(z);
  }
};

struct ExponentialMinusOne {
  template <class T>
  T operator()(T x) const {
    return std::expm1(x);
  }
  // e^(x+iy) - 1 = (expm1(x) cos y - 2 sin²(y/2)) + i e^x sin y
  template <class T>
  std::complex<T> operator()(std::complex<T> z) const {
    T x = z.real(), y = z.imag();
    if (y == 0) return {std::expm1(x), y};  // keeps inf * 0 out
    if (!std::isfinite(x) || !std::isfinite(y)) return std::exp(z) - T(1);
    T s = std::sin(y / 2);
    return {std::expm1(x) * std::cos(y) - 2 * s * s, std::exp(x) * std::sin(y)};
  }
};

struct LogPlusOne {
  template <class T>
  T operator()(T x) const {
    return std::log1p(x);
  }
  // log(1 + x + iy) = log1p(x (2 + x) + y²) / 2 + i atan2(y, 1 + x)
  template <class T>
  std::complex<T> operator()(std::complex<T> z) const {
    T x = z.real(), y = z.imag();
    if (!(std::abs(x) < 1 && std::abs(y) < 1)) return std::log(z + T(1));
    return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
  }
};

struct Logistic {
  template <class T>
  T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};

struct Cbrt {
  template <class T>
  T operator()(T x) const {
    return std::cbrt(x);
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> z) const {
    if (z == std::complex<T>()) return z;
    return std::polar(std::cbrt(std::hypot(z.real(), z.imag())), std::arg(z) / 3);
  }
};

struct Rsqrt {
  template <class T>
  T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};

// What erf_inv is in f32 decides what random normals are: those of JAX are reproduced to the bit
// only by the same steps in the same precision, that is XLA's on CPUs with fused multiply-add:
// Giles' polynomial (M. Giles, "Approximating the erfinv function", 2010) of a logarithm after
// Cephes (S. Moshier, logf.c and unity.c). f64 has no such duty and is solved for.
float cephes_log(float x) {  // normal x > 0
  static constexpr float kP[] = {7.0376836292E-2f,  -1.1514610310E-1f, 1.1676998740E-1f,
                                 -1.2420140846E-1f, 1.4249322787E-1f,  -1.6668057665E-1f,
                                 2.0000714765E-1f,  -2.4999993993E-1f, 3.3333331174E-1f};
  int exponent;
  float m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2_v<float> / 2) {
    --exponent;
    m = (m - 1) + m;
  } else {
    m = m - 1;
  }
  auto e = static_cast<float>(exponent);
  float square = m * m, cube = square * m;
  auto three = [&](int i) { return std::fma(std::fma(kP[i], m, kP[i + 1]), m, kP[i + 2]); };
  float y = std::fma(std::fma(three(0), cube, three(3)), cube, three(6));
  y = std::fma(y, cube, -2.12194440e-4f * e);
  return std::fma(0.693359375f, e, std::fma(-0.5f, square, m) + y);
}

float cephes_log1p(float x) {  // -1 < x <= 0
  static constexpr float kP[] = {4.5270000862445199635215E-5f, 4.9854102823193375972212E-1f,
                                 6.5787325942061044846969E0f,  2.9911919328553073277375E1f,
                                 6.0949667980987787057556E1f,  5.7112963590585538103336E1f,
                                 2.0039553499201281259648E1f};
  static constexpr float kQ[] = {1.0f,
                                 1.5062909083469192043167E1f,
                                 8.3047565967967209469434E1f,
                                 2.2176239823732856465394E2f,
                                 3.0909872225312059774938E2f,
                                 2.1642788614495947685003E2f,
                                 6.0118660497603843919306E1f};
  if (std::abs(x) >= std::numbers::sqrt2_v<float> - 1) return cephes_log(1 + x);
  float p = kP[0], q = kQ[0], square = x * x;
  for (int i = 1; i < 7; ++i) {
    p = std::fma(p, x, kP[i]);
    q = std::fma(q, x, kQ[i]);
  }
  return x + std::fma(-0.5f, square, x * square * (p / q));
}

float erf_inv_f32(float x) {
  static constexpr float kCentral[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                       -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                       -0.00417768164f,  0.246640727f,    1.50140941f};
  static constexpr float kTail[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                    -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                    0.00943887047f,   1.00167406f,     2.83297682f};
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? x * INFINITY : NAN;
  float w = -cephes_log1p(-x * x);
  bool central = w < 5;
  w = central ? w - 2.5f : std::sqrt(w) - 3;
  float p = 0;
  for (float c : central ? kCentral : kTail) p = std::fma(p, w, c);
  return p * x;
}

// Halley's iteration on erf(x) = p from a good start; three steps reach long double. Close to
// |p| = 1 the complement keeps the relative precision.
long double erf_inv_f64(long double p) {
  using std::numbers::pi_v;
  long double a = std::abs(p);
  if (!(a < 1)) return a == 1 ? std::copysign(static_cast<long double>(INFINITY), p) : NAN;
  long double x = a * std::sqrt(pi_v<long double>) / 2;
  if (a > 0.1L) {
    const long double k = 0.147L;  // S. Winitzki, 2008
    long double l = std::log1p(-a * a);
    long double t = 2 / (pi_v<long double> * k) + l / 2;
    x = std::sqrt(std::sqrt(t * t - l / k) - t);
  }
  for (int i = 0; i < 3; ++i) {
    long double f = a > 0.5L ? (1 - a) - std::erfc(x) : std::erf(x) - a;
    long double d = f * std::sqrt(pi_v<long double>) / 2 * std::exp(x * x);
    x -= d / (1 + x * d);
  }
  return std::copysign(x, p);
}

struct ErfInv {
  double operator()(double x) const {
    return static_cast<double>(erf_inv_f32(static_cast<float>(x)));
  }
  long double operator()(long double x) const { return erf_inv_f64(x); }
};

template <class F, unsigned Set = kElInexact>
OpDef elementary(std::string_view name, std::string_view label, double max_ulp = 2) {
  return {.name = name,
          .traits = kPointwise | kTranscendental,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {{"result_accuracy", AttrKind::kAny, false}},
          .shape = unary_shape_rule<Set>,
          .eval = unary_eval<F, Set, true>,
          .max_ulp = max_ulp,
          .labels = label,
          .quant = name.starts_with("stablehlo.") ? QuantSupport::kPerTensor : QuantSupport::kNone,
          .result_labels = "c1"};
}

OpDef with_expansion(OpDef def, ExpandRule expand) {
  def.expand = expand;
  return def;
}

}  // namespace

const OpDef kExponential = elementary<Exponential>("stablehlo.exponential", "exponential_i1");
const OpDef kExponentialMinusOne =
    elementary<ExponentialMinusOne>("stablehlo.exponential_minus_one", "exponential_minus_one_i1");
const OpDef kLog = elementary<Log>("stablehlo.log", "log_i1");
const OpDef kLogPlusOne = elementary<LogPlusOne>("stablehlo.log_plus_one", "log_plus_one_i1");
const OpDef kLogistic = elementary<Logistic>("stablehlo.logistic", "logistic_i1");
const OpDef kTanh = elementary<Tanh>("stablehlo.tanh", "tanh_i1");
const OpDef kSine = elementary<Sine>("stablehlo.sine", "sine_i1");
const OpDef kCosine = elementary<Cosine>("stablehlo.cosine", "cosine_i1");
const OpDef kTan = elementary<Tan>("stablehlo.tan", "tan_i1");
const OpDef kCbrt = elementary<Cbrt>("stablehlo.cbrt", "cbrt_i1");
const OpDef kRsqrt = elementary<Rsqrt>("stablehlo.rsqrt", "rsqrt_i1");
const OpDef kErf = with_expansion(elementary<Erf, kElFloat>("chlo.erf", "erf_i1"), expand_erf);
const OpDef kErfc = with_expansion(elementary<Erfc, kElFloat>("chlo.erfc", "erfc_i1"), expand_erfc);
const OpDef kErfInv =
    with_expansion(elementary<ErfInv, kElFloat>("chlo.erf_inv", "erf_inv_i1", 4), expand_erf_inv);
const OpDef kAsin = with_expansion(elementary<Asin>("chlo.asin", "asin_i1"), expand_asin);
const OpDef kAcos = with_expansion(elementary<Acos>("chlo.acos", "acos_i1"), expand_acos);
const OpDef kAtan = with_expansion(elementary<Atan>("chlo.atan", "atan_i1"), expand_atan);
const OpDef kSinh = with_expansion(elementary<Sinh>("chlo.sinh", "sinh_i1"), expand_sinh);
const OpDef kCosh = with_expansion(elementary<Cosh>("chlo.cosh", "cosh_i1"), expand_cosh);
const OpDef kAsinh = with_expansion(elementary<Asinh>("chlo.asinh", "asinh_i1"), expand_asinh);
const OpDef kAcosh = with_expansion(elementary<Acosh>("chlo.acosh", "acosh_i1"), expand_acosh);
const OpDef kAtanh = with_expansion(elementary<Atanh>("chlo.atanh", "atanh_i1"), expand_atanh);

Family elementary_family() {
  static const OpDef* const kOps[] = {&kExponential, &kExponentialMinusOne,
                                      &kLog,         &kLogPlusOne,
                                      &kLogistic,    &kTanh,
                                      &kSine,        &kCosine,
                                      &kTan,         &kCbrt,
                                      &kRsqrt,       &kErf,
                                      &kErfc,        &kErfInv,
                                      &kAsin,        &kAcos,
                                      &kAtan,        &kSinh,
                                      &kCosh,        &kAsinh,
                                      &kAcosh,       &kAtanh};
  return kOps;
}

}  // namespace xylem::ir::ops
