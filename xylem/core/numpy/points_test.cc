// Elementwise functions and gradients at edge points against JAX (tests/goldens/core_points.json).

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "xylem/base/testing/golden.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::Golden;

using Unary = std::function<Array(const Array&)>;
using Binary = std::function<Array(const Array&, const Array&)>;

const Golden& file() {
  static const Golden g = Golden::load("core_points.json");
  return g;
}

#define ONE(name)                                 \
  {                                               \
#name, [](const Array& x) { return name(x); } \
  }
#define SPECIAL(name)                                      \
  {                                                        \
#name, [](const Array& x) { return special::name(x); } \
  }
#define TWO(name)                                                    \
  {                                                                  \
#name, [](const Array& x, const Array& y) { return name(x, y); } \
  }

const std::map<std::string, Unary> kUnary = {
    ONE(abs),
    ONE(negative),
    ONE(sign),
    ONE(exp),
    ONE(exp2),
    ONE(expm1),
    ONE(log),
    ONE(log2),
    ONE(log10),
    ONE(log1p),
    ONE(sqrt),
    ONE(cbrt),
    ONE(square),
    ONE(reciprocal),
    ONE(sin),
    ONE(cos),
    ONE(tan),
    ONE(arcsin),
    ONE(arccos),
    ONE(arctan),
    ONE(sinh),
    ONE(cosh),
    ONE(tanh),
    ONE(arcsinh),
    ONE(arccosh),
    ONE(arctanh),
    ONE(floor),
    ONE(ceil),
    ONE(round),
    ONE(trunc),
    ONE(isnan),
    ONE(isinf),
    ONE(isfinite),
    ONE(nan_to_num),
    SPECIAL(erf),
    SPECIAL(erfc),
    SPECIAL(erfinv),
    SPECIAL(expit),
    SPECIAL(logit),
    SPECIAL(ndtr),
    {"rsqrt", [](const Array& x) { return lax::rsqrt(x); }},
    {"x ** 0", [](const Array& x) { return pow(x, 0); }},
    {"x ** 3", [](const Array& x) { return pow(x, 3); }},
    {"x ** -2", [](const Array& x) { return pow(x, -2); }},
};
const std::map<std::string, Binary> kBinary = {
    TWO(add),
    TWO(subtract),
    TWO(multiply),
    TWO(divide),
    TWO(floor_divide),
    TWO(mod),
    TWO(fmod),
    TWO(power),
    TWO(maximum),
    TWO(minimum),
    TWO(arctan2),
    TWO(hypot),
    TWO(logaddexp),
    TWO(equal),
    TWO(less),
    TWO(less_equal),
    TWO(bitwise_and),
    TWO(bitwise_or),
    TWO(bitwise_xor),
    TWO(left_shift),
    TWO(right_shift),
    {"nextafter", [](const Array& x, const Array& y) { return special::nextafter(x, y); }},
    {"xlogy", [](const Array& x, const Array& y) { return special::xlogy(x, y); }},
};

// Whether JAX's CPU back end, which flushes subnormals, could have given another number.
bool subnormal(DType t, double v) {
  return v != 0 && std::abs(v) < (t == DType::kF64 ? 0x1p-1022 : 0x1p-126);
}

// Functions of few correct digits in f32 on the recording side: compared with its f64 row instead.
double units(double got, double want, DType t) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return HUGE_VAL;
  int bits = dtype_info(t).mantissa_bits, least = 1 - dtype_info(t).bias;
  return std::abs(got - want) /
         std::ldexp(1, std::max(want == 0 ? least : std::ilogb(want), least) - bits);
}

class Points : public ::testing::TestWithParam<DType> {
 protected:
  // Every element within 4 units of what was recorded in its dtype, or in f64 at the same point.
  void compare(const std::string& name, const Array& got, const HostArray& want,
               const HostArray& fine, const std::function<std::string(std::int64_t)>& where) {
    ASSERT_EQ(got.dtype(), want.dtype()) << name;
    HostArray g = got.to_host();
    for (std::int64_t i = 0; i < want.size(); ++i) {
      double a = g.at(i), b = want.at(i), c = fine.at(i);
      if (subnormal(want.dtype(), a) || subnormal(want.dtype(), c)) continue;
      double off = units(a, b, is_float(want.dtype()) ? want.dtype() : DType::kF64);
      if (is_float(want.dtype()))
        off = std::min(
            off,
            units(a, want.dtype() == DType::kF32 ? static_cast<double>(static_cast<float>(c)) : c,
                  want.dtype()));
      // JAX's own are off by that much: arguments of exp that are rounded before.
      bool loose = name == "sinh" || name == "cosh" || name == "ndtr";
      EXPECT_LE(off, loose ? 100 : 4)
          << name << "(" << where(i) << ") gave " << a << ", JAX " << b << ", f64 " << c;
    }
  }
  Golden own() { return file()["elementwise"][GetParam() == DType::kF64 ? "f64" : "f32"]; }
  Golden fine() { return file()["elementwise"]["f64"]; }
};

TEST_P(Points, UnaryFunctionsEqualJax) {
  HostArray p = file()["points"].array();
  Array x = Array(p).astype(GetParam());
  for (const std::string& name : own()["unary"].keys()) {
    ASSERT_TRUE(kUnary.count(name)) << name;
    compare(name, kUnary.at(name)(x), own()["unary"][name].array(), fine()["unary"][name].array(),
            [&](std::int64_t i) { return std::to_string(p.at(i)); });
  }
}

TEST_P(Points, BinaryFunctionsEqualJax) {
  HostArray pairs = file()["pairs"].array();
  std::vector<Array> both = unstack(Array(pairs).astype(GetParam()), 1);
  for (const std::string& name : own()["binary"].keys()) {
    ASSERT_TRUE(kBinary.count(name)) << name;
    compare(name, kBinary.at(name)(both[0], both[1]), own()["binary"][name].array(),
            fine()["binary"][name].array(), [&](std::int64_t i) {
              return std::to_string(pairs.at(2 * i)) + ", " + std::to_string(pairs.at(2 * i + 1));
            });
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Points, ::testing::Values(DType::kF32, DType::kF64));

TEST(Points, IntegerFunctionsEqualJaxToTheBit) {
  Golden all = file()["integers"];
  for (const std::string& t : all.keys()) {
    Array x(all[t]["x"].array()), y(all[t]["y"].array());
    for (const std::string& name : all[t]["out"].keys()) {
      HostArray want = all[t]["out"][name].array(), got = kBinary.at(name)(x, y).to_host();
      ASSERT_EQ(got.dtype(), want.dtype()) << name;
      for (std::int64_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(got.at(i) == want.at(i) || (std::isnan(got.at(i)) && std::isnan(want.at(i))))
            << name << " of " << t << " " << x.to_host().at(i) << ", " << y.to_host().at(i)
            << " gave " << got.at(i) << ", JAX " << want.at(i);
    }
  }
}

// --- gradients
// ------------------------------------------------------------------------------------

const std::map<std::string, Unary> kScalar = {
    ONE(abs),
    ONE(sign),
    ONE(sqrt),
    ONE(cbrt),
    ONE(log),
    ONE(log1p),
    ONE(expm1),
    ONE(tanh),
    ONE(tan),
    ONE(arcsin),
    ONE(arctanh),
    ONE(arccosh),
    ONE(arcsinh),
    ONE(square),
    ONE(reciprocal),
    ONE(floor),
    ONE(round),
    ONE(nan_to_num),
    ONE(exp2),
    ONE(log2),
    SPECIAL(expit),
    SPECIAL(erf),
    SPECIAL(erfc),
    SPECIAL(erfinv),
    {"max(x, 0)", [](const Array& x) { return maximum(x, 0); }},
    {"min(x, 0)", [](const Array& x) { return minimum(x, 0); }},
    {"max(x, x)", [](const Array& x) { return maximum(x, x); }},
    {"clip(x, 0, 1)", [](const Array& x) { return clip(x, 0, 1); }},
    {"lax.clamp(0, x, 1)",
     [](const Array& x) { return lax::clamp(zeros_like(x), x, ones_like(x)); }},
    {"rsqrt", [](const Array& x) { return lax::rsqrt(x); }},
    {"where(x > 0, log x, 0)", [](const Array& x) { return where(x > 0, log(x), 0); }},
    {"x ** 0.0", [](const Array& x) { return power(x, 0.0); }},
    {"x ** 0", [](const Array& x) { return pow(x, 0); }},
    {"x ** 2", [](const Array& x) { return pow(x, 2); }},
    {"x ** 2.0", [](const Array& x) { return power(x, 2.0); }},
    {"x ** -1", [](const Array& x) { return pow(x, -1); }},
    {"2 ** x", [](const Array& x) { return power(2.0, x); }},
    {"0 ** x", [](const Array& x) { return power(0.0, x); }},
    {"mod(x, 2)", [](const Array& x) { return mod(x, 2.0); }},
    {"fmod(x, 2)", [](const Array& x) { return fmod(x, 2.0); }},
    {"floor_divide(x, 2)", [](const Array& x) { return floor_divide(x, 2.0); }},
    {"arctan2(x, 0)", [](const Array& x) { return arctan2(x, 0.0); }},
    {"hypot(x, 0)", [](const Array& x) { return hypot(x, 0.0); }},
    {"logaddexp(x, 0)", [](const Array& x) { return logaddexp(x, 0.0); }},
    {"xlogy(x, 0)", [](const Array& x) { return special::xlogy(x, zeros_like(x)); }},
};
Array count_up(const Array& x) { return arange(1, 4).astype(x.dtype()); }
const std::map<std::string, Unary> kVector = {
    ONE(max),
    ONE(min),
    {"max nan", [](const Array& x) { return max(x); }},
    {"prod one zero", [](const Array& x) { return prod(x); }},
    {"prod two zeros", [](const Array& x) { return prod(x); }},
    {"norm at zero", [](const Array& x) { return sqrt(sum(x * x)); }},
    {"std constant", [](const Array& x) { return std(x); }},
    ONE(var),
    ONE(logsumexp),
    ONE(mean),
    {"logsumexp -inf", [](const Array& x) { return logsumexp(x); }},
    {"logsumexp inf", [](const Array& x) { return logsumexp(x); }},
    {"sort", [](const Array& x) { return sum(sort(x) * count_up(x)); }},
    {"cumsum", [](const Array& x) { return sum(square(cumsum(x))); }},
    {"cumprod with zero", [](const Array& x) { return sum(cumprod(x)); }},
    {"take outside",
     [](const Array& x) {
       Array t = take(x, Array(std::vector<std::int32_t>{0, 1, 1, 7}));
       return sum(where(isnan(t), 0, t));
     }},
    {"top_k",
     [](const Array& x) {
       return sum(lax::top_k(x, 2).values * array({1, 10}).astype(x.dtype()));
     }},
    {"index", [](const Array& x) { return x[1] * x[-1]; }},
    {"dynamic_slice",
     [](const Array& x) {
       return sum(square(lax::dynamic_slice(x, {Array(HostArray::scalar(2))}, {2})));
     }},
};

class Gradients : public ::testing::TestWithParam<DType> {
 protected:
  Golden own() { return file()["gradients"][GetParam() == DType::kF64 ? "f64" : "f32"]; }
  // By the size of the recorded gradient: 2e-6 or 1e-14.
  void compare(const std::string& what, double got, double want) {
    if (std::isnan(want) || std::isinf(want) || want == 0) {
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)) ||
                  subnormal(GetParam(), got))
          << what << " gave " << got << ", JAX " << want;
    } else {
      EXPECT_NEAR(got, want, std::abs(want) * (GetParam() == DType::kF64 ? 1e-14 : 2e-6)) << what;
    }
  }
};

TEST_P(Gradients, OfScalarFunctionsEqualJax) {
  NumericsScope numerics(Numerics::jax);
  HostArray at = file()["gradient_points"].array();
  Golden all = own()["scalar"];
  for (const std::string& name : all.keys()) {
    ASSERT_TRUE(kScalar.count(name)) << name;
    HostArray want = all[name].array();
    auto g = jit(grad(kScalar.at(name)));
    for (std::int64_t i = 0; i < at.size(); ++i)
      compare("grad of " + name + " at " + std::to_string(at.at(i)),
              g(full({}, at.at(i), GetParam())).item<double>(), want.at(i));
  }
}

TEST_P(Gradients, OfVectorFunctionsEqualJax) {
  Golden all = own()["vector"];
  for (const std::string& name : all.keys()) {
    ASSERT_TRUE(kVector.count(name)) << name;
    HostArray want = all[name]["gradient"].array();
    HostArray got = grad(kVector.at(name))(Array(all[name]["x"].array())).to_host();
    ASSERT_EQ(got.dims(), want.dims());
    for (std::int64_t i = 0; i < want.size(); ++i)
      compare("grad of " + name + " element " + std::to_string(i), got.at(i), want.at(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Gradients, ::testing::Values(DType::kF32, DType::kF64));

}  // namespace
}  // namespace xylem
