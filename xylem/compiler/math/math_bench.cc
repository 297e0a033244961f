// Elements per second of compiled elementary functions on data in the first-level cache, one
// thread.

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "xylem/compiler/math/testing/measure.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::testing {
namespace {

constexpr std::int64_t kN = 2048;

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kBF16};

// Arguments: the op's number in ops_with_reference(), the dtype's in kDTypes. The label names both.
void elementary(benchmark::State& state) {
  const ir::OpDef& def = *ops_with_reference()[static_cast<std::size_t>(state.range(0))];
  const DType dtype = kDTypes[state.range(1)];
  const CompiledOp op(def, dtype, kN);
  std::mt19937_64 rng(1);
  // acosh wants arguments above 1, most inverses ones below.
  const double low = &def == &ir::ops::kAcosh ? 1.1 : 0.1;
  std::uniform_real_distribution<double> uniform(low, low + 0.8);
  std::vector<HostArray> arrays;
  for (int k = 0; k < num_operands(def); ++k) {
    std::vector<double> x(kN);
    for (double& v : x) v = uniform(rng);
    arrays.push_back(HostArray::from(x, {kN}).astype(dtype));
  }
  arrays.emplace_back(dtype, Dims{kN});
  for (auto _ : state) op.run(arrays);
  state.SetItemsProcessed(state.iterations() * kN);
  state.SetLabel(std::string(def.name) + " " + dtype_name(dtype));
}
BENCHMARK(elementary)->ArgsProduct({benchmark::CreateDenseRange(0, 23, 1), {0, 1, 2}});

}  // namespace
}  // namespace xylem::compiler::testing
