// Derivatives, transposes and batching of reductions and cumulative ops.

#include <numeric>

#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Expr;
using ir::kNoValue;
using ir::OpDef;
using ir::ValueId;
namespace ops = ir::ops;

std::size_t num_inputs(const ir::Op& op) { return op.results.size(); }

// Differentiates `value(x)`, a program made of differentiable ops, in place of the op.
template <class F>
void jvp_through(JvpCall& c, F value) {
  ir::Builder body;
  Expr x{&body, body.param(c.b.type(c.primals[0]))};
  Expr y = value(x);
  ir::GraphPtr g = body.finish({y.v});
  ValueId primals[1] = {c.primals[0]}, tangents[1] = {c.tangents[0]};
  jvp_into(c.b, *g, primals, tangents, c.primal_out, c.tangent_out);
}

// The reduced axes as one leading axis of length n.
Expr axes_in_front(Expr x, const Dims& axes, std::int64_t& n) {
  Dims perm = axes, shape;
  n = 1;
  for (std::int64_t a : axes) n *= x.dims()[a];
  shape.push_back(n);
  for (int d = 0; d < x.rank(); ++d) {
    if (axes.contains(d)) continue;
    perm.push_back(d);
    shape.push_back(x.dims()[d]);
  }
  return ir::reshape(ir::transpose(x, perm), shape);
}

Expr slice_front(Expr x, std::int64_t start, std::int64_t limit, std::int64_t stride) {
  Dims s(static_cast<std::size_t>(x.rank()), 0), l = x.dims();
  Dims t(static_cast<std::size_t>(x.rank()), 1);
  s[0] = start;
  l[0] = limit;
  t[0] = stride;
  return ir::slice(x, s, l, t);
}

// A product as a tree of pairwise products: exact derivatives also where factors are zero.
Expr product_tree(Expr x, const Dims& axes) {
  std::int64_t n = 0;
  Expr y = axes_in_front(x, axes, n);
  while (n > 1) {
    std::int64_t half = n / 2;
    Expr product = slice_front(y, 0, 2 * half, 2) * slice_front(y, 1, 2 * half, 2);
    if (n % 2) {
      Expr parts[2] = {product, slice_front(y, n - 1, n, 1)};
      product = ir::concatenate(parts, 0);
    }
    y = product;
    n = half + n % 2;
  }
  Dims rest = y.dims();
  rest.erase(0);
  return ir::reshape(y, rest);
}

void reduce_jvp(JvpCall& c) {
  std::size_t n = num_inputs(c.op);
  const OpDef* reducer = n == 1 ? ir::ops::single_op_reducer(*c.op.regions[0]) : nullptr;
  const Dims& axes = c.op.attrs.dims("dimensions");
  bool init_moves = c.primals.size() > 1 && c.tangents[1] != kNoValue;
  if (reducer == &ops::kAdd) {
    c.primal_out = {c.b.clone(c.op, c.primals)[0]};
    ValueId t[2] = {c.tangents[0], c.tangents[1]};
    for (int i = 0; i < 2; ++i)
      if (t[i] == kNoValue)
        t[i] = ir::zeros(c.b, c.b.type(c.primals[static_cast<std::size_t>(i)])).v;
    c.tangent_out = {c.b.clone(c.op, std::span<const ValueId>(t, 2))[0]};
    return;
  }
  if (!init_moves && reducer == &ops::kMultiply) {
    if (c.b.type(c.primals[0]).size() == 0) {  // a product of nothing does not move
      c.primal_out = {c.b.clone(c.op, c.primals)[0]};
      c.tangent_out = {ir::zeros(c.b, c.b.type(c.primal_out[0])).v};
      return;
    }
    jvp_through(c, [&](Expr x) { return product_tree(x, axes); });
    return;
  }
  if (!init_moves && (reducer == &ops::kMaximum || reducer == &ops::kMinimum)) {
    // The tangent is the mean over all positions that equal the result.
    Expr y{&c.b, c.b.clone(c.op, c.primals)[0]};
    Expr x{&c.b, c.primals[0]}, g{&c.b, c.tangents[0]};
    Dims where;
    for (int d = 0; d < x.rank(); ++d)
      if (!axes.contains(d)) where.push_back(d);
    Expr hit = ir::compare(x, ir::broadcast_in_dim(y, x.dims(), where), "EQ");
    Expr mask = ir::convert(hit, x.dtype());
    Expr total = ir::reduce_sum(g * mask, axes);
    c.primal_out = {y.v};
    c.tangent_out = {(total / ir::reduce_sum(mask, axes)).v};
    return;
  }
  throw_user_error({"differentiate stablehlo.reduce",
                    "only sums, products, maxima and minima of one operand have a derivative rule",
                    "the reduction has another body or a moving initial value",
                    "Write the reduction with scan, or give it a custom_jvp"},
                   c.op.loc.source);
}

void reduce_transpose(TransposeCall& c) {
  XYLEM_CHECK(num_inputs(c.op) == 1 && ir::ops::single_op_reducer(*c.op.regions[0]) == &ops::kAdd,
              "only sums are linear");
  const Dims& axes = c.op.attrs.dims("dimensions");
  Expr ct{&c.b, c.cotangents[0]};
  if (c.linear[0]) {
    Dims where;
    for (int d = 0; d < c.types[0].rank(); ++d)
      if (!axes.contains(d)) where.push_back(d);
    Expr same = ir::convert(ct, c.types[0].dtype());
    c.operand_ct[0] = ir::broadcast_in_dim(same, c.types[0].dims(), where).v;
  }
  if (c.linear[1]) {
    Dims all(static_cast<std::size_t>(ct.rank()), 0);
    std::iota(all.begin(), all.end(), 0);
    c.operand_ct[1] = ir::convert(ir::reduce_sum(ct, all), c.types[1].dtype()).v;
  }
}

void reduce_batch(BatchCall& c) {
  std::size_t n = num_inputs(c.op);
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  for (std::size_t i = 0; i < n; ++i)
    operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  Attrs attrs = c.op.attrs;
  Dims axes = attrs.dims("dimensions");
  for (std::int64_t& a : axes) ++a;
  attrs.set("dimensions", Attr(axes));
  Expr init{&c.b, kNoValue};
  const OpDef* reducer = n == 1 ? ir::ops::single_op_reducer(*c.op.regions[0]) : nullptr;
  for (std::size_t i = n; i < operands.size(); ++i) {
    if (c.dims[i] == kNotMapped) continue;
    if (!reducer)
      throw_user_error({"vmap of stablehlo.reduce",
                        "initial values and captures must not depend on the mapped axis",
                        "one does", "Write the reduction with scan"},
                       c.op.loc.source);
    init = {&c.b, operands[i]};
    operands[i] = ir::reduction_identity(c.b, *reducer, init.dtype()).v;
  }
  ir::ValueIds r = c.b.op(ops::kReduce, operands, attrs, c.op.regions);
  c.results.assign(r.begin(), r.end());
  if (init.defined()) {
    Expr y{&c.b, r[0]};
    c.results[0] = ir::binary(*reducer, y, ir::broadcast_in_dim(init, y.dims(), Dims{0})).v;
  }
  c.result_dims.assign(r.size(), 0);
}

void reduce_window_batch(BatchCall& c) {
  std::size_t n = num_inputs(c.op);
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  for (std::size_t i = 0; i < n; ++i)
    operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  for (std::size_t i = n; i < operands.size(); ++i)
    if (c.dims[i] != kNotMapped)
      throw_user_error({"vmap of stablehlo.reduce_window",
                        "initial values and captures must not depend on the mapped axis",
                        "one does", "Use map over the axis"},
                       c.op.loc.source);
  Attrs attrs = c.op.attrs;
  for (const char* name :
       {"window_dimensions", "window_strides", "base_dilations", "window_dilations"}) {
    if (!attrs.has(name)) continue;
    Dims d = attrs.dims(name);
    d.insert(0, 1);
    attrs.set(name, Attr(d));
  }
  if (attrs.has("padding")) {
    const HostArray& p = attrs.array("padding");
    std::vector<std::int64_t> v = {0, 0};
    for (std::int64_t x : p.span<std::int64_t>()) v.push_back(x);
    attrs.set("padding", Attr(HostArray::from(v, {p.dims()[0] + 1, 2})));
  }
  ir::ValueIds r = c.b.op(ops::kReduceWindow, operands, attrs, c.op.regions);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

// --- cumulative ops -------------------------------------------------------------------------

void cumulative_linear_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  c.tangent_out = {c.b.clone(c.op, c.tangents)[0]};
}

void cumsum_transpose(TransposeCall& c) {
  Attrs attrs = c.op.attrs;
  attrs.set("reverse", Attr(!attrs.flag("reverse")));
  c.operand_ct[0] = c.b.one(ops::kCumsum, {c.cotangents[0]}, attrs);
}

// Doubling steps: after step s every element combines its 2s predecessors.
template <const OpDef& Combine>
void cumulative_jvp(JvpCall& c) {
  auto axis = static_cast<int>(c.op.attrs.i64("dimension"));
  bool reverse = c.op.attrs.flag("reverse");
  jvp_through(c, [&](Expr x) {
    std::int64_t n = x.dims()[axis];
    Expr y = x;
    Dims none(static_cast<std::size_t>(x.rank()), 0);
    for (std::int64_t s = 1; s < n; s *= 2) {
      Dims low = none, high = none;
      low[axis] = reverse ? -s : s;
      high[axis] = reverse ? s : -s;
      Expr fill = ir::reduction_identity(*y.b, Combine, y.dtype());
      y = ir::binary(Combine, y, ir::pad(y, fill, low, high, none));
    }
    return y;
  });
}

void along_dimension_batch(BatchCall& c) {
  Expr x = ir::move_dim({&c.b, c.operands[0]}, c.dims[0], 0);
  Attrs attrs = c.op.attrs;
  attrs.set("dimension", Attr(attrs.i64("dimension") + 1));
  c.results = {c.b.one(*c.op.def, {x.v}, attrs)};
  c.result_dims = {0};
}

}  // namespace

void register_reduction_rules(RuleTable& t) {
  t[ops::kReduce].jvp = reduce_jvp;
  t[ops::kReduce].transpose = reduce_transpose;
  t[ops::kReduce].batch = reduce_batch;
  t[ops::kReduceWindow].batch = reduce_window_batch;
  t[ops::kReduceWindow].refuse_jvp = "windowed reductions have no derivative rule";
  t[ops::kCumsum].jvp = cumulative_linear_jvp;
  t[ops::kCumsum].transpose = cumsum_transpose;
  t[ops::kCumprod].jvp = cumulative_jvp<ops::kMultiply>;
  t[ops::kCummax].jvp = cumulative_jvp<ops::kMaximum>;
  t[ops::kCummin].jvp = cumulative_jvp<ops::kMinimum>;
  for (const OpDef* def :
       {&ops::kCumsum, &ops::kCumprod, &ops::kCummax, &ops::kCummin, &ops::kArgmax, &ops::kArgmin})
    t[*def].batch = along_dimension_batch;
  t[ops::kArgmax].no_derivative = true;
  t[ops::kArgmin].no_derivative = true;
}

}  // namespace xylem::transform
