// Derivatives, transposes and batching of collectives over named axes. Mapping over the axis that
// an op names turns it into an ordinary op; mapping over another one leaves it, one dimension up.

#include <fmt/format.h>

#include "xylem/core/lax/indexing.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/named_axis.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Expr;
using ir::kNoValue;
namespace ops = ir::ops;

void linear_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  c.tangent_out = {c.b.clone(c.op, c.tangents)[0]};
}

bool own_axis(const BatchCall& c) { return c.op.attrs.str("axis_name") == c.axis_name; }
bool mapped(const BatchCall& c) { return c.dims[0] != kNotMapped; }
Expr operand(const BatchCall& c) { return {&c.b, c.operands[0]}; }
Expr front(const BatchCall& c) {
  return {&c.b, batch_to_front(c.b, c.operands[0], c.dims[0], c.size)};
}
int at(const ir::Op& op, const char* name) { return static_cast<int>(op.attrs.i64(name)); }

void done(BatchCall& c, Expr x, int dim) {
  c.results = {x.v};
  c.result_dims = {dim};
}

// Another axis is mapped: the dimensions that the op names move up by one.
void pass_through(BatchCall& c) {
  Attrs attrs = c.op.attrs;
  for (const char* name : {"dimension", "split_dimension", "concat_dimension"})
    if (attrs.has(name)) attrs.set(name, Attr(attrs.i64(name) + 1));
  done(c, {&c.b, c.b.one(*c.op.def, {front(c).v}, attrs)}, 0);
}

// One dimension that takes the place of `d` and the one behind it.
Expr merge(Expr x, int d) {
  Dims dims = x.dims();
  dims[d] *= dims[d + 1];
  dims.erase(static_cast<std::size_t>(d) + 1);
  return ir::reshape(x, dims);
}
// Dimension d as [n, rest].
Expr split_off(Expr x, int d, std::int64_t n) {
  Dims dims = x.dims();
  dims[d] /= n;
  dims.insert(static_cast<std::size_t>(d), n);
  return ir::reshape(x, dims);
}

// The sum over the positions, unmapped.
Expr total(const BatchCall& c) {
  if (!mapped(c)) return operand(c) * static_cast<double>(c.size);
  return ir::reduce(ops::kAdd, operand(c), {c.dims[0]});
}

void psum_batch(BatchCall& c) {
  if (!own_axis(c)) return pass_through(c);
  done(c, total(c), kNotMapped);
}
void psum_transpose(TransposeCall& c) {
  c.operand_ct[0] = c.b.one(ops::kPsum, {c.cotangents[0]}, c.op.attrs);
}

void extremum_batch(BatchCall& c) {
  if (!own_axis(c)) return pass_through(c);
  const ir::OpDef& def = c.op.def == &ops::kPmax ? ops::kMaximum : ops::kMinimum;
  done(c, mapped(c) ? ir::reduce(def, operand(c), {c.dims[0]}) : operand(c), kNotMapped);
}

void all_gather_batch(BatchCall& c) {
  if (!own_axis(c)) return pass_through(c);
  int d = at(c.op, "dimension");
  Expr x = ir::move_dim(front(c), 0, d);
  done(c, c.op.attrs.flag("tiled") ? merge(x, d) : x, kNotMapped);
}
void all_gather_transpose(TransposeCall& c) {
  c.operand_ct[0] = c.b.one(ops::kPsumScatter, {c.cotangents[0]}, c.op.attrs);
}

void psum_scatter_batch(BatchCall& c) {
  if (!own_axis(c)) return pass_through(c);
  int d = at(c.op, "dimension");
  done(c, c.op.attrs.flag("tiled") ? split_off(total(c), d, c.size) : total(c), d);
}
void psum_scatter_transpose(TransposeCall& c) {
  c.operand_ct[0] = c.b.one(ops::kAllGatherAxis, {c.cotangents[0]}, c.op.attrs);
}

void all_to_all_batch(BatchCall& c) {
  if (!own_axis(c)) return pass_through(c);
  int split = at(c.op, "split_dimension"), concat = at(c.op, "concat_dimension");
  Expr x = front(c);  // [source, …]
  if (!c.op.attrs.flag("tiled")) {
    x = ir::move_dim(x, split + 1, 0);  // [target, source, …]
    done(c, ir::move_dim(x, 1, concat + 1), 0);
    return;
  }
  x = split_off(x, split + 1, c.size);  // [source, …, target, block, …]
  x = ir::move_dim(x, split + 1, 0);    // [target, source, …]
  x = ir::move_dim(x, 1, concat + 1);   // the source before the dimension that it joins
  done(c, merge(x, concat + 1), 0);
}
void all_to_all_transpose(TransposeCall& c) {
  Attrs attrs = c.op.attrs;
  attrs.set("split_dimension", Attr(c.op.attrs.i64("concat_dimension")));
  attrs.set("concat_dimension", Attr(c.op.attrs.i64("split_dimension")));
  c.operand_ct[0] = c.b.one(ops::kAllToAllAxis, {c.cotangents[0]}, attrs);
}

void ppermute_batch(BatchCall& c) {
  if (!own_axis(c)) return pass_through(c);
  const Dims& pairs = c.op.attrs.dims("pairs");
  if (pairs.ssize() != 2 * c.size)
    throw_user_error({"ppermute under vmap", "every position must have a source and a target",
                      fmt::format("{} pairs for an axis of size {}", pairs.size() / 2, c.size),
                      "Complete the permutation"},
                     c.op.loc.source);
  if (!mapped(c)) return done(c, operand(c), kNotMapped);
  std::vector<std::int32_t> source(static_cast<std::size_t>(c.size));
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    source[static_cast<std::size_t>(pairs[i + 1])] = static_cast<std::int32_t>(pairs[i]);
  Expr x = front(c), index{&c.b, c.b.constant(HostArray::from(source, {c.size}))};
  lax::GatherDims g;
  for (int d = 1; d < x.rank(); ++d) g.offset_dims.push_back(d);
  g.collapsed_slice_dims = {0};
  g.start_index_map = {0};
  g.index_vector_dim = 1;
  Dims sizes = x.dims();
  sizes[0] = 1;
  done(c, lax::gather(x, index, g, sizes), 0);
}
void ppermute_transpose(TransposeCall& c) {
  Attrs attrs = c.op.attrs;
  Dims pairs = attrs.dims("pairs");
  for (std::size_t i = 0; i < pairs.size(); i += 2) std::swap(pairs[i], pairs[i + 1]);
  attrs.set("pairs", Attr(pairs));
  c.operand_ct[0] = c.b.one(ops::kPpermute, {c.cotangents[0]}, attrs);
}

void axis_index_batch(BatchCall& c) {
  if (own_axis(c)) return done(c, ir::iota(c.b, DType::kI32, {c.size}, 0), 0);
  done(c, {&c.b, c.b.one(ops::kAxisIndex, {}, c.op.attrs)}, kNotMapped);
}

}  // namespace

void register_named_axis_rules(RuleTable& t) {
  auto linear = [&](const ir::OpDef& def, TransposeRule transpose, BatchRule batch) {
    t[def].jvp = linear_jvp;
    t[def].transpose = transpose;
    t[def].batch = batch;
  };
  linear(ops::kPsum, psum_transpose, psum_batch);
  linear(ops::kAllGatherAxis, all_gather_transpose, all_gather_batch);
  linear(ops::kPsumScatter, psum_scatter_transpose, psum_scatter_batch);
  linear(ops::kAllToAllAxis, all_to_all_transpose, all_to_all_batch);
  linear(ops::kPpermute, ppermute_transpose, ppermute_batch);
  for (const ir::OpDef* def : {&ops::kPmax, &ops::kPmin}) {
    t[*def].batch = extremum_batch;
    t[*def].refuse_jvp = "pmax and pmin have no derivative";
  }
  t[ops::kAxisIndex].batch = axis_index_batch;
  t[ops::kAxisIndex].no_derivative = true;
}

}  // namespace xylem::transform
