// Expansions of complex elementary functions against their reference evaluations.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "xylem/compiler/math/expand.h"
#include "xylem/compiler/math/testing/measure.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace ops = ir::ops;

ir::GraphPtr one_op(const ir::OpDef& def, DType dtype, std::int64_t n) {
  ir::Builder b("f");
  ir::ValueIds ids;
  for (int i = 0; i < def.min_operands; ++i) ids.push_back(b.param(ir::Type::tensor(dtype, {n})));
  return b.finish({b.one(def, std::span<const ir::ValueId>(ids.data(), ids.size()))});
}

struct Row {
  const ir::OpDef* op;
  // |error| / |f(z)| in units of the part type's epsilon; more where a pole or a large exponent is
  // near.
  double tolerance = 4;
  double limit = 30;  // of the parts of random arguments
  double least = 0;   // of their magnitudes
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.op->name; }

template <class T>
std::vector<std::complex<T>> arguments(const Row& row, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  auto part = [&]() -> T {
    const double u = static_cast<double>(rng() >> 11) * 0x1p-53;
    double v = 0;
    switch (rng() % 4) {
      case 0: v = u * 2; break;
      case 1: v = std::ldexp(1 + u, -static_cast<int>(rng() % 20)); break;
      case 2: v = u * row.limit; break;
      default: v = std::floor(u * 5) * 0.5;
    }
    v += row.least;
    return static_cast<T>(rng() % 2 ? v : -v);
  };
  std::vector<std::complex<T>> z;
  for (int i = 0; i < 4000; ++i) z.emplace_back(part(), part());
  return z;
}

template <class T>
void expect_close(const Row& row) {
  std::vector<HostArray> args;
  for (int k = 0; k < row.op->min_operands; ++k) {
    auto z = arguments<T>(row, static_cast<std::uint64_t>(k + 1));
    args.push_back(HostArray::from(z, {static_cast<std::int64_t>(z.size())}));
  }
  ir::GraphPtr graph = one_op(*row.op, args[0].dtype(), args[0].size());
  ir::GraphPtr expanded = expand_math(*graph);
  HostArray want = ir::evaluate(*graph, args)[0], got = ir::evaluate(*expanded, args)[0];
  double worst = 0;
  int failures = 0;
  for (std::int64_t i = 0; i < want.size() && failures < 5; ++i) {
    const std::complex<double> w(want.as<std::complex<T>>()[i]), g(got.as<std::complex<T>>()[i]);
    if (std::isnan(w.real()) || std::isnan(w.imag()) || std::isinf(std::abs(w))) continue;
    const double scale = std::abs(w) * static_cast<double>(std::numeric_limits<T>::epsilon()) +
                         static_cast<double>(std::numeric_limits<T>::denorm_min());
    const double error = std::abs(g - w) / scale;
    worst = std::max(worst, error);
    if (error <= row.tolerance) continue;
    ++failures;
    ADD_FAILURE() << row.op->name << " of " << args[0].as<std::complex<T>>()[i]
                  << (args.size() > 1 ? " and " + args[1].reshape({args[1].size()}).type_string()
                                      : "")
                  << ": " << g << ", reference " << w << ", " << error;
  }
  ::testing::Test::RecordProperty("worst", std::to_string(worst));
}

// Generated code against the interpreted expansion, bit for bit but for NaN.
template <class T>
void expect_compiled_equal(const Row& row) {
  std::vector<HostArray> arrays;
  constexpr std::int64_t kN = 1024;
  for (int k = 0; k < row.op->min_operands; ++k) {
    auto z = arguments<T>(row, static_cast<std::uint64_t>(k + 1));
    z.resize(kN);
    arrays.push_back(HostArray::from(z, {kN}));
  }
  arrays.push_back(HostArray::zeros(arrays[0].dtype(), {kN}));
  std::vector<HostArray> interpreted = arrays;
  interpreted.back() = HostArray::zeros(arrays[0].dtype(), {kN});
  const compiler::testing::CompiledOp op(*row.op, arrays[0].dtype(), kN);
  op.run(arrays);
  ir::run_kernel(op.kernel(), interpreted);
  const T *want = reinterpret_cast<const T*>(interpreted.back().data()),
          *got = reinterpret_cast<const T*>(arrays.back().data());
  for (std::int64_t i = 0; i < 2 * kN; ++i)
    ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : want[i] == got[i])
        << row.op->name << " element " << i / 2 << ": " << got[i] << ", interpreted " << want[i];
}

using ComplexMath = ::testing::TestWithParam<Row>;

TEST_P(ComplexMath, CompiledCodeEqualsTheInterpretedExpansion) {
  expect_compiled_equal<float>(GetParam());
  expect_compiled_equal<double>(GetParam());
}

TEST_P(ComplexMath, AgreesWithTheReferenceInSingle) { expect_close<float>(GetParam()); }
TEST_P(ComplexMath, AgreesWithTheReferenceInDouble) { expect_close<double>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Ops, ComplexMath,
    ::testing::Values(Row{&ops::kExponential}, Row{&ops::kExponentialMinusOne}, Row{&ops::kLog},
                      Row{&ops::kLogPlusOne}, Row{&ops::kLogistic, 64}, Row{&ops::kSqrt},
                      Row{&ops::kRsqrt}, Row{&ops::kCbrt}, Row{&ops::kSine}, Row{&ops::kCosine},
                      Row{&ops::kTan}, Row{&ops::kTanh}, Row{&ops::kSinh}, Row{&ops::kCosh},
                      Row{&ops::kAsin}, Row{&ops::kAcos}, Row{&ops::kAtan}, Row{&ops::kAsinh},
                      Row{&ops::kAcosh}, Row{&ops::kAtanh}, Row{&ops::kPower, 64, 3},
                      Row{&ops::kAtan2, 1024, 30, 0.01}),
    [](const auto& row) {
      std::string name(row.param.op->name);
      return name.substr(name.find('.') + 1);
    });

// What C demands of infinities and zeros.
TEST(ComplexMath, SpecialValuesFollowC) {
  using Complex = std::complex<double>;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Complex z[] = {{0, 0},      {-0.0, 0},  {0, -0.0},      {kInf, 0},
                       {-kInf, 0},  {-kInf, 1}, {kInf, -1},     {1, kInf},
                       {-1, -kInf}, {-1, 0},    {-1, -0.0},     {1, 0},
                       {710, 0.5},  {-745, 1},  {1e300, 1e300}, {1e-310, 1e-310}};
  for (const ir::OpDef* def :
       {&ops::kExponential, &ops::kLog, &ops::kSqrt, &ops::kTanh, &ops::kCosine, &ops::kSine}) {
    HostArray arg =
        HostArray::from(std::vector<Complex>(std::begin(z), std::end(z)), {std::ssize(z)});
    ir::GraphPtr graph = one_op(*def, DType::kC128, std::ssize(z));
    HostArray want = ir::evaluate(*graph, {{arg}})[0],
              got = ir::evaluate(*expand_math(*graph), {{arg}})[0];
    for (std::size_t i = 0; i < std::size(z); ++i) {
      const Complex w = want.as<Complex>()[i], g = got.as<Complex>()[i];
      for (auto part : {+[](Complex c) { return c.real(); }, +[](Complex c) { return c.imag(); }}) {
        const double a = part(w), b = part(g);
        const bool same = std::isnan(a) ? std::isnan(b)
                                        : a == b || std::abs(a - b) <= 4e-16 * std::abs(w) + 1e-320;
        EXPECT_TRUE(same) << def->name << z[i] << ": " << g << ", reference " << w;
        // The sign of a zero beside NaN is not specified.
        EXPECT_TRUE(a != 0 || b != 0 || std::isnan(w.real()) || std::isnan(w.imag()) ||
                    std::signbit(a) == std::signbit(b))
            << def->name << z[i];
      }
    }
  }
}

}  // namespace
}  // namespace xylem::compiler
