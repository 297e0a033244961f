// Derivatives, partial evaluation, transpose and batching of xylem.scan.

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
using ir::kNoValue;
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

struct Parts {
  std::size_t consts, carry, xs;  // numbers of operands
  std::int64_t length;
  explicit Parts(const ir::Op& op)
      : consts(static_cast<std::size_t>(op.attrs.i64("num_consts"))),
        carry(static_cast<std::size_t>(op.attrs.i64("num_carry"))),
        xs(op.operands.size() - consts - carry),
        length(op.attrs.i64("length")) {}
};

Attrs scan_attrs(const ir::Op& op, std::size_t consts, std::size_t carry, bool flip = false) {
  Attrs a = op.attrs;
  a.set("num_consts", Attr(static_cast<std::int64_t>(consts)));
  a.set("num_carry", Attr(static_cast<std::int64_t>(carry)));
  if (flip) a.set("reverse", Attr(!a.flag("reverse")));
  return a;
}

void scan_jvp(JvpCall& c) {
  Parts n(c.op);
  const ir::Graph& body = *c.op.regions[0];
  Mask in;
  for (ValueId t : c.tangents) in.push_back(t != kNoValue);
  // Carries become active until nothing changes.
  Mask out;
  for (bool changed = true; changed;) {
    out = jvp_graph(body, in).out;
    changed = false;
    for (std::size_t i = 0; i < n.carry; ++i)
      if (out[i] && !in[n.consts + i]) in[n.consts + i] = changed = true;
  }
  Mask force(body.results.size(), false);
  for (std::size_t i = 0; i < n.carry; ++i) force[i] = in[n.consts + i];
  JvpGraph j = jvp_graph(body, in, force);

  // New body: consts, their tangents; carry, its tangents; xs, their tangents.
  Builder b(body.name);
  std::vector<ValueId> primal(body.params.size()), tangent(body.params.size(), kNoValue);
  auto group = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) primal[i] = b.param(body.type(body.params[i]));
    for (std::size_t i = from; i < to; ++i)
      if (in[i]) tangent[i] = b.param(body.type(body.params[i]));
  };
  group(0, n.consts);
  group(n.consts, n.consts + n.carry);
  group(n.consts + n.carry, body.params.size());
  std::vector<ValueId> args = primal;
  for (ValueId t : tangent)
    if (t != kNoValue) args.push_back(t);
  std::vector<ValueId> r = b.inline_graph(*j.graph, args);
  std::size_t next = body.results.size();
  std::vector<ValueId> out_t(body.results.size(), kNoValue);
  for (std::size_t i = 0; i < out_t.size(); ++i)
    if (j.out[i]) out_t[i] = r[next++];
  std::vector<ValueId> results;
  auto emit = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) results.push_back(r[i]);
    for (std::size_t i = from; i < to; ++i)
      if (out_t[i] != kNoValue) results.push_back(out_t[i]);
  };
  emit(0, n.carry);
  emit(n.carry, body.results.size());
  ir::GraphPtr new_body = b.finish(std::move(results));

  std::vector<ValueId> operands;
  auto pass = [&](std::size_t from, std::size_t to) {
    std::size_t count = to - from;
    for (std::size_t i = from; i < to; ++i) operands.push_back(c.primals[i]);
    for (std::size_t i = from; i < to; ++i) {
      if (!in[i]) continue;
      operands.push_back(c.tangents[i] != kNoValue ? c.tangents[i]
                                                   : ir::zeros(c.b, c.b.type(c.primals[i])).v);
      ++count;
    }
    return count;
  };
  std::size_t new_consts = pass(0, n.consts);
  std::size_t new_carry = pass(n.consts, n.consts + n.carry);
  pass(n.consts + n.carry, c.primals.size());
  ir::ValueIds s =
      c.b.op(ops::kScan, operands, scan_attrs(c.op, new_consts, new_carry), {new_body});
  std::size_t at = 0;
  c.primal_out.resize(body.results.size());
  c.tangent_out.assign(body.results.size(), kNoValue);
  auto take = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) c.primal_out[i] = s[at++];
    for (std::size_t i = from; i < to; ++i)
      if (j.out[i]) c.tangent_out[i] = s[at++];
  };
  take(0, n.carry);
  take(n.carry, body.results.size());
}

void scan_partial(PartialCall& c) {
  Parts n(c.op);
  const ir::Graph& body = *c.op.regions[0];
  Mask known = c.known;
  Mask force(body.results.size(), false);
  Partial p;
  for (bool changed = true; changed;) {
    for (std::size_t i = 0; i < n.carry; ++i) force[i] = !known[n.consts + i];
    p = partial_eval(body, known, force);
    changed = false;
    for (std::size_t i = 0; i < n.carry; ++i)
      if (known[n.consts + i] && !p.result_known[i]) {
        known[n.consts + i] = false;
        changed = true;
      }
  }
  auto num_res = static_cast<std::size_t>(p.num_residuals);
  std::size_t known_results = p.known->results.size() - num_res;
  // Residuals that are constants of the loop are passed as such instead of being stacked.
  std::vector<int> const_of(num_res, -1);
  {
    std::vector<int> param_operand;  // operand index of each parameter of the known body
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i]) param_operand.push_back(static_cast<int>(i));
    for (std::size_t r = 0; r < num_res; ++r) {
      ValueId v = p.known->results[known_results + r];
      const ir::Value& value = p.known->value(v);
      if (value.def < 0 &&
          param_operand[static_cast<std::size_t>(value.index)] < static_cast<int>(n.consts))
        const_of[r] = param_operand[static_cast<std::size_t>(value.index)];
    }
  }
  // The known loop: its body returns carry, ys and the stacked residuals.
  ir::Graph known_body = *p.known;
  {
    std::vector<ValueId> results(
        known_body.results.begin(),
        known_body.results.begin() + static_cast<std::ptrdiff_t>(known_results));
    for (std::size_t r = 0; r < num_res; ++r)
      if (const_of[r] < 0) results.push_back(known_body.results[known_results + r]);
    known_body.results = std::move(results);
    known_body.result_attrs.clear();
  }
  std::vector<ValueId> operands;
  std::size_t kc = 0, kk = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) continue;
    operands.push_back(c.operands[i]);
    if (i < n.consts)
      ++kc;
    else if (i < n.consts + n.carry)
      ++kk;
  }
  ir::ValueIds k = c.kb.op(ops::kScan, operands, scan_attrs(c.op, kc, kk),
                           {std::make_shared<const ir::Graph>(std::move(known_body))});
  std::size_t at = 0;
  for (std::size_t i = 0; i < body.results.size(); ++i)
    if (p.result_known[i]) c.known_results[i] = k[at++];

  // The unknown loop: consts (unknown, residual), carry (unknown), xs (unknown, residual).
  Builder b(body.name);
  std::vector<ValueId> args(p.unknown->params.size(), kNoValue);
  std::vector<ValueId> unknown_args;
  std::vector<ValueId> outer;
  std::size_t uc = 0, uk = 0;
  std::vector<std::size_t> unknown_index;  // operand index of each unknown parameter
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!known[i]) unknown_index.push_back(i);
  auto unknown_group = [&](std::size_t from, std::size_t to, std::size_t& count) {
    for (std::size_t u = 0; u < unknown_index.size(); ++u) {
      std::size_t i = unknown_index[u];
      if (i < from || i >= to) continue;
      args[num_res + u] = b.param(body.type(body.params[i]));
      outer.push_back(c.unknown_operand(i));
      ++count;
    }
  };
  unknown_group(0, n.consts, uc);
  for (std::size_t r = 0; r < num_res; ++r) {
    if (const_of[r] < 0) continue;
    auto i = static_cast<std::size_t>(const_of[r]);
    args[r] = b.param(p.unknown->type(p.unknown->params[r]));
    outer.push_back(c.residual(c.operands[i]));
    ++uc;
  }
  unknown_group(n.consts, n.consts + n.carry, uk);
  std::size_t ignored = 0;
  unknown_group(n.consts + n.carry, known.size(), ignored);
  for (std::size_t r = 0; r < num_res; ++r) {
    if (const_of[r] >= 0) continue;
    args[r] = b.param(p.unknown->type(p.unknown->params[r]));
    outer.push_back(c.residual(k[at++]));
  }
  ir::GraphPtr unknown_body = b.finish(b.inline_graph(*p.unknown, args));
  ir::ValueIds u = c.ub.op(ops::kScan, outer, scan_attrs(c.op, uc, uk), {unknown_body});
  at = 0;
  for (std::size_t i = 0; i < body.results.size(); ++i)
    if (!p.result_known[i]) c.unknown_results[i] = u[at++];
}

// The transposed loop runs the other way and carries the cotangents of the carry and of the linear
// constants.
void scan_transpose(TransposeCall& c) {
  Parts n(c.op);
  const ir::Graph& body = *c.op.regions[0];
  // Every carry of a linear scan is linear; one whose initial value does not depend on the linear
  // inputs starts from a zero tangent.
  Mask linear = c.linear;
  for (std::size_t i = 0; i < n.carry; ++i) linear[n.consts + i] = true;
  std::size_t first_x = n.consts + n.carry;
  Builder b(body.name);
  std::vector<ValueId> values(body.params.size(), kNoValue), cts(body.results.size(), kNoValue);
  std::vector<ValueId> acc(n.consts, kNoValue);
  std::vector<ValueId> operands;
  std::size_t num_consts = 0, num_carry = 0;
  for (std::size_t i = 0; i < n.consts; ++i) {
    if (c.linear[i]) continue;
    values[i] = b.param(body.type(body.params[i]));
    operands.push_back(c.operands[i]);
    ++num_consts;
  }
  auto ct_or_zeros = [&](std::size_t k) {
    return c.cotangents[k] != kNoValue ? c.cotangents[k] : ir::zeros(c.b, c.result_types[k]).v;
  };
  for (std::size_t i = 0; i < n.carry; ++i) {
    cts[i] = b.param(body.type(body.results[i]));
    operands.push_back(ct_or_zeros(i));
    ++num_carry;
  }
  for (std::size_t i = 0; i < n.consts; ++i) {
    if (!c.linear[i]) continue;
    acc[i] = b.param(body.type(body.params[i]));
    operands.push_back(ir::zeros(c.b, c.types[i]).v);
    ++num_carry;
  }
  for (std::size_t i = first_x; i < body.params.size(); ++i) {
    if (c.linear[i]) continue;
    values[i] = b.param(body.type(body.params[i]));
    operands.push_back(c.operands[i]);
  }
  for (std::size_t i = n.carry; i < body.results.size(); ++i) {
    if (c.cotangents[i] == kNoValue) continue;  // a zero cotangent takes no part
    cts[i] = b.param(body.type(body.results[i]));
    operands.push_back(c.cotangents[i]);
  }
  std::vector<ValueId> ct = backward_pass(b, body, linear, values, cts);
  std::vector<ValueId> results;
  auto or_zeros = [&](ValueId v, std::size_t param) {
    return v != kNoValue ? v : ir::zeros(b, body.type(body.params[param])).v;
  };
  for (std::size_t i = 0; i < n.carry; ++i)
    results.push_back(or_zeros(ct[n.consts + i], n.consts + i));
  for (std::size_t i = 0; i < n.consts; ++i) {
    if (!c.linear[i]) continue;
    results.push_back(ct[i] == kNoValue ? acc[i] : (Expr{&b, acc[i]} + Expr{&b, ct[i]}).v);
  }
  for (std::size_t i = first_x; i < body.params.size(); ++i)
    if (c.linear[i]) results.push_back(or_zeros(ct[i], i));
  ir::ValueIds r = c.b.op(ops::kScan, operands, scan_attrs(c.op, num_consts, num_carry, true),
                          {b.finish(std::move(results))});
  std::size_t at = 0;
  for (std::size_t i = 0; i < n.carry; ++i) c.operand_ct[n.consts + i] = r[at++];
  for (std::size_t i = 0; i < n.consts; ++i)
    if (c.linear[i]) c.operand_ct[i] = r[at++];
  for (std::size_t i = first_x; i < body.params.size(); ++i)
    if (c.linear[i]) c.operand_ct[i] = r[at++];
}

void scan_batch(BatchCall& c) {
  Parts n(c.op);
  const ir::Graph& body = *c.op.regions[0];
  Mask in;
  for (int d : c.dims) in.push_back(d != kNotMapped);
  BatchedRegion r;
  for (bool changed = true; changed;) {
    Mask force(body.results.size(), false);
    for (std::size_t i = 0; i < n.carry; ++i) force[i] = in[n.consts + i];
    r = batch_region(body, in, c.size, c.axis_name, force);
    changed = false;
    for (std::size_t i = 0; i < n.carry; ++i)
      if (r.out[i] && !in[n.consts + i]) in[n.consts + i] = changed = true;
  }
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    if (!in[i]) {
      operands.push_back(c.operands[i]);
    } else if (i < n.consts + n.carry) {
      operands.push_back(batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
    } else {
      // Dimension 0 of xs is the step; the batch dimension comes behind it.
      operands.push_back(ir::move_dim({&c.b, c.operands[i]}, c.dims[i], 1).v);
    }
  }
  ir::ValueIds s = c.b.op(ops::kScan, operands, c.op.attrs, {r.graph});
  for (std::size_t i = 0; i < s.size(); ++i) {
    c.results.push_back(s[i]);
    c.result_dims.push_back(!r.out[i] ? kNotMapped : i < n.carry ? 0 : 1);
  }
}

}  // namespace

void register_scan_rules(RuleTable& t) {
  t[ops::kScan].jvp = scan_jvp;
  t[ops::kScan].partial = scan_partial;
  t[ops::kScan].transpose = scan_transpose;
  t[ops::kScan].batch = scan_batch;
}

}  // namespace xylem::transform
