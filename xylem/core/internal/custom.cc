#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/internal/lazy_rules.h"
#include "xylem/ir/ops/all.h"

namespace xylem::internal {

using ir::Attr;
using ir::Attrs;

namespace {

void check_policy(std::string_view policy, SourceLoc where) {
  if (std::size_t both = policy.find(';'); both != std::string_view::npos) {
    check_policy(policy.substr(0, both), where);
    return check_policy(policy.substr(both + 1), where);
  }
  static constexpr std::string_view kWhole[] = {"",
                                                "nothing_saveable",
                                                "everything_saveable",
                                                "dots_saveable",
                                                "checkpoint_dots",
                                                "dots_with_no_batch_dims_saveable"};
  static constexpr std::string_view kNamed[] = {
      "save_only_these_names:", "save_any_names_but_these:", "save_anything_except_these_names:"};
  for (std::string_view p : kWhole)
    if (policy == p) return;
  for (std::string_view p : kNamed)
    if (policy.starts_with(p)) return;
  throw UserError(ErrorParts{"remat: policy", "a known policy is needed", policy,
                             "Use what a function of checkpoint_policies returns"},
                  where);
}

// Appends g with every call replaced by its body: policies look at the ops inside.
std::vector<ir::ValueId> inline_calls(ir::Builder& b, const ir::Graph& g,
                                      std::span<const ir::ValueId> args) {
  std::vector<ir::ValueId> map(g.values.size(), ir::kNoValue), operands;
  auto at = [&](ir::ValueId v) -> ir::ValueId& { return map[static_cast<std::size_t>(v)]; };
  for (std::size_t i = 0; i < args.size(); ++i) at(g.params[i]) = args[i];
  for (const ir::Op& op : g.ops) {
    operands.clear();
    for (ir::ValueId v : op.operands) operands.push_back(at(v));
    std::vector<ir::ValueId> r;
    if (op.def == &ir::ops::kCall && !op.attrs.has("exported")) {
      r = inline_calls(b, *op.regions[0], operands);
    } else {
      ir::ValueIds made = b.clone(op, operands);
      r.assign(made.begin(), made.end());
    }
    for (std::size_t i = 0; i < r.size(); ++i) at(op.results[i]) = r[i];
  }
  std::vector<ir::ValueId> out;
  for (ir::ValueId v : g.results) out.push_back(at(v));
  return out;
}

ir::GraphPtr inline_calls(const ir::GraphPtr& g) {
  ir::Builder b(g->name);
  std::vector<ir::ValueId> args;
  for (ir::ValueId v : g->params) args.push_back(b.param(g->type(v)));
  return b.finish(inline_calls(b, *g, args));
}

}  // namespace

std::vector<Array> remat(std::span<const Array> args, const std::string& policy, FlatFunction f,
                         SourceLoc where) {
  check_policy(policy, where);
  CallSite site(where);
  FlatTrace t = trace_flat(TraceKind::kBody, "remat", args, f, RefWrites::kAllow);
  t.graph = inline_calls(t.graph);
  std::vector<Array> r =
      apply(ir::ops::kRemat, t.call_args(args),
            Attrs{{"policy", Attr(policy)}, {"prevent_cse", Attr(true)}}, {t.graph}, where);
  write_back(t.refs, t.outputs.size(), r, where);
  return t.expand(std::move(r));
}

namespace {

// Captures come first in the regions of custom rules.
ir::GraphPtr captures_first(const FlatTrace& t, std::size_t own,
                            std::span<const ir::Type> all_captures, std::size_t first,
                            bool captures_taken) {
  ir::Builder b(t.graph->name);
  std::vector<ir::ValueId> captures, args;
  if (captures_taken)
    for (const ir::Type& type : all_captures) captures.push_back(b.param(type));
  for (std::size_t i = 0; i < own; ++i) args.push_back(b.param(t.graph->type(t.graph->params[i])));
  for (std::size_t i = 0; i < t.captures.size(); ++i) args.push_back(captures[first + i]);
  return b.finish(b.inline_graph(*t.graph, args));
}

bool moves(const AbstractValue& t) { return is_inexact(t.type.dtype()); }

}  // namespace

std::vector<Array> custom_jvp(std::span<const Array> args, FlatFunction primal, FlatFunction rule,
                              SourceLoc where) {
  return custom_jvp_with(args, primal, rule, nullptr, where);
}

std::vector<Array> custom_jvp_with(std::span<const Array> args, FlatFunction primal,
                                   FlatFunction rule, const ir::Attr* lazy, SourceLoc where) {
  CallSite site(where);
  FlatTrace p = trace_flat(TraceKind::kBody, "custom_jvp", args, primal);
  // The rule takes the arguments, then the tangents of the inexact ones.
  std::vector<Array> both(args.begin(), args.end());
  std::vector<AbstractValue> types;
  for (const Array& a : args) types.push_back(a.defined() ? abstract(a) : AbstractValue{});
  std::size_t n = args.size();
  for (std::size_t i = 0; i < n; ++i) {
    bool m = args[i].defined() && moves(types[i]);
    both.push_back(m ? args[i] : Array());
    types.push_back(types[i]);
  }
  FlatTrace r = trace_flat(TraceKind::kBody, "custom_jvp rule", both, types, rule);
  std::size_t outs = p.num_results();
  if (r.num_results() != 2 * outs)
    throw UserError(
        ErrorParts{"custom_jvp", "the rule must return a pair of results and their tangents",
                   fmt::format("the function has {} result leaves, the rule returns {} leaves",
                               outs, r.num_results()),
                   "Return std::pair{out, tangent_out} with tangents of the results' structure"},
        where);
  // Tangents of results without one are dropped.
  ir::Graph rule_graph = *r.graph;
  std::vector<ir::ValueId> results;
  std::size_t next = 0, primal_next = 0;
  for (std::size_t i = 0; i < 2 * outs; ++i) {
    if (!r.result_defined[i]) continue;
    ir::ValueId v = rule_graph.results[next++];
    if (i < outs) {
      results.push_back(v);
      continue;
    }
    if (!p.result_defined[i - outs]) continue;
    const AbstractValue& want = p.outputs[primal_next++];
    if (!moves(want)) continue;
    if (!(rule_graph.type(v) == want.type))
      throw UserError(ErrorParts{fmt::format("custom_jvp: tangent {} of the rule", i - outs),
                                 fmt::format("expected {}", want.type.to_string()),
                                 fmt::format("given {}", rule_graph.type(v).to_string()),
                                 "Give the tangent the shape and dtype of its result"},
                      where);
    results.push_back(v);
  }
  rule_graph.results = std::move(results);
  rule_graph.result_attrs.clear();
  FlatTrace rule_trace = r;
  rule_trace.graph = std::make_shared<const ir::Graph>(std::move(rule_graph));

  std::vector<Array> call;
  std::vector<ir::Type> types_c;
  for (const FlatTrace* t : {&p, &r})
    for (const Array& a : t->captures) {
      call.push_back(a);
      types_c.push_back(a.node()->type);
    }
  std::size_t own = 0, own_rule = 0;
  for (const Array& a : args) own += a.defined();
  for (const Array& a : both) own_rule += a.defined();
  for (const Array& a : args)
    if (a.defined()) call.push_back(a);
  Attrs attrs{{"num_consts", Attr(static_cast<std::int64_t>(types_c.size()))}};
  if (lazy) attrs.set("lazy_rule", *lazy);
  return p.expand(apply(ir::ops::kCustomJvp, call, std::move(attrs),
                        {captures_first(p, own, types_c, 0, true),
                         captures_first(rule_trace, own_rule, types_c, p.captures.size(), true)},
                        where));
}

std::vector<Array> custom_vjp(std::span<const Array> args, FlatFunction primal,
                              FlatFunction forward, FlatFunction backward, SourceLoc where) {
  CallSite site(where);
  FlatTrace p = trace_flat(TraceKind::kBody, "custom_vjp", args, primal);
  FlatTrace f = trace_flat(TraceKind::kBody, "custom_vjp forward", args, forward);
  std::size_t outs = p.num_results(), dense_outs = p.outputs.size();
  if (f.num_results() < outs || f.outputs.size() < dense_outs)
    throw UserError(ErrorParts{"custom_vjp", "the forward function must return (result, residuals)",
                               fmt::format("the function has {} result leaves, forward returns {}",
                                           outs, f.num_results()),
                               "Return std::pair{result, residuals}"},
                    where);
  // The backward function takes the residuals, then the cotangents of the inexact results.
  std::vector<AbstractValue> types;
  std::vector<Array> stand_ins;
  std::size_t next = dense_outs;
  auto add = [&](bool defined, const AbstractValue& t) {
    types.push_back(t);
    stand_ins.push_back(defined ? make_abstract({t.type.dims(), t.type.dtype(), t.weak}) : Array());
  };
  for (std::size_t i = outs; i < f.num_results(); ++i) {
    bool d = f.result_defined[i];
    add(d, d ? f.outputs[next++] : AbstractValue{});
  }
  next = 0;
  for (std::size_t i = 0; i < outs; ++i) {
    bool d = p.result_defined[i] && moves(p.outputs[next]);
    add(d, d ? p.outputs[next] : AbstractValue{});
    if (p.result_defined[i]) ++next;
  }
  FlatTrace b = trace_flat(TraceKind::kBody, "custom_vjp backward", stand_ins, types, backward);
  if (b.num_results() != args.size())
    throw UserError(
        ErrorParts{"custom_vjp", "the backward function returns one cotangent per argument",
                   fmt::format("there are {} argument leaves, it returns {}", args.size(),
                               b.num_results()),
                   "Return a tuple of cotangents of the arguments' structure"},
        where);
  // One cotangent for every inexact argument; zeros where the rule gives none.
  ir::Graph bg = *b.graph;
  {
    ir::Builder builder(bg.name);
    std::vector<ir::ValueId> in;
    for (ir::ValueId v : bg.params) in.push_back(builder.param(bg.type(v)));
    std::vector<ir::ValueId> r = builder.inline_graph(bg, in), results;
    std::size_t at = 0;
    for (std::size_t i = 0; i < args.size(); ++i) {
      ir::ValueId v = b.result_defined[i] ? r[at++] : ir::kNoValue;
      if (!args[i].defined() || !is_inexact(args[i].dtype())) continue;
      if (v == ir::kNoValue) v = builder.splat(args[i].dtype(), args[i].shape(), 0);
      if (!(builder.type(v) == args[i].node()->type))
        throw UserError(
            ErrorParts{fmt::format("custom_vjp: cotangent {} of the backward function", i),
                       fmt::format("expected {}", args[i].type_string()),
                       fmt::format("given {}", builder.type(v).to_string()),
                       "Give the cotangent the shape and dtype of its argument"},
            where);
      results.push_back(v);
    }
    FlatTrace padded = b;
    padded.graph = builder.finish(std::move(results));
    b = std::move(padded);
  }
  std::vector<Array> call;
  std::vector<ir::Type> types_c;
  for (const FlatTrace* t : {&p, &f, &b})
    for (const Array& a : t->captures) {
      call.push_back(a);
      types_c.push_back(a.node()->type);
    }
  std::size_t own = 0, own_back = 0;
  for (const Array& a : args) own += a.defined();
  for (const Array& a : stand_ins) own_back += a.defined();
  for (const Array& a : args)
    if (a.defined()) call.push_back(a);
  // What the backward function closes over travels as residuals.
  std::size_t back_first = p.captures.size() + f.captures.size();
  ir::GraphPtr fwd = captures_first(f, own, types_c, p.captures.size(), true);
  ir::GraphPtr back = b.graph;
  if (!b.captures.empty()) {
    ir::Graph g = *fwd;
    for (std::size_t i = 0; i < b.captures.size(); ++i)
      g.results.push_back(g.params[back_first + i]);
    fwd = std::make_shared<const ir::Graph>(std::move(g));
    std::size_t residuals = f.outputs.size() - dense_outs;
    std::vector<int> order;  // residuals, captures, cotangents
    for (std::size_t i = 0; i < residuals; ++i) order.push_back(static_cast<int>(i));
    for (std::size_t i = own_back; i < back->params.size(); ++i)
      order.push_back(static_cast<int>(i));
    for (std::size_t i = residuals; i < own_back; ++i) order.push_back(static_cast<int>(i));
    ir::Builder builder(back->name);
    std::vector<ir::ValueId> in(order.size());
    for (int o : order)
      in[static_cast<std::size_t>(o)] =
          builder.param(back->type(back->params[static_cast<std::size_t>(o)]));
    back = builder.finish(builder.inline_graph(*back, in));
  }
  return p.expand(apply(ir::ops::kCustomVjp, call,
                        Attrs{{"num_consts", Attr(static_cast<std::int64_t>(types_c.size()))}},
                        {captures_first(p, own, types_c, 0, true), fwd, back}, where));
}

Array make_abstract(const ShapeDtype& t) {
  num_elements(t.shape);  // refuses sizes that cannot be
  // A parameter of a trace of its own: it has a type and nothing else.
  auto holder = std::make_shared<Trace>(TraceKind::kBody, "abstract value");
  return holder->add_argument({ir::Type::tensor(t.dtype, t.shape), t.weak}, Array());
}

std::vector<Array> eval_shape(std::span<const Array> args, FlatFunction f, SourceLoc where) {
  CallSite site(where);
  FlatTrace t = trace_flat(TraceKind::kBody, "eval_shape", args, f, RefWrites::kAllow);
  std::vector<Array> out;
  std::size_t next = 0;
  for (bool d : t.result_defined) {
    if (!d) {
      out.push_back(Array());
      continue;
    }
    const AbstractValue& v = t.outputs[next++];
    out.push_back(make_abstract({v.type.dims(), v.type.dtype(), v.weak}));
  }
  return out;
}

}  // namespace xylem::internal
