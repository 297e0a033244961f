#include <gtest/gtest.h>

#include <cmath>

#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"

// Ops with regions: reductions, loops, branches, sorting and the call-like ops.

namespace xylem::ir::ops {
namespace {

using testing::array;
using testing::binary_body;
using testing::bools;
using testing::eval_one;
using testing::eval_op;
using testing::numbers;
using testing::passing_body;
using testing::vec;
using Numbers = std::vector<double>;

const Type kI32 = Type::tensor(DType::kI32);
const Type kF32 = Type::tensor(DType::kF32);
HostArray i32(std::int32_t v) { return HostArray::scalar(v); }
HostArray f32(float v) { return HostArray::scalar(v); }

Attrs compare(std::string_view d) { return {{"comparison_direction", EnumAttr(d)}}; }

// reduce -----------------------------------------------------------------------------------------

TEST(ReduceTest, SumsOverAnyDimensions) {
  HostArray x = array<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  GraphPtr add = binary_body(kAdd, DType::kF32);
  EXPECT_EQ(numbers(eval_one(kReduce, {x, f32(10)}, {{"dimensions", Dims{1}}}, {add})),
            (Numbers{16, 25}));
  EXPECT_EQ(numbers(eval_one(kReduce, {x, f32(0)}, {{"dimensions", Dims{0}}}, {add})),
            (Numbers{5, 7, 9}));
  EXPECT_EQ(numbers(eval_one(kReduce, {x, f32(0)}, {{"dimensions", Dims{1, 0}}}, {add})),
            (Numbers{21}));
  EXPECT_EQ(numbers(eval_one(kReduce, {x, f32(0)}, {{"dimensions", Dims{}}}, {add})),
            (Numbers{1, 2, 3, 4, 5, 6}));
}

TEST(ReduceTest, AnEmptyReductionGivesTheInitValue) {
  HostArray x(DType::kF32, {2, 0});
  EXPECT_EQ(numbers(eval_one(kReduce, {x, f32(7)}, {{"dimensions", Dims{1}}},
                             {binary_body(kMaximum, DType::kF32)})),
            (Numbers{7, 7}));
}

TEST(ReduceTest, SingleOpBodiesOfEveryKind) {
  HostArray x = vec<std::int32_t>({6, 3, -5});
  auto reduce = [&](const OpDef& op, int init) {
    return numbers(eval_one(kReduce, {x, i32(init)}, {{"dimensions", Dims{0}}},
                            {binary_body(op, DType::kI32)}))[0];
  };
  EXPECT_EQ(reduce(kMultiply, 1), -90);
  EXPECT_EQ(reduce(kMaximum, INT32_MIN), 6);
  EXPECT_EQ(reduce(kMinimum, INT32_MAX), -5);
  EXPECT_EQ(reduce(kAnd, -1), 6 & 3 & -5);
  EXPECT_EQ(reduce(kOr, 0), 6 | 3 | -5);
  EXPECT_EQ(reduce(kXor, 0), 6 ^ 3 ^ -5);
  HostArray b = bools({1, 1, 0});
  GraphPtr all = binary_body(kAnd, DType::kBool);
  EXPECT_EQ(
      numbers(eval_one(kReduce, {b, bools({1}).reshape({})}, {{"dimensions", Dims{0}}}, {all})),
      (Numbers{0}));
}

TEST(ReduceTest, GeneralBodiesRunInOrderWithCaptures) {
  // acc * scale + x: the order of elements is visible in the result.
  Builder b("body");
  ValueId acc = b.param(kF32), x = b.param(kF32), scale = b.param(kF32);
  GraphPtr body = b.finish({b.one(kAdd, {b.one(kMultiply, {acc, scale}), x})});
  HostArray r = eval_one(kReduce, {vec<float>({1, 2, 3}), f32(0), f32(10)},
                         {{"dimensions", Dims{0}}, {"num_captures", 1}}, {body});
  EXPECT_EQ(numbers(r), (Numbers{123}));
}

TEST(ReduceTest, SeveralInputsAreReducedTogether) {
  // argmax by value and index.
  Builder b("body");
  ValueId v0 = b.param(kF32), i0 = b.param(kI32), v1 = b.param(kF32), i1 = b.param(kI32);
  ValueId first = b.one(kCompare, {v0, v1}, compare("GE"));
  GraphPtr body = b.finish({b.one(kSelect, {first, v0, v1}), b.one(kSelect, {first, i0, i1})});
  HostArray x = array<float>({1, 5, 2, 9, 9, 0}, {2, 3});
  HostArray i = array<std::int32_t>({0, 1, 2, 0, 1, 2}, {2, 3});
  auto r = eval_op(kReduce, {x, i, f32(-INFINITY), i32(0)}, {{"dimensions", Dims{1}}}, {body});
  EXPECT_EQ(numbers(r[0]), (Numbers{5, 9}));
  EXPECT_EQ(numbers(r[1]), (Numbers{1, 0}));
}

TEST(ReduceTest, TheBodyMayPromote) {
  HostArray x = vec<std::int8_t>({100, 100, 100});
  HostArray r = eval_one(kReduce, {x, HostArray::scalar<std::int8_t>(0)}, {{"dimensions", Dims{0}}},
                         {binary_body(kAdd, DType::kI32)});
  EXPECT_EQ(r.dtype(), DType::kI32);
  EXPECT_EQ(numbers(r), (Numbers{300}));
}

TEST(ReduceTest, SingleOpReducerSeesThroughOrderButNotThroughCaptures) {
  EXPECT_EQ(single_op_reducer(*binary_body(kAdd, DType::kF32)), &kAdd);
  EXPECT_EQ(single_op_reducer(*binary_body(kSubtract, DType::kF32)), nullptr);
  EXPECT_EQ(single_op_reducer(*passing_body({kF32, kF32}, {1})), nullptr);
  Builder b("crossed");
  ValueId x = b.param(kF32), y = b.param(kF32);
  EXPECT_EQ(single_op_reducer(*b.finish({b.one(kMaximum, {y, x})})), &kMaximum);
  Builder c("doubled");
  x = c.param(kF32), y = c.param(kF32);
  EXPECT_EQ(single_op_reducer(*c.finish({c.one(kAdd, {x, x})})), nullptr);
}

TEST(ReduceTest, DimensionMapMarksReducedFactors) {
  std::vector<Type> operands{Type::tensor(DType::kF32, {2, 3, 4}), kF32};
  Attrs attrs{{"dimensions", Dims{1}}};
  std::vector<GraphPtr> regions{binary_body(kAdd, DType::kF32)};
  OpCall call{kReduce, operands, attrs, regions, {}};
  DimMap m = dimension_map(call, infer_types(call));
  EXPECT_EQ(m.operands[0], (Dims{0, 1, 2}));
  EXPECT_EQ(m.results[0], (Dims{0, 2}));
  EXPECT_EQ(m.factors[1].kind, DimMap::FactorKind::kReduced);
}

// reduce_window ----------------------------------------------------------------------------------

TEST(ReduceWindowTest, SlidesWithStridesPaddingAndDilation) {
  HostArray x = vec<float>({1, 2, 3, 4, 5});
  GraphPtr add = binary_body(kAdd, DType::kF32);
  auto sum = [&](Attrs a) { return numbers(eval_one(kReduceWindow, {x, f32(0)}, a, {add})); };
  HostArray pad = array<std::int64_t>({1, 0}, {1, 2});
  EXPECT_EQ(sum({{"window_dimensions", Dims{2}}}), (Numbers{3, 5, 7, 9}));
  EXPECT_EQ(sum({{"window_dimensions", Dims{2}}, {"window_strides", Dims{2}}}), (Numbers{3, 7}));
  EXPECT_EQ(sum({{"window_dimensions", Dims{2}}, {"padding", pad}}), (Numbers{1, 3, 5, 7, 9}));
  EXPECT_EQ(sum({{"window_dimensions", Dims{2}}, {"window_dilations", Dims{3}}}), (Numbers{5, 7}));
  EXPECT_EQ(sum({{"window_dimensions", Dims{2}}, {"base_dilations", Dims{2}}}),
            (Numbers{1, 2, 2, 3, 3, 4, 4, 5}));
  EXPECT_EQ(sum({{"window_dimensions", Dims{9}}}), Numbers{});
}

TEST(ReduceWindowTest, MaximumOverTwoDimensions) {
  HostArray x = array<float>({1, 9, 2, 3, 4, 5, 8, 7, 6}, {3, 3});
  EXPECT_EQ(
      numbers(eval_one(kReduceWindow, {x, f32(-INFINITY)}, {{"window_dimensions", Dims{2, 2}}},
                       {binary_body(kMaximum, DType::kF32)})),
      (Numbers{9, 9, 8, 7}));
}

// while, if, case --------------------------------------------------------------------------------

// (i, x, n, step) -> i < n;  (i + 1, x + step)
std::vector<GraphPtr> counting_loop() {
  Builder c("cond");
  ValueId i = c.param(kI32);
  c.param(kF32);
  ValueId n = c.param(kI32);
  c.param(kF32);
  GraphPtr cond = c.finish({c.one(kCompare, {i, n}, compare("LT"))});
  Builder b("body");
  i = b.param(kI32);
  ValueId x = b.param(kF32);
  b.param(kI32);
  ValueId step = b.param(kF32);
  ValueId one = b.constant(i32(1));
  GraphPtr body = b.finish({b.one(kAdd, {i, one}), b.one(kAdd, {x, step})});
  return {cond, body};
}

TEST(WhileTest, RunsWithCaptures) {
  auto r =
      eval_op(kWhile, {i32(0), f32(1), i32(4), f32(0.5f)}, {{"num_captures", 2}}, counting_loop());
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(numbers(r[0]), (Numbers{4}));
  EXPECT_EQ(numbers(r[1]), (Numbers{3}));
}

TEST(WhileTest, MayRunZeroTimes) {
  auto r =
      eval_op(kWhile, {i32(9), f32(1), i32(4), f32(0.5f)}, {{"num_captures", 2}}, counting_loop());
  EXPECT_EQ(numbers(r[0]), (Numbers{9}));
  EXPECT_EQ(numbers(r[1]), (Numbers{1}));
}

TEST(WhileTest, LoopsNest) {
  // while (i < 3) { x = inner loop of 4 steps from 0; i++ }
  Builder c("cond");
  ValueId i = c.param(kI32);
  c.param(kF32);
  GraphPtr cond = c.finish({c.one(kCompare, {i, c.constant(i32(3))}, compare("LT"))});
  Builder b("body");
  i = b.param(kI32);
  ValueId x = b.param(kF32);
  ValueIds inner = b.op(kWhile, {b.constant(i32(0)), x, b.constant(i32(4)), b.constant(f32(2))},
                        {{"num_captures", 2}}, counting_loop());
  ValueId one = b.constant(i32(1));
  GraphPtr body = b.finish({b.one(kAdd, {i, one}), inner[1]});
  auto r = eval_op(kWhile, {i32(0), f32(0)}, {}, {cond, body});
  EXPECT_EQ(numbers(r[1]), (Numbers{24}));
}

TEST(IfTest, TakesOneBranchWithItsCaptures) {
  GraphPtr first = passing_body({kF32, kF32}, {0}), second = passing_body({kF32, kF32}, {1});
  HostArray yes = bools({1}).reshape({}), no = bools({0}).reshape({});
  EXPECT_EQ(numbers(eval_one(kIf, {yes, f32(1), f32(2)}, {}, {first, second})), (Numbers{1}));
  EXPECT_EQ(numbers(eval_one(kIf, {no, f32(1), f32(2)}, {}, {first, second})), (Numbers{2}));
}

TEST(CaseTest, AnIndexOutOfRangeTakesTheLastBranch) {
  std::vector<GraphPtr> branches;
  for (int i = 0; i < 3; ++i) branches.push_back(passing_body({kF32, kF32, kF32}, {i}));
  auto take = [&](int i) {
    return numbers(eval_one(kCase, {i32(i), f32(10), f32(11), f32(12)}, {}, branches))[0];
  };
  EXPECT_EQ(take(0), 10);
  EXPECT_EQ(take(1), 11);
  EXPECT_EQ(take(3), 12);
  EXPECT_EQ(take(-1), 12);
}

TEST(AfterAllTest, JoinsTokens) {
  Builder b("tokens");
  ValueId t = b.one(kAfterAll, {});
  t = b.one(kAfterAll, {t, t});
  EXPECT_TRUE(b.type(t).is_token());
}

// sort -------------------------------------------------------------------------------------------

TEST(SortTest, IsStableAndMovesAllInputsTogether) {
  Builder b("comparator");
  ValueId x = b.param(kI32), y = b.param(kI32);
  b.param(kI32);
  b.param(kI32);
  GraphPtr less = b.finish({b.one(kCompare, {x, y}, compare("LT"))});
  HostArray keys = vec<std::int32_t>({3, 1, 3, 1, 2}), values = vec<std::int32_t>({0, 1, 2, 3, 4});
  auto r = eval_op(kSort, {keys, values}, {{"dimension", 0}, {"is_stable", true}}, {less});
  EXPECT_EQ(numbers(r[0]), (Numbers{1, 1, 2, 3, 3}));
  EXPECT_EQ(numbers(r[1]), (Numbers{1, 3, 4, 0, 2}));
}

TEST(SortTest, SortsAlongAnyDimensionByACapturedDirection) {
  Builder b("comparator");
  ValueId x = b.param(kF32), y = b.param(kF32), sign = b.param(kF32);
  GraphPtr less = b.finish(
      {b.one(kCompare, {b.one(kMultiply, {x, sign}), b.one(kMultiply, {y, sign})}, compare("LT"))});
  HostArray a = array<float>({3, 1, 2, 5, 0, 4}, {3, 2});
  auto sorted = [&](int dimension, float s) {
    return numbers(
        eval_one(kSort, {a, f32(s)}, {{"dimension", dimension}, {"num_captures", 1}}, {less}));
  };
  EXPECT_EQ(sorted(0, 1), (Numbers{0, 1, 2, 4, 3, 5}));
  EXPECT_EQ(sorted(-1, 1), (Numbers{1, 3, 2, 5, 0, 4}));
  EXPECT_EQ(sorted(0, -1), (Numbers{3, 5, 2, 4, 0, 1}));
}

TEST(SortTest, AnInconsistentComparatorStaysInBounds) {
  Builder b("always");
  b.param(kI32);
  b.param(kI32);
  GraphPtr always = b.finish({b.constant(bools({1}).reshape({}))});
  EXPECT_EQ(eval_one(kSort, {vec<std::int32_t>({1, 2, 3, 4, 5, 6, 7})}, {}, {always}).size(), 7);
}

TEST(TopKTest, TiesGoByLowerIndexAndNanIsLargest) {
  auto r = eval_op(kTopK, {array<float>({1, 3, 3, 2, NAN, -0.0f, 0.0f, -1}, {2, 4})}, {{"k", 3}});
  EXPECT_EQ(numbers(r[1]), (Numbers{1, 2, 3, 0, 2, 1}));
  EXPECT_TRUE(std::isnan(r[0].at(3)));
  EXPECT_EQ(numbers(eval_op(kTopK, {vec<std::uint8_t>({1, 255, 7})}, {{"k", 2}})[0]),
            (Numbers{255, 7}));
}

// scan and calls ---------------------------------------------------------------------------------

// (k, c, x) -> (c + x, c * k)
GraphPtr scan_body() {
  Builder b("body");
  ValueId k = b.param(kF32), c = b.param(kF32), x = b.param(kF32);
  return b.finish({b.one(kAdd, {c, x}), b.one(kMultiply, {c, k})});
}

TEST(ScanTest, GoesForwardAndInReverse) {
  Attrs a{{"length", 3}, {"num_consts", 1}, {"num_carry", 1}};
  std::vector<HostArray> args{f32(10), f32(1), vec<float>({1, 2, 4})};
  auto r = eval_op(kScan, args, a, {scan_body()});
  EXPECT_EQ(numbers(r[0]), (Numbers{8}));
  EXPECT_EQ(numbers(r[1]), (Numbers{10, 20, 40}));
  a.set("reverse", true);
  r = eval_op(kScan, args, a, {scan_body()});
  EXPECT_EQ(numbers(r[0]), (Numbers{8}));
  EXPECT_EQ(numbers(r[1]), (Numbers{70, 50, 10}));
}

TEST(ScanTest, SlicesAndStacksArraysOfAnyRank) {
  Builder b("body");
  ValueId x = b.param(Type::tensor(DType::kF32, {2}));
  GraphPtr body = b.finish({b.one(kNegate, {x})});
  auto r = eval_op(kScan, {array<float>({1, 2, 3, 4, 5, 6}, {3, 2})},
                   {{"length", 3}, {"num_consts", 0}, {"num_carry", 0}}, {body});
  EXPECT_EQ(r[0].dims(), (Dims{3, 2}));
  EXPECT_EQ(numbers(r[0]), (Numbers{-1, -2, -3, -4, -5, -6}));
}

TEST(ScanTest, NoStepsGiveTheInitialCarryAndEmptyStacks) {
  auto r = eval_op(kScan, {f32(10), f32(1), HostArray(DType::kF32, {0})},
                   {{"length", 0}, {"num_consts", 1}, {"num_carry", 1}}, {scan_body()});
  EXPECT_EQ(numbers(r[0]), (Numbers{1}));
  EXPECT_EQ(r[1].dims(), (Dims{0}));
}

TEST(CallTest, CallRematAndCustomRulesRunTheirPrimal) {
  GraphPtr add = binary_body(kAdd, DType::kF32);
  std::vector<HostArray> args{f32(1), f32(2)};
  EXPECT_EQ(numbers(eval_one(kCall, args, {{"name", "f"}}, {add})), (Numbers{3}));
  EXPECT_EQ(numbers(eval_one(kRemat, args, {{"policy", "everything"}}, {add})), (Numbers{3}));
  // jvp: (x, y, dx, dy) -> (out, dout)
  GraphPtr jvp = passing_body({kF32, kF32, kF32, kF32}, {0, 2});
  EXPECT_EQ(numbers(eval_one(kCustomJvp, args, {}, {add, jvp})), (Numbers{3}));
  // One constant: (x, y, dy) -> …
  jvp = passing_body({kF32, kF32, kF32}, {0, 2});
  EXPECT_EQ(numbers(eval_one(kCustomJvp, args, {{"num_consts", 1}}, {add, jvp})), (Numbers{3}));
  // vjp: forward (x, y) -> (out, residual), backward (residual, ct) -> (ct_x, ct_y)
  GraphPtr fwd = passing_body({kF32, kF32}, {0, 1}), bwd = passing_body({kF32, kF32}, {1, 1});
  EXPECT_EQ(numbers(eval_one(kCustomVjp, args, {}, {add, fwd, bwd})), (Numbers{3}));
}

TEST(CallTest, IntegersHaveNoTangents) {
  GraphPtr f = passing_body({kI32, kF32}, {0, 1});
  GraphPtr jvp = passing_body({kI32, kF32, kF32}, {0, 1, 2});
  auto r = eval_op(kCustomJvp, {i32(1), f32(2)}, {}, {f, jvp});
  EXPECT_EQ(numbers(r[0]), (Numbers{1}));
}

TEST(CallTest, IdentitiesGiveTheirOperand) {
  HostArray x = vec<float>({1, 2});
  EXPECT_TRUE(eval_one(kStopGradient, {x}).bit_equal(x));
  EXPECT_TRUE(eval_one(kCheckpointName, {x}, {{"name", "block"}}).bit_equal(x));
}

// cumulative and arg -----------------------------------------------------------------------------

TEST(CumulativeTest, RunsAlongTheDimensionInEitherDirection) {
  HostArray x = array<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  auto run = [&](const OpDef& op, int dimension, bool reverse) {
    return numbers(eval_one(op, {x}, {{"dimension", dimension}, {"reverse", reverse}}));
  };
  EXPECT_EQ(run(kCumsum, 1, false), (Numbers{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(run(kCumsum, 0, true), (Numbers{5, 7, 9, 4, 5, 6}));
  EXPECT_EQ(run(kCumprod, 1, true), (Numbers{6, 6, 3, 120, 30, 6}));
  EXPECT_EQ(run(kCummin, 1, true), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run(kCummax, 0, false), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers(eval_one(kCumsum, {vec<std::int8_t>({100, 100})}, {{"dimension", 0}})),
            (Numbers{100, -56}));
  EXPECT_EQ(eval_one(kCumsum, {HostArray(DType::kF32, {0, 2})}, {{"dimension", 0}}).size(), 0);
}

TEST(ReduceTest, ExtremesKnowNanAndTheSignOfZeroInEveryFloat) {
  for (DType t : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64, DType::kF8E5M2}) {
    HostArray zeros = array<float>({0.0f, -0.0f, 0.0f}, {3}).astype(t);
    HostArray nan = array<float>({1, NAN, 3}, {3}).astype(t);
    for (auto [op, init] : {std::pair(&kMinimum, 1.0), std::pair(&kMaximum, -1.0)}) {
      Builder body("body");
      ValueId a = body.param(Type::tensor(t)), b = body.param(Type::tensor(t));
      GraphPtr g = body.finish({body.one(*op, {a, b})});
      HostArray start = HostArray::scalar(init).astype(t);
      auto run = [&](const HostArray& x) {
        return testing::eval_op(kReduce, {x, start}, {{"dimensions", Dims{0}}}, {g})[0].at(0);
      };
      EXPECT_EQ(std::signbit(run(zeros)), op == &kMinimum) << dtype_name(t);
      EXPECT_TRUE(std::isnan(run(nan))) << dtype_name(t);
    }
  }
}

TEST(ArgTest, TheFirstExtremeWinsAndNanWinsOverAll) {
  Attrs a{{"dimension", 1}, {"index_dtype", DType::kI32}};
  HostArray x = array<float>({1, 3, 3, 0, NAN, NAN, -0.0f, 0.0f, -1}, {3, 3});
  EXPECT_EQ(numbers(eval_one(kArgmax, {x}, a)), (Numbers{1, 1, 0}));
  EXPECT_EQ(numbers(eval_one(kArgmin, {x}, a)), (Numbers{0, 1, 2}));
  a.set("dimension", 0);
  EXPECT_EQ(numbers(eval_one(kArgmax, {array<std::int32_t>({1, 5, 2, 5}, {2, 2})}, a)),
            (Numbers{1, 0}));
}

}  // namespace
}  // namespace xylem::ir::ops
