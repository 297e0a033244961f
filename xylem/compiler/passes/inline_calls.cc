#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/custom_linear.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/transform.h"

namespace xylem::compiler {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

bool is_call(const Op& op) {
  return op.def == &ir::ops::kCall || op.def == &ir::ops::kCustomJvp ||
         op.def == &ir::ops::kCustomVjp || op.def == &ir::ops::kRemat ||
         op.def == &ir::ops::kLinearSolve || op.def == &ir::ops::kCustomVmap;
}

bool is_marker(const Op& op) {
  return op.def == &ir::ops::kStopGradient || op.def == &ir::ops::kCheckpointName;
}

class Inliner {
 public:
  explicit Inliner(Builder& builder) : builder_(builder) {}

  std::vector<ValueId> op(const Op& op, const ir::ValueIds& operands) {
    if (is_marker(op)) return {operands[0]};
    if (is_call(op)) return body(*op.regions[0], arguments(op, operands));
    const ir::ValueIds results = builder_.clone(op, operands);
    return results.to_vector();
  }

 private:
  std::vector<ValueId> arguments(const Op& op, const ir::ValueIds& operands) {
    if (op.def != &ir::ops::kRemat || operands.empty()) return operands.to_vector();
    // `prevent_cse` absent means true; under a loop the front end sets it to false.
    const ir::Attr* prevent = op.attrs.find("prevent_cse");
    if (prevent && prevent->get<bool>() && !*prevent->get<bool>()) return operands.to_vector();
    return builder_.op(ir::ops::kOptimizationBarrier, operands).to_vector();
  }

  std::vector<ValueId> body(const ir::Graph& g, const std::vector<ValueId>& args) {
    std::vector<ValueId> map(g.values.size(), ir::kNoValue);
    for (std::size_t i = 0; i < args.size(); ++i)
      map[static_cast<std::size_t>(g.params[i])] = args[i];
    ir::ValueIds operands;
    for (const Op& o : g.ops) {
      operands.clear();
      for (ValueId v : o.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
      const std::vector<ValueId> results = op(o, operands);
      for (std::size_t i = 0; i < results.size(); ++i)
        map[static_cast<std::size_t>(o.results[i])] = results[i];
    }
    std::vector<ValueId> out;
    for (ValueId v : g.results) out.push_back(map[static_cast<std::size_t>(v)]);
    return out;
  }

  Builder& builder_;
};

}  // namespace

ir::GraphPtr inline_calls(const ir::GraphPtr& graph) {
  bool any = false;
  for (const Op& op : graph->ops) any = any || is_call(op) || is_marker(op);
  if (!any) return graph;
  Rewriter rewriter(*graph);
  Inliner inliner(rewriter.builder());
  for (const Op& op : graph->ops) rewriter.replace(op, inliner.op(op, rewriter.operands(op)));
  return rewriter.finish();
}

}  // namespace xylem::compiler
