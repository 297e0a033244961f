#include <algorithm>
#include <cmath>
#include <string>

#include "xylem/ir/expr.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/custom.h"
#include "xylem/ir/ops/decompositions.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/internal/decompositions_expand.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir::ops {
namespace {

using Values = std::vector<ValueId>;
using In = std::span<const ValueId>;

ScalarAttr letter(char c) { return {DType::kU8, c, 0}; }

// Matrix sizes and what is in front of them.
struct Shape {
  Dims batch;
  std::int64_t m, n;
  DType dtype;

  explicit Shape(const Type& t) : m(t.dim(t.rank() - 2)), n(t.dim(t.rank() - 1)), dtype(t.dtype()) {
    for (int i = 0; i + 2 < t.rank(); ++i) batch.push_back(t.dim(i));
  }
  std::int64_t min() const { return std::min(m, n); }
  Type vector(DType t, std::int64_t size) const {
    Dims d = batch;
    d.push_back(size);
    return Type::tensor(t, d);
  }
  Type matrix(std::int64_t rows, std::int64_t columns) const {
    return matrix(dtype, rows, columns);
  }
  Type matrix(DType t, std::int64_t rows, std::int64_t columns) const {
    Dims d = batch;
    d.push_back(rows);
    d.push_back(columns);
    return Type::tensor(t, d);
  }
  Type info() const { return Type::tensor(DType::kI32, batch); }
  DType real() const { return real_dtype(dtype); }
};

// Layouts of a list of types of which those of the highest rank hold matrices, minor to major.
Attr layouts(const std::vector<Type>& types, int most) {
  AttrList list;
  for (const Type& t : types) {
    std::vector<std::int64_t> order;
    for (int d = t.rank() - 1; d >= 0; --d) order.push_back(d);
    if (t.rank() == most && most >= 2) std::swap(order[0], order[1]);
    list.push_back(Attr(HostArray::from(order, {t.rank()})));
  }
  return list;
}

// custom_call @lapack_<letter><routine>_ffi as JAX writes it. `aliases`: pairs of operand and
// result that share memory.
std::vector<Expr> lapack(Builder& b, DType dtype, const std::string& routine, In in,
                         const std::vector<Type>& results, const Attrs& config = {},
                         std::initializer_list<std::pair<int, int>> aliases = {{0, 0}}) {
  const char prefix = dtype == DType::kF32   ? 's'
                      : dtype == DType::kF64 ? 'd'
                      : dtype == DType::kC64 ? 'c'
                                             : 'z';
  std::vector<Type> operands;
  int most = 0;
  for (ValueId v : in) operands.push_back(b.type(v));
  for (const Type& t : operands) most = std::max(most, t.rank());
  AttrList result_types, alias_list;
  for (const Type& t : results) result_types.push_back(Attr(t));
  for (auto [operand, result] : aliases)
    alias_list.push_back(
        Attr(Attrs{{"output_tuple_indices", Attr(results.size() == 1 ? Dims{} : Dims{result})},
                   {"operand_index", Attr(operand)},
                   {"operand_tuple_indices", Attr(Dims{})}}));
  Attrs attrs{{"call_target_name", Attr("lapack_" + std::string(1, prefix) + routine + "_ffi")},
              {"backend_config", Attr("")},
              {"mhlo.backend_config", Attr(config)},
              {"operand_layouts", layouts(operands, most)},
              {"result_layouts", layouts(results, most)},
              {"result_types", Attr(result_types)}};
  if (!alias_list.empty()) attrs.set("output_operand_aliases", Attr(alias_list));
  std::vector<Expr> out;
  for (ValueId v : b.op(kCustomCall, in, std::move(attrs))) out.push_back({&b, v});
  return out;
}

// "orgqr" for real matrices, "ungqr" for complex ones.
std::string by_field(DType t, const char* real, const char* complex) {
  return is_complex(t) ? complex : real;
}

Expr nan_like(Expr x) {
  if (!is_complex(x.dtype())) return like(x, NAN);
  const Expr part = broadcast_to(scalar(*x.b, real_dtype(x.dtype()), NAN), x.dims());
  return binary(kComplex, part, part);
}

// x where the routine went well, NaN elsewhere. info [batch].
Expr checked(Expr x, Expr info, const char* direction = "EQ") {
  Dims leading;
  for (int d = 0; d < info.rank(); ++d) leading.push_back(d);
  Expr ok = compare(info, 0, direction);
  return select(broadcast_in_dim(ok, x.dims(), leading), x, nan_like(x));
}

Expr part(Expr x, std::int64_t rows, std::int64_t columns) {
  Dims limit = x.dims(), zero(limit.size(), 0), ones(limit.size(), 1);
  const int r = x.rank();
  if (limit[r - 2] == rows && limit[r - 1] == columns) return x;
  limit[r - 2] = rows;
  limit[r - 1] = columns;
  return slice(x, zero, limit, ones);
}

Expr upper(Expr x) {
  const Expr row = iota(*x.b, DType::kI32, x.dims(), x.rank() - 2);
  const Expr column = iota(*x.b, DType::kI32, x.dims(), x.rank() - 1);
  return select(compare(row, column, "LE"), x, like(x, 0));
}

// Ones on the diagonal.
Expr identity(Builder& b, const Type& t) {
  const Expr row = iota(b, DType::kI32, t.dims(), t.rank() - 2);
  const Expr column = iota(b, DType::kI32, t.dims(), t.rank() - 1);
  const Expr zero = zeros(b, t);
  return select(compare(row, column, "EQ"), like(zero, 1), zero);
}

Expr op_one(Builder& b, const OpDef& def, std::initializer_list<ValueId> in, Attrs attrs = {}) {
  return {&b, b.one(def, in, std::move(attrs))};
}

}  // namespace

Values expand_lu(Builder& b, const Op&, In in) {
  const Shape s(b.type(in[0]));
  auto r = lapack(b, s.dtype, "getrf", in,
                  {s.matrix(s.m, s.n), s.vector(DType::kI32, s.min()), s.info()});
  const Expr pivots = r[1] - 1;
  const Expr permutation =
      op_one(b, kLuPivotsToPermutation, {pivots.v}, {{"permutation_size", Attr(s.m)}});
  return {checked(r[0], r[2], "GE").v, pivots.v, permutation.v};
}

// One exchange after the other, over whole rows of the batch.
Values expand_lu_pivots(Builder& b, const Op& op, In in) {
  const Type t = b.type(in[0]);
  const int last = t.rank() - 1;
  Dims dims = t.dims();
  const std::int64_t k = dims[last];
  dims[last] = op.attrs.i64("permutation_size");
  const Expr start = iota(b, DType::kI32, dims, last);
  if (k == 0 || num_elements(dims) == 0) return {start.v};
  const Type number = Type::tensor(DType::kI32), order = Type::tensor(DType::kI32, dims);

  Builder cond("cond");
  const Expr ci{&cond, cond.param(number)};
  cond.param(order);
  cond.param(t);
  GraphPtr cond_graph = cond.finish({compare(ci, static_cast<double>(k), "LT").v});

  Builder body("body");
  const Expr i{&body, body.param(number)}, p{&body, body.param(order)},
      pivots{&body, body.param(t)};
  auto spread = [&](Expr x, const Dims& to) {
    Dims leading;
    for (int d = 0; d < x.rank(); ++d) leading.push_back(d);
    return broadcast_in_dim(x, to, leading);
  };
  auto pick = [&](Expr where, Expr x) { return reduce_sum(select(where, x, like(x, 0)), {last}); };
  const Expr step = iota(body, DType::kI32, t.dims(), last);
  const Expr j = pick(compare(step, broadcast_to(i, t.dims()), "EQ"), pivots);
  const Expr place = iota(body, DType::kI32, dims, last);
  const Expr at_i = compare(place, broadcast_to(i, dims), "EQ");
  const Expr at_j = compare(place, spread(j, dims), "EQ");
  const Expr x = spread(pick(at_i, p), dims), y = spread(pick(at_j, p), dims);
  const Expr exchanged = select(at_i, y, select(at_j, x, p));
  GraphPtr body_graph = body.finish({(i + 1).v, exchanged.v, pivots.v});

  return {
      b.op(kWhile, {b.splat(DType::kI32, {}, 0), start.v, in[0]}, {}, {cond_graph, body_graph})[1]};
}

Values expand_geqrf(Builder& b, const Op&, In in) {
  const Shape s(b.type(in[0]));
  auto r = lapack(b, s.dtype, "geqrf", in, {s.matrix(s.m, s.n), s.vector(s.dtype, s.min())});
  return {r[0].v, r[1].v};
}

Values expand_geqp3(Builder& b, const Op&, In in) {
  const Shape s(b.type(in[0]));
  auto r = lapack(b, s.dtype, "geqp3", in,
                  {s.matrix(s.m, s.n), s.vector(DType::kI32, s.n), s.vector(s.dtype, s.min())}, {},
                  {{0, 0}, {1, 1}});
  return {r[0].v, r[1].v, r[2].v};
}

Values expand_householder_product(Builder& b, const Op&, In in) {
  const Shape s(b.type(in[0]));
  return {lapack(b, s.dtype, by_field(s.dtype, "orgqr", "ungqr"), in, {b.type(in[0])})[0].v};
}

Values expand_ormqr(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  return {lapack(b, s.dtype, by_field(s.dtype, "ormqr", "unmqr"), in, {b.type(in[2])},
                 {{"left", Attr(op.attrs.flag("left"))},
                  {"transpose", Attr(op.attrs.flag("transpose"))}},
                 {{2, 0}})[0]
              .v};
}

Values expand_qr(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  const bool full = op.attrs.flag("full_matrices"), pivoting = op.attrs.flag("pivoting");
  const std::int64_t k = full ? s.m : s.min();
  if (s.min() == 0) {
    Values out{identity(b, s.matrix(s.m, k)).v, zeros(b, s.matrix(k, s.n)).v};
    if (pivoting) out.push_back(zeros(b, s.vector(DType::kI32, s.n)).v);
    return out;
  }
  Expr r, taus, order;
  if (pivoting) {
    ValueIds f = b.op(kGeqp3, {in[0], zeros(b, s.vector(DType::kI32, s.n)).v});
    r = {&b, f[0]};
    order = Expr{&b, f[1]} - 1;
    taus = {&b, f[2]};
  } else {
    ValueIds f = b.op(kGeqrf, {in[0]});
    r = {&b, f[0]};
    taus = {&b, f[1]};
  }
  Expr q = r;
  if (s.m < s.n) {
    q = part(r, s.m, s.m);
  } else if (full && s.m > s.n) {
    Dims zero(static_cast<std::size_t>(r.rank()), 0), high = zero;
    high[r.rank() - 1] = s.m - s.n;
    q = pad(r, scalar(b, s.dtype, 0), zero, high, zero);
  } else {
    r = part(r, s.n, s.n);
  }
  q = op_one(b, kHouseholderProduct, {q.v, taus.v});
  Values out{q.v, upper(r).v};
  if (pivoting) out.push_back(order.v);
  return out;
}

Values expand_eigh(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  auto r = lapack(
      b, s.dtype, by_field(s.dtype, "syevd", "heevd"), in,
      {s.matrix(s.n, s.n), s.vector(s.real(), s.n), s.info()},
      {{"mode", Attr(letter('V'))}, {"uplo", Attr(letter(op.attrs.flag("lower") ? 'L' : 'U'))}});
  return {checked(r[0], r[2]).v, checked(r[1], r[2]).v};
}

Values expand_svd(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  const bool full = op.attrs.flag("full_matrices"), vectors = op.attrs.flag("compute_uv");
  const std::int64_t u = full ? s.m : s.min(), v = full ? s.n : s.min();
  if (s.min() == 0) {
    Values out{zeros(b, s.vector(s.real(), 0)).v};
    if (vectors) {
      out.push_back(identity(b, s.matrix(s.m, u)).v);
      out.push_back(identity(b, s.matrix(v, s.n)).v);
    }
    return out;
  }
  const bool divide = op.attrs.str_or("algorithm", "DEFAULT") != "QR";
  auto r = lapack(b, s.dtype, divide ? "gesdd" : "gesvd", in,
                  {s.matrix(s.m, s.n), s.vector(s.real(), s.min()), s.matrix(s.m, u),
                   s.matrix(v, s.n), s.info()},
                  {{"mode", Attr(letter(!vectors ? 'N'
                                        : full   ? 'A'
                                                 : 'S'))}});
  Values out{checked(r[1], r[4]).v};
  if (vectors) {
    out.push_back(checked(r[2], r[4]).v);
    out.push_back(checked(r[3], r[4]).v);
  }
  return out;
}

Values expand_eig(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  const bool left = op.attrs.flag("compute_left_eigenvectors"),
             right = op.attrs.flag("compute_right_eigenvectors"), complex = is_complex(s.dtype);
  const Type w = s.vector(s.dtype, s.n), v = s.matrix(complex_dtype(s.real()), s.n, s.n);
  std::vector<Type> results{w};
  if (!complex) results.push_back(w);
  results.insert(results.end(), {v, v, s.info()});
  auto r = lapack(b, s.dtype, "geev", in, results,
                  {{"compute_left", Attr(letter(left ? 'V' : 'N'))},
                   {"compute_right", Attr(letter(right ? 'V' : 'N'))}},
                  {});
  const Expr info = r.back();
  Values out{checked(complex ? r[0] : binary(kComplex, r[0], r[1]), info).v};
  if (left) out.push_back(checked(r[r.size() - 3], info).v);
  if (right) out.push_back(checked(r[r.size() - 2], info).v);
  return out;
}

Values expand_schur(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  const bool vectors = op.attrs.flag("compute_schur_vectors");
  const Type a = s.matrix(s.n, s.n), w = s.vector(s.dtype, s.n);
  std::vector<Type> results{a, a, w};
  if (!is_complex(s.dtype)) results.push_back(w);
  results.insert(results.end(), {s.info(), s.info()});
  auto r = lapack(b, s.dtype, "gees", in, results,
                  {{"mode", Attr(letter(vectors ? 'V' : 'N'))}, {"sort", Attr(letter('N'))}});
  Values out{checked(r[0], r.back()).v};
  if (vectors) out.push_back(checked(r[1], r.back()).v);
  return out;
}

Values expand_hessenberg(Builder& b, const Op&, In in) {
  const Shape s(b.type(in[0]));
  auto r =
      lapack(b, s.dtype, "gehrd", in, {s.matrix(s.n, s.n), s.vector(s.dtype, s.n - 1), s.info()},
             {{"low", Attr(ScalarAttr{DType::kI32, 1, 0})},
              {"high", Attr(ScalarAttr{DType::kI32, s.n, 0})}});
  return {checked(r[0], r[2]).v, checked(r[1], r[2]).v};
}

Values expand_tridiagonal(Builder& b, const Op& op, In in) {
  const Shape s(b.type(in[0]));
  auto r = lapack(b, s.dtype, by_field(s.dtype, "sytrd", "hetrd"), in,
                  {s.matrix(s.n, s.n), s.vector(s.real(), s.n), s.vector(s.real(), s.n - 1),
                   s.vector(s.dtype, s.n - 1), s.info()},
                  {{"uplo", Attr(letter(op.attrs.flag("lower") ? 'L' : 'U'))}});
  Values out;
  for (std::size_t i = 0; i < 4; ++i) out.push_back(checked(r[i], r[4]).v);
  return out;
}

Values expand_tridiagonal_solve(Builder& b, const Op&, In in) {
  const Shape s(b.type(in[3]));
  const Type d = b.type(in[0]), x = b.type(in[3]);
  auto r =
      lapack(b, s.dtype, "gtsv", in, {d, d, d, x, s.info()}, {}, {{0, 0}, {1, 1}, {2, 2}, {3, 3}});
  return {checked(r[3], r[4]).v};
}

}  // namespace xylem::ir::ops
