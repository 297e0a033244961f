#include <gtest/gtest.h>

#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

namespace xylem::ir::ops {
namespace {

using testing::array;
using testing::eval_one;
using testing::numbers;
using testing::vec;
using Numbers = std::vector<double>;

HostArray iota(Dims shape, DType t = DType::kF32) {
  std::int64_t n = num_elements(shape);
  return eval_one(kIota, {}, {{"iota_dimension", 0}, {"shape", Dims{n}}, {"result_dtype", t}})
      .reshape(shape);
}
HostArray index(std::int32_t i) { return HostArray::scalar(i); }

TEST(MovementTest, ConstantGivesItsValue) {
  HostArray v = vec<float>({1, 2});
  EXPECT_TRUE(eval_one(kConstant, {}, {{"value", v}}).bit_equal(v));
}

TEST(MovementTest, IotaCountsAlongOneDimension) {
  Attrs a{{"iota_dimension", 1}, {"shape", Dims{2, 3}}, {"result_dtype", DType::kI32}};
  EXPECT_EQ(numbers(eval_one(kIota, {}, a)), (Numbers{0, 1, 2, 0, 1, 2}));
  a.set("iota_dimension", 0);
  EXPECT_EQ(numbers(eval_one(kIota, {}, a)), (Numbers{0, 0, 0, 1, 1, 1}));
}

TEST(MovementTest, IotaWrapsAndRoundsToTheDtype) {
  HostArray x = iota({300}, DType::kI8);
  EXPECT_EQ(x.at(128), -128);
  EXPECT_EQ(iota({300}, DType::kBF16).at(257), 256);
  EXPECT_EQ(iota({3}, DType::kC64).as<std::complex<float>>()[2], std::complex<float>(2, 0));
}

TEST(MovementTest, BroadcastStretchesOnesAndAddsDimensions) {
  Attrs a{{"broadcast_dimensions", Dims{1, 0}}, {"shape", Dims{3, 2}}};
  // Unsorted dimensions transpose.
  EXPECT_EQ(numbers(eval_one(kBroadcastInDim, {iota({2, 3})}, a)), (Numbers{0, 3, 1, 4, 2, 5}));
  a = {{"broadcast_dimensions", Dims{0, 2}}, {"shape", Dims{2, 2, 3}}};
  EXPECT_EQ(numbers(eval_one(kBroadcastInDim, {array<float>({1, 2, 3}, {1, 3})}, a)),
            (Numbers{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
  a = {{"broadcast_dimensions", Dims{}}, {"shape", Dims{0, 2}}};
  EXPECT_EQ(eval_one(kBroadcastInDim, {HostArray::scalar(1.0f)}, a).size(), 0);
}

TEST(MovementTest, ReshapeKeepsRowMajorOrder) {
  HostArray r = eval_one(kReshape, {iota({2, 3})}, {{"shape", Dims{3, 1, 2}}});
  EXPECT_EQ(numbers(r), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(eval_one(kReshape, {vec<float>({7})}, {{"shape", Dims{}}}).rank(), 0);
}

TEST(MovementTest, TransposeAndReverse) {
  EXPECT_EQ(numbers(eval_one(kTranspose, {iota({2, 3})}, {{"permutation", Dims{1, 0}}})),
            (Numbers{0, 3, 1, 4, 2, 5}));
  HostArray t = eval_one(kTranspose, {iota({2, 3, 4})}, {{"permutation", Dims{2, 0, 1}}});
  EXPECT_EQ(t.dims(), (Dims{4, 2, 3}));
  EXPECT_EQ(t.at(1 * 6 + 1 * 3 + 2), 1 * 12 + 2 * 4 + 1);
  EXPECT_EQ(numbers(eval_one(kReverse, {iota({2, 3})}, {{"dimensions", Dims{1}}})),
            (Numbers{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(numbers(eval_one(kReverse, {iota({2, 3})}, {{"dimensions", Dims{0, 1}}})),
            (Numbers{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(eval_one(kReverse, {iota({0, 3})}, {{"dimensions", Dims{0}}}).size(), 0);
}

TEST(MovementTest, ConcatenateJoinsAlongAnyAxis) {
  HostArray a = iota({2, 1}), b = iota({2, 2});
  EXPECT_EQ(numbers(eval_one(kConcatenate, {a, b}, {{"dimension", 1}})),
            (Numbers{0, 0, 1, 1, 2, 3}));
  HostArray c =
      eval_one(kConcatenate, {iota({1, 2}), iota({0, 2}), iota({2, 2})}, {{"dimension", 0}});
  EXPECT_EQ(numbers(c), (Numbers{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(numbers(eval_one(kConcatenate, {a}, {{"dimension", 0}})), (Numbers{0, 1}));
}

TEST(MovementTest, SliceTakesEveryStrideth) {
  Attrs a{{"start_indices", Dims{1, 0}}, {"limit_indices", Dims{3, 4}}, {"strides", Dims{1, 3}}};
  EXPECT_EQ(numbers(eval_one(kSlice, {iota({3, 4})}, a)), (Numbers{4, 7, 8, 11}));
  a = {{"start_indices", Dims{2}}, {"limit_indices", Dims{2}}, {"strides", Dims{5}}};
  EXPECT_EQ(eval_one(kSlice, {iota({3})}, a).size(), 0);
}

TEST(MovementTest, DynamicSliceClampsItsStart) {
  Attrs a{{"slice_sizes", Dims{3}}};
  HostArray x = iota({6});
  EXPECT_EQ(numbers(eval_one(kDynamicSlice, {x, index(2)}, a)), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers(eval_one(kDynamicSlice, {x, index(-9)}, a)), (Numbers{0, 1, 2}));
  EXPECT_EQ(numbers(eval_one(kDynamicSlice, {x, index(9)}, a)), (Numbers{3, 4, 5}));
  EXPECT_EQ(numbers(eval_one(kDynamicSlice, {x, HostArray::scalar(~0ull)}, a)),
            (Numbers{3, 4, 5}));  // unsigned: large, not negative
}

TEST(MovementTest, DynamicUpdateSliceWritesACopy) {
  HostArray x = iota({2, 3});
  HostArray u = array<float>({9, 8}, {1, 2});
  EXPECT_EQ(numbers(eval_one(kDynamicUpdateSlice, {x, u, index(1), index(5)})),
            (Numbers{0, 1, 2, 3, 9, 8}));
  EXPECT_EQ(numbers(x), (Numbers{0, 1, 2, 3, 4, 5}));
}

Attrs padding(Dims low, Dims high, Dims interior) {
  return {{"edge_padding_low", low}, {"edge_padding_high", high}, {"interior_padding", interior}};
}

TEST(MovementTest, PadPutsInteriorFirstAndCutsByNegativeEdges) {
  HostArray x = vec<float>({1, 2, 3}), v = HostArray::scalar(0.0f);
  EXPECT_EQ(numbers(eval_one(kPad, {x, v}, padding({1}, {2}, {1}))),
            (Numbers{0, 1, 0, 2, 0, 3, 0, 0}));
  EXPECT_EQ(numbers(eval_one(kPad, {x, v}, padding({-1}, {0}, {0}))), (Numbers{2, 3}));
  EXPECT_EQ(numbers(eval_one(kPad, {x, v}, padding({-1}, {-1}, {1}))), (Numbers{0, 2, 0}));
  EXPECT_EQ(numbers(eval_one(kPad, {x, v}, padding({-3}, {1}, {1}))), (Numbers{0, 3, 0}));
  EXPECT_EQ(numbers(eval_one(kPad, {x, v}, padding({-5}, {4}, {0}))), (Numbers{0, 0}));
  EXPECT_EQ(numbers(eval_one(kPad, {x, v}, padding({5}, {-6}, {0}))), (Numbers{0, 0}));
  EXPECT_EQ(eval_one(kPad, {x, v}, padding({0}, {-3}, {0})).size(), 0);
  EXPECT_EQ(numbers(eval_one(kPad, {HostArray(DType::kF32, {0}), v}, padding({1}, {1}, {4}))),
            (Numbers{0, 0}));
  HostArray m =
      eval_one(kPad, {iota({2, 2}), HostArray::scalar(7.0f)}, padding({0, 1}, {1, 0}, {0, 1}));
  EXPECT_EQ(numbers(m), (Numbers{7, 0, 7, 1, 7, 2, 7, 3, 7, 7, 7, 7}));
}

// Dimension maps ---------------------------------------------------------------------------------

DimMap map_of(const OpDef& def, std::vector<Type> operands, const Attrs& attrs) {
  OpCall call{def, operands, attrs, {}, {}};
  std::vector<Type> results = infer_types(call);
  return dimension_map(call, results);
}
using Kind = DimMap::FactorKind;

TEST(MovementTest, ReshapeMapsDimensionsThatStandAloneAndMarksJoinedOnesOpaque) {
  DimMap m =
      map_of(kReshape, {Type::tensor(DType::kF32, {8, 2, 3, 5})}, {{"shape", Dims{8, 6, 1, 5}}});
  ASSERT_EQ(m.factors.size(), 5u);
  EXPECT_EQ(m.operands[0][0], m.results[0][0]);
  EXPECT_EQ(m.operands[0][3], m.results[0][3]);
  EXPECT_EQ(m.results[0][2], -1);
  EXPECT_EQ(m.factors[static_cast<std::size_t>(m.results[0][0])].kind, Kind::kParallel);
  EXPECT_EQ(m.factors[static_cast<std::size_t>(m.results[0][1])].kind, Kind::kOpaque);
  EXPECT_EQ(m.factors[static_cast<std::size_t>(m.operands[0][1])].kind, Kind::kOpaque);
}

TEST(MovementTest, TransposeSharesItsFactors) {
  DimMap m = map_of(kTranspose, {Type::tensor(DType::kF32, {4, 5})}, {{"permutation", Dims{1, 0}}});
  EXPECT_EQ(m.operands[0], (Dims{0, 1}));
  EXPECT_EQ(m.results[0], (Dims{1, 0}));
}

TEST(MovementTest, BroadcastMarksStretchedDimensions) {
  DimMap m = map_of(kBroadcastInDim, {Type::tensor(DType::kF32, {1, 5})},
                    {{"broadcast_dimensions", Dims{0, 2}}, {"shape", Dims{4, 3, 5}}});
  EXPECT_EQ(m.operands[0], (Dims{-1, 2}));
  EXPECT_EQ(m.results[0], (Dims{0, 1, 2}));
}

TEST(MovementTest, CutDimensionsAreOpaque) {
  DimMap m = map_of(
      kSlice, {Type::tensor(DType::kF32, {4, 5})},
      {{"start_indices", Dims{0, 1}}, {"limit_indices", Dims{4, 3}}, {"strides", Dims{1, 1}}});
  EXPECT_EQ(m.operands[0][0], m.results[0][0]);
  EXPECT_NE(m.operands[0][1], m.results[0][1]);
  EXPECT_EQ(m.factors[static_cast<std::size_t>(m.operands[0][1])].kind, Kind::kOpaque);
}

}  // namespace
}  // namespace xylem::ir::ops
