// Single-precision arguments over the whole range for every elementary function of one operand:
// every 16th from a random start, or one in XYLEM_F32_STRIDE (1 takes them all: hours).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "xylem/compiler/math/testing/measure.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {
namespace {

using AccuracySoak = ::testing::TestWithParam<const ir::OpDef*>;

TEST_P(AccuracySoak, SinglesOfTheWholeRange) {
  const ir::OpDef& def = *GetParam();
  const char* chosen = std::getenv("XYLEM_F32_STRIDE");
  const std::uint64_t stride =
      chosen ? std::max<std::uint64_t>(1, std::strtoull(chosen, nullptr, 10)) : 16;
  const std::uint64_t first = std::random_device()() % stride;
  std::cout << "every " << stride << "th single from bits " << first << "\n";
  Error error = measure_f32_scan(def, first, stride);
  std::cout << def.name << ": " << error.to_string() << "\n";
  EXPECT_LE(error.max_ulp, def.max_ulp) << def.name;
}

INSTANTIATE_TEST_SUITE_P(Ops, AccuracySoak, ::testing::ValuesIn(ops_with_f32_scan()),
                         [](const auto& row) {
                           std::string name(row.param->name);
                           return name.substr(name.find('.') + 1);
                         });

}  // namespace
}  // namespace xylem::compiler::testing
