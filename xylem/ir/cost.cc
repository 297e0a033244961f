#include "xylem/ir/cost.h"

#include <algorithm>

#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/transform.h"

namespace xylem::ir {
namespace {

double elements(const Type& t) {
  if (t.is_tuple()) {
    double n = 0;
    for (const Type& e : t.elements()) n += elements(e);
    return n;
  }
  if (t.is_token()) return 0;
  double n = 1;
  for (std::int64_t d : t.dims())
    if (d != kDynamic) n *= static_cast<double>(d);
  return n;
}

double bytes_of(const Type& t) {
  if (t.is_tuple()) {
    double n = 0;
    for (const Type& e : t.elements()) n += bytes_of(e);
    return n;
  }
  return elements(t) * (t.is_key() ? 8 : dtype_bytes(t.dtype()));
}

// How often the op's innermost computation happens, and whether it adds products.
struct Work {
  double points = 0;
  bool contracts = false;
};

Work work_of(const Op& op, const std::vector<Type>& operands, const std::vector<Type>& results) {
  Work w;
  if (!op.def->dims || op.def->is(kPointwise)) {
    for (const Type& t : results) w.points = std::max(w.points, elements(t));
    return w;
  }
  const OpCall call{*op.def, operands, op.attrs, op.regions, op.loc};
  w.points = 1;
  for (const DimMap::Factor& f : dimension_map(call, results).factors) {
    if (f.size != kDynamic) w.points *= static_cast<double>(f.size);
    w.contracts = w.contracts || f.kind == DimMap::FactorKind::kReduced;
  }
  return w;
}

bool is_integer_like(const Type& t) { return t.is_tensor() && !is_inexact(t.dtype()); }

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  transcendentals += other.transcendentals;
  bytes += other.bytes;
  return *this;
}

Cost cost_of(const Graph& graph, const Op& op) {
  std::vector<Type> operands, results;
  for (ValueId v : op.operands) operands.push_back(graph.type(v));
  for (ValueId v : op.results) results.push_back(graph.type(v));

  Cost cost;
  if (op.def->is(kControlFlow)) {
    const bool branches = op.def == &ops::kIf || op.def == &ops::kCase;
    // The first region of a function with rules of its own is the function.
    const bool first_only = op.def == &ops::kCustomJvp || op.def == &ops::kCustomVjp;
    for (const GraphPtr& r : op.regions) {
      const Cost c = cost_of(*r);
      if (!branches)
        cost += c;
      else if (c.flops + c.transcendentals + c.bytes >
               cost.flops + cost.transcendentals + cost.bytes)
        cost = c;
      if (first_only) break;
    }
    const auto steps = static_cast<double>(op.attrs.i64_or("length", 1));
    cost.flops *= steps;
    cost.transcendentals *= steps;
    cost.bytes *= steps;
    return cost;
  }

  if (!op.def->is(kConstant)) {
    for (const Type& t : operands) cost.bytes += bytes_of(t);
    for (const Type& t : results) cost.bytes += bytes_of(t);
  }
  if (op.def->is(kStructural) || op.def->is(kConstant)) return cost;
  const Work w = work_of(op, operands, results);
  if (!op.regions.empty()) {
    for (const GraphPtr& r : op.regions) {
      const Cost c = cost_of(*r);
      cost.flops += c.flops * w.points;
      cost.transcendentals += c.transcendentals * w.points;
    }
    return cost;
  }
  const bool is_arithmetic = !(results.empty() ? operands.empty() || is_integer_like(operands[0])
                                               : is_integer_like(results[0]));
  if (op.def->is(kTranscendental))
    cost.transcendentals += w.points;
  else if (is_arithmetic && (op.def->is(kPointwise) || w.contracts))
    cost.flops += w.points * (w.contracts ? 2 : 1);
  return cost;
}

Cost cost_of(const Graph& graph) {
  Cost cost;
  for (const Op& op : graph.ops) cost += cost_of(graph, op);
  return cost;
}

double constant_bytes(const Graph& graph) {
  double n = 0;
  for (const Op& op : graph.ops) {
    if (op.def->is(kConstant))
      for (ValueId v : op.results) n += bytes_of(graph.type(v));
    for (const GraphPtr& r : op.regions) n += constant_bytes(*r);
  }
  return n;
}

}  // namespace xylem::ir
