#include "xylem/core/transforms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "xylem/core/core.h"

namespace xylem {
namespace {

TEST(Jit, RunsAndCachesByShapeAndDtype) {
  auto f = jit([](const Array& x, const Array& y) { return sin(x) * y + 1.0; });
  Array x = array({1, 2, 3}), y = array({4, 5, 6});
  Array z = f(x, y);
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(z[i].item<double>(), std::sin(i + 1.0) * (i + 4) + 1, 1e-5);
  f(y, x);
  EXPECT_EQ(f.cache_size(), 1u);
  f(x.astype(DType::kF64), y.astype(DType::kF64));
  EXPECT_EQ(f.cache_size(), 2u);
}

TEST(Jit, DoesNotCompileAgainForAnotherNumber) {
  auto f = jit([](const Array& x, const Array& s) { return x * s; });
  Array x = array({1, 2});
  EXPECT_EQ(f(x, 2.0)[1].item<double>(), 4);
  EXPECT_EQ(f(x, 3.0)[1].item<double>(), 6);
  EXPECT_EQ(f.cache_size(), 1u);
}

struct Pair {
  Array a, b;
  int n = 3;
};

TEST(Jit, TakesArraysInHostMemory) {
  auto f = jit([](const Array& x, const Array& y) { return x * y; });
  HostArray host = HostArray::from(std::vector<float>{1, 2, 3}, {3});
  const Array device(host);
  EXPECT_EQ(f(device, 2).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(f(host, 2).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(f.cache_size(), 1u);
  // Its memory belongs to the host: moving it in donates nothing.
  const HostArray kept = host;
  EXPECT_EQ(f(std::move(host), kept).to_vector<float>(), (std::vector<float>{1, 4, 9}));
  EXPECT_EQ(kept.to_vector<float>(), (std::vector<float>{1, 2, 3}));

  auto g = [](const Array& x) { return sum(x * x); };
  EXPECT_EQ(grad(g)(kept).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(vmap([](const Array& x) { return x + 1; })(kept).to_vector<float>(),
            (std::vector<float>{2, 3, 4}));
}

TEST(Grad, ReturnsTheArgumentsType) {
  auto f = [](const Pair& p) { return sum(p.a * p.a * p.b) * p.n; };
  Pair p{array({1, 2}), array({3, 4}), 3};
  auto [v, g] = value_and_grad(f)(p);
  EXPECT_EQ(v.item<double>(), 3 * (3 + 16));
  EXPECT_EQ(g.a.to_vector<float>(), (std::vector<float>{18, 48}));
  EXPECT_EQ(g.b.to_vector<float>(), (std::vector<float>{3, 12}));
  EXPECT_EQ(g.n, 3);
}

TEST(Grad, ComposesWithItselfJitAndVmap) {
  auto f = [](const Array& x) { return x * x * x; };
  auto third = grad(grad(grad(f)));
  EXPECT_FLOAT_EQ(third(Array(HostArray::scalar(2.0f))).item<float>(), 6);
  Array xs = array({1, 2, 3});
  EXPECT_EQ(vmap(grad(f))(xs).to_vector<float>(), (std::vector<float>{3, 12, 27}));
  EXPECT_EQ(jit(vmap(jit(grad(f))))(xs).to_vector<float>(), (std::vector<float>{3, 12, 27}));
  auto g = grad([&](const Array& v) { return sum(vmap(grad(f))(v)); });
  EXPECT_EQ(g(xs).to_vector<float>(), (std::vector<float>{6, 12, 18}));
}

TEST(Grad, AllowsBranchingOnValuesOutsideJit) {
  auto f = [](const Array& x) { return x > 0 ? x * x : -x; };
  EXPECT_EQ(grad(f)(Array(HostArray::scalar(3.0f))).item<float>(), 6);
  EXPECT_EQ(grad(f)(Array(HostArray::scalar(-3.0f))).item<float>(), -1);
  EXPECT_THROW(jit(f)(array({1})), ConcretizationError);
}

TEST(Grad, ClosesOverOuterTracedValues) {
  auto f = [](const Array& x) {
    auto inner = [&](const Array& y) { return x * y * y; };
    return grad(inner)(x);  // 2 x^2
  };
  EXPECT_EQ(grad(f)(Array(HostArray::scalar(3.0f))).item<float>(), 12);
}

TEST(Scan, CumulativeSumAndItsGradient) {
  auto f = [](const Array& xs) {
    auto [last, ys] = scan(
        [](const Array& c, const Array& x) {
          Array n = c + x * x;
          return std::pair{n, n};
        },
        zeros({}), xs);
    return sum(ys * ys);
  };
  Array xs = array({1, 2, 3});
  Array g = grad(f)(xs);
  // ys = 1, 5, 14; d/dx_i = 2 x_i sum_{k >= i} 2 y_k
  EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{80, 152, 168}));
  EXPECT_EQ(jit(grad(f))(xs).to_vector<float>(), g.to_vector<float>());
}

TEST(Scan, TakesNumbersAndHostArrays) {
  const HostArray xs = HostArray::from(std::vector<float>{1, 2, 3}, {3});
  auto step = [](const Array& carry, const Array& x) { return std::pair{carry + x, carry * x}; };
  for (const auto& [sum, products] : {scan(step, 0.0, xs), scan(step, 0, Array(xs))}) {
    EXPECT_EQ(sum.dtype(), DType::kF32);
    EXPECT_EQ(sum.item<float>(), 6);
    EXPECT_EQ(products.to_vector<float>(), (std::vector<float>{0, 2, 9}));
  }
  EXPECT_EQ(map([](const Array& x) { return x * x; }, xs).to_vector<float>(),
            (std::vector<float>{1, 4, 9}));
}

TEST(Cond, DifferentiatesTheBranchTaken) {
  auto f = [](const Array& x) {
    return cond(
        x > 0, [](const Array& v) { return v * v; }, [](const Array& v) { return v * 3.0; }, x);
  };
  EXPECT_EQ(jit(grad(f))(Array(HostArray::scalar(2.0f))).item<float>(), 4);
  EXPECT_EQ(jit(grad(f))(Array(HostArray::scalar(-2.0f))).item<float>(), 3);
  EXPECT_EQ(vmap(grad(f))(array({2, -2})).to_vector<float>(), (std::vector<float>{4, 3}));
}

TEST(WhileLoop, RunsAndHasForwardDerivative) {
  auto f = [](const Array& x) {
    return while_loop([](const Array& v) { return v < 100.0; },
                      [](const Array& v) { return v * 2.0; }, x);
  };
  EXPECT_EQ(f(Array(HostArray::scalar(3.0f))).item<float>(), 192);
  auto [y, t] = jvp(f, std::tuple{Array(HostArray::scalar(3.0f))},
                    std::tuple{Array(HostArray::scalar(1.0f))});
  EXPECT_EQ(t.item<float>(), 64);
  EXPECT_THROW(grad(f)(Array(HostArray::scalar(3.0f))), UserError);
  EXPECT_EQ(vmap(f)(array({3, 60, 120})).to_vector<float>(), (std::vector<float>{192, 120, 120}));
}

TEST(Remat, KeepsValuesAndGradients) {
  auto f = [](const Array& x) { return sum(sin(sin(x))); };
  auto g = [](const Array& x) { return sum(remat([](const Array& v) { return sin(sin(v)); })(x)); };
  Array x = array({0.5, 1.5});
  EXPECT_EQ(grad(f)(x).to_vector<float>(), grad(g)(x).to_vector<float>());
  EXPECT_EQ(jit(grad(g))(x).to_vector<float>(), grad(g)(x).to_vector<float>());
}

TEST(CustomVjp, UsesTheRule) {
  auto f = custom_vjp([](const Array& x) { return x * x; },
                      [](const Array& x) {
                        return std::pair{x * x, x};
                      },
                      [](const Array& x, const Array& ct) { return std::tuple{ct * x * 10.0}; });
  EXPECT_EQ(grad(f)(Array(HostArray::scalar(3.0f))).item<float>(), 30);
  EXPECT_EQ(vmap(grad(f))(array({1, 2})).to_vector<float>(), (std::vector<float>{10, 20}));
  EXPECT_THROW(jvp(f, std::tuple{array({1})}, std::tuple{array({1})}), UserError);
}

TEST(CustomJvp, UsesTheRule) {
  auto f = custom_jvp([](const Array& x) { return x * x; },
                      [](const std::tuple<Array>& p, const std::tuple<Array>& t) {
                        const Array& x = std::get<0>(p);
                        return std::pair{x * x, std::get<0>(t) * x * 7.0};
                      });
  EXPECT_EQ(grad(f)(Array(HostArray::scalar(3.0f))).item<float>(), 21);
  EXPECT_EQ(jit(vmap(grad(f)))(array({1, 2})).to_vector<float>(), (std::vector<float>{7, 14}));
}

TEST(Vjp, ReturnsAFunctionOfTheCotangent) {
  auto [y, back] =
      vjp([](const Array& a, const Array& b) { return a * b; }, array({1, 2}), array({3, 4}));
  auto [ga, gb] = back(array({1, 10}));
  EXPECT_EQ(ga.to_vector<float>(), (std::vector<float>{3, 40}));
  EXPECT_EQ(gb.to_vector<float>(), (std::vector<float>{1, 20}));
}

TEST(Matmul, GradientsAreProducts) {
  Array a = arange(6).reshape({2, 3}).astype(DType::kF32),
        b = arange(12).reshape({3, 4}).astype(DType::kF32);
  auto f = [](const Array& x, const Array& y) { return sum(matmul(x, y)); };
  auto [ga, gb] = grad(f, argnums<0, 1>)(a, b);
  EXPECT_EQ(ga.to_vector<float>(), (std::vector<float>{6, 22, 38, 6, 22, 38}));
  EXPECT_EQ(gb.shape(), (Dims{3, 4}));
}

TEST(Random, SplitsIntoNamedKeys) {
  const random::Key key = random::key(7);
  const auto [a, b, c] = random::split<3>(key);
  const std::vector<random::Key> each = random::unstack(random::split(key, 3));
  EXPECT_EQ(a.data.to_vector<std::uint32_t>(), each[0].data.to_vector<std::uint32_t>());
  EXPECT_EQ(b.data.to_vector<std::uint32_t>(), each[1].data.to_vector<std::uint32_t>());
  EXPECT_EQ(c.data.to_vector<std::uint32_t>(), each[2].data.to_vector<std::uint32_t>());
}

TEST(Random, EqualsJaxForSeedZero) {
  random::Key k = random::key(0);
  EXPECT_EQ(random::bits(k, {4}).to_vector<std::uint32_t>(),
            (std::vector<std::uint32_t>{4070199207u, 4202968722u, 1427181096u, 2012915765u}));
  EXPECT_EQ(random::uniform(k, {2}).to_vector<float>(),
            (std::vector<float>{.9476670026779175f, .9785798788070679f}));
  std::vector<float> n = random::normal(k, {4}).to_vector<float>();
  EXPECT_NEAR(n[0], 1.622642159, 3e-7);
  EXPECT_NEAR(n[2], -0.433594435, 1e-7);
  EXPECT_EQ(random::randint(k, {8}, 0, 10).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{9, 0, 2, 3, 1, 7, 2, 3}));
  EXPECT_EQ(random::permutation(k, 8).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 1, 5, 6, 4, 3, 2, 7}));
}

}  // namespace
}  // namespace xylem
