#include "xylem/ir/ops/elementwise_unary.h"

#include <bit>
#include <cmath>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/elementary_expand.h"
#include "xylem/ir/ops/internal/elementwise.h"

namespace xylem::ir::ops {
namespace {

std::uint64_t low_bits(std::uint64_t v, int bits) { return v << (64 - bits) >> (64 - bits); }

struct Abs {
  std::int64_t operator()(std::int64_t x) const {
    return static_cast<std::int64_t>(x < 0 ? 0 - static_cast<std::uint64_t>(x)
                                           : static_cast<std::uint64_t>(x));
  }
  template <class T>
  T operator()(T x) const {
    return std::abs(x);
  }
  template <class T>
  T operator()(std::complex<T> x) const {
    return std::hypot(x.real(), x.imag());
  }
};

struct Ceil {
  double operator()(double x) const { return std::ceil(x); }
};
struct Floor {
  double operator()(double x) const { return std::floor(x); }
};
struct RoundNearestAfz {
  double operator()(double x) const { return std::round(x); }
};
struct RoundNearestEven {
  double operator()(double x) const { return std::nearbyint(x); }
};

struct Negate {
  std::int64_t operator()(std::int64_t x) const {
    return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x));
  }
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(-x);
  }
};

struct Not {
  bool operator()(bool x) const { return !x; }
  template <class T>
  T operator()(T x) const {
    return ~x;
  }
};

struct Sign {
  std::int64_t operator()(std::int64_t x) const { return (x > 0) - (x < 0); }
  double operator()(double x) const { return std::isnan(x) || x == 0 ? x : std::copysign(1.0, x); }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    using W = WiderComplex<T>;
    if (std::isnan(x.real()) || std::isnan(x.imag())) return {T(NAN), T(NAN)};
    if (x == std::complex<T>()) return x;
    auto r = std::hypot(W(x).real(), W(x).imag());
    return {static_cast<T>(x.real() / r), static_cast<T>(x.imag() / r)};
  }
};

struct IsFinite {
  bool operator()(double x) const { return std::isfinite(x); }
};

struct CountLeadingZeros {
  int bits = 64;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(std::countl_zero(low_bits(static_cast<std::uint64_t>(x), bits)) -
                          (64 - bits));
  }
};
struct Popcnt {
  int bits = 64;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(std::popcount(low_bits(static_cast<std::uint64_t>(x), bits)));
  }
};

struct Real {
  double operator()(double x) const { return x; }
  template <class T>
  T operator()(std::complex<T> x) const {
    return x.real();
  }
};
struct Imag {
  double operator()(double) const { return 0; }
  template <class T>
  T operator()(std::complex<T> x) const {
    return x.imag();
  }
};

struct Sqrt {
  double operator()(double x) const { return std::sqrt(x); }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    return std::complex<T>(std::sqrt(WiderComplex<T>(x)));
  }
};

struct Square {
  template <class T>
  T operator()(T x) const {
    return x * x;
  }
  std::int64_t operator()(std::int64_t x) const {
    auto u = static_cast<std::uint64_t>(x);
    return static_cast<std::int64_t>(u * u);
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> x) const {
    // (re - im)(re + im) loses nothing where re is close to im.
    T re = x.real(), im = x.imag();
    // Where the sum overflows the difference is still 0.
    T real = std::isfinite(re) && std::abs(re) == std::abs(im) ? T(0) : (re - im) * (re + im);
    return {real, re * im + re * im};
  }
};

// Complex operands give the type of their parts.
template <unsigned Set>
std::vector<Type> real_part_shape_rule(const OpCall& call) {
  const Type& t = tensor_operand(call, 0, Set);
  return {t.with_dtype(real_dtype(t.dtype()))};
}

std::vector<Type> is_finite_shape_rule(const OpCall& call) {
  return {tensor_operand(call, 0, kElFloat).with_dtype(DType::kBool)};
}

std::vector<Type> barrier_shape_rule(const OpCall& call) {
  return {call.operands.begin(), call.operands.end()};
}
std::vector<HostArray> barrier_eval(const EvalCall& call) {
  return {call.operands.begin(), call.operands.end()};
}
DimMap barrier_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  for (const Type& t : call.operands)
    m.operands.push_back(add_factors(m, t.dims(), DimMap::FactorKind::kParallel));
  m.results = m.operands;
  return m;
}

OpDef unary(std::string_view name, std::uint32_t traits, ShapeRule shape, EvalRule eval,
            std::string_view labels, std::string_view result_labels = "c1") {
  bool real_or_imag = name == "stablehlo.real" || name == "stablehlo.imag";
  return {.name = name,
          .traits = kPointwise | traits,
          .min_operands = 1,
          .max_operands = 1,
          .shape = shape,
          .eval = eval,
          .labels = labels,
          .quant = real_or_imag ? QuantSupport::kNone : QuantSupport::kPerTensor,
          .result_labels = result_labels};
}

constexpr unsigned kSignedNumber = kElSigned | kElFloat | kElComplex;

}  // namespace

const OpDef kAbs = unary("stablehlo.abs", kExact | kIdempotent, real_part_shape_rule<kSignedNumber>,
                         unary_eval<Abs, kSignedNumber, true>, "abs_i1", "c2 c1");
const OpDef kCeil = unary("stablehlo.ceil", kExact | kIdempotent, unary_shape_rule<kElFloat>,
                          unary_eval<Ceil, kElFloat>, "ceil_i1");
const OpDef kFloor = unary("stablehlo.floor", kExact | kIdempotent, unary_shape_rule<kElFloat>,
                           unary_eval<Floor, kElFloat>, "floor_i1");
const OpDef kRoundNearestAfz =
    unary("stablehlo.round_nearest_afz", kExact | kIdempotent, unary_shape_rule<kElFloat>,
          unary_eval<RoundNearestAfz, kElFloat>, "round_nearest_afz_i1");
const OpDef kRoundNearestEven =
    unary("stablehlo.round_nearest_even", kExact | kIdempotent, unary_shape_rule<kElFloat>,
          unary_eval<RoundNearestEven, kElFloat>, "round_nearest_even_i1");
const OpDef kNegate = unary("stablehlo.negate", kExact | kLinear, unary_shape_rule<kElNumber>,
                            unary_eval<Negate, kElNumber>, "negate_i1");
const OpDef kNot = unary("stablehlo.not", kExact, unary_shape_rule<kElBool | kElInt>,
                         unary_eval<Not, kElBool | kElInt>, "not_i1");
const OpDef kSign = unary("stablehlo.sign", kExact | kIdempotent, unary_shape_rule<kSignedNumber>,
                          unary_eval<Sign, kSignedNumber>, "sign_i1");
const OpDef kIsFinite = unary("stablehlo.is_finite", kExact, is_finite_shape_rule,
                              unary_eval<IsFinite, kElFloat>, "is_finite_i1", "o1 c1");
const OpDef kCountLeadingZeros =
    unary("stablehlo.count_leading_zeros", kExact, unary_shape_rule<kElInt>,
          unary_eval<CountLeadingZeros, kElInt>, "count_leading_zeros_i1");
const OpDef kPopcnt = unary("stablehlo.popcnt", kExact, unary_shape_rule<kElInt>,
                            unary_eval<Popcnt, kElInt>, "popcnt_i1");
const OpDef kReal = unary("stablehlo.real", kExact | kLinear, real_part_shape_rule<kElInexact>,
                          unary_eval<Real, kElInexact>, "real_i1", "c2 c1");
const OpDef kImag = unary("stablehlo.imag", kExact | kLinear, real_part_shape_rule<kElInexact>,
                          unary_eval<Imag, kElInexact>, "imag_i1", "c2 c1");
const OpDef kSqrt = unary("stablehlo.sqrt", kExact, unary_shape_rule<kElInexact>,
                          unary_eval<Sqrt, kElInexact>, "sqrt_i1");
const OpDef kSquare = [] {
  OpDef d = unary("chlo.square", kExact, unary_shape_rule<kElNumber>, unary_eval<Square, kElNumber>,
                  "square_i1");
  d.expand = expand_square;
  return d;
}();
const OpDef kOptimizationBarrier = {.name = "stablehlo.optimization_barrier",
                                    .max_operands = -1,
                                    .shape = barrier_shape_rule,
                                    .eval = barrier_eval,
                                    .dims = barrier_dims,
                                    .quant = QuantSupport::kPerTensor,
                                    .result_labels = "c1"};

Family elementwise_unary_family() {
  static const OpDef* const kOps[] = {
      &kAbs,  &kCeil, &kFloor,    &kRoundNearestAfz,    &kRoundNearestEven, &kNegate,
      &kNot,  &kSign, &kIsFinite, &kCountLeadingZeros,  &kPopcnt,           &kReal,
      &kImag, &kSqrt, &kSquare,   &kOptimizationBarrier};
  return kOps;
}

}  // namespace xylem::ir::ops
