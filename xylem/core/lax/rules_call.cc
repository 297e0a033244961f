// Derivatives, partial evaluation, transpose and batching of calls, rematerialisation and custom
// rules.

#include <numeric>
#include <string>

#include "xylem/core/internal/lazy_rules.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Expr;
using ir::GraphPtr;
using ir::kNoValue;
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

// --- call: inlined ---------------------------------------------------------------------------

// A call of an imported program has no rules but its own derivative.
bool imported(const ir::Op& op) { return op.attrs.has("exported"); }

void call_jvp(JvpCall& c) {
  if (imported(c.op))
    throw_user_error(
        {"derivative of " + c.op.attrs.str("name"),
         "an imported program with its derivative, in reverse mode",
         "it was serialized without derivatives of this order, or this is forward mode",
         "Serialize it with a higher vjp_order, and use grad or vjp"},
        c.op.loc.source);
  jvp_into(c.b, *c.op.regions[0], c.primals, c.tangents, c.primal_out, c.tangent_out);
}

void call_batch(BatchCall& c) {
  if (imported(c.op))
    throw_user_error(
        {"vmap of " + c.op.attrs.str("name"),
         "a function that can be mapped: an imported program cannot, as in JAX",
         "a call with mapped arguments", "Export the mapped function, or use map instead of vmap"},
        c.op.loc.source);
  batch_into(c.b, *c.op.regions[0], c.operands, c.dims, c.size, c.axis_name, c.results,
             c.result_dims);
}

void call_transpose(TransposeCall& c) {
  c.operand_ct = backward_pass(c.b, *c.op.regions[0], c.linear, c.operands, c.cotangents);
}

// --- remat -----------------------------------------------------------------------------------

void remat_jvp(JvpCall& c) {
  Mask in;
  for (ValueId t : c.tangents) in.push_back(t != kNoValue);
  JvpGraph j = jvp_graph(*c.op.regions[0], in);
  std::vector<ValueId> operands(c.primals.begin(), c.primals.end());
  for (ValueId t : c.tangents)
    if (t != kNoValue) operands.push_back(t);
  ir::ValueIds r = c.b.op(ops::kRemat, operands, c.op.attrs, {j.graph});
  std::size_t n = c.op.results.size(), next = n;
  for (std::size_t i = 0; i < n; ++i) {
    c.primal_out.push_back(r[i]);
    c.tangent_out.push_back(j.out[i] ? r[next++] : kNoValue);
  }
}

// Which values of the known part a policy keeps.
bool saveable(std::string_view policy, const ir::Op& op) {
  if (std::size_t both = policy.find(';'); both != std::string_view::npos)
    return saveable(policy.substr(0, both), op) || saveable(policy.substr(both + 1), op);
  if (policy == "everything_saveable") return true;
  bool dot = op.def == &ops::kDotGeneral;
  if (policy == "dots_saveable" || policy == "checkpoint_dots")
    return dot || op.def == &ops::kConvolution;
  if (policy == "dots_with_no_batch_dims_saveable")
    return dot && op.attrs.dims_or("lhs_batching_dimensions", {}).empty();
  auto listed = [&](std::string_view prefix) {
    if (op.def != &ops::kCheckpointName) return false;
    std::string names = "," + std::string(policy.substr(prefix.size())) + ",";
    return names.find("," + op.attrs.str("name") + ",") != std::string::npos;
  };
  constexpr std::string_view kOnly = "save_only_these_names:";
  constexpr std::string_view kBut = "save_any_names_but_these:";
  if (policy.starts_with(kOnly)) return listed(kOnly);
  if (policy.starts_with(kBut)) return op.def == &ops::kCheckpointName && !listed(kBut);
  constexpr std::string_view kExcept = "save_anything_except_these_names:";
  if (policy.starts_with(kExcept)) return !listed(kExcept);
  return false;
}

// The region with its saveable values as extra results.
GraphPtr with_saved(const ir::Graph& g, std::string_view policy, const Mask& known,
                    std::vector<ValueId>& saved) {
  std::vector<bool> is_known(g.values.size(), false);
  for (std::size_t i = 0; i < g.params.size(); ++i)
    is_known[static_cast<std::size_t>(g.params[i])] = known[i];
  for (const ir::Op& op : g.ops) {
    bool k = true;
    for (ValueId v : op.operands) k = k && is_known[static_cast<std::size_t>(v)];
    for (ValueId r : op.results) {
      is_known[static_cast<std::size_t>(r)] = k;
      if (k && !op.operands.empty() && saveable(policy, op)) saved.push_back(r);
    }
  }
  ir::Graph out = g;
  out.result_attrs.clear();
  for (ValueId v : saved) out.results.push_back(v);
  return std::make_shared<const ir::Graph>(std::move(out));
}

// Known results are computed once; the unknown part computes again what it needs from the inputs
// and the saved values.
void remat_partial(PartialCall& c) {
  const ir::Graph& region = *c.op.regions[0];
  std::size_t n = region.results.size();
  std::string policy = c.op.attrs.str_or("policy", "");
  Partial p = partial_eval(region, c.known);
  std::vector<ValueId> saved;
  GraphPtr extended = with_saved(region, policy, c.known, saved);

  // Known part: known results and saved values.
  ir::Graph known_graph = *extended;
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < n; ++i)
    if (p.result_known[i]) results.push_back(region.results[i]);
  std::size_t num_known = results.size();
  results.insert(results.end(), saved.begin(), saved.end());
  known_graph.results = results;
  Partial k = partial_eval(known_graph, c.known);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.known.size(); ++i)
    if (c.known[i]) operands.push_back(c.operands[i]);
  std::vector<ValueId> kr;
  if (!results.empty()) {
    ir::Graph trimmed = *k.known;
    trimmed.results.resize(results.size());
    kr = c.kb.inline_graph(*dce(trimmed), operands);
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (p.result_known[i]) c.known_results[i] = kr[at++];

  // Unknown part: the region with saved values replaced by parameters, unknown results only.
  Builder b(region.name);
  std::vector<ValueId> map(region.values.size(), kNoValue), outer;
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    map[static_cast<std::size_t>(region.params[i])] = b.param(region.type(region.params[i]));
    outer.push_back(kNoValue);
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    map[static_cast<std::size_t>(saved[i])] = b.param(region.type(saved[i]));
    outer.push_back(kr[num_known + i]);
  }
  for (const ir::Op& op : region.ops) {
    std::vector<ValueId> ids;
    for (ValueId v : op.operands) ids.push_back(map[static_cast<std::size_t>(v)]);
    ir::ValueIds r = b.clone(op, ids);
    for (std::size_t i = 0; i < r.size(); ++i) {
      ValueId& m = map[static_cast<std::size_t>(op.results[i])];
      if (m == kNoValue) m = r[i];
    }
  }
  results.clear();
  for (std::size_t i = 0; i < n; ++i)
    if (!p.result_known[i]) results.push_back(map[static_cast<std::size_t>(region.results[i])]);
  GraphPtr unknown = dce(*b.finish(std::move(results)));
  // Inputs that the unknown part does not read are not passed on.
  std::vector<bool> used(unknown->values.size(), false);
  for (const ir::Op& op : unknown->ops)
    for (ValueId v : op.operands) used[static_cast<std::size_t>(v)] = true;
  for (ValueId v : unknown->results) used[static_cast<std::size_t>(v)] = true;
  Builder slim(region.name);
  std::vector<ValueId> args, call;
  for (std::size_t i = 0; i < unknown->params.size(); ++i) {
    ValueId v = unknown->params[i];
    if (!used[static_cast<std::size_t>(v)]) {
      args.push_back(kNoValue);
      continue;
    }
    args.push_back(slim.param(unknown->type(v)));
    call.push_back(outer[i] != kNoValue ? c.residual(outer[i]) : c.unknown_operand(i));
  }
  std::vector<ValueId> slim_results = slim.inline_graph(*unknown, args);
  ir::ValueIds u = c.ub.op(ops::kRemat, call, c.op.attrs, {slim.finish(std::move(slim_results))});
  at = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (!p.result_known[i]) c.unknown_results[i] = u[at++];
}

// The transposed region computes the known values again, inside a remat op so that they are not
// merged with those of the forward pass.
void remat_transpose(TransposeCall& c) {
  const ir::Graph& region = *c.op.regions[0];
  std::size_t n = region.results.size();
  Mask known;
  for (bool l : c.linear) known.push_back(!l);
  Partial p = partial_eval(region, known, Mask(n, true));
  Builder b(region.name);
  std::vector<ValueId> args, operands, cts(n, kNoValue), results;
  for (std::size_t i = 0; i < region.params.size(); ++i) {
    if (c.linear[i]) continue;
    args.push_back(b.param(region.type(region.params[i])));
    operands.push_back(c.operands[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (c.cotangents[i] == kNoValue) continue;
    cts[i] = b.param(c.result_types[i]);
    operands.push_back(c.cotangents[i]);
  }
  std::vector<ValueId> values = b.inline_graph(*p.known, args);
  values.resize(p.unknown->params.size(), kNoValue);
  Mask linear(static_cast<std::size_t>(p.num_residuals), false);
  linear.resize(p.unknown->params.size(), true);
  std::vector<ValueId> ct = backward_pass(b, *p.unknown, linear, values, cts);
  std::vector<std::size_t> where;
  std::size_t at = static_cast<std::size_t>(p.num_residuals);
  for (std::size_t i = 0; i < c.linear.size(); ++i) {
    if (!c.linear[i]) continue;
    if (ct[at] != kNoValue) {
      results.push_back(ct[at]);
      where.push_back(i);
    }
    ++at;
  }
  if (results.empty()) return;
  ir::ValueIds r = c.b.op(ops::kRemat, operands, c.op.attrs, {b.finish(std::move(results))});
  for (std::size_t i = 0; i < where.size(); ++i) c.operand_ct[where[i]] = r[i];
}

void remat_batch(BatchCall& c) {
  Mask in;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    in.push_back(c.dims[i] != kNotMapped);
    operands.push_back(in.back() ? batch_to_front(c.b, c.operands[i], c.dims[i], c.size)
                                 : c.operands[i]);
  }
  BatchedRegion r = batch_region(*c.op.regions[0], in, c.size, c.axis_name);
  ir::ValueIds s = c.b.op(*c.op.def, operands, c.op.attrs, {r.graph});
  for (std::size_t i = 0; i < s.size(); ++i) {
    c.results.push_back(s[i]);
    c.result_dims.push_back(r.out[i] ? 0 : kNotMapped);
  }
}

// --- custom_jvp ------------------------------------------------------------------------------

Mask inexact_from(const ir::Graph& g, std::size_t first) {
  Mask m(g.params.size(), false);
  for (std::size_t i = first; i < g.params.size(); ++i)
    m[i] = is_inexact(g.type(g.params[i]).dtype());
  return m;
}

// The rule as a graph for the tangents that are not zero.
void lazy_jvp(JvpCall& c, const ir::Attr& rule, std::size_t consts) {
  std::vector<Type> types, results;
  Mask moving;
  std::vector<ValueId> args;
  for (std::size_t i = consts; i < c.primals.size(); ++i) {
    types.push_back(c.b.type(c.primals[i]));
    moving.push_back(c.tangents[i] != kNoValue);
    args.push_back(c.primals[i]);
  }
  for (std::size_t i = consts; i < c.primals.size(); ++i)
    if (c.tangents[i] != kNoValue) args.push_back(c.tangents[i]);
  const ir::Graph& primal = *c.op.regions[0];
  for (ValueId v : primal.results) results.push_back(primal.type(v));
  internal::LazyGraph g =
      internal::apply_lazy_rule(*rule.get<HostArray>(), types, moving, results, c.op.loc.source);
  std::vector<ValueId> r = c.b.inline_graph(*g.graph, args);
  std::size_t next = results.size();
  for (std::size_t i = 0; i < results.size(); ++i) {
    c.primal_out.push_back(r[i]);
    const bool moves = g.out[i] && is_inexact(results[i].dtype());
    const ValueId t = g.out[i] ? r[next++] : kNoValue;
    c.tangent_out.push_back(moves ? t : kNoValue);
  }
}

void custom_jvp_jvp(JvpCall& c) {
  auto consts = static_cast<std::size_t>(c.op.attrs.i64_or("num_consts", 0));
  const ir::Graph& primal = *c.op.regions[0];
  for (std::size_t i = 0; i < consts; ++i)
    if (c.tangents[i] != kNoValue)
      throw_user_error({"custom_jvp", "the function must not close over differentiated values",
                        "a captured value has a tangent", "Pass it as an argument"},
                       c.op.loc.source);
  if (const ir::Attr* lazy = c.op.attrs.find("lazy_rule")) return lazy_jvp(c, *lazy, consts);
  Mask moves = inexact_from(primal, consts);
  std::vector<ValueId> args(c.primals.begin(), c.primals.end());
  for (std::size_t i = consts; i < moves.size(); ++i)
    if (moves[i])
      args.push_back(c.tangents[i] != kNoValue ? c.tangents[i]
                                               : ir::zeros(c.b, c.b.type(c.primals[i])).v);
  std::vector<ValueId> r = c.b.inline_graph(*c.op.regions[1], args);
  std::size_t n = c.op.results.size(), next = n;
  for (std::size_t i = 0; i < n; ++i) {
    c.primal_out.push_back(r[i]);
    c.tangent_out.push_back(is_inexact(c.b.type(r[i]).dtype()) ? r[next++] : kNoValue);
  }
}

// All parts of the rule see every argument and result mapped.
void custom_jvp_batch(BatchCall& c) {
  auto consts = static_cast<std::size_t>(c.op.attrs.i64_or("num_consts", 0));
  const ir::Graph& primal = *c.op.regions[0];
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
  Mask all_in(primal.params.size(), true), all_out(primal.results.size(), true);
  GraphPtr p = batch_region(primal, all_in, c.size, c.axis_name, all_out).graph;
  const ir::Graph& rule = *c.op.regions[1];
  GraphPtr j = batch_region(rule, Mask(rule.params.size(), true), c.size, c.axis_name,
                            Mask(rule.results.size(), true))
                   .graph;
  (void)consts;
  Attrs attrs = c.op.attrs;
  attrs.erase("lazy_rule");  // mapped, the rule is the one that takes every tangent
  ir::ValueIds r = c.b.op(ops::kCustomJvp, operands, std::move(attrs), {p, j});
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

// --- custom_vjp ------------------------------------------------------------------------------

void custom_vjp_jvp(JvpCall& c) {
  auto consts = static_cast<std::size_t>(c.op.attrs.i64_or("num_consts", 0));
  const ir::Graph& primal = *c.op.regions[0];
  Mask moves = inexact_from(primal, consts);
  for (std::size_t i = 0; i < consts; ++i)
    if (c.tangents[i] != kNoValue)
      throw_user_error({"custom_vjp", "the function must not close over differentiated values",
                        "a captured value has a tangent", "Pass it as an argument"},
                       c.op.loc.source);
  std::vector<ValueId> r = c.b.inline_graph(*c.op.regions[1], c.primals);
  std::size_t n = c.op.results.size();
  std::vector<ValueId> operands(r.begin() + static_cast<std::ptrdiff_t>(n), r.end());
  auto residuals = static_cast<std::int64_t>(operands.size());
  for (std::size_t i = consts; i < moves.size(); ++i)
    if (moves[i])
      operands.push_back(c.tangents[i] != kNoValue ? c.tangents[i]
                                                   : ir::zeros(c.b, c.b.type(c.primals[i])).v);
  ir::ValueIds t = c.b.op(ops::kCustomLinear, operands, Attrs{{"num_residuals", Attr(residuals)}},
                          {c.op.regions[2]});
  std::size_t next = 0;
  for (std::size_t i = 0; i < n; ++i) {
    c.primal_out.push_back(r[i]);
    c.tangent_out.push_back(is_inexact(c.b.type(r[i]).dtype()) ? t[next++] : kNoValue);
  }
}

void custom_vjp_batch(BatchCall& c) {
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
  std::vector<GraphPtr> regions;
  for (const GraphPtr& g : c.op.regions)
    regions.push_back(batch_region(*g, Mask(g->params.size(), true), c.size, c.axis_name,
                                   Mask(g->results.size(), true))
                          .graph);
  ir::ValueIds r = c.b.op(ops::kCustomVjp, operands, c.op.attrs, regions);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

void custom_linear_transpose(TransposeCall& c) {
  auto residuals = static_cast<std::size_t>(c.op.attrs.i64("num_residuals"));
  std::vector<ValueId> args(c.operands.begin(),
                            c.operands.begin() + static_cast<std::ptrdiff_t>(residuals));
  for (std::size_t i = 0; i < c.cotangents.size(); ++i)
    args.push_back(c.cotangents[i] != kNoValue ? c.cotangents[i]
                                               : ir::zeros(c.b, c.result_types[i]).v);
  std::vector<ValueId> r = c.b.inline_graph(*c.op.regions[0], args);
  for (std::size_t i = 0; i < r.size(); ++i)
    if (c.linear[residuals + i]) c.operand_ct[residuals + i] = r[i];
}

// Mapped residuals: the backward function is mapped.
void custom_linear_batch(BatchCall& c) {
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
  const ir::Graph& g = *c.op.regions[0];
  GraphPtr region = batch_region(g, Mask(g.params.size(), true), c.size, c.axis_name,
                                 Mask(g.results.size(), true))
                        .graph;
  ir::ValueIds r = c.b.op(ops::kCustomLinear, operands, c.op.attrs, {region});
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

}  // namespace

void register_call_rules(RuleTable& t) {
  t[ops::kCall].jvp = call_jvp;
  t[ops::kCall].batch = call_batch;
  t[ops::kCall].transpose = call_transpose;
  t[ops::kRemat].jvp = remat_jvp;
  t[ops::kRemat].partial = remat_partial;
  t[ops::kRemat].transpose = remat_transpose;
  t[ops::kRemat].batch = remat_batch;
  t[ops::kCustomJvp].jvp = custom_jvp_jvp;
  t[ops::kCustomJvp].batch = custom_jvp_batch;
  t[ops::kCustomVjp].jvp = custom_vjp_jvp;
  t[ops::kCustomVjp].batch = custom_vjp_batch;
  t[ops::kCustomLinear].transpose = custom_linear_transpose;
  t[ops::kCustomLinear].batch = custom_linear_batch;
  t[ops::kCustomLinear].refuse_jvp =
      "the derivative of a custom_vjp function is known in reverse mode only";
}

}  // namespace xylem::transform
