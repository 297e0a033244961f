// Derivatives, transposes and batching of ops that move elements.

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
using ir::ValueId;
namespace ops = ir::ops;

// One operand, linear: the op itself on the tangent.
void linear_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  c.tangent_out = {c.b.clone(c.op, c.tangents)[0]};
}

// All operands linear together: zeros where a tangent is missing.
void multilinear_jvp(JvpCall& c) {
  std::vector<ValueId> t(c.tangents.begin(), c.tangents.end());
  for (std::size_t i = 0; i < t.size(); ++i)
    if (t[i] == kNoValue) t[i] = ir::zeros(c.b, c.b.type(c.primals[i])).v;
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  c.tangent_out = {c.b.clone(c.op, t)[0]};
}

Attrs with(Attrs attrs, std::string_view name, Dims value) {
  attrs.set(name, Attr(std::move(value)));
  return attrs;
}

// The operand with its batch dimension in front.
Expr front(BatchCall& c, std::size_t i) {
  return ir::move_dim({&c.b, c.operands[i]}, c.dims[i], 0);
}

void one_result(BatchCall& c, ValueId v) {
  c.results = {v};
  c.result_dims = {0};
}

Dims plus_one(const Dims& d) {
  Dims r = d;
  for (std::int64_t& x : r) ++x;
  return r;
}

// Sums over the new and the stretched dimensions.
void broadcast_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  const Dims& where = c.op.attrs.dims("broadcast_dimensions");
  const Dims operand = c.types[0].dims();
  Dims axes;
  for (int d = 0; d < ct.rank(); ++d) {
    auto at = std::find(where.begin(), where.end(), d);
    bool kept = at != where.end() && operand[at - where.begin()] == ct.dims()[d];
    if (!kept) axes.push_back(d);
  }
  Expr sum = ir::reduce_sum(ct, axes);
  // The kept dimensions stand in the result's order; the operand's order may differ.
  Dims kept_order;  // operand dimensions by position in `sum`
  for (int d = 0; d < ct.rank(); ++d) {
    auto at = std::find(where.begin(), where.end(), d);
    if (at != where.end() && !axes.contains(d)) kept_order.push_back(at - where.begin());
  }
  Dims perm(kept_order.size(), 0);
  Dims sorted = kept_order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    perm[i] = std::find(kept_order.begin(), kept_order.end(), sorted[i]) - kept_order.begin();
  c.operand_ct[0] = ir::reshape(ir::transpose(sum, perm), operand).v;
}

void broadcast_batch(BatchCall& c) {
  Expr x = front(c, 0);
  Dims where = plus_one(c.op.attrs.dims("broadcast_dimensions"));
  where.insert(0, 0);
  Dims shape = c.op.attrs.dims("shape");
  shape.insert(0, c.size);
  one_result(c, c.b.one(ops::kBroadcastInDim, {x.v},
                        with(with(c.op.attrs, "broadcast_dimensions", where), "shape", shape)));
}

void reshape_transpose(TransposeCall& c) {
  c.operand_ct[0] = ir::reshape({&c.b, c.cotangents[0]}, c.types[0].dims()).v;
}

void reshape_batch(BatchCall& c) {
  Dims shape = c.op.attrs.dims("shape");
  shape.insert(0, c.size);
  one_result(c, ir::reshape(front(c, 0), shape).v);
}

void transpose_transpose(TransposeCall& c) {
  const Dims& perm = c.op.attrs.dims("permutation");
  Dims inverse(perm.size(), 0);
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<std::int64_t>(i);
  c.operand_ct[0] = ir::transpose({&c.b, c.cotangents[0]}, inverse).v;
}

// The batch dimension goes where it costs no move: the permutation absorbs it.
void transpose_batch(BatchCall& c) {
  Dims perm;
  for (std::int64_t d : c.op.attrs.dims("permutation")) perm.push_back(d >= c.dims[0] ? d + 1 : d);
  perm.insert(0, c.dims[0]);
  one_result(c, ir::transpose({&c.b, c.operands[0]}, perm).v);
}

void reverse_transpose(TransposeCall& c) { c.operand_ct[0] = c.b.clone(c.op, c.cotangents)[0]; }

void reverse_batch(BatchCall& c) {
  Expr x = front(c, 0);
  one_result(c, c.b.one(ops::kReverse, {x.v},
                        with(c.op.attrs, "dimensions", plus_one(c.op.attrs.dims("dimensions")))));
}

void concatenate_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  auto axis = static_cast<int>(c.op.attrs.i64("dimension"));
  Dims start(static_cast<std::size_t>(ct.rank()), 0), limit = ct.dims();
  Dims strides(static_cast<std::size_t>(ct.rank()), 1);
  for (std::size_t i = 0; i < c.types.size(); ++i) {
    limit[axis] = start[axis] + c.types[i].dim(axis);
    if (c.linear[i]) c.operand_ct[i] = ir::slice(ct, start, limit, strides).v;
    start[axis] = limit[axis];
  }
}

void concatenate_batch(BatchCall& c) {
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    parts.push_back(batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
  Attrs attrs = c.op.attrs;
  attrs.set("dimension", Attr(attrs.i64("dimension") + 1));
  one_result(c, c.b.one(ops::kConcatenate, parts, attrs));
}

void slice_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  const Dims& start = c.op.attrs.dims("start_indices");
  const Dims& strides = c.op.attrs.dims("strides");
  Dims high, interior;
  for (int d = 0; d < ct.rank(); ++d) {
    std::int64_t n = ct.dims()[d];
    std::int64_t span = n == 0 ? 0 : (n - 1) * strides[d] + 1;
    high.push_back(c.types[0].dim(d) - start[d] - span);
    interior.push_back(strides[d] - 1);
  }
  c.operand_ct[0] = ir::pad(ct, ir::scalar(c.b, ct.dtype(), 0), start, high, interior).v;
}

void slice_batch(BatchCall& c) {
  Expr x = front(c, 0);
  Dims start = c.op.attrs.dims("start_indices"), limit = c.op.attrs.dims("limit_indices");
  Dims strides = c.op.attrs.dims("strides");
  start.insert(0, 0);
  limit.insert(0, c.size);
  strides.insert(0, 1);
  one_result(c, ir::slice(x, start, limit, strides).v);
}

void pad_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  const Dims& low = c.op.attrs.dims("edge_padding_low");
  const Dims& high = c.op.attrs.dims("edge_padding_high");
  const Dims& interior = c.op.attrs.dims("interior_padding");
  // What negative edges cut off has no cotangent: pad it with zeros; what was padded is cut.
  Dims neg_low, neg_high, none(low.size(), 0), start(low.size(), 0), limit, strides;
  for (std::size_t d = 0; d < low.size(); ++d) {
    neg_low.push_back(-low[d]);
    neg_high.push_back(-high[d]);
    strides.push_back(interior[d] + 1);
  }
  Expr inside = ir::pad(ct, ir::scalar(c.b, ct.dtype(), 0), neg_low, neg_high, none);
  limit = inside.dims();
  Expr operand = ir::slice(inside, start, limit, strides);
  if (c.linear[0]) c.operand_ct[0] = operand.v;
  if (c.linear[1]) {
    Dims all(static_cast<std::size_t>(ct.rank()), 0);
    std::iota(all.begin(), all.end(), 0);
    c.operand_ct[1] = (ir::reduce_sum(ct, all) - ir::reduce_sum(operand, all)).v;
  }
}

void pad_batch(BatchCall& c) {
  Expr x{&c.b, batch_to_front(c.b, c.operands[0], c.dims[0], c.size)};
  auto grow = [&](std::string_view name) {
    Dims d = c.op.attrs.dims(name);
    d.insert(0, 0);
    return d;
  };
  Dims low = grow("edge_padding_low"), high = grow("edge_padding_high");
  Dims interior = grow("interior_padding");
  if (c.dims[1] == kNotMapped) {
    one_result(c, ir::pad(x, {&c.b, c.operands[1]}, low, high, interior).v);
    return;
  }
  // A pad value per example: pad with zeros, and select by a padded mask.
  Expr value{&c.b, c.operands[1]};
  Expr padded = ir::pad(x, ir::scalar(c.b, x.dtype(), 0), low, high, interior);
  Expr inside = ir::broadcast_to(ir::scalar(c.b, DType::kBool, 1), x.dims());
  Expr mask = ir::pad(inside, ir::scalar(c.b, DType::kBool, 0), low, high, interior);
  one_result(c, ir::select(mask, padded, ir::broadcast_in_dim(value, padded.dims(), Dims{0})).v);
}

}  // namespace

void register_movement_rules(RuleTable& t) {
  auto set = [&](const ir::OpDef& def, JvpRule jvp, TransposeRule transpose, BatchRule batch) {
    t[def].jvp = jvp;
    t[def].transpose = transpose;
    t[def].batch = batch;
  };
  set(ops::kBroadcastInDim, linear_jvp, broadcast_transpose, broadcast_batch);
  set(ops::kReshape, linear_jvp, reshape_transpose, reshape_batch);
  set(ops::kTranspose, linear_jvp, transpose_transpose, transpose_batch);
  set(ops::kReverse, linear_jvp, reverse_transpose, reverse_batch);
  set(ops::kConcatenate, multilinear_jvp, concatenate_transpose, concatenate_batch);
  set(ops::kSlice, linear_jvp, slice_transpose, slice_batch);
  set(ops::kPad, multilinear_jvp, pad_transpose, pad_batch);
}

}  // namespace xylem::transform
