#pragma once

#include <functional>
#include <vector>

#include "xylem/compiler/fusion/plan.h"
#include "xylem/ir/kernel.h"

namespace xylem::compiler {

// A kernel with what the program needs to launch it.
struct LoweredKernel {
  ir::Kernel kernel;
  std::vector<ir::ValueId> operands;  // root value per parameter that is not scratch
  // Per operand: the operand (by position) whose memory a written one may take over; -1: none.
  std::vector<int> alias;
  std::int64_t points = 1;  // parallel grid points
  double flops = 0, bytes = 0, ns = 0;
};

// Bytes of the vectors that kernels are written for, whatever the machine: the order of reductions
// follows from it.
inline constexpr int kVectorBytes = 64;

// The kernel of a fused group. `dies(v)`: v's buffer is not read after this group.
LoweredKernel make_loop_kernel(const ir::Graph& graph, const Plan& plan, const Group& group,
                               const std::function<bool(ir::ValueId)>& dies);

}  // namespace xylem::compiler
