#include "xylem/core/symbolic_zeros.h"

#include <gtest/gtest.h>

#include "xylem/core/core.h"

namespace xylem {
namespace {

TEST(SymbolicZeros, TheRuleSeesWhichTangentsAreZero) {
  std::vector<std::string> seen;
  using Two = std::tuple<Array, Array>;
  auto product = custom_jvp(
      [](const Array& x, const Array& y) { return x * y; },
      [&](const Two& p, const Two& t) {
        auto [x, y] = p;
        auto [dx, dy] = t;
        seen.push_back(std::string(dx.defined() ? "x" : "-") + (dy.defined() ? "y" : "-"));
        Array out = x * y, dot;
        if (dx.defined()) dot = dx * y;
        if (dy.defined()) dot = dot.defined() ? dot + x * dy : x * dy;
        return std::pair{out, dot};
      },
      symbolic_zeros);
  Array x = array({2.0, 3.0}), y = array({5.0, 7.0});
  auto loss = [&](const Array& a, const Array& b) { return sum(product(a, b)); };
  EXPECT_EQ(grad(loss)(x, y).to_vector<float>(), (std::vector<float>{5, 7}));
  EXPECT_EQ(seen.back(), "x-");
  EXPECT_EQ(grad(loss, argnums<1>)(x, y).to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(seen.back(), "-y");
  auto [gx, gy] = jit(grad(loss, argnums<0, 1>))(x, y);
  EXPECT_EQ(seen.back(), "xy");
  EXPECT_EQ(gx.to_vector<float>(), (std::vector<float>{5, 7}));
  EXPECT_EQ(gy.to_vector<float>(), (std::vector<float>{2, 3}));
  // Mapped first: the rule that takes every tangent.
  auto mapped = grad([&](const Array& a) { return sum(vmap(product)(a, y)); });
  EXPECT_EQ(mapped(x).to_vector<float>(), (std::vector<float>{5, 7}));
}

TEST(SymbolicZeros, AZeroTangentOfTheResultMayBeUndefined) {
  auto stop = custom_jvp([](const Array& x) { return x * 2; },
                         [](const std::tuple<Array>& p, const std::tuple<Array>&) {
                           return std::pair{std::get<0>(p) * 2, Array()};
                         },
                         symbolic_zeros);
  auto loss = [&](const Array& x) { return sum(stop(x) * x); };
  EXPECT_EQ(grad(loss)(array({1.0, 4.0})).to_vector<float>(), (std::vector<float>{2, 8}));
}

}  // namespace
}  // namespace xylem
