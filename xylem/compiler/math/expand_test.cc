#include "xylem/compiler/math/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace ops = ir::ops;

// Position of a float among all floats of its type, by bits: neighbours differ by one.
std::int64_t ordinal(std::int64_t bits, int width) {
  const std::int64_t sign = std::int64_t{1} << (width - 1);
  return bits & sign ? -(bits & (sign - 1)) : bits;
}

std::int64_t bits_at(const HostArray& a, std::int64_t i) {
  const int bytes = dtype_bytes(a.dtype());
  std::int64_t bits = 0;
  std::memcpy(&bits, a.data() + i * bytes, static_cast<std::size_t>(bytes));
  return bits;
}

ir::GraphPtr one_op(const ir::OpDef& def, DType dtype, std::int64_t n, int operands) {
  ir::Builder b("f");
  ir::ValueIds ids;
  for (int i = 0; i < operands; ++i) ids.push_back(b.param(ir::Type::tensor(dtype, {n})));
  return b.finish({b.one(def, std::span<const ir::ValueId>(ids.data(), ids.size()))});
}

// Expands the op and holds it against its reference evaluation: NaN where it is NaN, the same sign
// of zero, and at most `max_ulp` floats apart elsewhere.
void expect_close(const ir::OpDef& def, std::vector<HostArray> args, std::int64_t max_ulp) {
  const DType dtype = args[0].dtype();
  const int width = 8 * dtype_bytes(dtype);
  ir::GraphPtr graph = one_op(def, dtype, args[0].size(), static_cast<int>(args.size()));
  ir::GraphPtr expanded = expand_math(*graph);
  for (const ir::Op& op : expanded->ops)
    ASSERT_FALSE(op.def->is(ir::kTranscendental)) << op.def->name;
  HostArray want = ir::evaluate(*graph, args)[0], got = ir::evaluate(*expanded, args)[0];
  int failures = 0;
  for (std::int64_t i = 0; i < want.size() && failures < 5; ++i) {
    const double w = want.at(i), g = got.at(i);
    bool ok = std::isnan(w)
                  ? std::isnan(g)
                  : std::abs(ordinal(bits_at(want, i), width) - ordinal(bits_at(got, i), width)) <=
                            max_ulp &&
                        (w != 0 || g != 0 || std::signbit(w) == std::signbit(g));
    if (ok) continue;
    ++failures;
    ADD_FAILURE() << def.name << " " << dtype_name(dtype) << " at " << args[0].at(i)
                  << (args.size() > 1 ? ", " + std::to_string(args[1].at(i)) : "") << ": " << g
                  << ", reference " << w;
  }
}

// Every bit pattern of 16 bits, as floats of this type.
HostArray all_16_bit(DType dtype) {
  std::vector<std::uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return HostArray::from_bytes(dtype, {1 << 16}, std::as_bytes(std::span(bits)));
}

// f32: all exponents and signs with significands in steps, and the neighbours of special points.
HostArray spread_f32() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += (1 << 16) + 77) {
    std::uint32_t b = static_cast<std::uint32_t>(bits);
    float f;
    std::memcpy(&f, &b, 4);
    x.push_back(f);
  }
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (float c : {0.f, 1e-45f, 1.17549435e-38f, 0.25f, 0.5f, 0.55f, 1.f, 2.f, 3.f, 10.f, 88.72284f,
                  89.f, 103.97208f, 104.f, 1e5f, 16777216.f, 2147483648.f, 3.4028235e38f, kInf})
    for (float v : {std::nextafter(c, -kInf), c, std::nextafter(c, kInf)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  return HostArray::from(x, {static_cast<std::int64_t>(x.size())});
}

// f64: random bits, numbers near 1, and the neighbours of special points.
HostArray spread_f64() {
  std::vector<double> x;
  std::mt19937_64 rng(7);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t b = rng();
    double d;
    std::memcpy(&d, &b, 8);
    x.push_back(d);
    x.push_back(std::ldexp(d / std::ldexp(1, std::ilogb(d)), static_cast<int>(b % 40) - 30));
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (double c : {0.,
                   5e-324,
                   2.2250738585072014e-308,
                   0.25,
                   0.5,
                   0.55,
                   0.75,
                   1.,
                   1.5,
                   2.,
                   3.,
                   10.,
                   6.5,
                   27.3,
                   709.782712893384,
                   710.4758600739439,
                   745.1332191019411,
                   746.,
                   1e8,
                   4503599627370496.,
                   9007199254740992.,
                   1.7976931348623157e308,
                   kInf})
    for (double v : {std::nextafter(c, -kInf), c, std::nextafter(c, kInf)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  // The double closest to a multiple of pi/2.
  x.push_back(std::ldexp(6381956970095103., 797));
  x.push_back(std::numeric_limits<double>::quiet_NaN());
  return HostArray::from(x, {static_cast<std::int64_t>(x.size())});
}

struct Row {
  const ir::OpDef* op;
  std::int64_t max_ulp = 1;  // of f32
  std::int64_t max_ulp_f64 = 1;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.op->name; }

class UnaryMath : public testing::TestWithParam<Row> {};

TEST_P(UnaryMath, EveryHalfIsWithinOneUlp) {
  expect_close(*GetParam().op, {all_16_bit(DType::kF16)}, 1);
  expect_close(*GetParam().op, {all_16_bit(DType::kBF16)}, 1);
}

TEST_P(UnaryMath, SinglesOfAllMagnitudesAreClose) {
  expect_close(*GetParam().op, {spread_f32()}, GetParam().max_ulp);
}

TEST_P(UnaryMath, DoublesOfAllMagnitudesAreClose) {
  expect_close(*GetParam().op, {spread_f64()}, GetParam().max_ulp_f64);
}

INSTANTIATE_TEST_SUITE_P(Ops, UnaryMath,
                         testing::Values(Row{&ops::kExponential}, Row{&ops::kExponentialMinusOne},
                                         Row{&ops::kLog}, Row{&ops::kLogPlusOne},
                                         Row{&ops::kLogistic, 1, 2}, Row{&ops::kTanh},
                                         Row{&ops::kErf}, Row{&ops::kErfc, 1, 2},
                                         Row{&ops::kErfInv, 4, 2}, Row{&ops::kSine},
                                         Row{&ops::kCosine}, Row{&ops::kTan}, Row{&ops::kRsqrt},
                                         Row{&ops::kCbrt}, Row{&ops::kSinh}, Row{&ops::kCosh},
                                         Row{&ops::kAsinh}, Row{&ops::kAcosh}, Row{&ops::kAtanh},
                                         Row{&ops::kAsin}, Row{&ops::kAcos}, Row{&ops::kAtan}),
                         [](const auto& row) {
                           std::string name(row.param.op->name);
                           return name.substr(name.find('.') + 1);
                         });

// Pairs of special values of either sign, and random ones.
template <class T>
std::vector<HostArray> pairs(T low, T high) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const std::vector<T> special = {0,
                                  std::numeric_limits<T>::denorm_min(),
                                  std::numeric_limits<T>::min(),
                                  T(0.5),
                                  1,
                                  T(1.5),
                                  2,
                                  T(2.5),
                                  3,
                                  7,
                                  100,
                                  127,
                                  T(128.5),
                                  T(1e6),
                                  16777216,
                                  T(1e7),
                                  std::numeric_limits<T>::max(),
                                  kInf,
                                  std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> x, y;
  for (T a : special)
    for (T b : special)
      for (T sa : {a, -a})
        for (T sb : {b, -b}) {
          x.push_back(sa);
          y.push_back(sb);
        }
  std::mt19937_64 rng(1);
  std::uniform_real_distribution<T> first(low, 4), second(-high, high);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(first(rng));
    y.push_back(second(rng));
  }
  const auto n = static_cast<std::int64_t>(x.size());
  return {HostArray::from(x, {n}), HostArray::from(y, {n})};
}

TEST(ExpandMath, PowersFollowC) {
  expect_close(ops::kPower, pairs<float>(0, 40), 1);
  expect_close(ops::kPower, pairs<double>(0, 300), 1);
}

TEST(ExpandMath, AnglesOfVectorsFollowC) {
  expect_close(ops::kAtan2, pairs<float>(-4, 4), 1);
  expect_close(ops::kAtan2, pairs<double>(-4, 4), 1);
}

// Every transcendental op of the table on every dtype that it takes.
TEST(ExpandMath, NoElementaryFunctionIsLeftOut) {
  for (const ir::OpDef* def : ir::op_table()) {
    // Ops with a decomposition are gone before kernels are made.
    if (!def->is(ir::kTranscendental | ir::kPointwise) || def->expand) continue;
    int dtypes = 0;
    for (int i = 0; i < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!is_inexact(dtype)) continue;
      ir::GraphPtr graph;
      try {
        graph = one_op(*def, dtype, 4, def->min_operands);
      } catch (const UserError&) {
        continue;  // the op does not take this type
      }
      ++dtypes;
      const ir::GraphPtr expanded = expand_math(*graph);
      for (const ir::Op& op : expanded->ops)
        EXPECT_FALSE(op.def->is(ir::kTranscendental)) << def->name << " " << dtype_name(dtype);
    }
    EXPECT_GT(dtypes, 0) << def->name;
  }
}

TEST(ExpandMath, RegionsAreExpandedAndOtherOpsStay) {
  ir::Builder region;
  const ir::Type scalar = ir::Type::tensor(DType::kF32);
  ir::ValueId a = region.param(scalar), e = region.param(scalar);
  ir::GraphPtr body = region.finish({region.one(ops::kAdd, {a, region.one(ops::kTanh, {e})})});
  ir::Builder b("sum_of_tanh");
  ir::ValueId x = b.param(ir::Type::tensor(DType::kF32, {4}));
  ir::ValueId sum = b.one(ops::kReduce, {x, b.splat(DType::kF32, {}, 0)},
                          ir::Attrs{{"dimensions", ir::Attr(Dims{0})}}, {body});
  ir::GraphPtr graph = b.finish({sum});
  ir::GraphPtr expanded = expand_math(*graph);
  EXPECT_THAT(expanded->to_string(), testing::Not(testing::HasSubstr("stablehlo.tanh")));
  HostArray arg = HostArray::from(std::vector<float>{0.1f, -0.7f, 2.f, 30.f}, {4});
  EXPECT_NEAR(ir::evaluate(*expanded, {{arg}})[0].at(0), ir::evaluate(*graph, {{arg}})[0].at(0),
              3e-7);
}

TEST(ExpandMath, AnOpWithoutExpansionIsLeftAlone) {
  ir::Builder b;
  ir::ValueId x = b.param(ir::Type::tensor(DType::kF32, {3}));
  ir::Op op;
  op.def = &ops::kAdd;
  std::size_t before = b.graph().ops.size();
  EXPECT_EQ(expand_op(b, op, {{x, x}}), ir::kNoValue);
  EXPECT_EQ(b.graph().ops.size(), before);
}

}  // namespace
}  // namespace xylem::compiler
