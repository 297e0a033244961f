#include <algorithm>

#include "xylem/core/transform/passes.h"
#include "xylem/ir/effects.h"

namespace xylem::transform {

using ir::Graph;
using ir::GraphPtr;
using ir::Op;
using ir::ValueId;

bool all_of(const Mask& m) {
  return std::all_of(m.begin(), m.end(), [](bool b) { return b; });
}
bool any_of(const Mask& m) {
  return std::any_of(m.begin(), m.end(), [](bool b) { return b; });
}

GraphPtr dce(const Graph& g) {
  std::vector<bool> live_value(g.values.size(), false);
  std::vector<bool> live_op(g.ops.size(), false);
  for (ValueId v : g.results) live_value[static_cast<std::size_t>(v)] = true;
  for (std::size_t i = g.ops.size(); i-- > 0;) {
    const Op& op = g.ops[i];
    bool live = ir::has_effect(op);
    for (ValueId r : op.results) live = live || live_value[static_cast<std::size_t>(r)];
    if (!live) continue;
    live_op[i] = true;
    for (ValueId v : op.operands) live_value[static_cast<std::size_t>(v)] = true;
  }
  Graph out;
  out.name = g.name;
  out.attrs = g.attrs;
  out.param_attrs = g.param_attrs;
  out.result_attrs = g.result_attrs;
  std::vector<ValueId> map(g.values.size(), ir::kNoValue);
  auto copy_value = [&](ValueId v, std::int32_t def) {
    map[static_cast<std::size_t>(v)] = static_cast<ValueId>(out.values.size());
    out.values.push_back(g.value(v));
    out.values.back().def = def;
    return map[static_cast<std::size_t>(v)];
  };
  for (ValueId v : g.params) out.params.push_back(copy_value(v, -1));
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    if (!live_op[i]) continue;
    Op op = g.ops[i];
    for (ValueId& v : op.operands) v = map[static_cast<std::size_t>(v)];
    for (ValueId& v : op.results) v = copy_value(v, static_cast<std::int32_t>(out.ops.size()));
    out.ops.push_back(std::move(op));
  }
  for (ValueId v : g.results) out.results.push_back(map[static_cast<std::size_t>(v)]);
  return std::make_shared<const Graph>(std::move(out));
}

GraphPtr reorder_params(const Graph& g, std::span<const int> order) {
  Graph out = g;
  for (std::size_t i = 0; i < order.size(); ++i) {
    ValueId v = g.params[static_cast<std::size_t>(order[i])];
    out.params[i] = v;
    out.values[static_cast<std::size_t>(v)].index = static_cast<std::int32_t>(i);
    if (!g.param_attrs.empty())
      out.param_attrs[i] = g.param_attrs[static_cast<std::size_t>(order[i])];
  }
  return std::make_shared<const Graph>(std::move(out));
}

}  // namespace xylem::transform
