#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/effects.h"

namespace xylem::compiler {

ir::GraphPtr eliminate_dead(const ir::GraphPtr& graph) {
  std::vector<bool> live(graph->values.size(), false);
  const auto mark = [&](ir::ValueId v) { live[static_cast<std::size_t>(v)] = true; };
  for (ir::ValueId v : graph->results) mark(v);
  std::vector<bool> keep(graph->ops.size(), false);
  std::size_t kept = 0;
  for (std::size_t i = graph->ops.size(); i-- > 0;) {
    const ir::Op& op = graph->ops[i];
    bool needed = ir::has_effect(op);
    for (ir::ValueId v : op.results) needed = needed || live[static_cast<std::size_t>(v)];
    if (!needed) continue;
    keep[i] = true;
    ++kept;
    for (ir::ValueId v : op.operands) mark(v);
  }
  if (kept == graph->ops.size()) return graph;
  Rewriter rewriter(*graph);
  for (std::size_t i = 0; i < graph->ops.size(); ++i)
    if (keep[i]) rewriter.copy(graph->ops[i]);
  return rewriter.finish();
}

}  // namespace xylem::compiler
