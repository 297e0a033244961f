#include <unordered_map>

#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/effects.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/elementwise_unary.h"

namespace xylem::compiler {
namespace {

using ir::Op;

std::size_t mix(std::size_t h, std::size_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

std::size_t hash_op(const Op& op, const ir::ValueIds& operands) {
  std::size_t h = reinterpret_cast<std::uintptr_t>(op.def);
  for (ir::ValueId v : operands) h = mix(h, static_cast<std::size_t>(v));
  for (const auto& [name, value] : op.attrs.entries())
    h = mix(mix(h, reinterpret_cast<std::uintptr_t>(name.data())), value.hash());
  for (const ir::GraphPtr& r : op.regions) h = mix(h, ir::structural_hash(*r));
  return h;
}

bool same_op(const Op& a, const ir::ValueIds& operands, const Op& b) {
  if (a.def != b.def || !(operands == b.operands) || !(a.attrs == b.attrs) ||
      a.regions.size() != b.regions.size())
    return false;
  for (std::size_t i = 0; i < a.regions.size(); ++i)
    if (!ir::structurally_equal(*a.regions[i], *b.regions[i])) return false;
  return true;
}

}  // namespace

ir::GraphPtr merge_common(const ir::GraphPtr& graph) {
  Rewriter rewriter(*graph);
  std::unordered_multimap<std::size_t, std::int32_t> seen;  // hash -> op of the new graph
  bool changed = false;
  for (const Op& op : graph->ops) {
    // A barrier's purpose is that its results are not taken for its operands.
    if (ir::has_effect(op) || op.def == &ir::ops::kOptimizationBarrier) {
      rewriter.copy(op);
      continue;
    }
    const ir::ValueIds operands = rewriter.operands(op);
    const std::size_t h = hash_op(op, operands);
    const ir::Graph& now = rewriter.builder().graph();
    const Op* equal = nullptr;
    for (auto [it, end] = seen.equal_range(h); it != end && !equal; ++it)
      if (same_op(op, operands, now.ops[static_cast<std::size_t>(it->second)]))
        equal = &now.ops[static_cast<std::size_t>(it->second)];
    if (equal) {
      changed = true;
      rewriter.replace(op, ir::ValueIds(equal->results));
      continue;
    }
    rewriter.copy(op);
    seen.emplace(h, static_cast<std::int32_t>(rewriter.builder().graph().ops.size()) - 1);
  }
  return changed ? rewriter.finish() : graph;
}

}  // namespace xylem::compiler
