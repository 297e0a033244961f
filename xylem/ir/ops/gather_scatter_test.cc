#include <gtest/gtest.h>

#include <random>

#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

namespace xylem::ir::ops {
namespace {

using testing::array;
using testing::binary_body;
using testing::eval_one;
using testing::eval_op;
using testing::numbers;
using testing::passing_body;
using testing::vec;
using Numbers = std::vector<double>;

HostArray counting(Dims shape) {
  HostArray x(DType::kF32, shape);
  for (std::int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i);
  return x;
}

// Rows of a table by number, as an embedding does.
Attrs take_rows(std::int64_t width) {
  return {{"offset_dims", Dims{1}},
          {"collapsed_slice_dims", Dims{0}},
          {"start_index_map", Dims{0}},
          {"index_vector_dim", 1},
          {"slice_sizes", Dims{1, width}}};
}

TEST(GatherTest, TakesRowsAndClampsTheirNumbers) {
  HostArray table = counting({4, 2}), ids = vec<std::int32_t>({2, 0, 99, -7});
  EXPECT_EQ(numbers(eval_one(kGather, {table, ids}, take_rows(2))),
            (Numbers{4, 5, 0, 1, 6, 7, 0, 1}));
}

TEST(GatherTest, IndexVectorsAddressSeveralDimensions) {
  HostArray x = counting({3, 4});
  HostArray at = array<std::int64_t>({1, 2, 2, 3, 0, 0}, {3, 2});
  Attrs a{{"collapsed_slice_dims", Dims{0, 1}},
          {"start_index_map", Dims{0, 1}},
          {"index_vector_dim", 1},
          {"slice_sizes", Dims{1, 1}}};
  EXPECT_EQ(numbers(eval_one(kGather, {x, at}, a)), (Numbers{6, 11, 0}));
  a.set("start_index_map", Dims{1, 0});  // components (column, row); row 2 of column 1, …
  EXPECT_EQ(numbers(eval_one(kGather, {x, at}, a)), (Numbers{9, 10, 0}));
}

TEST(GatherTest, IndexVectorMayStandInFront) {
  HostArray x = counting({3, 4});
  HostArray at = array<std::int64_t>({1, 2, 0, 2, 3, 0}, {2, 3});
  Attrs a{{"collapsed_slice_dims", Dims{0, 1}},
          {"start_index_map", Dims{0, 1}},
          {"index_vector_dim", 0},
          {"slice_sizes", Dims{1, 1}}};
  EXPECT_EQ(numbers(eval_one(kGather, {x, at}, a)), (Numbers{6, 11, 0}));
}

TEST(GatherTest, WindowsAreClampedAsAWhole) {
  HostArray x = counting({5});
  Attrs a{{"offset_dims", Dims{1}},
          {"start_index_map", Dims{0}},
          {"index_vector_dim", 1},
          {"slice_sizes", Dims{3}}};
  EXPECT_EQ(numbers(eval_one(kGather, {x, array<std::int32_t>({1, 4}, {2, 1})}, a)),
            (Numbers{1, 2, 3, 2, 3, 4}));
}

TEST(GatherTest, BatchingDimensionsRunTogether) {
  // take_along_axis: result[b, i] = x[b, ids[b, i]]
  HostArray x = counting({2, 3}), ids = array<std::int32_t>({2, 0, 1, 1}, {2, 2, 1});
  Attrs a{{"collapsed_slice_dims", Dims{1}},
          {"operand_batching_dims", Dims{0}},
          {"start_indices_batching_dims", Dims{0}},
          {"start_index_map", Dims{1}},
          {"index_vector_dim", 2},
          {"slice_sizes", Dims{1, 1}}};
  EXPECT_EQ(numbers(eval_one(kGather, {x, ids}, a)), (Numbers{2, 0, 4, 4}));
}

TEST(GatherTest, DimensionMapSharesWholeDimensions) {
  std::vector<Type> operands{Type::tensor(DType::kF32, {9, 4}), Type::tensor(DType::kI32, {3, 1})};
  Attrs attrs = take_rows(4);
  OpCall call{kGather, operands, attrs, {}, {}};
  DimMap m = dimension_map(call, infer_types(call));
  EXPECT_EQ(m.results[0][0], m.operands[1][0]);
  EXPECT_EQ(m.results[0][1], m.operands[0][1]);
  EXPECT_EQ(m.factors[static_cast<std::size_t>(m.operands[0][0])].kind,
            DimMap::FactorKind::kOpaque);
}

Attrs put_rows() {
  return {{"update_window_dims", Dims{1}},
          {"inserted_window_dims", Dims{0}},
          {"scatter_dims_to_operand_dims", Dims{0}},
          {"index_vector_dim", 1}};
}
const Type kF32 = Type::tensor(DType::kF32);

TEST(ScatterTest, ReplacesRowsAndSkipsThoseOutside) {
  HostArray x = counting({3, 2}), ids = vec<std::int32_t>({2, 3, -1, 0});
  HostArray u = array<float>({10, 11, 12, 13, 14, 15, 16, 17}, {4, 2});
  GraphPtr replace = passing_body({kF32, kF32}, {1});
  EXPECT_EQ(numbers(eval_one(kScatter, {x, ids, u}, put_rows(), {replace})),
            (Numbers{16, 17, 2, 3, 10, 11}));
}

TEST(ScatterTest, TheLastOfSeveralUpdatesWinsAndSumsTakeAll) {
  HostArray x = vec<float>({0, 0}), ids = array<std::int32_t>({1, 1, 1}, {3, 1});
  HostArray u = vec<float>({1, 2, 4});
  Attrs a{{"inserted_window_dims", Dims{0}},
          {"scatter_dims_to_operand_dims", Dims{0}},
          {"index_vector_dim", 1}};
  EXPECT_EQ(numbers(eval_one(kScatter, {x, ids, u}, a, {passing_body({kF32, kF32}, {1})})),
            (Numbers{0, 4}));
  for (const OpDef* op : {&kAdd, &kMaximum}) {
    double want = op == &kAdd ? 7 : 4;
    EXPECT_EQ(numbers(eval_one(kScatter, {x, ids, u}, a, {binary_body(*op, DType::kF32)})),
              (Numbers{0, want}));
  }
}

TEST(ScatterTest, AWindowThatDoesNotFitIsSkippedWhole) {
  HostArray x = counting({4}), ids = array<std::int32_t>({1, 3}, {2, 1});
  HostArray u = array<float>({10, 11, 12, 13}, {2, 2});
  Attrs a{{"update_window_dims", Dims{1}},
          {"scatter_dims_to_operand_dims", Dims{0}},
          {"index_vector_dim", 1}};
  EXPECT_EQ(numbers(eval_one(kScatter, {x, ids, u}, a, {passing_body({kF32, kF32}, {1})})),
            (Numbers{0, 10, 11, 3}));
}

TEST(ScatterTest, BodiesMayBeAnyGraphWithCaptures) {
  // old + scale * update
  Builder b("body");
  ValueId old = b.param(kF32), update = b.param(kF32), scale = b.param(kF32);
  GraphPtr body = b.finish({b.one(kAdd, {old, b.one(kMultiply, {scale, update})})});
  Attrs a = put_rows();
  a.set("num_captures", 1);
  HostArray r = eval_one(kScatter,
                         {counting({2, 1}), vec<std::int32_t>({1, 1}), array<float>({1, 2}, {2, 1}),
                          HostArray::scalar(10.0f)},
                         a, {body});
  EXPECT_EQ(numbers(r), (Numbers{0, 31}));
}

TEST(ScatterTest, SeveralInputsShareTheirIndices) {
  GraphPtr swap = passing_body({kF32, kF32, kF32, kF32}, {3, 2});
  auto r = eval_op(kScatter,
                   {counting({2, 1}), counting({2, 1}), vec<std::int32_t>({0}),
                    array<float>({5}, {1, 1}), array<float>({6}, {1, 1})},
                   put_rows(), {swap});
  EXPECT_EQ(numbers(r[0]), (Numbers{6, 1}));
  EXPECT_EQ(numbers(r[1]), (Numbers{5, 1}));
}

TEST(ScatterTest, BatchingDimensionsRunTogether) {
  HostArray x = counting({2, 3}), ids = array<std::int32_t>({2, 0}, {2, 1});
  Attrs a{{"inserted_window_dims", Dims{1}},
          {"input_batching_dims", Dims{0}},
          {"scatter_indices_batching_dims", Dims{0}},
          {"scatter_dims_to_operand_dims", Dims{1}},
          {"index_vector_dim", 1}};
  EXPECT_EQ(numbers(eval_one(kScatter, {x, ids, vec<float>({10, 20})}, a,
                             {binary_body(kAdd, DType::kF32)})),
            (Numbers{0, 1, 12, 23, 4, 5}));
}

// Gathering what was scattered to distinct places gives it back.
TEST(ScatterTest, IsUndoneByGather) {
  std::mt19937 rng(3);
  HostArray x = counting({7, 3}), u = counting({4, 3});
  std::vector<std::int32_t> rows{0, 1, 2, 3, 4, 5, 6};
  for (int round = 0; round < 20; ++round) {
    std::shuffle(rows.begin(), rows.end(), rng);
    HostArray ids = HostArray::from(std::vector<std::int32_t>(rows.begin(), rows.begin() + 4), {4});
    HostArray y = eval_one(kScatter, {x, ids, u}, put_rows(), {passing_body({kF32, kF32}, {1})});
    EXPECT_TRUE(eval_one(kGather, {y, ids}, take_rows(3)).bit_equal(u));
  }
}

}  // namespace
}  // namespace xylem::ir::ops
