// What docs/numerics.md says: derivatives in both modes.

#include "xylem/core/numerics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Array scalar(double v, DType t = DType::kF64) { return full({}, v, t); }
template <class F>
double slope(F f, double at, DType t = DType::kF64) {
  return grad(f)(scalar(at, t)).template item<double>();
}

Array masked_log(const Array& x) { return sum(where(x > 0.0, log(x), 0.0)); }

TEST(Numerics, SafeIsTheDefaultAndBelongsToTheThread) {
  EXPECT_EQ(numerics(), Numerics::safe);
  {
    NumericsScope jax(Numerics::jax);
    EXPECT_EQ(numerics(), Numerics::jax);
  }
  EXPECT_EQ(numerics(), Numerics::safe);
}

TEST(Numerics, NoNaNLeaksFromTheBranchNotTaken) {
  EXPECT_EQ(slope(masked_log, 0), 0);
  auto compiled = jit([](const Array& x) { return grad(masked_log)(x); });
  EXPECT_EQ(compiled(scalar(0)).item<double>(), 0);
  NumericsScope jax(Numerics::jax);
  EXPECT_TRUE(std::isnan(slope(masked_log, 0)));
  EXPECT_TRUE(std::isnan(compiled(scalar(0)).item<double>()));
  EXPECT_EQ(compiled.cache_size(), 2u);
}

TEST(Numerics, ManyFunctionsMayStandInTheBranchNotTaken) {
  using F = Array (*)(const ArrayArg&);
  for (F f : {static_cast<F>(sqrt), static_cast<F>(log), static_cast<F>(cbrt),
              static_cast<F>(reciprocal), static_cast<F>(lax::rsqrt), static_cast<F>(log1p)}) {
    double at = f == static_cast<F>(log1p) ? -1 : 0;
    auto g = [&](const Array& x) { return where(x > at, f(x), 0.0); };
    EXPECT_EQ(slope(g, at), 0);
    auto h = [&](const Array& x) { return where(x > at, x * f(x), x * x); };
    EXPECT_TRUE(std::isfinite(slope(h, at)));
  }
  auto huge = [](const Array& x) { return where(x < 100.0, exp(x), x); };
  EXPECT_EQ(slope(huge, 1000), 1);
  auto ratio = [](const Array& x) { return where(x != 0.0, sin(x) / x, 1.0); };
  EXPECT_EQ(slope(ratio, 0), 0);
  // Under vmap, both branches of cond run.
  auto branch = [](const Array& x) {
    return cond(
        x > 0.0, [](const Array& v) { return sqrt(v); }, [](const Array& v) { return v * 0.0; }, x);
  };
  Array g = vmap(grad(branch))(Array(std::vector<float>{0, 4}));
  EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{0, 0.25}));
  // In a loop, too.
  auto looped = [](const Array& x) {
    return fori_loop(
        0, 3, [&](const Array&, const Array& c) { return c + where(x > 0.0, log(x), x); },
        zeros_like(x));
  };
  EXPECT_EQ(slope(looped, 0), 3);
}

TEST(Numerics, ZeroCotangentsAreNotMistakenInSecondDerivatives) {
  // The gradient of (log x)^2 is 0 at 1, its derivative is not.
  auto f = [](const Array& x) { return where(x > 0.0, square(log(x)), 0.0); };
  auto second = [&](const Array& x) { return grad(f)(x); };
  EXPECT_EQ(slope(second, 1), 2);
}

TEST(Numerics, DerivativesKeepTheirTails) {
  auto sigmoid = [](const Array& x) { return special::expit(x); };
  auto em1 = [](const Array& x) { return expm1(x); };
  EXPECT_NEAR(slope(sigmoid, 40) / 4.248354255291589e-18, 1, 1e-12);
  EXPECT_NEAR(slope(sigmoid, -40) / 4.248354255291589e-18, 1, 1e-12);
  EXPECT_NEAR(slope(em1, -40) / std::exp(-40.0), 1, 1e-12);
  NumericsScope jax(Numerics::jax);
  EXPECT_EQ(slope(sigmoid, 40), 0);
  EXPECT_EQ(slope(em1, -40), 0);
}

TEST(Numerics, PowersHaveSlopesAtZero) {
  auto zeroth = [](const Array& x) { return power(x, 0.0); };
  EXPECT_EQ(slope(zeroth, 0), 0);
  auto by_exponent = [](const Array& y) { return power(zeros({}, DType::kF64), y); };
  EXPECT_EQ(slope(by_exponent, 2), 0);
  NumericsScope jax(Numerics::jax);
  EXPECT_TRUE(std::isnan(slope(zeroth, 0)));
  EXPECT_EQ(slope(by_exponent, 2), 0);
}

TEST(Numerics, NormsHaveAZeroSubgradientAtZero) {
  auto f = [](const Array& x) { return linalg::norm(x); };
  EXPECT_EQ(grad(f)(zeros({2})).to_vector<float>(), (std::vector<float>{0, 0}));
  NumericsScope jax(Numerics::jax);
  EXPECT_TRUE(std::isnan(grad(f)(zeros({2}))(0).item<float>()));
}

// The edges on which both modes agree.
TEST(Numerics, EdgesOfBothModesAreJaxs) {
  for (Numerics mode : {Numerics::safe, Numerics::jax}) {
    NumericsScope scope(mode);
    auto f32 = DType::kF32;
    EXPECT_EQ(slope([](const Array& x) { return abs(x); }, 0), 1);
    EXPECT_EQ(slope([](const Array& x) { return maximum(x, 0.0); }, 0), 0.5);
    EXPECT_EQ(slope([](const Array& x) { return clip(x, 0.0, 1.0); }, 0), 0.5);
    EXPECT_EQ(slope(
                  [](const Array& x) {
                    return lax::clamp(zeros({}, DType::kF64), x, ones({}, DType::kF64));
                  },
                  0),
              0);
    EXPECT_EQ(slope([](const Array& x) { return sqrt(x); }, 0), kInf);
    Array ties(std::vector<float>{1, 1, 0}), factors(std::vector<float>{0, 2, 3});
    EXPECT_EQ(grad([](const Array& x) { return max(x); })(ties).to_vector<float>(),
              (std::vector<float>{.5, .5, 0}));
    Array equal_values = full({2}, 2.0);
    Array spread = grad([](const Array& x) { return std(x); })(equal_values);
    EXPECT_TRUE(std::isnan(spread(0).item<float>()));
    EXPECT_EQ(grad([](const Array& x) { return prod(x); })(factors).to_vector<float>(),
              (std::vector<float>{6, 0, 0}));
    Array x(std::vector<float>{0, 1, 2}), ten(HostArray::scalar(10));
    EXPECT_EQ(x(ten).item<float>(), 2);
    EXPECT_TRUE(std::isnan(take(x, 10).item<float>()));
    EXPECT_EQ(x.at(ten).set(9).to_vector<float>(), x.to_vector<float>());
    Array six = arange(6), five(HostArray::scalar(5));
    EXPECT_EQ(lax::dynamic_slice(six, {five}, {3}).to_vector<int>(), (std::vector<int>{3, 4, 5}));
    Array nan_at_1(std::vector<float>{1, NAN, 3});
    EXPECT_EQ(argmax(nan_at_1).item<int>(), 1);
    EXPECT_TRUE(std::isnan(sort(nan_at_1)(2).item<float>()));
    int traces = 0;
    auto counted = jit([&](const Array& v) {
      ++traces;
      return v + 1;
    });
    counted(1);
    counted(2);
    EXPECT_EQ(traces, 1);
    counted(Array(HostArray::scalar(1)));
    EXPECT_EQ(traces, 2);
    EXPECT_EQ((full({2}, 1, DType::kI8) + 300).to_vector<std::int8_t>(),
              (std::vector<std::int8_t>{45, 45}));
    EXPECT_EQ((arange(2) + 1.5).dtype(), DType::kF32);
    EXPECT_EQ((ones({1}, DType::kBF16) + 1.5).dtype(), DType::kBF16);
    auto carried = scan(
        [](const Array& c, const Array& v) {
          return std::pair{c + v, c};
        },
        ArrayArg(0.0).array, ones({3}));
    EXPECT_EQ(carried.first.item<float>(), 3);
    auto doubled = [](const Array& v) {
      return while_loop([](const Array& c) { return c < 10.0; },
                        [](const Array& c) { return c * 2.0; }, v);
    };
    EXPECT_THROW(slope(doubled, 1, f32), UserError);
    EXPECT_EQ(slope(
                  [](const Array& v) {
                    return fori_loop(
                        0, 3, [](const Array&, const Array& c) { return c * 2.0; }, v);
                  },
                  1),
              8);
    std::vector<std::function<Array(const Array&)>> branches = {
        [](const Array& v) { return v; }, [](const Array& v) { return v + 1; },
        [](const Array& v) { return v + 2; }};
    EXPECT_EQ(switch_(7, branches, arange(1)).to_vector<int>(), (std::vector<int>{2}));
    Array wild(std::vector<float>{3e9f, NAN});
    EXPECT_EQ(wild.astype(DType::kI32).to_vector<int>(), (std::vector<int>{2147483647, 0}));
    EXPECT_TRUE(std::isnan(mean(zeros({0})).item<float>()));
    EXPECT_TRUE(std::isnan(var(zeros({0})).item<float>()));
    Array bytes = full({4}, 200, DType::kU8);
    EXPECT_EQ(mean(bytes).dtype(), DType::kF32);
    EXPECT_EQ(mean(bytes).item<float>(), 200);
    EXPECT_EQ(std(bytes).item<float>(), 0);
  }
}

TEST(Numerics, ProgramsFromReportsBehave) {
  // log(exp(x)) at overflow: the same compiled and eager.
  auto f = [](const Array& x) { return log(exp(x)); };
  double eager = slope(f, 1000), compiled = jit(grad(f))(scalar(1000)).item<double>();
  EXPECT_TRUE(eager == compiled || (std::isnan(eager) && std::isnan(compiled)));
  // A large mean does not make a variance negative.
  Array x = arange(1000).astype(DType::kF32) * 1e-3f + 1e4f;
  EXPECT_GE(var(x).item<float>(), 0);
  // Constants in one branch of where, a traced second argument of atan2.
  EXPECT_EQ(slope([](const Array& v) { return where(v > 0.0, 1.0, v * 3.0); }, -1), 3);
  EXPECT_NEAR(slope([](const Array& v) { return arctan2(1.0, v); }, 1), -0.5, 1e-12);
  // A scalar argument of C++ never compiles twice.
  auto scaled = jit([](const Array& v, const Array& s) { return v * s; });
  for (double s : {0.5, 2.0, 3.0}) scaled(x, s);
  EXPECT_EQ(scaled.cache_size(), 1u);
  // An affine map with broadcast weights, mapped inside a scan.
  Array w = arange(6).astype(DType::kF32).reshape({2, 3}), xs = ones({4, 5, 2});
  auto affine = [&](const Array& v) { return matmul(v, w) + 1.0; };
  Array scanned = scan(
                      [&](const Array& c, const Array& v) {
                        Array y = vmap(affine)(v);
                        return std::pair{c + y, y};
                      },
                      zeros({5, 3}), xs)
                      .first;
  Array unrolled = zeros({5, 3});
  for (int i = 0; i < 4; ++i) unrolled = unrolled + affine(xs[i]);
  EXPECT_EQ(scanned.to_vector<float>(), unrolled.to_vector<float>());
  // Repeated and out-of-range rows: the latter have no gradient.
  Array rows(std::vector<std::int32_t>{0, 0, 7});
  auto gathered = [&](const Array& v) { return sum(v(rows)); };
  EXPECT_EQ(grad(gathered)(zeros({3})).to_vector<float>(), (std::vector<float>{2, 0, 0}));
  // cond under vmap inside a loop terminates.
  auto stepped = [](const Array& v) {
    return while_loop([](const Array& c) { return c < 8.0; },
                      [](const Array& c) {
                        return cond(
                            c > 4.0, [](const Array& a) { return a + 4.0; },
                            [](const Array& a) { return a * 2.0; }, c);
                      },
                      v);
  };
  EXPECT_EQ(vmap(stepped)(Array(std::vector<float>{1, 3, 9})).to_vector<float>(),
            (std::vector<float>{8, 10, 9}));
}

}  // namespace
}  // namespace xylem
