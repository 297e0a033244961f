#include "xylem/core/custom_rules.h"

#include <gtest/gtest.h>

#include "xylem/core/core.h"

namespace xylem {
namespace {

TEST(CustomRules, NondifferentiatedArgumentsReachTheJvpRuleAsTheyAre) {
  auto apply =
      custom_jvp([](const auto& g, const Array& x, int n) { return g(x) * n; },
                 [](const auto& g, int n, const std::tuple<Array>& p, const std::tuple<Array>& t) {
                   Array x = std::get<0>(p);
                   return std::pair{g(x) * n, std::get<0>(t) * 10 * n};
                 },
                 nondiff_argnums<0, 2>);
  auto square = [](const Array& v) { return v * v; };
  Array x = array({1.0, 2.0});
  EXPECT_EQ(apply(square, x, 3).to_vector<float>(), (std::vector<float>{3, 12}));
  auto loss = [&](const Array& v) { return sum(apply(square, v, 3)); };
  EXPECT_EQ(grad(loss)(x).to_vector<float>(), (std::vector<float>{30, 30}));
  EXPECT_EQ(jit(grad(loss))(x).to_vector<float>(), (std::vector<float>{30, 30}));
}

TEST(CustomRules, NondifferentiatedArgumentsReachTheBackwardFunction) {
  auto clip_gradient = custom_vjp([](double, double, const Array& x) { return x; },
                                  [](double, double, const Array& x) {
                                    return std::pair{x, std::tuple<>()};
                                  },
                                  [](double lo, double hi, const std::tuple<>&, const Array& ct) {
                                    return std::tuple{clip(ct, lo, hi)};
                                  },
                                  nondiff_argnums<0, 1>);
  auto loss = [&](const Array& v) {
    return sum(clip_gradient(-1.0, 1.0, v) * array({5.0, -3.0, 0.5}));
  };
  EXPECT_EQ(grad(loss)(ones({3})).to_vector<float>(), (std::vector<float>{1, -1, 0.5}));
  EXPECT_EQ(vmap(grad(loss))(ones({2, 3})).shape(), (Dims{2, 3}));
}

}  // namespace
}  // namespace xylem
