#include <gtest/gtest.h>

#include <random>

#include "xylem/base/float_types.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

namespace xylem::ir::ops {
namespace {

using testing::array;
using testing::bools;
using testing::eval_one;
using testing::numbers;
using testing::vec;
using Numbers = std::vector<double>;

Attrs dot(Dims lb, Dims rb, Dims lc, Dims rc) {
  return {{"lhs_batching_dimensions", lb},
          {"rhs_batching_dimensions", rb},
          {"lhs_contracting_dimensions", lc},
          {"rhs_contracting_dimensions", rc}};
}
Attrs matmul() { return dot({}, {}, {1}, {0}); }
Attrs with_result(Attrs a, DType t) {
  a.set("result_dtype", t);
  return a;
}

TEST(ContractionTest, MatrixProduct) {
  HostArray a = array<float>({1, 2, 3, 4, 5, 6}, {2, 3}),
            b = array<float>({1, 0, 0, 1, 1, 1}, {3, 2});
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {a, b}, matmul())), (Numbers{4, 5, 10, 11}));
}

TEST(ContractionTest, BatchAndFreeDimensionsComeInTheOrderBatchLhsRhs) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  HostArray a(DType::kF32, {3, 2, 4, 5}), b(DType::kF32, {4, 6, 3, 5});
  for (HostArray* x : {&a, &b})
    for (std::int64_t i = 0; i < x->size(); ++i) x->as<float>()[i] = uniform(rng);
  // Batch over sizes 4 and 3, contract size 5.
  HostArray r = eval_one(kDotGeneral, {a, b}, dot({2, 0}, {0, 2}, {3}, {3}));
  ASSERT_EQ(r.dims(), (Dims{4, 3, 2, 6}));
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 3; ++q)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 6; ++j) {
          double sum = 0;
          for (int k = 0; k < 5; ++k)
            sum += a.at(((q * 2 + i) * 4 + p) * 5 + k) * b.at(((p * 6 + j) * 3 + q) * 5 + k);
          EXPECT_NEAR(r.at(((p * 3 + q) * 2 + i) * 6 + j), sum, 1e-6);
        }
}

TEST(ContractionTest, NoContractionIsAnOuterProductAndAnEmptyOneIsZero) {
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {vec<float>({1, 2}), vec<float>({3, 4})})),
            (Numbers{3, 4, 6, 8}));
  HostArray a(DType::kF32, {2, 0}), b(DType::kF32, {0, 2});
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {a, b}, matmul())), (Numbers{0, 0, 0, 0}));
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {HostArray::scalar(3.0f), HostArray::scalar(4.0f)})),
            (Numbers{12}));
}

TEST(ContractionTest, NarrowOperandsMayHaveAWiderResult) {
  HostArray a = array<std::int8_t>({100, 100, 100}, {1, 3});
  HostArray b = array<std::int8_t>({100, 100, -1}, {3, 1});
  HostArray wide = eval_one(kDotGeneral, {a, b}, with_result(matmul(), DType::kI32));
  EXPECT_EQ(wide.dtype(), DType::kI32);
  EXPECT_EQ(numbers(wide), (Numbers{19900}));
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {a, b}, matmul())), (Numbers{-68}));  // 19900 wrapped
  HostArray f = eval_one(kDotGeneral, {a.astype(DType::kBF16), b.astype(DType::kBF16)},
                         with_result(matmul(), DType::kF32));
  EXPECT_EQ(numbers(f), (Numbers{19900}));
  EXPECT_EQ(
      numbers(eval_one(kDotGeneral, {a.astype(DType::kBF16), b.astype(DType::kBF16)}, matmul())),
      (Numbers{19840}));  // one rounding at the end
}

TEST(ContractionTest, SumsAreThoseOfTheResultAndOfNarrowFloatsRoundedOnce) {
  HostArray a = vec<float>({1e8f, 1, -1e8f}), b = vec<float>({1, 1, 1});
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {a, b}, dot({}, {}, {0}, {0}))), (Numbers{0}));
  HostArray c = vec<float>({256, 1, -256}).astype(DType::kBF16), d = b.astype(DType::kBF16);
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {c, d}, dot({}, {}, {0}, {0}))), (Numbers{1}));
}

TEST(ContractionTest, BoolIsAnOrOfAnds) {
  EXPECT_EQ(
      numbers(eval_one(kDotGeneral, {bools({1, 0, 1}), bools({0, 1, 1})}, dot({}, {}, {0}, {0}))),
      (Numbers{1}));
  EXPECT_EQ(numbers(eval_one(kDotGeneral, {bools({1, 0}), bools({0, 1})}, dot({}, {}, {0}, {0}))),
            (Numbers{0}));
}

TEST(ContractionTest, ComplexProductsAreNotConjugated) {
  HostArray z = vec<std::complex<float>>({{0, 1}});
  HostArray r = eval_one(kDotGeneral, {z, z}, dot({}, {}, {0}, {0}));
  EXPECT_EQ(*r.as<std::complex<float>>(), std::complex<float>(-1, 0));
}

TEST(ContractionTest, DimensionMapNamesBatchFreeAndContractedFactors) {
  std::vector<Type> operands{Type::tensor(DType::kF32, {8, 2, 4}),
                             Type::tensor(DType::kF32, {8, 4, 3})};
  Attrs attrs = dot({0}, {0}, {2}, {1});
  OpCall call{kDotGeneral, operands, attrs, {}, {}};
  DimMap m = dimension_map(call, infer_types(call));
  EXPECT_EQ(m.results[0], (Dims{0, 1, 2}));
  EXPECT_EQ(m.operands[0], (Dims{0, 1, 3}));
  EXPECT_EQ(m.operands[1], (Dims{0, 3, 2}));
  EXPECT_EQ(m.factors[3].kind, DimMap::FactorKind::kReduced);
  EXPECT_EQ(m.factors[3].size, 4);
}

}  // namespace
}  // namespace xylem::ir::ops
