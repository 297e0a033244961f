// Derivatives, partial evaluation, transpose and batching of while, if and case.

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

Attrs captures(const ir::Op& op, std::size_t n) {
  Attrs a = op.attrs;
  a.set("num_captures", Attr(static_cast<std::int64_t>(n)));
  return a;
}

// --- if, case: operand 0 selects, the others are passed to every branch -----------------------

void branch_jvp(JvpCall& c) {
  Mask in;
  for (std::size_t i = 1; i < c.tangents.size(); ++i) in.push_back(c.tangents[i] != kNoValue);
  Mask out(c.op.results.size(), false);
  for (const GraphPtr& r : c.op.regions) {
    Mask m = jvp_graph(*r, in).out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || m[i];
  }
  std::vector<GraphPtr> regions;
  for (const GraphPtr& r : c.op.regions) {
    // Branches agree on the tangents that they return.
    JvpGraph j = jvp_graph(*r, in, out);
    regions.push_back(j.graph);
  }
  std::vector<ValueId> operands(c.primals.begin(), c.primals.end());
  for (std::size_t i = 1; i < c.tangents.size(); ++i)
    if (c.tangents[i] != kNoValue) operands.push_back(c.tangents[i]);
  ir::ValueIds r = c.b.op(*c.op.def, operands, captures(c.op, operands.size() - 1), regions);
  std::size_t n = out.size(), next = n;
  for (std::size_t i = 0; i < n; ++i) {
    c.primal_out.push_back(r[i]);
    c.tangent_out.push_back(out[i] ? r[next++] : kNoValue);
  }
}

void branch_partial(PartialCall& c) {
  XYLEM_CHECK(c.known[0], "the predicate of a branch has no tangent");
  Mask known(c.known.begin() + 1, c.known.end());
  std::size_t n = c.op.results.size();
  // A result is known if it is known in every branch.
  Mask unknown(n, false);
  for (const GraphPtr& r : c.op.regions) {
    Mask k = partial_eval(*r, known).result_known;
    for (std::size_t i = 0; i < n; ++i) unknown[i] = unknown[i] || !k[i];
  }
  std::vector<Partial> parts;
  std::vector<Type> residual_types;  // of all branches, one after the other
  for (const GraphPtr& r : c.op.regions) {
    parts.push_back(partial_eval(*r, known, unknown));
    const Partial& p = parts.back();
    for (int i = 0; i < p.num_residuals; ++i)
      residual_types.push_back(p.unknown->type(p.unknown->params[static_cast<std::size_t>(i)]));
  }
  std::vector<GraphPtr> known_regions, unknown_regions;
  std::size_t first = 0;
  for (const Partial& p : parts) {
    auto own = static_cast<std::size_t>(p.num_residuals);
    // Known part: own residuals, zeros for those of the other branches.
    Builder kb;
    std::vector<ValueId> args;
    for (ValueId v : p.known->params) args.push_back(kb.param(p.known->type(v)));
    std::vector<ValueId> r = kb.inline_graph(*p.known, args);
    std::size_t results = r.size() - own;
    std::vector<ValueId> all(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(results));
    for (std::size_t i = 0; i < residual_types.size(); ++i)
      all.push_back(i >= first && i < first + own ? r[results + i - first]
                                                  : ir::zeros(kb, residual_types[i]).v);
    known_regions.push_back(kb.finish(std::move(all)));
    // Unknown part: takes everybody's residuals and uses its own.
    Builder ub;
    std::vector<ValueId> residuals, uargs;
    for (const Type& t : residual_types) residuals.push_back(ub.param(t));
    for (std::size_t i = 0; i < own; ++i) uargs.push_back(residuals[first + i]);
    for (std::size_t i = own; i < p.unknown->params.size(); ++i)
      uargs.push_back(ub.param(p.unknown->type(p.unknown->params[i])));
    unknown_regions.push_back(ub.finish(ub.inline_graph(*p.unknown, uargs)));
    first += own;
  }
  std::vector<ValueId> operands = {c.operands[0]};
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i]) operands.push_back(c.operands[i + 1]);
  ir::ValueIds k = c.kb.op(*c.op.def, operands, captures(c.op, operands.size() - 1), known_regions);
  std::vector<ValueId> outer = {c.unknown_operand(0)};
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (!unknown[i]) c.known_results[i] = k[at++];
  for (std::size_t i = 0; i < residual_types.size(); ++i) outer.push_back(c.residual(k[at++]));
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!known[i]) outer.push_back(c.unknown_operand(i + 1));
  ir::ValueIds u = c.ub.op(*c.op.def, outer, captures(c.op, outer.size() - 1), unknown_regions);
  at = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (unknown[i]) c.unknown_results[i] = u[at++];
}

void branch_transpose(TransposeCall& c) {
  XYLEM_CHECK(!c.linear[0], "the predicate of a branch is not linear");
  std::size_t n = c.op.results.size();
  std::vector<ValueId> operands = {c.operands[0]};
  for (std::size_t i = 1; i < c.linear.size(); ++i)
    if (!c.linear[i]) operands.push_back(c.operands[i]);
  for (std::size_t i = 0; i < n; ++i)
    if (c.cotangents[i] != kNoValue) operands.push_back(c.cotangents[i]);
  Mask linear(c.linear.begin() + 1, c.linear.end());
  std::vector<GraphPtr> regions;
  for (const GraphPtr& r : c.op.regions) {
    Builder b;
    std::vector<ValueId> values(r->params.size(), kNoValue), cts(n, kNoValue), results;
    for (std::size_t i = 0; i < linear.size(); ++i)
      if (!linear[i]) values[i] = b.param(r->type(r->params[i]));
    for (std::size_t i = 0; i < n; ++i)
      if (c.cotangents[i] != kNoValue) cts[i] = b.param(c.result_types[i]);
    std::vector<ValueId> ct = backward_pass(b, *r, linear, values, cts);
    for (std::size_t i = 0; i < linear.size(); ++i)
      if (linear[i]) results.push_back(ct[i] != kNoValue ? ct[i] : ir::zeros(b, c.types[i + 1]).v);
    regions.push_back(b.finish(std::move(results)));
  }
  ir::ValueIds r = c.b.op(*c.op.def, operands, captures(c.op, operands.size() - 1), regions);
  std::size_t at = 0;
  for (std::size_t i = 0; i < linear.size(); ++i)
    if (linear[i]) c.operand_ct[i + 1] = r[at++];
}

// A mapped predicate runs every branch and selects.
void branch_batch(BatchCall& c) {
  Mask in;
  std::vector<ValueId> operands = {c.operands[0]};
  bool mapped_predicate = c.dims[0] != kNotMapped;
  for (std::size_t i = 1; i < c.operands.size(); ++i) {
    in.push_back(c.dims[i] != kNotMapped);
    operands.push_back(in.back() ? batch_to_front(c.b, c.operands[i], c.dims[i], c.size)
                                 : c.operands[i]);
  }
  std::size_t n = c.op.results.size();
  Mask out(n, mapped_predicate);
  for (const GraphPtr& r : c.op.regions) {
    Mask m = batch_region(*r, in, c.size, c.axis_name).out;
    for (std::size_t i = 0; i < n; ++i) out[i] = out[i] || m[i];
  }
  std::vector<GraphPtr> regions;
  for (const GraphPtr& r : c.op.regions)
    regions.push_back(batch_region(*r, in, c.size, c.axis_name, out).graph);
  for (bool m : out) c.result_dims.push_back(m ? 0 : kNotMapped);
  if (!mapped_predicate) {
    ir::ValueIds r = c.b.op(*c.op.def, operands, captures(c.op, operands.size() - 1), regions);
    c.results.assign(r.begin(), r.end());
    return;
  }
  std::vector<ValueId> args(operands.begin() + 1, operands.end());
  Expr index{&c.b, c.operands[0]};
  bool is_if = c.op.def == &ops::kIf;
  auto pick = [&](Expr condition, std::vector<ValueId> yes, const std::vector<ValueId>& no) {
    for (std::size_t i = 0; i < n; ++i) {
      Expr a{&c.b, yes[i]}, b{&c.b, no[i]};
      yes[i] = ir::select(ir::broadcast_in_dim(condition, a.dims(), Dims{0}), a, b).v;
    }
    return yes;
  };
  if (is_if) {
    std::vector<ValueId> yes = c.b.inline_graph(*regions[0], args);
    c.results = pick(index, yes, c.b.inline_graph(*regions[1], args));
    return;
  }
  // An index out of range takes the last branch.
  c.results = c.b.inline_graph(*regions.back(), args);
  for (std::size_t k = regions.size() - 1; k-- > 0;)
    c.results = pick(ir::compare(index, static_cast<double>(k), "EQ"),
                     c.b.inline_graph(*regions[k], args), c.results);
}

// --- while: carried values, then captures -----------------------------------------------------

void while_jvp(JvpCall& c) {
  std::size_t n = c.op.results.size(), all = c.primals.size();
  const ir::Graph &cond = *c.op.regions[0], &body = *c.op.regions[1];
  Mask in;
  for (ValueId t : c.tangents) in.push_back(t != kNoValue);
  for (bool changed = true; changed;) {
    Mask out = jvp_graph(body, in).out;
    changed = false;
    for (std::size_t i = 0; i < n; ++i)
      if (out[i] && !in[i]) in[i] = changed = true;
  }
  Mask force(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
  JvpGraph j = jvp_graph(body, in, force);
  // Parameters: carried, their tangents, captures, their tangents.
  auto params = [&](Builder& b, std::vector<ValueId>& primal, std::vector<ValueId>& tangent) {
    primal.resize(all);
    for (std::size_t from : {std::size_t{0}, n}) {
      std::size_t to = from == 0 ? n : all;
      for (std::size_t i = from; i < to; ++i) primal[i] = b.param(body.type(body.params[i]));
      for (std::size_t i = from; i < to; ++i)
        if (in[i]) tangent.push_back(b.param(body.type(body.params[i])));
    }
  };
  Builder cb, bb;
  std::vector<ValueId> primal, tangent;
  params(cb, primal, tangent);
  GraphPtr new_cond = cb.finish(cb.inline_graph(cond, primal));
  tangent.clear();
  params(bb, primal, tangent);
  primal.insert(primal.end(), tangent.begin(), tangent.end());
  GraphPtr new_body = bb.finish(bb.inline_graph(*j.graph, primal));
  std::vector<ValueId> operands;
  std::size_t carried = n;
  for (std::size_t from : {std::size_t{0}, n}) {
    std::size_t to = from == 0 ? n : all;
    for (std::size_t i = from; i < to; ++i) operands.push_back(c.primals[i]);
    for (std::size_t i = from; i < to; ++i) {
      if (!in[i]) continue;
      operands.push_back(c.tangents[i] != kNoValue ? c.tangents[i]
                                                   : ir::zeros(c.b, c.b.type(c.primals[i])).v);
      if (from == 0) ++carried;
    }
  }
  ir::ValueIds r = c.b.op(ops::kWhile, operands, captures(c.op, operands.size() - carried),
                          {new_cond, new_body});
  std::size_t next = n;
  for (std::size_t i = 0; i < n; ++i) {
    c.primal_out.push_back(r[i]);
    c.tangent_out.push_back(in[i] ? r[next++] : kNoValue);
  }
}

// The known carries run in a loop of their own; the loop with the unknown ones runs them again.
void while_partial(PartialCall& c) {
  std::size_t n = c.op.results.size();
  const ir::Graph &cond = *c.op.regions[0], &body = *c.op.regions[1];
  Mask known = c.known;
  for (bool changed = true; changed;) {
    Partial p = partial_eval(body, known);
    changed = false;
    for (std::size_t i = 0; i < n; ++i)
      if (known[i] && !p.result_known[i]) {
        known[i] = false;
        changed = true;
      }
  }
  if (partial_eval(cond, known).result_known[0]) {
    std::vector<ValueId> operands;
    std::size_t carried = 0;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i]) {
        operands.push_back(c.operands[i]);
        if (i < n) ++carried;
      }
    Mask force(n, false);
    for (std::size_t i = 0; i < n; ++i) force[i] = !known[i];
    Partial kb = partial_eval(body, known, force), kc = partial_eval(cond, known);
    auto trim = [](const GraphPtr& g, int residuals) {
      ir::Graph t = *g;
      t.results.resize(t.results.size() - static_cast<std::size_t>(residuals));
      return dce(t);
    };
    ir::ValueIds k = c.kb.op(ops::kWhile, operands, captures(c.op, operands.size() - carried),
                             {trim(kc.known, kc.num_residuals), trim(kb.known, kb.num_residuals)});
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (known[i]) c.known_results[i] = k[at++];
  }
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.known.size(); ++i) operands.push_back(c.unknown_operand(i));
  ir::ValueIds u = c.ub.op(ops::kWhile, operands, c.op.attrs, c.op.regions);
  for (std::size_t i = 0; i < n; ++i)
    if (c.known_results[i] == kNoValue) c.unknown_results[i] = u[i];
}

// A mapped condition runs until no example wants to go on; finished examples keep their values.
void while_batch(BatchCall& c) {
  std::size_t n = c.op.results.size();
  const ir::Graph &cond = *c.op.regions[0], &body = *c.op.regions[1];
  Mask in;
  for (int d : c.dims) in.push_back(d != kNotMapped);
  bool mapped_condition = false;
  for (bool changed = true; changed;) {
    changed = false;
    Mask force(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    Mask out = batch_region(body, in, c.size, c.axis_name, force).out;
    mapped_condition = batch_region(cond, in, c.size, c.axis_name).out[0];
    for (std::size_t i = 0; i < n; ++i)
      if (!in[i] && (out[i] || mapped_condition)) in[i] = changed = true;
  }
  Mask force(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
  GraphPtr new_cond = batch_region(cond, in, c.size, c.axis_name).graph;
  GraphPtr new_body = batch_region(body, in, c.size, c.axis_name, force).graph;
  if (mapped_condition) {
    GraphPtr each = new_cond, step = new_body;
    Builder cb;
    std::vector<ValueId> args;
    for (ValueId v : each->params) args.push_back(cb.param(each->type(v)));
    Expr p{&cb, cb.inline_graph(*each, args)[0]};
    new_cond = cb.finish({ir::reduce(ops::kOr, p, {0}).v});
    Builder bb;
    args.clear();
    for (ValueId v : step->params) args.push_back(bb.param(step->type(v)));
    Expr go{&bb, bb.inline_graph(*each, args)[0]};
    std::vector<ValueId> next = bb.inline_graph(*step, args);
    for (std::size_t i = 0; i < n; ++i) {
      Expr x{&bb, next[i]};
      next[i] = ir::select(ir::broadcast_in_dim(go, x.dims(), Dims{0}), x, {&bb, args[i]}).v;
    }
    new_body = bb.finish(std::move(next));
  }
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(in[i] ? batch_to_front(c.b, c.operands[i], c.dims[i], c.size)
                             : c.operands[i]);
  ir::ValueIds r = c.b.op(ops::kWhile, operands, c.op.attrs, {new_cond, new_body});
  for (std::size_t i = 0; i < n; ++i) {
    c.results.push_back(r[i]);
    c.result_dims.push_back(in[i] ? 0 : kNotMapped);
  }
}

}  // namespace

void register_branch_rules(RuleTable& t) {
  for (const ir::OpDef* def : {&ops::kIf, &ops::kCase}) {
    t[*def].jvp = branch_jvp;
    t[*def].partial = branch_partial;
    t[*def].transpose = branch_transpose;
    t[*def].batch = branch_batch;
  }
  t[ops::kWhile].jvp = while_jvp;
  t[ops::kWhile].partial = while_partial;
  t[ops::kWhile].batch = while_batch;
  t[ops::kWhile].refuse_transpose =
      "the number of iterations of a while_loop is not known, so its values cannot be kept; "
      "fori_loop with fixed bounds and scan are differentiable in reverse mode";
}

}  // namespace xylem::transform
