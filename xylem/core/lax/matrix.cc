#include "xylem/core/lax/matrix.h"

#include <utility>

#include "xylem/core/lax/indexing.h"
#include "xylem/core/transform/passes.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/decompositions.h"

namespace xylem::lax {

using ir::Attr;
using ir::Attrs;
using ir::compare;
using ir::EnumAttr;
using ir::Expr;
using ir::like;
using ir::select;
using ir::unary;
using ir::ValueId;
namespace ops = ir::ops;

Dims range(int n) {
  Dims r;
  for (int i = 0; i < n; ++i) r.push_back(i);
  return r;
}

Expr matmul(Expr a, Expr b) {
  int n = a.rank() - 2;
  return ir::dot_general(a, b, range(n), range(n), {n + 1}, {n});
}

Expr conj(Expr x) {
  if (!is_complex(x.dtype())) return x;
  return ir::binary(ops::kComplex, unary(ops::kReal, x), -unary(ops::kImag, x));
}

Expr swapped(Expr x) {
  Dims p = range(x.rank());
  std::swap(p[x.rank() - 1], p[x.rank() - 2]);
  return ir::transpose(x, p);
}

Expr adjoint(Expr x) { return conj(swapped(x)); }

Expr where_triangle(Expr x, const char* direction, Expr yes, Expr no) {
  Expr row = ir::iota(*x.b, DType::kI32, x.dims(), x.rank() - 2);
  Expr column = ir::iota(*x.b, DType::kI32, x.dims(), x.rank() - 1);
  return select(compare(row, column, direction), yes, no);
}

Expr triangle(Expr x, bool lower, bool strict) {
  const char* d = lower ? (strict ? "GT" : "GE") : (strict ? "LT" : "LE");
  return where_triangle(x, d, x, like(x, 0));
}

Expr triangular_solve(Expr a, Expr b, bool left, bool lower, bool unit,
                      std::string_view transpose) {
  return {a.b, a.b->one(ops::kTriangularSolve, {a.v, b.v},
                        Attrs{{"left_side", Attr(left)},
                              {"lower", Attr(lower)},
                              {"unit_diagonal", Attr(unit)},
                              {"transpose_a", Attr(EnumAttr(transpose))}})};
}

Expr identity_like(Expr a) { return where_triangle(a, "EQ", like(a, 1), like(a, 0)); }

Expr diagonal_of(Expr a) {
  return ir::reduce_sum(where_triangle(a, "EQ", a, like(a, 0)), {a.rank() - 1});
}

Expr as_rows(Expr x, std::int64_t rows) { return ir::broadcast_new_dim(x, x.rank() - 1, rows); }
Expr as_columns(Expr x, std::int64_t columns) {
  return ir::broadcast_new_dim(x, x.rank(), columns);
}

Expr block(Expr a, std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
  Dims limit = a.dims();
  const int r = a.rank();
  if (r0 == 0 && c0 == 0 && limit[r - 2] == r1 && limit[r - 1] == c1) return a;
  Dims start(limit.size(), 0), strides(limit.size(), 1);
  start[r - 2] = r0;
  start[r - 1] = c0;
  limit[r - 2] = r1;
  limit[r - 1] = c1;
  return ir::slice(a, start, limit, strides);
}

Expr take_rows(Expr a, Expr permutation) {
  if (a.type().size() == 0) return a;
  const int batch = a.rank() - 2;
  GatherDims g;
  g.operand_batching_dims = g.start_indices_batching_dims = range(batch);
  g.collapsed_slice_dims = g.start_index_map = {batch};
  g.offset_dims = {batch + 1};
  g.index_vector_dim = batch + 1;
  Dims sizes(static_cast<std::size_t>(a.rank()), 1), index = permutation.dims();
  sizes[batch + 1] = a.dims()[batch + 1];
  index.push_back(1);
  return gather(a, ir::reshape(permutation, index), g, sizes);
}

Expr take_columns(Expr a, Expr permutation) { return swapped(take_rows(swapped(a), permutation)); }

namespace {

// The permutation that undoes another.
Expr inverse(Expr permutation) {
  Dims dims = permutation.dims();
  const int last = permutation.rank() - 1;
  dims.push_back(dims[last]);
  Expr to = ir::broadcast_in_dim(permutation, dims, range(permutation.rank()));
  Expr from = ir::iota(*permutation.b, DType::kI32, dims, last);
  Expr here = ir::iota(*permutation.b, DType::kI32, dims, last + 1);
  return ir::reduce_sum(select(compare(to, here, "EQ"), from, like(from, 0)), {last});
}

}  // namespace

Expr lu_solve_factored(Expr lu, Expr permutation, Expr b, std::string_view mode) {
  if (mode == "NO_TRANSPOSE") {
    Expr y = triangular_solve(lu, take_rows(b, permutation), true, true, true, mode);
    return triangular_solve(lu, y, true, false, false, mode);
  }
  Expr y = triangular_solve(lu, b, true, false, false, mode);
  return take_rows(triangular_solve(lu, y, true, true, true, mode), inverse(permutation));
}

Expr lu_solve(Expr a, Expr b, bool adjoint) {
  ir::ValueIds f = a.b->op(ops::kLu, {a.v});
  return lu_solve_factored({a.b, f[0]}, {a.b, f[2]}, b, adjoint ? "ADJOINT" : "NO_TRANSPOSE");
}

void leading_batch(transform::BatchCall& c) {
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(transform::batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
  ir::ValueIds r = c.b.clone(c.op, operands);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

}  // namespace xylem::lax
