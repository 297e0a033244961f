#include "xylem/base/error.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/op_def.h"

namespace xylem::transform {

using ir::Builder;
using ir::Graph;
using ir::kNoValue;
using ir::Op;
using ir::ValueId;

namespace {

class PartialEvaluator {
 public:
  PartialEvaluator(const Graph& g, const Mask& known) : g_(g), kb_(g.name), ub_(g.name) {
    known_.resize(g.values.size(), kNoValue);
    unknown_.resize(g.values.size(), kNoValue);
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      auto v = static_cast<std::size_t>(g.params[i]);
      if (known[i])
        known_[v] = kb_.param(g.type(g.params[i]));
      else
        unknown_[v] = ub_.param(g.type(g.params[i]));
    }
  }

  Partial run(const Mask& force_unknown) {
    for (const Op& op : g_.ops) step(op);
    Partial r;
    std::vector<ValueId> known_results, unknown_results;
    for (std::size_t i = 0; i < g_.results.size(); ++i) {
      auto v = static_cast<std::size_t>(g_.results[i]);
      bool force = i < force_unknown.size() && force_unknown[i];
      r.result_known.push_back(known_[v] != kNoValue && !force);
      if (r.result_known.back())
        known_results.push_back(known_[v]);
      else
        unknown_results.push_back(to_unknown(v));
    }
    r.num_residuals = static_cast<int>(residuals_.size());
    // Residual parameters were appended as they were met; they come first in the result.
    std::vector<int> order;
    std::size_t unknown_params = ub_.graph().params.size() - residuals_.size();
    Mask is_residual(ub_.graph().params.size(), false);
    for (std::size_t i : residual_params_) is_residual[i] = true;
    for (std::size_t i : residual_params_) order.push_back(static_cast<int>(i));
    for (std::size_t i = 0; i < is_residual.size(); ++i)
      if (!is_residual[i]) order.push_back(static_cast<int>(i));
    XYLEM_CHECK(order.size() == unknown_params + residuals_.size(), g_.name);
    for (ValueId v : residuals_) known_results.push_back(v);
    r.known = kb_.finish(std::move(known_results));
    r.unknown = reorder_params(*ub_.finish(std::move(unknown_results)), order);
    return r;
  }

 private:
  struct Call final : PartialCall {
    Call(PartialEvaluator& e, const Op& o, const std::vector<bool>& k, std::span<const ValueId> ids,
         std::span<const ir::Type> t)
        : PartialCall(o, k, ids, t, e.kb_, e.ub_), evaluator(e) {}
    ValueId unknown_operand(std::size_t i) override {
      return evaluator.to_unknown(static_cast<std::size_t>(op.operands[i]));
    }
    ValueId residual(ValueId v) override { return evaluator.residual(v); }
    PartialEvaluator& evaluator;
  };

  void step(const Op& op) {
    std::vector<bool> known;
    std::vector<ValueId> ids;
    bool all = true;
    for (ValueId v : op.operands) {
      ValueId k = known_[static_cast<std::size_t>(v)];
      known.push_back(k != kNoValue);
      ids.push_back(k);
      all = all && k != kNoValue;
    }
    if (all) {
      ir::ValueIds r = kb_.clone(op, ids);
      for (std::size_t i = 0; i < r.size(); ++i)
        known_[static_cast<std::size_t>(op.results[i])] = r[i];
      return;
    }
    const OpRules& rules = rules_of(*op.def);
    if (rules.partial) {
      std::vector<ir::Type> types;
      for (ValueId v : op.operands) types.push_back(g_.type(v));
      Call call(*this, op, known, ids, types);
      call.known_results.assign(op.results.size(), kNoValue);
      call.unknown_results.assign(op.results.size(), kNoValue);
      rules.partial(call);
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        known_[static_cast<std::size_t>(op.results[i])] = call.known_results[i];
        unknown_[static_cast<std::size_t>(op.results[i])] = call.unknown_results[i];
      }
      return;
    }
    std::vector<ValueId> operands;
    for (ValueId v : op.operands) operands.push_back(to_unknown(static_cast<std::size_t>(v)));
    ir::ValueIds r = ub_.clone(op, operands);
    for (std::size_t i = 0; i < r.size(); ++i)
      unknown_[static_cast<std::size_t>(op.results[i])] = r[i];
  }

  ValueId to_unknown(std::size_t v) {
    if (unknown_[v] == kNoValue) unknown_[v] = residual(known_[v]);
    return unknown_[v];
  }

  // Constants, iotas and broadcasts of constants are cheaper to make again than to keep.
  bool cheap(ValueId known_value) const {
    const Op* op = kb_.graph().def(known_value);
    if (!op || op->results.size() != 1) return false;
    if (op->operands.empty())
      return op->def->is(ir::kConstant) ? kb_.type(known_value).size() <= 16 : !op->regions.size();
    return op->operands.size() == 1 && op->def->is(ir::kStructural) && cheap(op->operands[0]);
  }

  ValueId residual(ValueId known_value) {
    auto at = static_cast<std::size_t>(known_value);
    if (passed_.size() <= at) passed_.resize(at + 1, kNoValue);
    if (passed_[at] != kNoValue) return passed_[at];
    if (cheap(known_value)) {
      Op op = *kb_.graph().def(known_value);
      std::vector<ValueId> operands;
      for (ValueId v : op.operands) operands.push_back(residual(v));
      return passed_[at] = ub_.clone(op, operands)[0];
    }
    residuals_.push_back(known_value);
    residual_params_.push_back(ub_.graph().params.size());
    return passed_[at] = ub_.param(kb_.type(known_value));
  }

  const Graph& g_;
  Builder kb_, ub_;
  std::vector<ValueId> known_, unknown_;      // by value of g
  std::vector<ValueId> passed_;               // by value of kb: id in ub
  std::vector<ValueId> residuals_;            // in kb
  std::vector<std::size_t> residual_params_;  // their parameters of ub
};

}  // namespace

Partial partial_eval(const Graph& g, const Mask& known, const Mask& force_unknown) {
  Partial r = PartialEvaluator(g, known).run(force_unknown);
  r.known = dce(*r.known);
  r.unknown = dce(*r.unknown);
  return r;
}

Linearized linearize(const Graph& g, const Mask& active, const Mask& outputs) {
  Mask force;
  for (std::size_t i = 0; i < g.results.size(); ++i)
    force.push_back(is_inexact(g.type(g.results[i]).dtype()) && (outputs.empty() || outputs[i]));
  JvpGraph j = jvp_graph(g, active, force);
  // Tangents that nobody asked for are dropped.
  Graph graph = *j.graph;
  std::size_t n = g.results.size(), next = n;
  std::vector<ValueId> results(graph.results.begin(),
                               graph.results.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    if (!j.out[i]) continue;
    if (force[i]) results.push_back(graph.results[next]);
    ++next;
  }
  graph.results = std::move(results);
  Mask known(graph.params.size(), false);
  for (std::size_t i = 0; i < g.params.size(); ++i) known[i] = true;
  // Tangents of the results are unknown even where they are zero whatever the inputs.
  Mask unknown(graph.results.size(), false);
  for (std::size_t i = n; i < unknown.size(); ++i) unknown[i] = true;
  Partial p = partial_eval(graph, known, unknown);
  for (std::size_t i = 0; i < n; ++i)
    XYLEM_CHECK(p.result_known[i], "a primal result depends on tangents");
  return {p.known, p.unknown, p.num_residuals};
}

}  // namespace xylem::transform
