#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/compiler/lowering/product.h"
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

Dims sizes(const Dims& shape, const Dims& which) {
  Dims out;
  for (std::int64_t d : which) out.push_back(shape[d]);
  return out;
}

Dims joined(std::initializer_list<const Dims*> parts) {
  Dims out;
  for (const Dims* part : parts)
    for (std::int64_t d : *part) out.push_back(d);
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

// The operand where it lies, with its free dimensions as rows.
bool find_strides(Lowering& l, const Side& side, Operand* out) {
  const ir::Graph& g = l.graph();
  const Dims& shape = g.type(side.value).dims();
  const Dims order = joined({&side.batch, &side.free, &side.contract});
  const Dims axes = sizes(shape, order);
  Forms index(shape.size());
  for (int i = 0; i < order.ssize(); ++i)
    if (axes[i] != 1) index[static_cast<std::size_t>(order[i])] = Form::axis(i);
  Form f;
  if (!find_place(l, side.value, index, axes, &out->buffer, &f)) return false;
  const int nb = side.batch.ssize(), nf = side.free.ssize(), nc = side.contract.ssize();
  MatrixLayout& m = out->layout;
  m.batch.clear();
  for (int i = 0; i < nb; ++i) m.batch.push_back(f.coef(i));
  std::int64_t row = 0, column = 0;
  if (!single_step(f, axes, nb, nf, &row) || !single_step(f, axes, nb + nf, nc, &column))
    return false;
  m.row = {row};
  m.column = {column};
  m.size = g.type(out->buffer).size();
  return true;
}

// Writes the operand densely, in the order batch, then `second` as rows, then `third`.
Operand write_dense(Lowering& l, const Side& side, const Dims& second, const Dims& third) {
  const ir::Type& t = l.graph().type(side.value);
  Operand s;
  s.buffer = make_dense(l, side.value, joined({&side.batch, &second, &third}));
  const std::int64_t inner = num_elements(sizes(t.dims(), third));
  const std::int64_t matrix = num_elements(sizes(t.dims(), second)) * inner;
  s.layout.size = t.size();
  s.layout.row = {inner};
  s.layout.column = {1};
  s.layout.batch = row_major_strides(sizes(t.dims(), side.batch));
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
  const Dims &left_dims = g.type(left.value).dims(), &right_dims = g.type(right.value).dims();
  GemmShape shape;
  shape.dtype = g.type(op.results[0]).dtype();
  XYLEM_CHECK(g.type(left.value).dtype() == shape.dtype, "products are canonical");
  shape.batch = sizes(left_dims, left.batch);
  shape.rows = {num_elements(sizes(left_dims, left.free))};
  shape.n = num_elements(sizes(right_dims, right.free));
  shape.sums = {num_elements(sizes(left_dims, left.contract))};

  Operand a, b;
  // A column of a that steps by a whole page at a time thrashes the first cache.
  const std::int64_t bytes = dtype_bytes(shape.dtype);
  if (!find_strides(l, left, &a) ||
      (a.layout.column[0] != 1 && (a.layout.column[0] * bytes) % 4096 == 0 && shape.k() > 64))
    a = write_dense(l, left, left.free, left.contract);
  if (find_strides(l, right, &b))
    std::swap(b.layout.row, b.layout.column);  // rows of b are the contracted dimension
  else
    b = write_dense(l, right, right.contract, right.free);
  emit_product(l, shape, a, b, l.buffer(op.results[0]));
}

}  // namespace xylem::compiler
