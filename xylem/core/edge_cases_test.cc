// Empty and narrow operands, structures that change, bounds that do not fit: what JAX gives or
// refuses there (values of JAX 0.10.2).

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>

#include "xylem/core/core.h"

namespace xylem {
namespace {

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.message();
  }
  return "none";
}

void expect_floats(const Array& a, const std::vector<float>& want) {
  const std::vector<float> have = a.to_vector<float>();
  ASSERT_EQ(have.size(), want.size()) << a.type_string();
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(have[i] == want[i] || (std::isnan(have[i]) && std::isnan(want[i])))
        << i << ": " << have[i] << " is not " << want[i];
}

TEST(EdgeCases, AProductOfNothingHasAGradient) {
  const auto f = [](const Array& x) { return prod(x); };
  EXPECT_EQ(grad(f)(zeros({0})).shape(), (Dims{0}));
  const auto rows = [](const Array& x) { return sum(prod(x, 1)); };
  EXPECT_EQ(value_and_grad(rows)(zeros({3, 0})).first.item<float>(), 3);
  EXPECT_EQ(grad(rows)(zeros({0, 3})).shape(), (Dims{0, 3}));
  EXPECT_EQ(
      grad(grad([](const Array& x) { return prod(ones({0}) * sum(x)) * x; }))(2.0).item<float>(),
      0);
}

TEST(EdgeCases, NarrowIndicesReachEveryElement) {
  const Array x = arange(300);
  EXPECT_EQ(take(x, Array(std::vector<std::int8_t>{-1, 127, -128})).to_vector<int>(),
            (std::vector<int>{299, 127, 172}));
  EXPECT_EQ(take(x, Array(std::vector<std::uint8_t>{0, 200, 255})).to_vector<int>(),
            (std::vector<int>{0, 200, 255}));
  EXPECT_EQ(take_along_axis(x, Array(std::vector<std::int8_t>{-1, 127, -128}), 0).to_vector<int>(),
            (std::vector<int>{299, 127, 172}));
  EXPECT_EQ(take(arange(3), Array(std::vector<std::int64_t>{1, -1, std::int64_t{1} << 32}))
                .to_vector<int>(),
            (std::vector<int>{1, 2, INT32_MIN}));
}

TEST(EdgeCases, TakeFromNothingIsRefused) {
  EXPECT_NE(error_of([] { take(zeros({0}), arange(1)); }).find("take: an axis with elements"),
            std::string::npos);
  EXPECT_EQ(take(zeros({0}), arange(0)).shape(), (Dims{0}));
}

TEST(EdgeCases, SearchsortedPutsNanLast) {
  const Array sorted = array({1, 2, 3}), with_nan = array({1, NAN, NAN});
  const Array v = array({NAN, 2, 9, -INFINITY});
  EXPECT_EQ(searchsorted(sorted, v).to_vector<int>(), (std::vector<int>{3, 1, 3, 0}));
  EXPECT_EQ(searchsorted(sorted, v, true).to_vector<int>(), (std::vector<int>{3, 2, 3, 0}));
  EXPECT_EQ(searchsorted(with_nan, v).to_vector<int>(), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(searchsorted(with_nan, v, true).to_vector<int>(), (std::vector<int>{3, 1, 1, 0}));
}

TEST(EdgeCases, DiagonalsOutsideOfTheMatrixAreEmpty) {
  EXPECT_EQ(diag(ones({2, 3}), 9).shape(), (Dims{0}));
  EXPECT_EQ(diag(ones({2, 3}), -2).shape(), (Dims{0}));
  EXPECT_EQ(diag(ones({2, 3}), INT32_MIN).shape(), (Dims{0}));
  expect_floats(diag(arange(6).reshape({2, 3}), 2).astype(DType::kF32), {2});
  EXPECT_NE(error_of([] { diag(ones({2, 2, 2})); }).find("one or two axes"), std::string::npos);
}

TEST(EdgeCases, ExpandDimsChecksItsAxes) {
  EXPECT_EQ(expand_dims(ones({2}), {0, -1}).shape(), (Dims{1, 2, 1}));
  EXPECT_NE(error_of([] { expand_dims(ones({2}), 5); }).find("expand_dims: axis"),
            std::string::npos);
  EXPECT_NE(error_of([] { expand_dims(ones({2}), all_axes); }).find("none is named"),
            std::string::npos);
}

TEST(EdgeCases, ReshapeInfersNothingBesideAZero) {
  EXPECT_NE(error_of([] {
              zeros({0}).reshape({0, -1});
            }).find("f32[0] to [0,-1]"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              zeros({4}).reshape({-1, 3});
            }).find("f32[4] to [-1,3]"),
            std::string::npos);
  EXPECT_EQ(zeros({0, 3}).reshape({-1, 3}).shape(), (Dims{0, 3}));
}

TEST(EdgeCases, LoopBoundsThatDoNotFitAreRefused) {
  const auto body = [](const Array& i, const Array& c) { return c + i; };
  const auto loop = [&](std::int64_t from, std::int64_t to) {
    return fori_loop(from, to, body, zeros({}, DType::kI32)).item<int>();
  };
  EXPECT_EQ(loop(5, 0), 0);
  EXPECT_EQ(loop(-2, 2), -2);
  EXPECT_NE(error_of([&] { loop(std::int64_t{1} << 40, (std::int64_t{1} << 40) + 3); }).find("i32"),
            std::string::npos);
  EXPECT_NE(error_of([&] { loop(INT64_MIN, INT64_MAX); }).find("i32"), std::string::npos);
}

TEST(EdgeCases, BranchesAndCarriesKeepTheirStructure) {
  using Map = std::map<std::string, Array>;
  const Array x = ones({});
  const auto a = [](const Array& v) { return Map{{"a", v}}; };
  const auto b = [](const Array& v) { return Map{{"b", v}}; };
  EXPECT_NE(error_of([&] { cond(true, a, b, x); }).find("cond: one structure"), std::string::npos);
  EXPECT_EQ(cond(true, a, a, x).count("a"), 1u);
  const std::vector<std::function<Map(const Array&)>> branches{a, b};
  EXPECT_NE(error_of([&] { switch_(0, branches, x); }).find("switch_: one structure"),
            std::string::npos);
  const auto rename = [](const Map& m) { return Map{{"z", m.begin()->second}}; };
  EXPECT_NE(error_of([&] {
              scan(
                  [&](const Map& m, const Array& v) {
                    return std::pair{rename(m), v};
                  },
                  Map{{"a", x}}, ones({2}));
            }).find("scan: one structure"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              while_loop([](const Map& m) { return m.begin()->second < 3; }, rename, Map{{"a", x}});
            }).find("while_loop: one structure"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              fori_loop(
                  0, 2, [&](const Array&, const Map& m) { return rename(m); }, Map{{"a", x}});
            }).find("fori_loop: one structure"),
            std::string::npos);
}

TEST(EdgeCases, SwitchNeedsBranchesAndAnIntegerScalar) {
  using Branch = std::function<Array(const Array&)>;
  const Branch one = [](const Array& v) { return v + 1; };
  EXPECT_NE(
      error_of([] { switch_(0, std::vector<Branch>{}, ones({})); }).find("at least one branch"),
      std::string::npos);
  for (const Array& index : {array({0, 1}).astype(DType::kI32), ones({}), ones({}, DType::kBool)})
    EXPECT_NE(error_of([&] {
                switch_(index, std::vector<Branch>{one, one}, ones({}));
              }).find("integer scalar"),
              std::string::npos);
}

TEST(EdgeCases, GradOfIntegersAloneIsRefused) {
  const auto f = [](const Array& x) { return sum(x) * 1.0; };
  EXPECT_NE(error_of([&] { grad(f)(arange(3)); }).find("float or complex dtype"),
            std::string::npos);
  EXPECT_NE(error_of([&] { grad(f)(3); }).find("float or complex dtype"), std::string::npos);
  // Beside a float, integers have no gradient.
  struct Both {
    Array real, count;
  };
  const Both g = grad([](const Both& v) { return v.real * v.count; })(
      Both{ones({}), Array(HostArray::scalar(3))});
  EXPECT_EQ(g.real.item<float>(), 3);
  EXPECT_FALSE(g.count.defined());
}

TEST(EdgeCases, AbstractShapesMustBePossible) {
  EXPECT_NE(error_of([] { shape_dtype_struct({-3}, DType::kF32); }).find("zero or positive"),
            std::string::npos);
}

TEST(EdgeCases, ValuesAreNotAskedForFromAnotherThread) {
  std::string message;
  grad([&](const Array& x) {
    std::thread([&] { message = error_of([&] { x.item<float>(); }); }).join();
    return x;
  })(2.0);
  EXPECT_NE(message.find("another thread"), std::string::npos) << message;
}

}  // namespace
}  // namespace xylem
