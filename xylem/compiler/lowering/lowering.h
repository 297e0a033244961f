#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "xylem/compiler/fusion/loop_kernel.h"
#include "xylem/compiler/fusion/plan.h"
#include "xylem/compiler/program/program.h"

namespace xylem::compiler {

// A piece of memory of the program: a value's (by its id) or a temporary's (ids behind).
using BufferId = int;

// How a step uses a buffer.
struct Use {
  BufferId buffer = 0;
  bool write = false;
  // Position of the operand whose memory this written one may take over, if that dies here.
  int alias = -1;
  // The buffer must hold the alias' contents when the step starts: the two share memory, or a copy
  // is made.
  bool starts_as_alias = false;
  // Not handed to the kernel: stands here for its lifetime or as an alias only. Behind the others.
  bool hidden = false;
};

struct LoweredStep {
  int kernel = -1;  // index into Lowered::kernels
  std::shared_ptr<const Action> action;
  std::vector<Use> uses;
  std::int64_t points = 1;
  double ns = 0, flops = 0, bytes = 0;
  std::string name;
};

// What lowering makes of a graph: steps over buffers without addresses.
struct Lowered {
  std::vector<LoweredStep> steps;
  std::vector<KernelRequest> kernels;
  std::vector<std::int64_t> temp_bytes;  // of temporaries; ids start at the number of values
};

// Given to the lowering of each op.
class Lowering {
 public:
  Lowering(ir::GraphPtr graph, const Plan& plan, const Options& options);

  Lowered run();

  const ir::Graph& graph() const { return *graph_; }
  const Plan& plan() const { return plan_; }
  const Options& options() const { return options_; }
  // Whether the buffer of v is not needed after the group that is being lowered.
  bool dies(ir::ValueId v) const;
  BufferId temp(std::int64_t bytes);
  // Adds a kernel step; elementary functions are expanded here.
  void kernel(ir::Kernel kernel, std::vector<Use> uses, std::int64_t points, double ns,
              double flops = 0, double bytes = 0);
  void action(std::shared_ptr<const Action> action, std::vector<Use> uses, std::string name,
              double ns);
  // The buffer of an operand (through views). Must not be an inline value.
  BufferId buffer(ir::ValueId v) const { return plan_.root(v); }

 private:
  void special(const ir::Op& op);

  ir::GraphPtr graph_;
  const Plan& plan_;
  const Options& options_;
  Lowered out_;
  std::vector<int> last_use_;  // per value (root): last group that reads it
  int current_ = 0;
  std::unordered_map<std::string, int> kernel_index_;
};

[[noreturn]] void refuse(const ir::Op& op, std::string_view why);

// One function per op that is not fused. Each adds the op's steps.
void lower_dot(Lowering& l, const ir::Op& op);
void lower_convolution(Lowering& l, const ir::Op& op);
void lower_scatter(Lowering& l, const ir::Op& op);
void lower_sort(Lowering& l, const ir::Op& op);
void lower_top_k(Lowering& l, const ir::Op& op);
void lower_cumulative(Lowering& l, const ir::Op& op);
void lower_reduce_window(Lowering& l, const ir::Op& op);
void lower_dynamic_update_slice(Lowering& l, const ir::Op& op);
void lower_concatenate(Lowering& l, const ir::Op& op);
void lower_bitcast(Lowering& l, const ir::Op& op);
void lower_while(Lowering& l, const ir::Op& op);
void lower_branches(Lowering& l, const ir::Op& op);
void lower_scan(Lowering& l, const ir::Op& op);
void lower_cholesky(Lowering& l, const ir::Op& op);
void lower_triangular_solve(Lowering& l, const ir::Op& op);
void lower_fft(Lowering& l, const ir::Op& op);
void lower_custom_call(Lowering& l, const ir::Op& op);
void lower_lu_pivots(Lowering& l, const ir::Op& op);
void lower_rng_bit_generator(Lowering& l, const ir::Op& op);
void lower_rng(Lowering& l, const ir::Op& op);

// Whether an op that is not fused has a lowering of its own.
bool has_lowering(const ir::OpDef& def);

}  // namespace xylem::compiler
