#include "xylem/ir/legalize.h"

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {
namespace {

using Which = std::function<bool(const OpDef&)>;

bool has_any(const Graph& g, const Which& which) {
  for (const Op& op : g.ops) {
    if (which(*op.def)) return true;
    for (const GraphPtr& region : op.regions)
      if (has_any(*region, which)) return true;
  }
  return false;
}

// One round: expands the ops that stand in `g` now.
GraphPtr expand_once(const Graph& g, const Which& which) {
  Builder b(g.name);
  std::vector<ValueId> map(g.values.size(), kNoValue);
  for (std::size_t i = 0; i < g.params.size(); ++i)
    map[static_cast<std::size_t>(g.params[i])] =
        b.param(g.type(g.params[i]), i < g.param_attrs.size() ? g.param_attrs[i] : Attrs());
  std::vector<ValueId> operands, results;
  for (const Op& op : g.ops) {
    operands.clear();
    for (ValueId v : op.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
    b.set_location(op.loc);
    if (which(*op.def)) {
      if (op.def->expand == nullptr)
        throw UserError(
            ErrorParts{op.def->name, "the op must have a decomposition here", "this one has none",
                       "Transform the program until the op is gone"},
            op.loc.source);
      results = op.def->expand(b, op, operands);
    } else {
      std::vector<GraphPtr> regions;
      for (const GraphPtr& region : op.regions) regions.push_back(decompose(region, which));
      results = b.op(*op.def, operands, op.attrs, std::move(regions)).to_vector();
    }
    XYLEM_CHECK(results.size() == op.results.size(), op.def->name);
    for (std::size_t k = 0; k < results.size(); ++k)
      map[static_cast<std::size_t>(op.results[k])] = results[k];
  }
  std::vector<ValueId> out;
  for (ValueId v : g.results) out.push_back(map[static_cast<std::size_t>(v)]);
  auto done = std::make_shared<Graph>(*b.finish(out));
  done->attrs = g.attrs;
  done->result_attrs = g.result_attrs;
  return done;
}

}  // namespace

GraphPtr decompose(const GraphPtr& graph, const Which& which) {
  GraphPtr g = graph;
  while (has_any(*g, which)) g = expand_once(*g, which);
  return g;
}

GraphPtr legalize(const GraphPtr& graph) {
  return decompose(graph, [](const OpDef& def) { return def.is(kXylem); });
}

Module legalize(const Module& module) {
  Module out = module;
  for (Module::Function& f : out.functions)
    if (f.graph) f.graph = legalize(f.graph);
  return out;
}

}  // namespace xylem::ir
