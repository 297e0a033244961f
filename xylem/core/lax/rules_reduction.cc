// Derivatives, transposes and batching of reductions and cumulative ops.

#include <algorithm>
#include <numeric>

#include "xylem/core/lax/through.h"
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
using ir::OpDef;
using ir::ValueId;
namespace ops = ir::ops;

std::size_t num_inputs(const ir::Op& op) { return op.results.size(); }

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

// Halves the leading axis by combining neighbours until one is left.
template <class F>
std::vector<Expr> halve(std::vector<Expr> y, F combine) {
  for (std::int64_t n = y[0].dims()[0]; n > 1; n = n / 2 + n % 2) {
    std::int64_t half = n / 2;
    std::vector<Expr> even, odd;
    for (Expr e : y) {
      even.push_back(slice_front(e, 0, 2 * half, 2));
      odd.push_back(slice_front(e, 1, 2 * half, 2));
    }
    std::vector<Expr> next = combine(even, odd);
    if (n % 2)
      for (std::size_t i = 0; i < y.size(); ++i) {
        Expr parts[2] = {next[i], slice_front(y[i], n - 1, n, 1)};
        next[i] = ir::concatenate(parts, 0);
      }
    y = std::move(next);
  }
  return y;
}

// A product as a tree of pairwise products: exact derivatives also where factors are zero.
Expr product_tree(Expr x, const Dims& axes) {
  std::int64_t n = 0;
  Expr y = axes_in_front(x, axes, n);
  y = halve({y}, [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::vector<Expr>{a[0] * b[0]};
  })[0];
  Dims rest = y.dims();
  rest.erase(0);
  return ir::reshape(y, rest);
}

// A reduction by any body as a tree, which takes the body to be associative, as XLA does: the
// initial value first, then the elements in row-major order.
std::vector<ValueId> reduce_tree(Builder& b, const ir::Op& op, std::span<const ValueId> operands) {
  std::size_t n = num_inputs(op);
  const ir::Graph& body = *op.regions[0];
  const Dims& axes = op.attrs.dims("dimensions");
  Dims rest;
  Expr first{&b, operands[0]};
  for (int d = 0; d < first.rank(); ++d)
    if (!axes.contains(d)) rest.push_back(first.dims()[d]);
  std::vector<Expr> inits, elements;
  std::int64_t length = 0;
  for (std::size_t i = 0; i < n; ++i) {
    DType t = body.type(body.results[i]).dtype();
    elements.push_back(axes_in_front(ir::convert({&b, operands[i]}, t), axes, length));
    Dims one = rest;
    one.insert(0, 1);
    inits.push_back(ir::broadcast_to(ir::convert({&b, operands[n + i]}, t), one));
  }
  auto combine = [&](const std::vector<Expr>& x, const std::vector<Expr>& y) {
    Dims shape = x[0].dims();
    std::int64_t size = num_elements(shape);
    std::vector<ValueId> args, results;
    std::vector<int> dims, result_dims;
    for (const std::vector<Expr>* side : {&x, &y})
      for (Expr e : *side) {
        args.push_back(ir::reshape(e, {size}).v);
        dims.push_back(0);
      }
    for (std::size_t i = 2 * n; i < operands.size(); ++i) {
      args.push_back(operands[i]);
      dims.push_back(kNotMapped);
    }
    batch_into(b, body, args, dims, size, "", results, result_dims);
    std::vector<Expr> r;
    for (std::size_t i = 0; i < n; ++i)
      r.push_back(ir::reshape({&b, batch_to_front(b, results[i], result_dims[i], size)}, shape));
    return r;
  };
  std::vector<Expr> all = inits;
  if (length > 0) all = combine(inits, halve(elements, combine));
  std::vector<ValueId> results;
  for (Expr e : all) results.push_back(ir::reshape(e, rest).v);
  return results;
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
    jvp_through(c, [&](Builder& b, std::span<const ValueId> v) {
      Expr y = product_tree({&b, v[0]}, axes);
      return std::vector<ValueId>{(y * ir::broadcast_to({&b, v[1]}, y.dims())).v};
    });
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
    Expr count = ir::reduce_sum(mask, axes);
    // Where the initial value alone is the result, nothing moves; NaN results have NaN tangents.
    Expr still = ir::binary(ops::kAnd, ir::compare(count, 0, "EQ"), ir::compare(y, y, "EQ"));
    c.primal_out = {y.v};
    c.tangent_out = {ir::select(still, like(total, 0), total / count).v};
    return;
  }
  // Any other body: the tangents of a tree of pairwise combinations.
  jvp_through(c, [&](Builder& b, std::span<const ValueId> operands) {
    return reduce_tree(b, c.op, operands);
  });
  ir::ValueIds y = c.b.clone(c.op, c.primals);
  c.primal_out.assign(y.begin(), y.end());
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
  const OpDef* reducer = n == 1 ? ir::ops::single_op_reducer(*c.op.regions[0]) : nullptr;
  bool moving = std::any_of(c.dims.begin() + static_cast<std::ptrdiff_t>(n), c.dims.end(),
                            [](int d) { return d != kNotMapped; });
  if (moving && !reducer) {
    batch_through(c, [&](Builder& b, std::span<const ValueId> operands) {
      return reduce_tree(b, c.op, operands);
    });
    return;
  }
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  for (std::size_t i = 0; i < n; ++i)
    operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  Attrs attrs = c.op.attrs;
  Dims axes = attrs.dims("dimensions");
  for (std::int64_t& a : axes) ++a;
  attrs.set("dimensions", Attr(axes));
  Expr init{&c.b, kNoValue};
  if (reducer && c.dims[1] != kNotMapped) {
    init = {&c.b, operands[1]};
    operands[1] = ir::reduction_identity(c.b, *reducer, init.dtype()).v;
  }
  ir::ValueIds r = c.b.op(ops::kReduce, operands, attrs, c.op.regions);
  c.results.assign(r.begin(), r.end());
  if (init.defined()) {
    Expr y{&c.b, r[0]};
    c.results[0] = ir::binary(*reducer, y, ir::broadcast_in_dim(init, y.dims(), Dims{0})).v;
  }
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
  jvp_through(c, [&](Builder& b, std::span<const ValueId> v) {
    Expr x{&b, v[0]};
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
    return std::vector<ValueId>{y.v};
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
