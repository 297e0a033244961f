// Compiled elementary functions against MPFR and, bit for bit, against the interpreted expansion.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "xylem/compiler/math/testing/measure.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {
namespace {

class Accuracy : public ::testing::TestWithParam<const ir::OpDef*> {};

// erf_inv of narrow types is defined by a formula that is not accurate near 1.
bool has_bound(const ir::OpDef& def, DType dtype) {
  return &def != &ir::ops::kErfInv || dtype == DType::kF64;
}

TEST_P(Accuracy, RandomArgumentsStayWithinTheBoundOfTheOpTable) {
  const ir::OpDef& def = *GetParam();
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64}) {
    if (!has_bound(def, dtype)) continue;
    Error error = measure_random(def, dtype, 2048, 1);
    EXPECT_LE(error.max_ulp, def.max_ulp)
        << def.name << " " << dtype_name(dtype) << ": " << error.to_string();
  }
}

TEST_P(Accuracy, CompiledCodeEqualsTheInterpretedExpansion) {
  const ir::OpDef& def = *GetParam();
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64}) {
    constexpr std::int64_t kN = 2048;
    const CompiledOp op(def, dtype, kN);
    std::mt19937_64 rng(3);
    std::vector<HostArray> arrays;
    for (int k = 0; k < num_operands(def); ++k) {
      HostArray a(dtype, {kN});
      for (std::size_t i = 0; i < a.nbytes() / 8; ++i) {
        const std::uint64_t bits = rng();
        std::memcpy(a.data() + 8 * i, &bits, 8);
      }
      arrays.push_back(a);
    }
    arrays.push_back(HostArray::zeros(dtype, {kN}));
    std::vector<HostArray> interpreted = arrays;
    interpreted.back() = HostArray::zeros(dtype, {kN});
    op.run(arrays);
    ir::run_kernel(op.kernel(), interpreted);
    for (std::int64_t i = 0; i < kN; ++i) {
      const double want = interpreted.back().at(i), got = arrays.back().at(i);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                   : want == got && std::signbit(want) == std::signbit(got))
          << def.name << " " << dtype_name(dtype) << " at " << arrays[0].at(i) << ": " << got
          << ", interpreted " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Accuracy, ::testing::ValuesIn(ops_with_reference()),
                         [](const auto& row) {
                           std::string name(row.param->name);
                           return name.substr(name.find('.') + 1);
                         });

}  // namespace
}  // namespace xylem::compiler::testing
