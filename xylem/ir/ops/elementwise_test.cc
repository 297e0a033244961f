#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "xylem/base/float_types.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

// Edges of the elementwise ops: what the specification and XLA say happens at zeros, infinities,
// NaN, overflow and the ends of the integers.

namespace xylem::ir::ops {
namespace {

using testing::array;
using testing::bools;
using testing::eval_one;
using testing::numbers;
using testing::vec;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t kMin32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();

// Equal bits, but all NaNs are alike.
template <class T>
void expect_same(const HostArray& got, std::initializer_list<T> want) {
  ASSERT_EQ(got.size(), static_cast<std::int64_t>(want.size()));
  std::int64_t i = 0;
  for (T w : want) {
    T g = got.as<T>()[i];
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(w)) {
        EXPECT_TRUE(std::isnan(g)) << "element " << i << " is " << g;
      } else {
        EXPECT_EQ(g, w) << "element " << i;
        EXPECT_EQ(std::signbit(g), std::signbit(w)) << "sign of element " << i;
      }
    } else {
      EXPECT_EQ(g, w) << "element " << i;
    }
    ++i;
  }
}

HostArray as(const HostArray& a, DType t) { return a.astype(t); }

TEST(ElementwiseTest, AbsOfTheLeastIntegerStays) {
  expect_same<std::int32_t>(eval_one(kAbs, {vec<std::int32_t>({kMin32, -3, 0, 4})}),
                            {kMin32, 3, 0, 4});
  expect_same<std::int64_t>(eval_one(kAbs, {vec<std::int64_t>({kMin64, -3})}), {kMin64, 3});
  HostArray narrow = as(vec<std::int32_t>({-8, -1, 7}), DType::kI4);
  EXPECT_EQ(numbers(eval_one(kAbs, {narrow})), (std::vector<double>{-8, 1, 7}));
}

TEST(ElementwiseTest, AbsOfAComplexNumberDoesNotOverflow) {
  HostArray x = vec<std::complex<float>>({{3e38f, 3e38f}, {-3, 4}, {kNan, kInf}});
  expect_same<float>(eval_one(kAbs, {vec<std::complex<float>>({{-3, 4}, {kNan, kInf}})}),
                     {5, kInf});
  EXPECT_EQ(eval_one(kAbs, {x}).as<float>()[0], kInf);  // |x| itself exceeds f32
  HostArray y = vec<std::complex<float>>({{2e38f, 2e38f}});
  EXPECT_NEAR(eval_one(kAbs, {y}).as<float>()[0], 2.8284271e38f, 1e32f);
}

TEST(ElementwiseTest, RoundingKeepsSignedZeroInfinityAndNan) {
  HostArray x = vec<float>({-0.5f, 0.5f, 1.5f, 2.5f, -2.5f, -0.0f, kInf, kNan});
  expect_same<float>(eval_one(kRoundNearestAfz, {x}), {-1, 1, 2, 3, -3, -0.0f, kInf, kNan});
  expect_same<float>(eval_one(kRoundNearestEven, {x}), {-0.0f, 0, 2, 2, -2, -0.0f, kInf, kNan});
  expect_same<float>(eval_one(kCeil, {x}), {-0.0f, 1, 2, 3, -2, -0.0f, kInf, kNan});
  expect_same<float>(eval_one(kFloor, {x}), {-1, 0, 1, 2, -3, -0.0f, kInf, kNan});
}

TEST(ElementwiseTest, NegateWrapsForIntegersOfEitherSign) {
  expect_same<std::int32_t>(eval_one(kNegate, {vec<std::int32_t>({kMin32, 1})}), {kMin32, -1});
  expect_same<std::uint8_t>(eval_one(kNegate, {vec<std::uint8_t>({0, 1, 255})}), {0, 255, 1});
  expect_same<float>(eval_one(kNegate, {vec<float>({0.0f, -kInf})}), {-0.0f, kInf});
}

TEST(ElementwiseTest, NotIsLogicalForBoolAndBitwiseForIntegers) {
  expect_same<bool>(eval_one(kNot, {bools({1, 0})}), {false, true});
  expect_same<std::uint8_t>(eval_one(kNot, {vec<std::uint8_t>({0x0f})}), {0xf0});
  EXPECT_EQ(numbers(eval_one(kNot, {as(vec<std::int32_t>({5}), DType::kU4)})),
            (std::vector<double>{10}));
}

TEST(ElementwiseTest, SignKeepsZeroesAndNan) {
  expect_same<float>(eval_one(kSign, {vec<float>({-2, -0.0f, 0, kInf, kNan})}),
                     {-1, -0.0f, 0, 1, kNan});
  expect_same<std::int32_t>(eval_one(kSign, {vec<std::int32_t>({kMin32, 0, 9})}), {-1, 0, 1});
  HostArray z = eval_one(kSign, {vec<std::complex<float>>({{0, 0}, {3, 4}, {kNan, 1}})});
  EXPECT_EQ(z.as<std::complex<float>>()[0], std::complex<float>(0, 0));
  EXPECT_EQ(z.as<std::complex<float>>()[1], std::complex<float>(0.6f, 0.8f));
  EXPECT_TRUE(std::isnan(z.as<std::complex<float>>()[2].imag()));
}

TEST(ElementwiseTest, IsFiniteRejectsInfinityAndNan) {
  expect_same<bool>(eval_one(kIsFinite, {vec<float>({0, kInf, -kInf, kNan, 1e38f})}),
                    {true, false, false, false, true});
}

TEST(ElementwiseTest, BitCountsUseTheWidthOfTheType) {
  expect_same<std::int32_t>(eval_one(kCountLeadingZeros, {vec<std::int32_t>({0, 1, -1})}),
                            {32, 31, 0});
  expect_same<std::uint8_t>(eval_one(kCountLeadingZeros, {vec<std::uint8_t>({0, 1, 128})}),
                            {8, 7, 0});
  expect_same<std::int8_t>(eval_one(kPopcnt, {vec<std::int8_t>({-1, 0, 5})}), {8, 0, 2});
  EXPECT_EQ(numbers(eval_one(kPopcnt, {as(vec<std::int32_t>({-1}), DType::kI4)})),
            (std::vector<double>{4}));
}

TEST(ElementwiseTest, RealAndImagTakeComplexNumbersApart) {
  HostArray z = vec<std::complex<float>>({{1, -2}});
  expect_same<float>(eval_one(kReal, {z}), {1});
  expect_same<float>(eval_one(kImag, {z}), {-2});
  expect_same<float>(eval_one(kReal, {vec<float>({3})}), {3});
  expect_same<float>(eval_one(kImag, {vec<float>({3})}), {0});
  HostArray back = eval_one(kComplex, {vec<float>({1}), vec<float>({-2})});
  EXPECT_TRUE(back.bit_equal(z));
}

TEST(ElementwiseTest, ElementaryFunctionsAtTheirPoles) {
  expect_same<float>(eval_one(kSqrt, {vec<float>({-1, -0.0f, kInf})}), {kNan, -0.0f, kInf});
  expect_same<float>(eval_one(kRsqrt, {vec<float>({0, -0.0f, -1, kInf})}), {kInf, -kInf, kNan, 0});
  expect_same<float>(eval_one(kLog, {vec<float>({0, -1, kInf})}), {-kInf, kNan, kInf});
  expect_same<float>(eval_one(kLogPlusOne, {vec<float>({-1, -2, -0.0f})}), {-kInf, kNan, -0.0f});
  expect_same<float>(eval_one(kExponential, {vec<float>({-kInf, kInf, 88.73f})}), {0, kInf, kInf});
  expect_same<float>(eval_one(kLogistic, {vec<float>({-kInf, kInf, 0})}), {0, 1, 0.5f});
  expect_same<float>(eval_one(kErfInv, {vec<float>({1, -1, 2, 0, -0.0f})}),
                     {kInf, -kInf, kNan, 0, -0.0f});
  expect_same<float>(eval_one(kAtanh, {vec<float>({1, -1, 2})}), {kInf, -kInf, kNan});
  expect_same<float>(eval_one(kAcosh, {vec<float>({1, 0.5f})}), {0, kNan});
  expect_same<double>(eval_one(kErfInv, {vec<double>({1, -1, 2, -0.0})}),
                      {kInf, -kInf, kNan, -0.0});
}

TEST(ElementwiseTest, SubnormalsAreKept) {
  float tiny = std::bit_cast<float>(1u);
  expect_same<float>(eval_one(kAdd, {vec<float>({tiny}), vec<float>({tiny})}),
                     {std::bit_cast<float>(2u)});
  expect_same<float>(eval_one(kMultiply, {vec<float>({tiny}), vec<float>({1})}), {tiny});
  expect_same<float>(eval_one(kSine, {vec<float>({tiny})}), {tiny});
  EXPECT_NEAR(eval_one(kLog, {vec<float>({tiny})}).as<float>()[0], -103.27893f, 1e-5f);
}

TEST(ElementwiseTest, ErfInvInverts) {
  for (double x : {1e-300, 1e-9, 0.05, 0.3, 0.7, 0.99, 0.9999999999}) {
    double y = eval_one(kErfInv, {vec<double>({x})}).as<double>()[0];
    EXPECT_NEAR(std::erf(y), x, 2e-16) << x;
  }
  // The f64 solution and the f32 polynomial are two independent ways to one function.
  for (float x : {1e-6f, 0.1f, 0.5f, 0.9f, 0.999f, 0.9999999f}) {
    double exact = eval_one(kErfInv, {vec<double>({x})}).as<double>()[0];
    EXPECT_NEAR(eval_one(kErfInv, {vec<float>({x})}).as<float>()[0] / exact, 1, 6e-7) << x;
  }
}

TEST(ElementwiseTest, ComplexFunctionsAreAccurateNearTheirHardPlaces) {
  auto at = [](const OpDef& op, std::complex<float> z) {
    return eval_one(op, {vec<std::complex<float>>({z})}).as<std::complex<float>>()[0];
  };
  EXPECT_EQ(at(kExponentialMinusOne, {1e-10f, 0}), std::complex<float>(1e-10f, 0));
  EXPECT_EQ(at(kLogPlusOne, {1e-10f, 0}), std::complex<float>(1e-10f, 0));
  EXPECT_NEAR(at(kExponentialMinusOne, {0, 1e-4f}).real(), -5e-9f, 1e-15f);
  EXPECT_NEAR(at(kTanh, {50, 1}).real(), 1, 1e-7);
  EXPECT_NEAR(std::abs(at(kCbrt, {-8, 0}) - std::complex<float>(1, 1.7320508f)), 0, 1e-6);
  EXPECT_NEAR(std::abs(at(kSqrt, {-4, 0}) - std::complex<float>(0, 2)), 0, 1e-7);
}

TEST(ElementwiseTest, ArithmeticOfBoolIsLogic) {
  HostArray a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  expect_same<bool>(eval_one(kAdd, {a, b}), {false, true, true, true});
  expect_same<bool>(eval_one(kMultiply, {a, b}), {false, false, false, true});
  expect_same<bool>(eval_one(kMaximum, {a, b}), {false, true, true, true});
  expect_same<bool>(eval_one(kMinimum, {a, b}), {false, false, false, true});
  expect_same<bool>(eval_one(kXor, {a, b}), {false, true, true, false});
}

TEST(ElementwiseTest, IntegersWrap) {
  expect_same<std::int8_t>(eval_one(kAdd, {vec<std::int8_t>({127}), vec<std::int8_t>({1})}),
                           {-128});
  expect_same<std::uint8_t>(eval_one(kSubtract, {vec<std::uint8_t>({0}), vec<std::uint8_t>({1})}),
                            {255});
  expect_same<std::int32_t>(
      eval_one(kMultiply, {vec<std::int32_t>({kMin32}), vec<std::int32_t>({-1})}), {kMin32});
}

TEST(ElementwiseTest, IntegerDivisionFollowsXla) {
  expect_same<std::int32_t>(
      eval_one(kDivide, {vec<std::int32_t>({7, -7, 5, kMin32}), vec<std::int32_t>({-2, 2, 0, -1})}),
      {-3, -3, -1, kMin32});
  expect_same<std::int64_t>(
      eval_one(kDivide, {vec<std::int64_t>({kMin64, kMin64}), vec<std::int64_t>({-1, 0})}),
      {kMin64, -1});
  expect_same<std::uint8_t>(
      eval_one(kDivide, {vec<std::uint8_t>({7, 5}), vec<std::uint8_t>({2, 0})}), {3, 255});
  expect_same<std::int32_t>(eval_one(kRemainder, {vec<std::int32_t>({7, -7, 5, kMin32}),
                                                  vec<std::int32_t>({-2, 2, 0, -1})}),
                            {1, -1, 5, 0});
}

TEST(ElementwiseTest, FloatDivisionAndRemainder) {
  expect_same<float>(eval_one(kDivide, {vec<float>({1, -1, 0}), vec<float>({0, 0, 0})}),
                     {kInf, -kInf, kNan});
  expect_same<float>(
      eval_one(kRemainder, {vec<float>({5.5f, -5.5f, 1, kInf, 2}), vec<float>({2, 2, 0, 2, kInf})}),
      {1.5f, -1.5f, kNan, kNan, 2});
}

TEST(ElementwiseTest, MaximumPrefersNanAndPlusZero) {
  HostArray a = vec<float>({kNan, 1, 0.0f, -0.0f, -0.0f}),
            b = vec<float>({1, kNan, -0.0f, 0.0f, 1});
  expect_same<float>(eval_one(kMaximum, {a, b}), {kNan, kNan, 0.0f, 0.0f, 1});
  expect_same<float>(eval_one(kMinimum, {a, b}), {kNan, kNan, -0.0f, -0.0f, -0.0f});
  HostArray z =
      eval_one(kMaximum, {vec<std::complex<float>>({{1, 5}}), vec<std::complex<float>>({{1, 6}})});
  EXPECT_EQ(z.as<std::complex<float>>()[0], std::complex<float>(1, 6));
}

TEST(ElementwiseTest, IntegerPowerWrapsAndTruncates) {
  expect_same<std::int32_t>(
      eval_one(kPower, {vec<std::int32_t>({2, 0, 0, 2, 1, -1, -1, -3, 3}),
                        vec<std::int32_t>({10, 0, -1, -1, -5, -5, -4, 3, 40})}),
      {1024, 1, 0, 0, 1, -1, 1, -27, 689956897});
  expect_same<float>(
      eval_one(kPower, {vec<float>({0, kNan, -8, 2, -2}), vec<float>({0, 0, 1.0f / 3, -1, 3})}),
      {1, 1, kNan, 0.5f, -8});
}

TEST(ElementwiseTest, ShiftsByTheWidthOrMoreClearOrFill) {
  HostArray x = vec<std::int32_t>({1, 1, -8, -8, -8}), s = vec<std::int32_t>({31, 32, 1, 40, -1});
  expect_same<std::int32_t>(eval_one(kShiftLeft, {x, s}), {kMin32, 0, -16, 0, 0});
  expect_same<std::int32_t>(eval_one(kShiftRightArithmetic, {x, s}), {0, 0, -4, -1, -1});
  expect_same<std::int32_t>(eval_one(kShiftRightLogical, {x, s}), {0, 0, 0x7ffffffc, 0, 0});
  HostArray u = vec<std::uint8_t>({128, 128, 255}), t = vec<std::uint8_t>({1, 9, 255});
  expect_same<std::uint8_t>(eval_one(kShiftRightArithmetic, {u, t}), {192, 255, 255});
  expect_same<std::uint8_t>(eval_one(kShiftRightLogical, {u, t}), {64, 0, 0});
}

Attrs compare_attrs(std::string_view direction, std::string_view type = {}) {
  Attrs a{{"comparison_direction", EnumAttr(direction)}};
  if (!type.empty()) a.set("compare_type", EnumAttr(type));
  return a;
}

TEST(ElementwiseTest, CompareWithNanIsFalseButForNe) {
  HostArray a = vec<float>({kNan, 1, -0.0f}), b = vec<float>({kNan, kNan, 0.0f});
  for (const char* d : {"EQ", "GE", "GT", "LE", "LT"}) {
    HostArray r = eval_one(kCompare, {a, b}, compare_attrs(d, "FLOAT"));
    EXPECT_FALSE(r.as<bool>()[0]) << d;
    EXPECT_FALSE(r.as<bool>()[1]) << d;
  }
  expect_same<bool>(eval_one(kCompare, {a, b}, compare_attrs("NE")), {true, true, false});
  expect_same<bool>(eval_one(kCompare, {a, b}, compare_attrs("EQ")), {false, false, true});
}

TEST(ElementwiseTest, TotalOrderRanksNanAndZeroesByTheirSign) {
  HostArray order = vec<float>({-kNan, -kInf, -1, -0.0f, 0.0f, 1, kInf, kNan});
  for (DType t : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kF8E5M2}) {
    HostArray x = order.astype(t);
    for (int i = 0; i < 7; ++i) {
      Attrs slice_i{
          {"start_indices", Dims{i}}, {"limit_indices", Dims{i + 1}}, {"strides", Dims{1}}};
      Attrs slice_j{
          {"start_indices", Dims{i + 1}}, {"limit_indices", Dims{i + 2}}, {"strides", Dims{1}}};
      HostArray a = eval_one(kSlice, {x}, slice_i), b = eval_one(kSlice, {x}, slice_j);
      EXPECT_TRUE(*eval_one(kCompare, {a, b}, compare_attrs("LT", "TOTALORDER")).as<bool>())
          << dtype_name(t) << " " << i;
    }
  }
}

TEST(ElementwiseTest, CompareOfUnsignedIsUnsigned) {
  HostArray a = vec<std::uint64_t>({~0ull}), b = vec<std::uint64_t>({1});
  expect_same<bool>(eval_one(kCompare, {a, b}, compare_attrs("GT", "UNSIGNED")), {true});
}

TEST(ElementwiseTest, SelectTakesAScalarOrAFullPredicate) {
  HostArray a = vec<float>({1, 2}), b = vec<float>({3, 4});
  expect_same<float>(eval_one(kSelect, {bools({1, 0}), a, b}), {1, 4});
  expect_same<float>(eval_one(kSelect, {bools({0}).reshape({}), a, b}), {3, 4});
}

TEST(ElementwiseTest, ClampGivesTheUpperBoundWhenTheBoundsCross) {
  HostArray x = vec<float>({0, 5, kNan, 3});
  HostArray lo = HostArray::scalar(1.0f), hi = HostArray::scalar(4.0f);
  expect_same<float>(eval_one(kClamp, {lo, x, hi}), {1, 4, kNan, 3});
  expect_same<float>(eval_one(kClamp, {hi, x, lo}), {1, 1, kNan, 1});
  expect_same<float>(eval_one(kClamp, {vec<float>({kNan, 0, 0, 0}), x, hi}), {kNan, 4, kNan, 3});
}

TEST(ElementwiseTest, NarrowFloatsRoundOnceToTheirOwnType) {
  auto bf = [](float v) { return bf16(v); };
  HostArray a = vec<bf16>({bf(1.0f), bf(256)}), b = vec<bf16>({bf(0.00390625f), bf(1)});
  HostArray sum = eval_one(kAdd, {a, b});
  EXPECT_EQ(static_cast<float>(sum.as<bf16>()[0]), 1.0f);  // tie to even
  EXPECT_EQ(static_cast<float>(sum.as<bf16>()[1]), 256.0f);
  HostArray e = vec<float>({448}).astype(DType::kF8E4M3FN);
  EXPECT_TRUE(std::isnan(eval_one(kAdd, {e, e}).at(0)));  // no infinity in that type
}

TEST(ElementwiseTest, EmptyArraysAreFine) {
  HostArray x(DType::kF32, {0, 3});
  EXPECT_EQ(eval_one(kAdd, {x, x}).size(), 0);
  EXPECT_EQ(eval_one(kExponential, {x}).size(), 0);
  EXPECT_EQ(eval_one(kSelect, {bools({1}).reshape({}), x, x}).size(), 0);
}

TEST(ElementwiseTest, OptimizationBarrierIsTheIdentityOfAllOperands) {
  std::vector<HostArray> r =
      testing::eval_op(kOptimizationBarrier, {vec<float>({1}), vec<std::int32_t>({2, 3})});
  expect_same<float>(r[0], {1});
  expect_same<std::int32_t>(r[1], {2, 3});
}

// Conversions ------------------------------------------------------------------------------------

Attrs to(DType t) { return {{"result_dtype", t}}; }

TEST(ConvertTest, FloatToIntegerTruncatesAndSaturates) {
  HostArray x = vec<float>({-1.9f, 1.9f, 3e9f, -3e9f, kNan, kInf});
  expect_same<std::int32_t>(eval_one(kConvert, {x}, to(DType::kI32)),
                            {-1, 1, INT32_MAX, INT32_MIN, 0, INT32_MAX});
  expect_same<std::uint8_t>(eval_one(kConvert, {x}, to(DType::kU8)), {0, 1, 255, 0, 0, 255});
}

TEST(ConvertTest, NumbersToBoolAskForNonzero) {
  expect_same<bool>(eval_one(kConvert, {vec<float>({0, -0.0f, kNan, 0.1f})}, to(DType::kBool)),
                    {false, false, true, true});
  expect_same<std::int8_t>(eval_one(kConvert, {vec<std::int32_t>({300})}, to(DType::kI8)), {44});
}

TEST(ConvertTest, BitcastKeepsOrSplitsOrJoinsBits) {
  expect_same<std::uint32_t>(eval_one(kBitcastConvert, {vec<float>({1})}, to(DType::kU32)),
                             {0x3f800000u});
  HostArray bytes = eval_one(kBitcastConvert, {vec<std::uint32_t>({0x04030201})}, to(DType::kU8));
  EXPECT_EQ(bytes.dims(), (Dims{1, 4}));
  expect_same<std::uint8_t>(bytes, {1, 2, 3, 4});
  expect_same<std::uint32_t>(eval_one(kBitcastConvert, {bytes}, to(DType::kU32)), {0x04030201});
  HostArray nibbles = eval_one(kBitcastConvert, {vec<std::uint8_t>({0x21, 0xf3})}, to(DType::kU4));
  EXPECT_EQ(nibbles.dims(), (Dims{2, 2}));
  EXPECT_EQ(numbers(nibbles), (std::vector<double>{1, 2, 3, 15}));
  expect_same<std::uint8_t>(eval_one(kBitcastConvert, {nibbles}, to(DType::kU8)), {0x21, 0xf3});
}

TEST(ConvertTest, ReducePrecisionRoundsOverflowsAndFlushes) {
  auto reduce = [](std::initializer_list<float> x, int e, int m) {
    return eval_one(kReducePrecision, {vec<float>(x)},
                    {{"exponent_bits", e}, {"mantissa_bits", m}});
  };
  expect_same<float>(reduce({1.0f + 1.0f / 1024, 1.0f + 3.0f / 2048}, 8, 10),
                     {1.0f + 1.0f / 1024, 1.0f + 2.0f / 1024});
  expect_same<float>(reduce({1e6f, -1e6f, 65504, 65520}, 5, 10), {kInf, -kInf, 65504, kInf});
  expect_same<float>(reduce({6e-5f, -6e-5f, 6.2e-5f}, 5, 23), {0, -0.0f, 6.2e-5f});
  expect_same<float>(reduce({kNan, kInf}, 5, 10), {kNan, kInf});
  expect_same<float>(reduce({kNan, 1.5f, 2.5f}, 8, 0), {kInf, 2, 2});
}

}  // namespace
}  // namespace xylem::ir::ops
