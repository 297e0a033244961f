#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/elementwise_binary.h"

namespace xylem::transform {

using ir::Builder;
using ir::Graph;
using ir::kNoValue;
using ir::Op;
using ir::Type;
using ir::ValueId;

namespace {

// Whether the region that is transposed belongs to an op behind a select.
thread_local bool region_masked = false;

void accumulate(Builder& b, ValueId& into, ValueId ct) {
  if (ct == kNoValue) return;
  into = into == kNoValue ? ct : (ir::Expr{&b, into} + ir::Expr{&b, ct}).v;
}

}  // namespace

std::vector<ValueId> backward_pass(Builder& b, const Graph& g, const Mask& linear,
                                   std::span<const ValueId> values,
                                   std::span<const ValueId> cotangents) {
  std::vector<bool> is_linear(g.values.size(), false);
  std::vector<ValueId> value(g.values.size(), kNoValue), ct(g.values.size(), kNoValue);
  std::vector<bool> masked(g.values.size(), region_masked);
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    auto v = static_cast<std::size_t>(g.params[i]);
    is_linear[v] = linear[i];
    if (!linear[i]) value[v] = values[i];
  }
  std::vector<ValueId> operands;
  for (const Op& op : g.ops) {
    bool lin = false;
    for (ValueId v : op.operands) lin = lin || is_linear[static_cast<std::size_t>(v)];
    if (lin) {
      for (ValueId r : op.results) is_linear[static_cast<std::size_t>(r)] = true;
      continue;
    }
    operands.clear();
    for (ValueId v : op.operands) operands.push_back(value[static_cast<std::size_t>(v)]);
    ir::ValueIds r = b.clone(op, operands);
    for (std::size_t i = 0; i < r.size(); ++i)
      value[static_cast<std::size_t>(op.results[i])] = r[i];
  }
  // A result that does not depend on the linear parameters takes no cotangent.
  for (std::size_t i = 0; i < g.results.size(); ++i) {
    auto v = static_cast<std::size_t>(g.results[i]);
    if (is_linear[v]) accumulate(b, ct[v], cotangents[i]);
  }
  std::vector<Type> types, result_types;
  for (std::size_t k = g.ops.size(); k-- > 0;) {
    const Op& op = g.ops[k];
    bool live = false;
    std::vector<ValueId> cts;
    for (ValueId r : op.results) {
      cts.push_back(ct[static_cast<std::size_t>(r)]);
      live = live || cts.back() != kNoValue;
    }
    if (!live) continue;
    Mask lin;
    types.clear();
    result_types.clear();
    operands.clear();
    for (ValueId v : op.operands) {
      lin.push_back(is_linear[static_cast<std::size_t>(v)]);
      operands.push_back(lin.back() ? kNoValue : value[static_cast<std::size_t>(v)]);
      types.push_back(g.type(v));
    }
    for (ValueId v : op.results) result_types.push_back(g.type(v));
    const OpRules& rules = rules_of(*op.def);
    if (!rules.transpose) {
      const char* why =
          rules.refuse_transpose ? rules.refuse_transpose : "the op has no transpose rule";
      throw UserError(ErrorParts{fmt::format("reverse-mode derivative of {}", op.def->name),
                                 "every op that is linear in the input must have a transpose", why,
                                 "Use forward mode (jvp, jacfwd), or custom_vjp around it"},
                      op.loc.source);
    }
    ir::Location saved = b.location();
    b.set_location(op.loc);
    TransposeCall call{b, op, operands, types, result_types, lin, cts, {}, false};
    for (ValueId r : op.results) call.masked = call.masked || masked[static_cast<std::size_t>(r)];
    call.operand_ct.assign(op.operands.size(), kNoValue);
    bool outside = region_masked;
    region_masked = call.masked;
    rules.transpose(call);
    region_masked = outside;
    b.set_location(saved);
    if (call.masked || op.def == &ir::ops::kSelect)
      for (ValueId v : op.operands) masked[static_cast<std::size_t>(v)] = true;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (!lin[i] || call.operand_ct[i] == kNoValue) continue;
      XYLEM_CHECK(b.type(call.operand_ct[i]) == types[i], op.def->name);
      accumulate(b, ct[static_cast<std::size_t>(op.operands[i])], call.operand_ct[i]);
    }
  }
  std::vector<ValueId> out;
  for (ValueId v : g.params) out.push_back(ct[static_cast<std::size_t>(v)]);
  return out;
}

ir::GraphPtr transpose(const Graph& linear, int num_residuals) {
  Builder b(linear.name);
  Mask mask;
  std::vector<ValueId> values, cts, results;
  for (std::size_t i = 0; i < linear.params.size(); ++i) {
    bool lin = static_cast<int>(i) >= num_residuals;
    mask.push_back(lin);
    values.push_back(lin ? kNoValue : b.param(linear.type(linear.params[i])));
  }
  for (ValueId v : linear.results) cts.push_back(b.param(linear.type(v)));
  std::vector<ValueId> ct = backward_pass(b, linear, mask, values, cts);
  for (std::size_t i = static_cast<std::size_t>(num_residuals); i < ct.size(); ++i)
    results.push_back(ct[i] != kNoValue ? ct[i] : ir::zeros(b, linear.type(linear.params[i])).v);
  return dce(*b.finish(std::move(results)));
}

ir::GraphPtr vjp(const Graph& g, const Mask& active, const Mask& outputs) {
  Linearized l = linearize(g, active, outputs);
  Builder b(g.name);
  std::vector<ValueId> args, cts;
  for (ValueId v : g.params) args.push_back(b.param(g.type(v)));
  for (ValueId v : l.linear->results) cts.push_back(b.param(l.linear->type(v)));
  std::vector<ValueId> out = b.inline_graph(*l.primal, args);
  std::vector<ValueId> values(out.begin() + static_cast<std::ptrdiff_t>(g.results.size()),
                              out.end());
  out.resize(g.results.size());
  Mask mask(values.size(), false);
  mask.resize(l.linear->params.size(), true);
  values.resize(mask.size(), kNoValue);
  std::vector<ValueId> ct = backward_pass(b, *l.linear, mask, values, cts);
  for (std::size_t i = static_cast<std::size_t>(l.num_residuals); i < ct.size(); ++i)
    out.push_back(ct[i] != kNoValue ? ct[i] : ir::zeros(b, l.linear->type(l.linear->params[i])).v);
  return dce(*b.finish(std::move(out)));
}

}  // namespace xylem::transform
