#include "xylem/compiler/math/testing/mpfr_reference.h"

#include <mpfr.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {
namespace {

namespace ops = ir::ops;

constexpr mpfr_prec_t kPrecision = 160;

using Function = void (*)(mpfr_t result, const mpfr_t x, const mpfr_t y);

template <int (*F)(mpfr_t, const mpfr_t, mpfr_rnd_t)>
void unary(mpfr_t r, const mpfr_t x, const mpfr_t) {
  F(r, x, MPFR_RNDN);
}

template <int (*F)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t)>
void binary(mpfr_t r, const mpfr_t x, const mpfr_t y) {
  F(r, x, y, MPFR_RNDN);
}

// 1 / (1 + e^-x)
void logistic(mpfr_t r, const mpfr_t x, const mpfr_t) {
  mpfr_neg(r, x, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

// 1 / sqrt(x); MPFR's own gives +inf for -0.
void rsqrt(mpfr_t r, const mpfr_t x, const mpfr_t) {
  mpfr_sqrt(r, x, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

struct Entry {
  const ir::OpDef* def;
  int operands;
  Function function;
};

const std::vector<Entry>& entries() {
  static const auto* table = new std::vector<Entry>{
      {&ops::kExponential, 1, unary<mpfr_exp>},
      {&ops::kExponentialMinusOne, 1, unary<mpfr_expm1>},
      {&ops::kLog, 1, unary<mpfr_log>},
      {&ops::kLogPlusOne, 1, unary<mpfr_log1p>},
      {&ops::kLogistic, 1, logistic},
      {&ops::kTanh, 1, unary<mpfr_tanh>},
      {&ops::kSine, 1, unary<mpfr_sin>},
      {&ops::kCosine, 1, unary<mpfr_cos>},
      {&ops::kTan, 1, unary<mpfr_tan>},
      {&ops::kCbrt, 1, unary<mpfr_cbrt>},
      {&ops::kRsqrt, 1, rsqrt},
      {&ops::kErf, 1, unary<mpfr_erf>},
      {&ops::kErfc, 1, unary<mpfr_erfc>},
      {&ops::kErfInv, 1, nullptr},
      {&ops::kAsin, 1, unary<mpfr_asin>},
      {&ops::kAcos, 1, unary<mpfr_acos>},
      {&ops::kAtan, 1, unary<mpfr_atan>},
      {&ops::kSinh, 1, unary<mpfr_sinh>},
      {&ops::kCosh, 1, unary<mpfr_cosh>},
      {&ops::kAsinh, 1, unary<mpfr_asinh>},
      {&ops::kAcosh, 1, unary<mpfr_acosh>},
      {&ops::kAtanh, 1, unary<mpfr_atanh>},
      {&ops::kPower, 2, binary<mpfr_pow>},
      {&ops::kAtan2, 2, binary<mpfr_atan2>},
  };
  return *table;
}

// Exponent e of the ulp 2^e at a value of this binary exponent (|value| in [2^(exponent - 1),
// 2^exponent)).
long ulp_exponent(DType dtype, long exponent) {
  const DTypeInfo& info = dtype_info(dtype);
  const long least = 2 - info.bias, most = info.bias + 1;
  exponent = std::min(std::max(exponent, least), most);
  return exponent - 1 - info.mantissa_bits;
}

}  // namespace

struct MpfrReference::State {
  Entry entry;
  mpfr_t x, y, want, got;
  explicit State(const Entry& e) : entry(e) { mpfr_inits2(kPrecision, x, y, want, got, nullptr); }
  ~State() { mpfr_clears(x, y, want, got, nullptr); }
};

MpfrReference::MpfrReference(const ir::OpDef& def) {
  for (const Entry& e : entries())
    if (e.def == &def) state_ = std::make_unique<State>(e);
  if (!state_) throw UserError("no reference for " + std::string(def.name));
}

MpfrReference::~MpfrReference() = default;

int MpfrReference::operands() const { return state_->entry.operands; }

double MpfrReference::ulp_error(DType dtype, double got, double x, double y) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  State& s = *state_;
  mpfr_set_d(s.x, x, MPFR_RNDN);
  mpfr_set_d(s.y, y, MPFR_RNDN);
  mpfr_set_d(s.got, got, MPFR_RNDN);
  if (s.entry.def == &ops::kErfInv) {
    if (std::abs(x) > 1 || std::isnan(x)) return std::isnan(got) ? 0 : kWrong;
    if (std::abs(x) == 1) return got == x * kWrong ? 0 : kWrong;
    if (x == 0) return got == 0 && std::signbit(got) == std::signbit(x) ? 0 : kWrong;
    if (!std::isfinite(got)) return kWrong;
    // To first order, the error is (erf(got) - x) / erf'(got).
    mpfr_erf(s.want, s.got, MPFR_RNDN);
    mpfr_sub(s.want, s.want, s.x, MPFR_RNDN);
    mpfr_sqr(s.y, s.got, MPFR_RNDN);
    mpfr_exp(s.y, s.y, MPFR_RNDN);
    mpfr_mul(s.want, s.want, s.y, MPFR_RNDN);
    mpfr_mul_2si(s.want, s.want, -ulp_exponent(dtype, std::ilogb(got) + 1), MPFR_RNDN);
    return std::abs(mpfr_get_d(s.want, MPFR_RNDN)) * 0.88622692545275801;  // sqrt(pi) / 2
  }
  s.entry.function(s.want, s.x, s.y);
  if (mpfr_nan_p(s.want) || std::isnan(got))
    return mpfr_nan_p(s.want) && std::isnan(got) ? 0 : kWrong;
  if (mpfr_zero_p(s.want))
    return got == 0 && std::signbit(got) == (mpfr_signbit(s.want) != 0) ? 0 : kWrong;
  if (std::signbit(got) != (mpfr_signbit(s.want) != 0)) return kWrong;
  // Infinity stands for the first power of two that is too large.
  const long top = dtype_info(dtype).bias + 1;
  if (std::isinf(got)) mpfr_set_si_2exp(s.got, got > 0 ? 1 : -1, top, MPFR_RNDN);
  if (mpfr_inf_p(s.want) || mpfr_get_exp(s.want) > top)
    mpfr_set_si_2exp(s.want, mpfr_signbit(s.want) ? -1 : 1, top, MPFR_RNDN);
  const long ulp = ulp_exponent(dtype, mpfr_get_exp(s.want));
  mpfr_sub(s.want, s.want, s.got, MPFR_RNDN);
  mpfr_mul_2si(s.want, s.want, -ulp, MPFR_RNDN);
  return std::abs(mpfr_get_d(s.want, MPFR_RNDN));
}

std::vector<const ir::OpDef*> ops_with_reference() {
  std::vector<const ir::OpDef*> out;
  for (const Entry& e : entries()) out.push_back(e.def);
  return out;
}

}  // namespace xylem::compiler::testing
