#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/custom_linear.h"

namespace xylem::transform {

using ir::Builder;
using ir::Graph;
using ir::kNoValue;
using ir::Op;
using ir::ValueId;

namespace {

void jvp_op(Builder& b, const Op& op, std::span<const ValueId> primals,
            std::span<const ValueId> tangents, std::vector<ValueId>& primal_out,
            std::vector<ValueId>& tangent_out) {
  bool zero = true;
  for (ValueId t : tangents) zero = zero && t == kNoValue;
  const OpRules& rules = rules_of(*op.def);
  if (zero || rules.no_derivative) {
    ir::ValueIds r = b.clone(op, primals);
    primal_out.assign(r.begin(), r.end());
    tangent_out.assign(r.size(), kNoValue);
    return;
  }
  if (!rules.jvp) {
    const char* why = rules.refuse_jvp ? rules.refuse_jvp : "the op has no derivative rule";
    throw UserError(
        ErrorParts{fmt::format("differentiate {}", op.def->name),
                   "every op between the differentiated input and the result needs a rule", why,
                   "Wrap the computation in custom_jvp or custom_vjp, or stop the gradient before "
                   "it with stop_gradient"},
        op.loc.source);
  }
  ir::Location saved = b.location();
  b.set_location(op.loc);
  JvpCall call{b, op, primals, tangents, {}, {}};
  rules.jvp(call);
  b.set_location(saved);
  XYLEM_CHECK(
      call.primal_out.size() == op.results.size() && call.tangent_out.size() == op.results.size(),
      op.def->name);
  primal_out = std::move(call.primal_out);
  tangent_out = std::move(call.tangent_out);
  for (std::size_t i = 0; i < tangent_out.size(); ++i)
    XYLEM_CHECK(tangent_out[i] == kNoValue || b.type(tangent_out[i]) == b.type(primal_out[i]),
                op.def->name);
}

}  // namespace

void jvp_into(Builder& b, const Graph& g, std::span<const ValueId> primals,
              std::span<const ValueId> tangents, std::vector<ValueId>& primal_out,
              std::vector<ValueId>& tangent_out) {
  std::vector<ValueId> p(g.values.size(), kNoValue), t(g.values.size(), kNoValue);
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    p[static_cast<std::size_t>(g.params[i])] = primals[i];
    t[static_cast<std::size_t>(g.params[i])] = tangents[i];
  }
  std::vector<ValueId> op_p, op_t, out_p, out_t;
  for (const Op& op : g.ops) {
    op_p.clear();
    op_t.clear();
    for (ValueId v : op.operands) {
      op_p.push_back(p[static_cast<std::size_t>(v)]);
      op_t.push_back(t[static_cast<std::size_t>(v)]);
    }
    jvp_op(b, op, op_p, op_t, out_p, out_t);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      p[static_cast<std::size_t>(op.results[i])] = out_p[i];
      t[static_cast<std::size_t>(op.results[i])] = out_t[i];
    }
  }
  primal_out.clear();
  tangent_out.clear();
  for (ValueId v : g.results) {
    primal_out.push_back(p[static_cast<std::size_t>(v)]);
    tangent_out.push_back(t[static_cast<std::size_t>(v)]);
  }
}

JvpGraph jvp_graph(const Graph& g, const Mask& in, const Mask& force) {
  Builder b(g.name);
  std::vector<ValueId> primals, tangents(g.params.size(), kNoValue), po, to;
  for (ValueId v : g.params) primals.push_back(b.param(g.type(v)));
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i]) tangents[i] = b.param(g.type(g.params[i]));
  jvp_into(b, g, primals, tangents, po, to);
  JvpGraph r;
  r.out.resize(po.size());
  for (std::size_t i = 0; i < po.size(); ++i) {
    bool forced = i < force.size() && force[i];
    if (to[i] == kNoValue && forced) to[i] = ir::zeros(b, b.type(po[i])).v;
    r.out[i] = to[i] != kNoValue;
  }
  std::vector<ValueId> results = po;
  for (ValueId t : to)
    if (t != kNoValue) results.push_back(t);
  r.graph = b.finish(std::move(results));
  return r;
}

ir::GraphPtr jvp(const Graph& g, const Mask& active) {
  Mask force;
  for (ValueId v : g.results) force.push_back(is_inexact(g.type(v).dtype()));
  ir::GraphPtr r = jvp_graph(g, active, force).graph;
  for (const Op& op : r->ops)
    if (op.def == &ir::ops::kCustomLinear) {
      const OpRules& rules = rules_of(*op.def);
      throw UserError(ErrorParts{"forward-mode derivative of custom_vjp",
                                 "the function must have a forward-mode rule", rules.refuse_jvp,
                                 "Use grad, vjp or jacrev, or give a custom_jvp rule"},
                      op.loc.source);
    }
  return r;
}

}  // namespace xylem::transform
