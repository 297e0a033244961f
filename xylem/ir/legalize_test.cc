#include "xylem/ir/legalize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "xylem/base/error.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/testing/op_call.h"
#include "xylem/ir/verify.h"

// Every decomposition is held against the reference evaluation of the op itself.

namespace xylem::ir {
namespace {

using testing::array;
using testing::vec;

bool has_xylem_op(const Graph& g) {
  for (const Op& op : g.ops) {
    if (op.def->is(kXylem)) return true;
    for (const GraphPtr& r : op.regions)
      if (has_xylem_op(*r)) return true;
  }
  return false;
}

void expect_same_value(const OpDef& def, const std::vector<HostArray>& args, Attrs attrs = {},
                       std::vector<GraphPtr> regions = {}) {
  Builder b("test");
  std::vector<ValueId> params;
  for (const HostArray& a : args) params.push_back(b.param(Type::tensor(a.dtype(), a.dims())));
  ValueIds results = b.op(def, params, std::move(attrs), std::move(regions));
  GraphPtr g = b.finish({results.begin(), results.end()});
  GraphPtr legal = legalize(g);
  EXPECT_FALSE(has_xylem_op(*legal)) << legal->to_string();
  verify_or_throw(*legal);
  EXPECT_EQ(legal->result_types(), g->result_types());
  std::vector<HostArray> want = evaluate(*g, args), got = evaluate(*legal, args);
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].type_string(), want[i].type_string());
    for (std::int64_t k = 0; k < want[i].size(); ++k) {
      double w = want[i].at(k), h = got[i].at(k);
      EXPECT_TRUE(w == h || (std::isnan(w) && std::isnan(h)))
          << def.name << " result " << i << "[" << k << "]: " << h << " instead of " << w;
    }
  }
}

TEST(LegalizeTest, EveryXylemOpHasADecompositionOrIsKnownToRefuse) {
  for (const OpDef* op : op_table()) {
    if (op->is(kXylem) && op->expand == nullptr) {
      EXPECT_TRUE(op->name == "xylem.custom_linear" || op->name == "xylem.foreign" ||
                  op->name == "xylem.check" || op->find_attr("function") ||
                  op->find_attr("axis_name"))
          << op->name;
    }
  }
}

TEST(LegalizeTest, AGraphWithoutXylemOpsComesBackItself) {
  Builder b("plain");
  ValueId x = b.param(Type::tensor(DType::kF32, {2}));
  GraphPtr g = b.finish({b.one(ops::kNegate, {x})});
  EXPECT_EQ(legalize(g), g);
}

TEST(LegalizeTest, CumulativeOpsBecomeWindows) {
  HostArray x = array<float>({1, 5, -3, 4, 2, -6}, {2, 3});
  for (const OpDef* op : {&ops::kCumsum, &ops::kCumprod, &ops::kCummax, &ops::kCummin})
    for (int dimension : {0, 1})
      for (bool reverse : {false, true})
        for (DType t : {DType::kF32, DType::kF64, DType::kI8, DType::kU16})
          expect_same_value(*op, {x.astype(t)}, {{"dimension", dimension}, {"reverse", reverse}});
  expect_same_value(ops::kCumsum, {HostArray(DType::kF32, {0})}, {{"dimension", 0}});
}

TEST(LegalizeTest, ArgOpsBecomeReductionsOfPairs) {
  HostArray x = array<float>(
      {1, 3, 3, NAN, NAN, 0, -0.0f, 0.0f, -1, -INFINITY, -INFINITY, -INFINITY}, {4, 3});
  for (const OpDef* op : {&ops::kArgmax, &ops::kArgmin})
    for (int dimension : {0, 1}) {
      expect_same_value(*op, {x}, {{"dimension", dimension}, {"index_dtype", DType::kI32}});
      expect_same_value(*op, {x.astype(DType::kI32)},
                        {{"dimension", dimension}, {"index_dtype", DType::kI64}});
      expect_same_value(*op, {x.astype(DType::kBool)},
                        {{"dimension", dimension}, {"index_dtype", DType::kI32}});
    }
}

// (k, c, x) -> (c + x, cumsum(c * k * x))
GraphPtr scan_body() {
  Type t = Type::tensor(DType::kF32, {2});
  Builder b("body");
  ValueId k = b.param(Type::tensor(DType::kF32, {2})), c = b.param(t), x = b.param(t);
  ValueId y = b.one(ops::kMultiply, {b.one(ops::kMultiply, {c, k}), x});
  return b.finish({b.one(ops::kAdd, {c, x}), b.one(ops::kCumsum, {y}, {{"dimension", 0}})});
}

TEST(LegalizeTest, ScansBecomeLoops) {
  std::vector<HostArray> args{vec<float>({2, 3}), vec<float>({1, -1}),
                              array<float>({1, 2, 3, 4, 5, 6}, {3, 2})};
  for (bool reverse : {false, true}) {
    Attrs a{{"length", 3}, {"num_consts", 1}, {"num_carry", 1}, {"reverse", reverse}};
    expect_same_value(ops::kScan, args, a, {scan_body()});
  }
  args[2] = HostArray(DType::kF32, {0, 2});
  expect_same_value(ops::kScan, args, {{"length", 0}, {"num_consts", 1}, {"num_carry", 1}},
                    {scan_body()});
}

TEST(LegalizeTest, CallsAreInlinedAndIdentitiesVanish) {
  GraphPtr add = testing::binary_body(ops::kAdd, DType::kF32);
  std::vector<HostArray> args{HostArray::scalar(1.0f), HostArray::scalar(2.0f)};
  expect_same_value(ops::kCall, args, {}, {add});
  expect_same_value(ops::kRemat, args, {{"prevent_cse", true}}, {add});
  Type f = Type::tensor(DType::kF32);
  expect_same_value(ops::kCustomJvp, args, {}, {add, testing::passing_body({f, f, f, f}, {0, 2})});
  expect_same_value(
      ops::kCustomVjp, args, {},
      {add, testing::passing_body({f, f}, {0, 1}), testing::passing_body({f, f}, {1, 1})});
  expect_same_value(ops::kStopGradient, {args[0]});
  expect_same_value(ops::kCheckpointName, {args[0]}, {{"name", "x"}});
}

TEST(LegalizeTest, NextAfterIsMadeOfBitOperations) {
  const float values[] = {0, -0.0f, 1, -1, 1e-45f, -1e-45f, 3e38f, INFINITY, -INFINITY, NAN};
  std::vector<float> xs, ys;
  for (float x : values)
    for (float y : values) xs.push_back(x), ys.push_back(y);
  auto n = static_cast<std::int64_t>(xs.size());
  HostArray x = HostArray::from(xs, {n}), y = HostArray::from(ys, {n});
  for (DType t : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    std::vector<HostArray> args{x.astype(t), y.astype(t)};
    Builder b("test");
    ValueId p = b.param(Type::tensor(t, {n})), q = b.param(Type::tensor(t, {n}));
    GraphPtr g = b.finish({b.one(ops::kNextAfter, {p, q})});
    GraphPtr basic = decompose(g, [](const OpDef& def) { return &def == &ops::kNextAfter; });
    EXPECT_GT(basic->ops.size(), 1u);
    HostArray want = evaluate(*g, args)[0], got = evaluate(*basic, args)[0];
    for (std::int64_t i = 0; i < n; ++i) {
      double w = want.at(i), h = got.at(i);
      EXPECT_TRUE((std::isnan(w) && std::isnan(h)) ||
                  (w == h && std::signbit(w) == std::signbit(h)))
          << dtype_name(t) << " " << xs[static_cast<std::size_t>(i)] << " "
          << ys[static_cast<std::size_t>(i)] << ": " << h << " instead of " << w;
      if (t == DType::kF32 && !std::isnan(w)) {
        EXPECT_EQ(w,
                  std::nextafter(xs[static_cast<std::size_t>(i)], ys[static_cast<std::size_t>(i)]));
      }
    }
  }
}

TEST(LegalizeTest, RegionsOfOrdinaryOpsAreLegalisedToo) {
  Builder inner("branch");
  ValueId x = inner.param(Type::tensor(DType::kF32, {3}));
  GraphPtr branch = inner.finish({inner.one(ops::kCumsum, {x}, {{"dimension", 0}})});
  HostArray yes = testing::bools({1}).reshape({});
  expect_same_value(ops::kIf, {yes, vec<float>({1, 2, 3})}, {}, {branch, branch});
}

}  // namespace
}  // namespace xylem::ir
