#include <algorithm>
#include <unordered_map>
#include <utility>

#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

// Structure that compiled code has no use for: tuples, and branches in regions that see single
// elements.

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::GraphPtr;
using ir::Op;
using ir::Type;
using ir::ValueId;
using Values = std::vector<ValueId>;

bool has_tuples(const ir::Graph& g) {
  return std::any_of(g.values.begin(), g.values.end(),
                     [](const ir::Value& v) { return v.type.is_tuple(); });
}

std::size_t num_leaves(const Type& t) {
  if (!t.is_tuple()) return 1;
  std::size_t n = 0;
  for (const Type& e : t.elements()) n += num_leaves(e);
  return n;
}

bool is_branch(const Op& op) { return op.def == &o::kIf || op.def == &o::kCase; }

bool has_branches(const ir::Graph& g) { return std::any_of(g.ops.begin(), g.ops.end(), is_branch); }

// Every branch computed, and the chosen result selected: for regions of pure ops on scalars, where
// that costs less than a jump.
class Straightener {
 public:
  explicit Straightener(const ir::Graph& g) : b_(g.name) {
    Values params;
    for (ValueId p : g.params) params.push_back(b_.param(g.type(p)));
    result_ = emit(g, params);
  }
  GraphPtr finish() { return b_.finish(std::move(result_)); }

 private:
  Values emit(const ir::Graph& g, const Values& args) {
    Values map(g.values.size(), ir::kNoValue);
    const auto at = [&](ValueId v) -> ValueId& { return map[static_cast<std::size_t>(v)]; };
    for (std::size_t i = 0; i < args.size(); ++i) at(g.params[i]) = args[i];
    for (const Op& op : g.ops) {
      b_.set_location(op.loc);
      Values in;
      for (ValueId v : op.operands) in.push_back(at(v));
      Values out;
      if (is_branch(op)) {
        out = branch(op, in);
      } else {
        const ir::ValueIds results = b_.clone(op, in);
        out.assign(results.begin(), results.end());
      }
      for (std::size_t i = 0; i < out.size(); ++i) at(op.results[i]) = out[i];
    }
    Values results;
    for (ValueId v : g.results) results.push_back(at(v));
    return results;
  }

  Values branch(const Op& op, const Values& in) {
    const Values args(in.begin() + 1, in.end());
    const std::size_t n = op.regions.size();
    // Out of range: the last one.
    Values chosen = emit(*op.regions[n - 1], args);
    for (std::size_t k = n - 1; k-- > 0;) {
      ValueId here = in[0];
      if (op.def == &o::kCase)
        here = b_.one(o::kCompare, {in[0], b_.splat(DType::kI32, {}, static_cast<double>(k))},
                      Attrs{{"comparison_direction", Attr(ir::EnumAttr("EQ"))}});
      const Values values = emit(*op.regions[k], args);
      for (std::size_t i = 0; i < values.size(); ++i)
        chosen[i] = b_.one(o::kSelect, {here, values[i], chosen[i]});
    }
    return chosen;
  }

  Builder b_;
  Values result_;
};

}  // namespace

ir::GraphPtr flatten_tuples(const ir::GraphPtr& graph) {
  if (!has_tuples(*graph)) return graph;
  Builder b(graph->name);
  std::unordered_map<ValueId, Values> leaves;
  const auto add_params = [&](const Type& type, Values& out, const auto& self) -> void {
    if (!type.is_tuple()) {
      out.push_back(b.param(type));
      return;
    }
    for (const Type& e : type.elements()) self(e, out, self);
  };
  for (ValueId p : graph->params) add_params(graph->type(p), leaves[p], add_params);
  for (const Op& op : graph->ops) {
    b.set_location(op.loc);
    if (op.def == &o::kTuple) {
      Values& out = leaves[op.results[0]];
      for (ValueId v : op.operands) out.insert(out.end(), leaves[v].begin(), leaves[v].end());
      continue;
    }
    if (op.def == &o::kGetTupleElement) {
      const std::vector<Type>& elements = graph->type(op.operands[0]).elements();
      const auto index = static_cast<std::size_t>(op.attrs.i64("index"));
      std::size_t first = 0;
      for (std::size_t i = 0; i < index; ++i) first += num_leaves(elements[i]);
      const Values& in = leaves[op.operands[0]];
      const auto begin = in.begin() + static_cast<std::ptrdiff_t>(first);
      leaves[op.results[0]] =
          Values(begin, begin + static_cast<std::ptrdiff_t>(num_leaves(elements[index])));
      continue;
    }
    Values in;
    for (ValueId v : op.operands) in.insert(in.end(), leaves[v].begin(), leaves[v].end());
    const ir::ValueIds results = b.clone(op, in);
    for (std::size_t i = 0; i < results.size(); ++i) leaves[op.results[i]] = {results[i]};
  }
  Values results;
  for (ValueId v : graph->results)
    results.insert(results.end(), leaves[v].begin(), leaves[v].end());
  return b.finish(std::move(results));
}

ir::GraphPtr straighten_regions(const ir::GraphPtr& graph) {
  const auto sees_elements = [](const Op& op) {
    return !op.regions.empty() && !op.def->is(ir::kControlFlow);
  };
  if (std::none_of(graph->ops.begin(), graph->ops.end(), sees_elements)) return graph;
  bool changed = false;
  auto out = std::make_shared<ir::Graph>(*graph);
  for (Op& op : out->ops) {
    if (!sees_elements(op)) continue;
    for (GraphPtr& region : op.regions) {
      GraphPtr r = inline_calls(region);
      if (has_branches(*r)) r = Straightener(*r).finish();
      r = expand_ops(r);
      changed = changed || r != region;
      region = std::move(r);
    }
  }
  return changed ? GraphPtr(std::move(out)) : graph;
}

}  // namespace xylem::compiler
