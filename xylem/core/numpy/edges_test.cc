// Edges of xylem's functions at which tests/parity/functions_test.py found a difference from JAX.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <string>
#include <vector>

#include "xylem/core/core.h"

namespace xylem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

Array ints(std::vector<int> v) { return Array(v); }

TEST(NumpyEdges, SqueezeRefusesANamedAxisThatIsNotOneEvenIfItIsTheOnlyOne) {
  EXPECT_THAT(message([] { squeeze(ints({1, 2, 3}), 0); }), HasSubstr("must have size 1"));
  EXPECT_EQ(squeeze(ints({1, 2, 3})).shape(), (Dims{3}));
}

TEST(NumpyEdges, ComplexNumbersAreOrderedByRealThenImaginaryParts) {
  Array x(std::vector<std::complex<float>>{{1, 2}, {1, 2}, {0, 9}});
  Array y(std::vector<std::complex<float>>{{1, 3}, {1, 2}, {1, 0}});
  EXPECT_THAT(less(x, y).astype(DType::kI32).to_vector<int>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(greater_equal(x, y).astype(DType::kI32).to_vector<int>(), ElementsAre(0, 1, 0));
  EXPECT_THAT(message([&] { clip(x, 0, 1); }), HasSubstr("have no order"));
  EXPECT_THAT(message([&] { hypot(x, y); }), HasSubstr("real arrays"));
}

TEST(NumpyEdges, SetsAndOrdersOfNothingAreEmpty) {
  Array none = zeros({0}, DType::kI32), some = ints({3, 1});
  EXPECT_EQ(intersect1d(none, some).shape(), (Dims{0}));
  EXPECT_EQ(setdiff1d(none, some).shape(), (Dims{0}));
  std::vector<Array> keys{none, none};
  EXPECT_EQ(lexsort(keys).shape(), (Dims{0}));
  EXPECT_EQ(take_along_axis(none, none, 0).shape(), (Dims{0}));
}

TEST(NumpyEdges, UnsignedPositionsAreUnravelledAndClamped) {
  Array p(std::vector<std::uint8_t>{0, 5, 250});
  auto at = unravel_index(p, {2, 3});
  EXPECT_THAT(at[0].astype(DType::kI32).to_vector<int>(), ElementsAre(0, 1, 1));
  EXPECT_THAT(at[1].astype(DType::kI32).to_vector<int>(), ElementsAre(0, 2, 2));
  EXPECT_THAT(message([] { unravel_index(array({1}), {2}); }), HasSubstr("integers are needed"));
}

TEST(NumpyEdges, SplitPointsMustAscendInsideTheAxis) {
  Array x = ints({1, 2, 3});
  EXPECT_THAT(message([&] {
                split(x, std::vector<std::int64_t>{2, 1}, 0);
              }),
              HasSubstr("ascend from 0 to 3"));
  EXPECT_THAT(message([&] { split(x, std::vector<std::int64_t>{9}, 0); }), HasSubstr("ascend"));
}

TEST(NumpyEdges, ChoicesOutOfRangeAreTheFirstAndTheLast) {
  std::vector<Array> choices{ints({1, 1, 1}), ints({2, 2, 2}), ints({3, 3, 3})};
  EXPECT_THAT(choose(ints({-4, 1, 9}), choices).to_vector<int>(), ElementsAre(1, 2, 3));
}

TEST(NumpyEdges, QuantilesHaveTheArraysDtype) {
  Array x = arange(5).astype(DType::kBF16);
  EXPECT_EQ(quantile(x, Array(std::vector<float>{0.5F})).dtype(), DType::kBF16);
}

TEST(NumpyEdges, BoolsAreViewedAsBytes) {
  Array x(std::vector<std::uint16_t>{1, 256});
  EXPECT_THAT(view(x, DType::kBool).astype(DType::kI32).to_vector<int>(), ElementsAre(1, 0, 0, 1));
}

TEST(NumpyEdges, TheDifferentValuesOfNothingNeedAFillForASize) {
  Array none = zeros({0});
  EXPECT_THAT(message([&] { unique(none, 2); }), HasSubstr("Give a fill_value"));
  EXPECT_THAT(unique(none, 2, 7.0).to_vector<float>(), ElementsAre(7.0F, 7.0F));
  EXPECT_EQ(unique_all(none, 2, 7.0).counts.size(), 0);
}

TEST(NumpyEdges, LogicalReductionsRefuseFloatsOverNoAxisToo) {
  EXPECT_THAT(message([&] { lax::reduce_and(ones({2}), {}); }), HasSubstr("bool or integers"));
  EXPECT_THAT(lax::reduce_or(ints({0, 2}), {}).to_vector<int>(), ElementsAre(0, 2));
}

// Values of jax.numpy.arange, JAX 0.10.2.
TEST(NumpyEdges, RangesOfFloatsAreFloats) {
  EXPECT_EQ(arange(3.0).dtype(), DType::kF32);
  EXPECT_THAT(arange(0.5, 4).to_vector<float>(), ElementsAre(0.5F, 1.5F, 2.5F, 3.5F));
  EXPECT_THAT(arange(1, 2, 0.25).to_vector<float>(), ElementsAre(1.0F, 1.25F, 1.5F, 1.75F));
  EXPECT_EQ(arange(0.0, 1.0, 0.1).to_vector<float>()[3], 0.30000001192092896F);
  EXPECT_EQ(arange(0.0, 1.0, 0.1).to_vector<float>()[7], 0.699999988079071F);
  EXPECT_EQ(arange(1.0, 0.0).size(), 0);
  EXPECT_THAT(arange(5, 0, -2, DType::kU8).astype(DType::kI32).to_vector<int>(),
              ElementsAre(5, 3, 1));
  EXPECT_EQ(arange(5, DType::kBF16).dtype(), DType::kBF16);
  EXPECT_EQ(arange(5).dtype(), DType::kI32);
  EXPECT_THAT(message([] { arange(0.0, 1.0, 0.0); }), HasSubstr("Give a step"));
  EXPECT_THAT(message([] { arange(0.0, 1e300); }), HasSubstr("fewer than 2^31"));
}

TEST(NumpyEdges, PowersByFloatsAreNotCutToIntegers) {
  Array four = array({4.0});
  EXPECT_FLOAT_EQ(pow(four, 2.5).item<float>(), 32.0F);
  EXPECT_FLOAT_EQ(pow(four, 2.5F).item<float>(), 32.0F);
  EXPECT_FLOAT_EQ(pow(four, 2).item<float>(), 16.0F);
  EXPECT_FLOAT_EQ(pow(four, array({0.5})).item<float>(), 2.0F);
  EXPECT_FLOAT_EQ(pow(2.0, four).item<float>(), 16.0F);
}

TEST(NumpyEdges, SidesOfSearchesAreNamed) {
  Array sorted = ints({1, 2, 2, 3});
  EXPECT_THAT(searchsorted(sorted, ints({2}), "left").to_vector<int>(), ElementsAre(1));
  EXPECT_THAT(searchsorted(sorted, ints({2}), "right").to_vector<int>(), ElementsAre(3));
  EXPECT_THAT(message([&] { searchsorted(sorted, ints({2}), "middle"); }), HasSubstr("\"left\""));
}

}  // namespace
}  // namespace xylem
