#include "xylem/compiler/lowering/lowering.h"

#include <fmt/format.h>

#include <climits>

#include "xylem/base/error.h"
#include "xylem/compiler/lowering/callback.h"
#include "xylem/compiler/math/expand.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/decompositions.h"
#include "xylem/ir/ops/linalg.h"

namespace xylem::compiler {

namespace o = ir::ops;
using ir::Op;
using ir::ValueId;

void refuse(const Op& op, std::string_view why) {
  throw UserError(ErrorParts{fmt::format("compile {} for the CPU", op.def->name),
                             "an op that the CPU back end has", std::string(why),
                             "Rewrite it, or run the program with XYLEM_PLATFORM=interpreter."},
                  op.loc.source);
}

Lowering::Lowering(ir::GraphPtr graph, const Plan& plan, const Options& options)
    : graph_(std::move(graph)), plan_(plan), options_(options) {
  last_use_.assign(graph_->values.size(), -1);
  for (std::size_t g = 0; g < plan.groups.size(); ++g)
    for (ValueId v : plan.groups[g].inputs)
      last_use_[static_cast<std::size_t>(v)] = static_cast<int>(g);
  for (ValueId v : graph_->results) last_use_[static_cast<std::size_t>(plan.root(v))] = INT_MAX;
}

bool Lowering::dies(ValueId v) const {
  const ValueId root = plan_.root(v);
  const ir::Value& value = graph_->value(root);
  if (last_use_[static_cast<std::size_t>(root)] != current_) return false;
  if (value.def < 0)
    return std::find(options_.donated.begin(), options_.donated.end(), value.index) !=
           options_.donated.end();
  return plan_.roles[static_cast<std::size_t>(value.def)] != Role::kConstant;
}

BufferId Lowering::temp(std::int64_t bytes) {
  out_.temp_bytes.push_back(bytes);
  return static_cast<BufferId>(graph_->values.size() + out_.temp_bytes.size()) - 1;
}

void Lowering::kernel(ir::Kernel kernel, std::vector<Use> uses, std::int64_t points, double ns,
                      double flops, double bytes) {
  kernel.body = expand_math(*kernel.body);
  LoweredStep step;
  step.name = kernel.name;
  std::string encoded = ir::encode_kernel(kernel);
  auto [it, added] = kernel_index_.try_emplace(encoded, static_cast<int>(out_.kernels.size()));
  if (added) out_.kernels.push_back({kernel.name, std::move(encoded)});
  step.kernel = it->second;
  step.uses = std::move(uses);
  step.points = points;
  step.ns = ns;
  step.flops = flops;
  step.bytes = bytes;
  out_.steps.push_back(std::move(step));
}

void Lowering::action(std::shared_ptr<const Action> action, std::vector<Use> uses, std::string name,
                      double ns) {
  LoweredStep step;
  step.action = std::move(action);
  step.uses = std::move(uses);
  step.name = std::move(name);
  step.ns = ns;
  out_.steps.push_back(std::move(step));
}

Lowered Lowering::run() {
  for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
    current_ = static_cast<int>(g);
    const Group& group = plan_.groups[g];
    if (group.special) {
      special(graph_->ops[static_cast<std::size_t>(group.ops[0])]);
      continue;
    }
    LoweredKernel k = make_loop_kernel(*graph_, plan_, group, [&](ValueId v) { return dies(v); });
    std::vector<Use> uses;
    for (std::size_t i = 0; i < k.operands.size(); ++i)
      uses.push_back({k.operands[i], i >= group.inputs.size(), k.alias[i], false});
    kernel(std::move(k.kernel), std::move(uses), k.points, k.ns, k.flops, k.bytes);
  }
  return std::move(out_);
}

namespace {

using Rule = void (*)(Lowering&, const Op&);

const std::unordered_map<const ir::OpDef*, Rule>& rules() {
  static const std::unordered_map<const ir::OpDef*, Rule> table = {
      {&o::kDotGeneral, lower_dot},
      {&o::kConvolution, lower_convolution},
      {&o::kScatter, lower_scatter},
      {&o::kSort, lower_sort},
      {&o::kTopK, lower_top_k},
      {&o::kCumsum, lower_cumulative},
      {&o::kCumprod, lower_cumulative},
      {&o::kCummax, lower_cumulative},
      {&o::kCummin, lower_cumulative},
      {&o::kReduceWindow, lower_reduce_window},
      {&o::kDynamicUpdateSlice, lower_dynamic_update_slice},
      {&o::kConcatenate, lower_concatenate},
      {&o::kBitcastConvert, lower_bitcast},
      {&o::kWhile, lower_while},
      {&o::kIf, lower_branches},
      {&o::kCase, lower_branches},
      {&o::kScan, lower_scan},
      {&o::kCholesky, lower_cholesky},
      {&o::kTriangularSolve, lower_triangular_solve},
      {&o::kFft, lower_fft},
      {&o::kCustomCall, lower_custom_call},
      {&o::kLuPivotsToPermutation, lower_lu_pivots},
      {&o::kAfterAll, [](Lowering&, const Op&) {}},
      {&o::kRngBitGenerator, lower_rng_bit_generator},
      {&o::kRng, lower_rng},
      {&o::kPureCallback, lower_callback},
      {&o::kIoCallback, lower_callback},
  };
  return table;
}

}  // namespace

bool has_lowering(const ir::OpDef& def) { return rules().contains(&def); }

void Lowering::special(const Op& op) {
  auto it = rules().find(op.def);
  if (it == rules().end()) refuse(op, "no lowering exists for it yet");
  it->second(*this, op);
}

}  // namespace xylem::compiler
