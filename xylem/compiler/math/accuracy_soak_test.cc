// Every single-precision argument of every elementary function of one operand.

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "xylem/compiler/math/testing/measure.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {
namespace {

using AccuracySoak = ::testing::TestWithParam<const ir::OpDef*>;

TEST_P(AccuracySoak, EverySingle) {
  const ir::OpDef& def = *GetParam();
  Error error = measure_f32_scan(def, 0, 1);
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
