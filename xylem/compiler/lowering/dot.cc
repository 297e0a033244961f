#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/compiler/fusion/buffer_elemental.h"
#include "xylem/compiler/gemm/gemm.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/contraction.h"

namespace xylem::compiler {
namespace {

using ir::Op;
using ir::ValueId;

// One operand with its dimensions by role.
struct Side {
  ValueId value = ir::kNoValue;
  Dims batch, free, contract;  // dimensions of the value
};

struct Source {
  BufferId buffer = 0;
  MatrixLayout layout;  // row: free dimension, column: contracted one (swapped for the right side)
};

Dims sizes(const Dims& shape, const Dims& which) {
  Dims out;
  for (std::int64_t d : which) out.push_back(shape[d]);
  return out;
}

// The step of consecutive axes as one index; false if they are none.
bool single_step(const Form& f, const Dims& axes, int first, int count, std::int64_t* step) {
  *step = 0;
  std::int64_t inner = 1;
  for (int i = first + count - 1; i >= first; --i) {
    if (axes[i] == 1) continue;
    if (inner == 1)
      *step = f.coef(i);
    else if (f.coef(i) != *step * inner)
      return false;
    inner *= axes[i];
  }
  return true;
}

// Finds the operand behind transposes, reshapes and slices as strides over a buffer.
bool find_strides(Lowering& l, const Side& side, Source* out) {
  const ir::Graph& g = l.graph();
  const Dims& shape = g.type(side.value).dims();
  Dims order;
  for (const Dims* part : {&side.batch, &side.free, &side.contract})
    for (std::int64_t d : *part) order.push_back(d);
  const Dims axes = sizes(shape, order);
  BufferElemental e(g, l.plan(), axes, nullptr);
  Forms index(shape.size());
  for (int i = 0; i < order.ssize(); ++i)
    if (axes[i] != 1) index[static_cast<std::size_t>(order[i])] = Form::axis(i);
  e.eval(side.value, index, {});
  if (e.reads().size() != 1 || !e.splits.empty() || e.cost > 1) return false;
  const Form& f = e.reads()[0].flat;
  for (const Term& t : f.terms)
    if (t.axis >= axes.ssize() || t.coef < 0) return false;
  if (f.constant != 0) return false;
  const int nb = side.batch.ssize(), nf = side.free.ssize(), nc = side.contract.ssize();
  MatrixLayout& m = out->layout;
  m.batch.clear();
  for (int i = 0; i < nb; ++i) m.batch.push_back(f.coef(i));
  if (!single_step(f, axes, nb, nf, &m.row) || !single_step(f, axes, nb + nf, nc, &m.column))
    return false;
  out->buffer = e.reads()[0].v;
  m.size = g.type(e.reads()[0].v).size();
  return true;
}

// Writes the operand densely, in the order batch, then `second`, then `third`.
Source make_dense(Lowering& l, const Side& side, const Dims& second, const Dims& third) {
  const ir::Graph& g = l.graph();
  const ir::Type& t = g.type(side.value);
  Dims order;
  for (const Dims* part : {&side.batch, &second, &third})
    for (std::int64_t d : *part) order.push_back(d);
  const Dims shape = sizes(t.dims(), order);
  Forms index(shape.size());
  for (int i = 0; i < order.ssize(); ++i)
    if (shape[i] != 1) index[static_cast<std::size_t>(order[i])] = Form::axis(i);
  BufferElemental look(g, l.plan(), shape, nullptr);
  look.eval(side.value, index, {});

  ir::KernelBuilder k("layout");
  TileLoops loops;
  loops.declare(k, shape, dtype_bytes(t.dtype()));
  BufferElemental e(g, l.plan(), shape, &k);
  for (const auto& r : look.reads()) e.read(r.v);
  const ir::KernelValue out = k.write(t.dtype(), {t.size()});
  loops.run(e, shape, [&](const Elemental::Guard& guard) {
    Forms own;
    for (int i = 0; i < shape.ssize(); ++i) own.push_back(shape[i] == 1 ? Form() : Form::axis(i));
    e.store(out, flatten(own, shape), e.eval(side.value, index, guard), guard);
  });
  Source s;
  s.buffer = l.temp(t.nbytes());
  std::vector<Use> uses;
  for (ValueId v : e.inputs()) uses.push_back({v});
  uses.push_back({s.buffer, true});
  l.kernel(k.finish(), std::move(uses), loops.points, static_cast<double>(t.size()) * 0.5 + 20, 0,
           2.0 * static_cast<double>(t.nbytes()));
  const std::int64_t inner = num_elements(sizes(t.dims(), third));
  const std::int64_t matrix = num_elements(sizes(t.dims(), second)) * inner;
  s.layout.size = t.size();
  s.layout.row = inner;
  s.layout.column = 1;
  const Dims batch = sizes(t.dims(), side.batch);
  s.layout.batch = row_major_strides(batch);
  for (std::int64_t& x : s.layout.batch) x *= matrix;
  return s;
}

}  // namespace

void lower_dot(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  Side left{op.operands[0],
            op.attrs.dims_or("lhs_batching_dimensions", {}),
            {},
            op.attrs.dims_or("lhs_contracting_dimensions", {})};
  Side right{op.operands[1],
             op.attrs.dims_or("rhs_batching_dimensions", {}),
             {},
             op.attrs.dims_or("rhs_contracting_dimensions", {})};
  for (Side* s : {&left, &right})
    for (int d = 0; d < g.type(s->value).rank(); ++d)
      if (!s->batch.contains(d) && !s->contract.contains(d)) s->free.push_back(d);
  GemmShape shape;
  shape.dtype = g.type(op.results[0]).dtype();
  XYLEM_CHECK(g.type(left.value).dtype() == shape.dtype, "products are canonical");
  shape.batch = sizes(g.type(left.value).dims(), left.batch);
  shape.m = num_elements(sizes(g.type(left.value).dims(), left.free));
  shape.n = num_elements(sizes(g.type(right.value).dims(), right.free));
  shape.k = num_elements(sizes(g.type(left.value).dims(), left.contract));

  const std::int64_t bytes = dtype_bytes(shape.dtype);
  Source a, b;
  // A column of a that steps by a whole page at a time thrashes the first cache.
  if (!find_strides(l, left, &a) ||
      (a.layout.column != 1 && (a.layout.column * bytes) % 4096 == 0 && shape.k > 64))
    a = make_dense(l, left, left.free, left.contract);
  if (find_strides(l, right, &b))
    std::swap(b.layout.row, b.layout.column);  // rows of b are the contracted dimension
  else
    b = make_dense(l, right, right.contract, right.free);

  const GemmTile tile = choose_tile(shape);
  const bool packed = !reads_in_place(shape, b.layout, tile);
  BufferId right_buffer = b.buffer;
  if (packed) {
    PackKernel pack = make_pack_kernel(shape, b.layout, tile);
    right_buffer = l.temp(pack.elements * bytes);
    const auto work = static_cast<double>(pack.elements);
    l.kernel(std::move(pack.kernel), {{b.buffer}, {right_buffer, true}}, pack.points,
             work * (b.layout.column == 1 ? 0.05 : 0.4) + 20, 0, 8 * work);
  }
  GemmKernel product = make_gemm_kernel(shape, a.layout, b.layout, packed, tile);
  const double flops = 2.0 * static_cast<double>(num_elements(shape.batch)) *
                       static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  l.kernel(
      std::move(product.kernel), {{a.buffer}, {right_buffer}, {l.buffer(op.results[0]), true}},
      product.points, flops / 200 + 20, flops,
      static_cast<double>((shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * bytes));
}

}  // namespace xylem::compiler
