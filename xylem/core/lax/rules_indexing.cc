// Derivatives, transposes and batching of dynamic slices, gather and scatter.

#include "xylem/core/lax/indexing.h"
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
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

Expr or_zeros(ir::Builder& b, ValueId v, const Type& type) {
  return v != kNoValue ? Expr{&b, v} : ir::zeros(b, type);
}

Dims plus_one(const Dims& d) {
  Dims r = d;
  for (std::int64_t& x : r) ++x;
  return r;
}

Dims with_front(const Dims& d, std::int64_t v) {
  Dims r = d;
  r.insert(0, v);
  return r;
}

// --- dynamic_slice, dynamic_update_slice ----------------------------------------------------

void dynamic_slice_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  std::vector<ValueId> t(c.primals.begin(), c.primals.end());
  t[0] = c.tangents[0];
  c.tangent_out = {c.b.clone(c.op, t)[0]};
}

void dynamic_slice_transpose(TransposeCall& c) {
  std::vector<ValueId> operands = {ir::zeros(c.b, c.types[0]).v, c.cotangents[0]};
  operands.insert(operands.end(), c.operands.begin() + 1, c.operands.end());
  c.operand_ct[0] = c.b.one(ops::kDynamicUpdateSlice, operands);
}

bool indices_mapped(const BatchCall& c, std::size_t first) {
  for (std::size_t i = first; i < c.dims.size(); ++i)
    if (c.dims[i] != kNotMapped) return true;
  return false;
}

// Scalar indices as a matrix [batch, rank] of i64.
Expr index_matrix(BatchCall& c, std::size_t first) {
  std::vector<Expr> columns;
  for (std::size_t i = first; i < c.operands.size(); ++i) {
    Expr x{&c.b, c.operands[i]};
    if (c.dims[i] == kNotMapped) x = ir::broadcast_new_dim(x, 0, c.size);
    columns.push_back(ir::reshape(ir::convert(x, DType::kI64), {c.size, 1}));
  }
  return ir::concatenate(columns, 1);
}

Dims range(int from, int to) {
  Dims r;
  for (int i = from; i < to; ++i) r.push_back(i);
  return r;
}

void dynamic_slice_batch(BatchCall& c) {
  const Dims& sizes = c.op.attrs.dims("slice_sizes");
  int rank = sizes.ssize();
  if (!indices_mapped(c, 1)) {
    Expr x = ir::move_dim({&c.b, c.operands[0]}, c.dims[0], 0);
    std::vector<ValueId> operands = {x.v};
    if (rank > 0) operands.push_back(ir::zeros(c.b, c.b.type(c.operands[1])).v);
    operands.insert(operands.end(), c.operands.begin() + 1, c.operands.end());
    if (rank == 0) {
      c.results = {x.v};
    } else {
      c.results = {c.b.one(ops::kDynamicSlice, operands,
                           Attrs{{"slice_sizes", Attr(with_front(sizes, c.size))}})};
    }
    c.result_dims = {0};
    return;
  }
  lax::GatherDims g;
  g.offset_dims = range(1, rank + 1);
  g.index_vector_dim = 1;
  Expr x{&c.b, c.operands[0]};
  Dims slice_sizes = sizes;
  if (c.dims[0] == kNotMapped) {
    g.start_index_map = range(0, rank);
  } else {
    x = ir::move_dim(x, c.dims[0], 0);
    g.operand_batching_dims = {0};
    g.start_indices_batching_dims = {0};
    g.start_index_map = range(1, rank + 1);
    slice_sizes.insert(0, 1);
  }
  Dims last;  // dynamic_slice moves a window inside, its gradient with it
  for (int d = 0; d < rank; ++d) last.push_back(x.dims()[g.start_index_map[d]] - sizes[d]);
  Expr index = lax::clamp_indices(index_matrix(c, 1), last, 1);
  c.results = {lax::gather(x, index, g, slice_sizes).v};
  c.result_dims = {0};
}

void dynamic_update_slice_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  std::vector<ValueId> t(c.primals.begin(), c.primals.end());
  for (std::size_t i = 0; i < 2; ++i) t[i] = or_zeros(c.b, c.tangents[i], c.b.type(c.primals[i])).v;
  c.tangent_out = {c.b.clone(c.op, t)[0]};
}

void dynamic_update_slice_transpose(TransposeCall& c) {
  std::vector<ValueId> index(c.operands.begin() + 2, c.operands.end());
  if (c.linear[0]) {
    std::vector<ValueId> operands = {c.cotangents[0], ir::zeros(c.b, c.types[1]).v};
    operands.insert(operands.end(), index.begin(), index.end());
    c.operand_ct[0] = c.b.one(ops::kDynamicUpdateSlice, operands);
  }
  if (c.linear[1]) {
    std::vector<ValueId> operands = {c.cotangents[0]};
    operands.insert(operands.end(), index.begin(), index.end());
    c.operand_ct[1] =
        c.b.one(ops::kDynamicSlice, operands, Attrs{{"slice_sizes", Attr(c.types[1].dims())}});
  }
}

void dynamic_update_slice_batch(BatchCall& c) {
  Expr x{&c.b, batch_to_front(c.b, c.operands[0], c.dims[0], c.size)};
  Expr update{&c.b, batch_to_front(c.b, c.operands[1], c.dims[1], c.size)};
  int rank = x.rank() - 1;
  if (!indices_mapped(c, 2)) {
    std::vector<ValueId> operands = {x.v, update.v};
    if (rank > 0) operands.push_back(ir::zeros(c.b, c.b.type(c.operands[2])).v);
    operands.insert(operands.end(), c.operands.begin() + 2, c.operands.end());
    c.results = {rank == 0 ? update.v : c.b.one(ops::kDynamicUpdateSlice, operands)};
    c.result_dims = {0};
    return;
  }
  // One window an example: a scatter, with the starts clamped as dynamic_update_slice does.
  Expr index = index_matrix(c, 2);
  Dims last;
  for (int d = 0; d < rank; ++d) last.push_back(x.dims()[d + 1] - update.dims()[d + 1]);
  index = lax::clamp_indices(index, last, 1);
  lax::ScatterDims s;
  s.update_window_dims = range(1, rank + 1);
  s.input_batching_dims = {0};
  s.scatter_indices_batching_dims = {0};
  s.scatter_dims_to_operand_dims = range(1, rank + 1);
  s.index_vector_dim = 1;
  c.results = {lax::scatter(x, index, update, s, nullptr, true).v};
  c.result_dims = {0};
}

// --- gather ---------------------------------------------------------------------------------

void gather_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  ValueId t[2] = {c.tangents[0], c.primals[1]};
  c.tangent_out = {c.b.clone(c.op, std::span<const ValueId>(t, 2))[0]};
}

// The gather clamps its starts, the scatter drops windows outside. As in JAX, an index out of range
// thus has no gradient; who wants that of the element read instead clamps the indices first.
void gather_transpose(TransposeCall& c) {
  lax::GatherDims g(c.op.attrs);
  c.operand_ct[0] =
      lax::scatter(ir::zeros(c.b, c.types[0]), {&c.b, c.operands[1]}, {&c.b, c.cotangents[0]},
                   lax::scatter_dims_of(g), &ops::kAdd, false)
          .v;
}

void gather_batch(BatchCall& c) {
  lax::GatherDims g(c.op.attrs);
  Dims sizes = c.op.attrs.dims("slice_sizes");
  Expr x{&c.b, c.operands[0]}, index{&c.b, c.operands[1]};
  bool operand = c.dims[0] != kNotMapped, indices = c.dims[1] != kNotMapped;
  if (operand) {
    x = ir::move_dim(x, c.dims[0], 0);
    g.collapsed_slice_dims = plus_one(g.collapsed_slice_dims);
    g.start_index_map = plus_one(g.start_index_map);
    g.operand_batching_dims = plus_one(g.operand_batching_dims);
  }
  g.offset_dims = plus_one(g.offset_dims);
  if (indices) {
    index = ir::move_dim(index, c.dims[1], 0);
    ++g.index_vector_dim;
    g.start_indices_batching_dims = plus_one(g.start_indices_batching_dims);
  }
  if (operand && indices) {
    g.operand_batching_dims.insert(0, 0);
    g.start_indices_batching_dims.insert(0, 0);
    sizes.insert(0, 1);
  } else if (operand) {
    g.offset_dims.insert(0, 0);
    sizes.insert(0, c.size);
  }
  c.results = {lax::gather(x, index, g, sizes).v};
  c.result_dims = {0};
}

// --- scatter --------------------------------------------------------------------------------

enum class Kind { kSet, kAdd, kMultiply, kMinMax, kOther };

Kind kind_of(const ir::Op& op) {
  if (op.results.size() != 1 || op.operands.size() != 3) return Kind::kOther;
  const ir::Graph& region = *op.regions[0];
  if (region.results[0] == region.params[1]) return Kind::kSet;
  const OpDef* reducer = ir::ops::single_op_reducer(region);
  if (reducer == &ops::kAdd) return Kind::kAdd;
  if (reducer == &ops::kMultiply) return Kind::kMultiply;
  return reducer == &ops::kMinimum || reducer == &ops::kMaximum ? Kind::kMinMax : Kind::kOther;
}

// out = x · Π updates: with indices that differ, each element has one factor at most.
void scatter_multiply_jvp(JvpCall& c) {
  lax::ScatterDims s(c.op.attrs);
  Expr x{&c.b, c.primals[0]}, index{&c.b, c.primals[1]}, factor{&c.b, c.primals[2]};
  Expr sum = ir::zeros(c.b, x.type());
  if (c.tangents[0] != kNoValue)
    sum = lax::scatter({&c.b, c.tangents[0]}, index, factor, s, &ops::kMultiply, true);
  if (c.tangents[2] != kNoValue) {
    Dims sizes = lax::window_sizes(s, x.type(), factor.type());
    Expr old = lax::gather(x, index, lax::gather_dims_of(s), sizes);
    sum = lax::scatter(sum, index, Expr{&c.b, c.tangents[2]} * old, s, &ops::kAdd, true);
  }
  c.tangent_out = {sum.v};
}

// The tangent is shared equally by the values that equal the result, operand included.
void scatter_extremum_jvp(JvpCall& c) {
  lax::ScatterDims s(c.op.attrs);
  Expr x{&c.b, c.primals[0]}, index{&c.b, c.primals[1]}, update{&c.b, c.primals[2]};
  Expr out{&c.b, c.primal_out[0]};
  Dims sizes = lax::window_sizes(s, x.type(), update.type());
  Expr there = lax::gather(out, index, lax::gather_dims_of(s), sizes);
  Expr keeps = ir::convert(ir::compare(x, out, "EQ"), x.dtype());
  Expr wins = ir::convert(ir::compare(update, there, "EQ"), x.dtype());
  Expr count = lax::scatter(keeps, index, wins, s, &ops::kAdd, false);
  Expr tx = or_zeros(c.b, c.tangents[0], x.type()),
       tu = or_zeros(c.b, c.tangents[2], update.type());
  Expr sum = lax::scatter(tx * keeps, index, tu * wins, s, &ops::kAdd, false);
  c.tangent_out = {(sum / count).v};
}

// Updates are applied in a fixed order, so the tangents of `set` have the same winners.
void scatter_jvp(JvpCall& c) {
  Kind kind = kind_of(c.op);
  if (kind == Kind::kMultiply && !c.op.attrs.flag("unique_indices"))
    throw_user_error({"differentiate a scatter that multiplies",
                      "the indices must be known to differ", "they may repeat",
                      "Pass {.unique_indices = true} if they do differ, or multiply by an array "
                      "of factors"},
                     c.op.loc.source);
  if (kind == Kind::kOther)
    throw_user_error({"differentiate stablehlo.scatter",
                      "only set, add, min, max and multiply of one operand have a derivative rule",
                      "the scatter has another body",
                      "Use one of these, at().apply with unique_indices, or a custom_jvp"},
                     c.op.loc.source);
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  if (kind == Kind::kMultiply) return scatter_multiply_jvp(c);
  if (kind == Kind::kMinMax) return scatter_extremum_jvp(c);
  ValueId t[3] = {or_zeros(c.b, c.tangents[0], c.b.type(c.primals[0])).v, c.primals[1],
                  or_zeros(c.b, c.tangents[2], c.b.type(c.primals[2])).v};
  c.tangent_out = {c.b.clone(c.op, std::span<const ValueId>(t, 3))[0]};
}

void scatter_transpose(TransposeCall& c) {
  lax::ScatterDims s(c.op.attrs);
  Expr ct{&c.b, c.cotangents[0]}, index{&c.b, c.operands[1]};
  const Type& update = c.types[2];
  lax::GatherDims g = lax::gather_dims_of(s);
  Dims sizes = lax::window_sizes(s, c.types[0], update);
  auto valid = [&](Expr values, Expr otherwise) {
    Expr ok = lax::windows_inside(index, s, c.types[0], sizes, update);
    return ir::select(ok, values, otherwise);
  };
  if (kind_of(c.op) == Kind::kMultiply) {  // linear in the operand alone
    c.operand_ct[0] = lax::scatter(ct, index, {&c.b, c.operands[2]}, s, &ops::kMultiply, true).v;
    return;
  }
  bool set = kind_of(c.op) == Kind::kSet;
  if (c.linear[0]) {
    c.operand_ct[0] = !set ? ct.v
                           : lax::scatter(ct, index, ir::zeros(c.b, update), s, nullptr,
                                          c.op.attrs.flag("unique_indices"))
                                 .v;
  }
  if (c.linear[2]) {
    Expr zero = ir::zeros(c.b, update);
    Expr got = valid(lax::gather(ct, index, g, sizes), zero);
    if (set && !c.op.attrs.flag("unique_indices")) {
      // Only the update that won gets the cotangent: number the updates, scatter and read back.
      std::int64_t n = update.size();
      Expr ids = ir::reshape(ir::iota(c.b, DType::kI64, {n}, 0), update.dims());
      Expr none = ir::zeros(c.b, Type::tensor(DType::kI64, c.types[0].dims()));
      Expr won = lax::gather(lax::scatter(none, index, ids, s, nullptr, false), index, g, sizes);
      got = ir::select(ir::compare(won, ids, "EQ"), got, zero);
    }
    c.operand_ct[2] = got.v;
  }
}

void scatter_batch(BatchCall& c) {
  std::size_t n = c.op.results.size();
  lax::ScatterDims s(c.op.attrs);
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  for (std::size_t i = 0; i < 2 * n + 1; ++i)
    if (i != n) operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  for (std::size_t i = 2 * n + 1; i < operands.size(); ++i)
    if (c.dims[i] != kNotMapped)
      throw_user_error({"vmap of stablehlo.scatter", "captures must not depend on the mapped axis",
                        "one does", "Use map over the axis"},
                       c.op.loc.source);
  s.inserted_window_dims = plus_one(s.inserted_window_dims);
  s.input_batching_dims = plus_one(s.input_batching_dims);
  s.scatter_dims_to_operand_dims = plus_one(s.scatter_dims_to_operand_dims);
  s.update_window_dims = plus_one(s.update_window_dims);
  if (c.dims[n] != kNotMapped) {
    operands[n] = ir::move_dim({&c.b, operands[n]}, c.dims[n], 0).v;
    ++s.index_vector_dim;
    s.scatter_indices_batching_dims = plus_one(s.scatter_indices_batching_dims);
    s.input_batching_dims.insert(0, 0);
    s.scatter_indices_batching_dims.insert(0, 0);
  } else {
    s.update_window_dims.insert(0, 0);
  }
  Attrs attrs = c.op.attrs;
  s.write(attrs);
  ir::ValueIds r = c.b.op(ops::kScatter, operands, attrs, c.op.regions);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

}  // namespace

void register_indexing_rules(RuleTable& t) {
  auto set = [&](const OpDef& def, JvpRule jvp, TransposeRule transpose, BatchRule batch) {
    t[def].jvp = jvp;
    t[def].transpose = transpose;
    t[def].batch = batch;
  };
  set(ops::kDynamicSlice, dynamic_slice_jvp, dynamic_slice_transpose, dynamic_slice_batch);
  set(ops::kDynamicUpdateSlice, dynamic_update_slice_jvp, dynamic_update_slice_transpose,
      dynamic_update_slice_batch);
  set(ops::kGather, gather_jvp, gather_transpose, gather_batch);
  set(ops::kScatter, scatter_jvp, scatter_transpose, scatter_batch);
}

}  // namespace xylem::transform
