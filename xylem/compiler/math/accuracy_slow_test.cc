// The accuracy of compiled elementary functions on many points: sampled scans of all singles, every
// half, and many doubles. The seed changes from run to run and is printed.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "xylem/compiler/math/testing/measure.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {
namespace {

// XYLEM_TEST_SEED repeats a run.
std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* text = std::getenv("XYLEM_TEST_SEED");
    return text ? std::strtoull(text, nullptr, 10) : std::uint64_t{std::random_device{}()};
  }();
  return value;
}

void expect_within_bound(const ir::OpDef& def, const Error& error, const char* what) {
  EXPECT_LE(error.max_ulp, def.max_ulp)
      << def.name << " " << what << ": " << error.to_string() << "; XYLEM_TEST_SEED=" << seed();
  std::cout << def.name << " " << what << ": " << error.to_string() << "\n";
}

std::string short_name(const ::testing::TestParamInfo<const ir::OpDef*>& row) {
  std::string name(row.param->name);
  return name.substr(name.find('.') + 1);
}

using AccuracyOfOneOperand = ::testing::TestWithParam<const ir::OpDef*>;

TEST_P(AccuracyOfOneOperand, SinglesInStepsStayWithinTheBound) {
  expect_within_bound(*GetParam(), measure_f32_scan(*GetParam(), seed() % 257, 257), "f32");
}

TEST_P(AccuracyOfOneOperand, EveryHalfStaysWithinTheBound) {
  for (DType dtype : {DType::kF16, DType::kBF16})
    expect_within_bound(*GetParam(), measure_all_16_bit(*GetParam(), dtype), dtype_name(dtype));
}

INSTANTIATE_TEST_SUITE_P(Ops, AccuracyOfOneOperand, ::testing::ValuesIn(ops_with_f32_scan()),
                         short_name);

using AccuracyOfDoubles = ::testing::TestWithParam<const ir::OpDef*>;

TEST_P(AccuracyOfDoubles, RandomArgumentsStayWithinTheBound) {
  if (num_operands(*GetParam()) == 2)
    expect_within_bound(*GetParam(), measure_random(*GetParam(), DType::kF32, 200000, seed()),
                        "f32");
  expect_within_bound(*GetParam(), measure_random(*GetParam(), DType::kF64, 200000, seed()), "f64");
}

INSTANTIATE_TEST_SUITE_P(Ops, AccuracyOfDoubles, ::testing::ValuesIn(ops_with_reference()),
                         short_name);

}  // namespace
}  // namespace xylem::compiler::testing
