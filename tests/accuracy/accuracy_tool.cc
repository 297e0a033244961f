// Writes the table of docs/accuracy.md: the largest errors of compiled elementary functions.
//
//   accuracy_tool [STRIDE [COUNT]]
//
// STRIDE: every STRIDE-th single is tried (1: all of them, about a minute a function). COUNT:
// random doubles a function, and pairs of singles for functions of two arguments.

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>

#include "xylem/compiler/math/testing/measure.h"
#include "xylem/compiler/math/testing/mpfr_reference.h"
#include "xylem/ir/ops/all.h"

namespace {

using namespace xylem;
using namespace xylem::compiler::testing;

int run(std::uint64_t stride, std::int64_t count) {
  fmt::print("| function | f32 | f64 | f16 | bf16 | bound | operations f32, f64 |\n");
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const ir::OpDef* def : ops_with_reference()) {
    const bool formula = def == &ir::ops::kErfInv;
    const bool unary = num_operands(*def) == 1;
    std::string f32 = "(formula)", f16 = f32, bf16 = f32;
    if (!formula) {
      f32 = fmt::format("{:.2f}", (unary ? measure_f32_scan(*def, stride / 2, stride)
                                         : measure_random(*def, DType::kF32, count, 1))
                                      .max_ulp);
      f16 = fmt::format("{:.2f}", (unary ? measure_all_16_bit(*def, DType::kF16)
                                         : measure_random(*def, DType::kF16, count, 1))
                                      .max_ulp);
      bf16 = fmt::format("{:.2f}", (unary ? measure_all_16_bit(*def, DType::kBF16)
                                          : measure_random(*def, DType::kBF16, count, 1))
                                       .max_ulp);
    }
    const double f64 = measure_random(*def, DType::kF64, count, 1).max_ulp;
    fmt::print("| `{}` | {} | {:.2f} | {} | {} | {} | {}, {} |\n", def->name, f32, f64, f16, bf16,
               def->max_ulp, CompiledOp(*def, DType::kF32, 32).num_ops(),
               CompiledOp(*def, DType::kF64, 32).num_ops());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 257,
               argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 100000);
  } catch (const std::exception& e) {
    fmt::print(stderr, "accuracy_tool: {}\n", e.what());
    return 1;
  }
}
