#include "xylem/core/lax_linalg.h"

#include <fmt/format.h>

#include "xylem/core/lax/matrix.h"
#include "xylem/core/linalg/internal/util.h"
#include "xylem/ir/ops/decompositions.h"
#include "xylem/ir/ops/linalg.h"

namespace xylem::lax::linalg {

namespace detail = xylem::linalg::detail;
namespace ops = ir::ops;
using internal::CallSite;
using ir::Attr;
using ir::Attrs;

namespace {

std::vector<Array> apply(const ir::OpDef& def, std::initializer_list<Array> operands, Attrs attrs,
                         SourceLoc where) {
  return internal::apply(def, std::span<const Array>(operands.begin(), operands.size()),
                         std::move(attrs), {}, where);
}

// Operands of one floating dtype, batch axes broadcast; `inner[i]` axes of operand i are its own.
std::vector<Array> together(const char* what, std::initializer_list<ArrayArg> args,
                            std::initializer_list<std::size_t> inner) {
  std::vector<Array> out;
  std::vector<Dims> batches;
  SourceLoc where = args.begin()->where;
  WeakDType t = internal::weak_dtype(args.begin()->array);
  for (const ArrayArg& a : args) t = promote_types(t, internal::weak_dtype(a.array), a.where);
  t = {to_inexact(t).dtype, false};
  auto n = inner.begin();
  for (const ArrayArg& a : args) {
    if (static_cast<std::size_t>(a.array.ndim()) < *n)
      detail::wrong(what, fmt::format("operand {} of at least {} axes", out.size(), *n),
                    a.array.type_string(), "Add axes", where);
    batches.push_back(detail::leading(a.array, *n++));
    out.push_back(internal::with_dtype(a.array, t, a.where));
  }
  const Dims batch = internal::broadcast_shapes(batches, what, where);
  n = inner.begin();
  for (Array& a : out) a = detail::with_batch(a, batch, *n++);
  return out;
}

}  // namespace

Array cholesky(const ArrayArg& a, bool symmetrize_input) {
  return xylem::linalg::cholesky(a, false, symmetrize_input);
}

Array triangular_solve(const ArrayArg& a_arg, const ArrayArg& b_arg,
                       const TriangularSolveOptions& o) {
  CallSite site(a_arg.where);
  auto [a, b] = detail::inexact(a_arg, b_arg);
  detail::need_square("triangular_solve", a, a_arg.where);
  const bool vector = b.ndim() == a.ndim() - 1;
  if (vector) b = o.left_side ? detail::column(b) : detail::row(b);
  if (b.ndim() != a.ndim() || detail::leading(a, 2) != detail::leading(b, 2) ||
      b.dim(o.left_side ? -2 : -1) != a.dim(-1))
    detail::wrong("triangular_solve",
                  "a and b of one batch, and b of a's size on the side of the solution",
                  fmt::format("{} and {}", a.type_string(), b.type_string()),
                  "Broadcast or transpose b", a_arg.where);
  const bool conjugate = o.conjugate_a && is_complex(a.dtype());
  if (conjugate && !o.transpose_a) a = conj(a);
  const char* mode = !o.transpose_a ? "NO_TRANSPOSE" : conjugate ? "ADJOINT" : "TRANSPOSE";
  Array x = apply(ops::kTriangularSolve, {a, b},
                  {{"left_side", Attr(o.left_side)},
                   {"lower", Attr(o.lower)},
                   {"unit_diagonal", Attr(o.unit_diagonal)},
                   {"transpose_a", Attr(ir::EnumAttr(mode))}},
                  a_arg.where)[0];
  return vector ? squeeze(x, o.left_side ? -1 : -2) : x;
}

LuResult lu(const ArrayArg& a) {
  CallSite site(a.where);
  auto r = apply(ops::kLu, {detail::factorable("lu", a)}, {}, a.where);
  return {r[0], r[1], r[2]};
}

Array lu_pivots_to_permutation(const ArrayArg& pivots, std::int64_t permutation_size) {
  CallSite site(pivots.where);
  Array p = pivots.array;
  if (!is_integer(p.dtype()) || p.ndim() < 1 || permutation_size < p.dim(-1))
    detail::wrong("lu_pivots_to_permutation",
                  "integers along the last axis, at most permutation_size of them",
                  fmt::format("{} and {}", p.type_string(), permutation_size),
                  "Pass the pivots of lu and the number of rows of its matrix", pivots.where);
  return apply(ops::kLuPivotsToPermutation, {p.astype(DType::kI32)},
               {{"permutation_size", Attr(permutation_size)}}, pivots.where)[0];
}

Array lu_solve(const ArrayArg& lu_arg, const ArrayArg& permutation, const ArrayArg& b_arg,
               int trans) {
  CallSite site(lu_arg.where);
  auto [f, b] = detail::inexact(lu_arg, b_arg);
  detail::need_square("lu_solve", f, lu_arg.where);
  const bool vector = b.ndim() == f.ndim() - 1;
  if (trans < 0 || trans > 2)
    detail::wrong("lu_solve: trans", "0, 1 or 2", fmt::format("{}", trans),
                  "Use 1 for the transposed, 2 for the adjoint system", lu_arg.where);
  if (vector) b = detail::column(b);
  const Array& p = permutation.array;
  if (b.ndim() < 2 || b.dim(-2) != f.dim(-1) || p.ndim() < 1 || p.dim(-1) != f.dim(-1) ||
      !is_integer(p.dtype()))
    detail::wrong("lu_solve", "as many rows of b and entries of the permutation as lu has columns",
                  fmt::format("{}, {} and {}", f.type_string(), p.type_string(), b.type_string()),
                  "Transpose b, or give it as a vector", lu_arg.where);
  const Dims batches[3] = {detail::leading(f, 2), detail::leading(p, 1), detail::leading(b, 2)};
  const Dims batch = internal::broadcast_shapes(batches, "lu_solve", lu_arg.where);
  const Array args[3] = {detail::with_batch(f, batch, 2),
                         detail::with_batch(p.astype(DType::kI32), batch, 1),
                         detail::with_batch(b, batch, 2)};
  ir::Builder builder("lu_solve");
  ir::Expr e[3];
  for (int i = 0; i < 3; ++i)
    e[i] = {&builder, builder.param(ir::Type::tensor(args[i].dtype(), args[i].shape()))};
  const char* modes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  const ir::GraphPtr g = builder.finish({lax::lu_solve_factored(e[0], e[1], e[2], modes[trans]).v});
  Array x = internal::apply_graph(*g, args)[0];
  return vector ? squeeze(x, -1) : x;
}

QrResult qr(const ArrayArg& a, bool full_matrices) {
  CallSite site(a.where);
  auto r = apply(ops::kQr, {detail::factorable("qr", a)},
                 {{"full_matrices", Attr(full_matrices)}, {"pivoting", Attr(false)}}, a.where);
  return {r[0], r[1]};
}

PivotedQrResult qr_pivoting(const ArrayArg& a, bool full_matrices) {
  CallSite site(a.where);
  auto r = apply(ops::kQr, {detail::factorable("qr", a)},
                 {{"full_matrices", Attr(full_matrices)}, {"pivoting", Attr(true)}}, a.where);
  return {r[0], r[1], r[2]};
}

HouseholderResult geqrf(const ArrayArg& a) {
  CallSite site(a.where);
  auto r = apply(ops::kGeqrf, {detail::factorable("geqrf", a)}, {}, a.where);
  return {r[0], r[1]};
}

Array householder_product(const ArrayArg& a, const ArrayArg& taus) {
  CallSite site(a.where);
  auto in = together("householder_product", {a, taus}, {2, 1});
  detail::factorable("householder_product", in[0]);
  const std::int64_t m = in[0].dim(-2), n = in[0].dim(-1), k = in[1].dim(-1);
  if (m < n || k > n)
    detail::wrong("householder_product",
                  "at least as many rows as columns, and at most as many taus as columns",
                  fmt::format("{} and {}", in[0].type_string(), in[1].type_string()),
                  "Take the first columns, or the taus of the same factorisation", a.where);
  return apply(ops::kHouseholderProduct, {in[0], in[1]}, {}, a.where)[0];
}

Array ormqr(const ArrayArg& a, const ArrayArg& taus, const ArrayArg& c, bool left, bool transpose) {
  CallSite site(a.where);
  auto in = together("ormqr", {a, taus, c}, {2, 1, 2});
  detail::factorable("ormqr", in[0]);
  const std::int64_t m = in[0].dim(-2), n = in[0].dim(-1), k = in[1].dim(-1);
  if (in[2].dim(left ? -2 : -1) != m || k > std::min(m, n))
    detail::wrong(
        "ormqr",
        fmt::format("as many {} of c as a has rows, and at most as many taus as a has "
                    "rows and columns",
                    left ? "rows" : "columns"),
        fmt::format("{}, {} and {}", in[0].type_string(), in[1].type_string(), in[2].type_string()),
        "Cut or pad c", a.where);
  return apply(ops::kOrmqr, {in[0], in[1], in[2]},
               {{"left", Attr(left)}, {"transpose", Attr(transpose)}}, a.where)[0];
}

EighResult eigh(const ArrayArg& a, bool lower, bool symmetrize_input) {
  CallSite site(a.where);
  Array x = detail::factorable("eigh", a, true);
  if (symmetrize_input) x = (x + detail::adjoint(x)) / 2.0;
  auto r = apply(ops::kEigh, {x}, {{"lower", Attr(lower)}}, a.where);
  return {r[0], r[1]};
}

namespace {

Attrs svd_attrs(bool full_matrices, bool compute_uv, SvdAlgorithm algorithm) {
  return {{"full_matrices", Attr(full_matrices)},
          {"compute_uv", Attr(compute_uv)},
          {"algorithm", Attr(ir::EnumAttr(algorithm == SvdAlgorithm::kQr ? "QR" : "DEFAULT"))}};
}

}  // namespace

SvdResult svd(const ArrayArg& a, bool full_matrices, SvdAlgorithm algorithm) {
  CallSite site(a.where);
  auto r = apply(ops::kSvd, {detail::factorable("svd", a)},
                 svd_attrs(full_matrices, true, algorithm), a.where);
  return {r[1], r[0], r[2]};
}

Array singular_values(const ArrayArg& a, SvdAlgorithm algorithm) {
  CallSite site(a.where);
  return apply(ops::kSvd, {detail::factorable("svd", a)}, svd_attrs(false, false, algorithm),
               a.where)[0];
}

EigResult eig(const ArrayArg& a, const EigOptions& o) {
  CallSite site(a.where);
  auto r = apply(ops::kEig, {detail::factorable("eig", a, true)},
                 {{"compute_left_eigenvectors", Attr(o.compute_left_eigenvectors)},
                  {"compute_right_eigenvectors", Attr(o.compute_right_eigenvectors)},
                  {"enable_eigvec_derivs", Attr(o.enable_eigvec_derivs)}},
                 a.where);
  EigResult out{r[0], {}, {}};
  if (o.compute_left_eigenvectors) out.vl = r[1];
  if (o.compute_right_eigenvectors) out.vr = r.back();
  return out;
}

SchurResult schur(const ArrayArg& a) {
  CallSite site(a.where);
  auto r = apply(ops::kSchur, {detail::factorable("schur", a, true)},
                 {{"compute_schur_vectors", Attr(true)}}, a.where);
  return {r[0], r[1]};
}

namespace {

Array not_empty(const char* what, const ArrayArg& a) {
  Array x = detail::factorable(what, a, true);
  if (x.dim(-1) == 0)
    detail::wrong(what, "matrices that are not empty", x.type_string(), "Leave the call out",
                  a.where);
  return x;
}

}  // namespace

HouseholderResult hessenberg(const ArrayArg& a) {
  CallSite site(a.where);
  auto r = apply(ops::kHessenberg, {not_empty("hessenberg", a)}, {}, a.where);
  return {r[0], r[1]};
}

TridiagonalResult tridiagonal(const ArrayArg& a, bool lower) {
  CallSite site(a.where);
  auto r =
      apply(ops::kTridiagonal, {not_empty("tridiagonal", a)}, {{"lower", Attr(lower)}}, a.where);
  return {r[0], r[1], r[2], r[3]};
}

Array tridiagonal_solve(const ArrayArg& dl, const ArrayArg& d, const ArrayArg& du,
                        const ArrayArg& b) {
  CallSite site(dl.where);
  auto in = together("tridiagonal_solve", {dl, d, du, b}, {1, 1, 1, 2});
  detail::factorable("tridiagonal_solve", in[3]);
  for (int i = 0; i < 3; ++i)
    if (in[static_cast<std::size_t>(i)].dim(-1) != in[3].dim(-2))
      detail::wrong("tridiagonal_solve", "three diagonals as long as b has rows",
                    fmt::format("{}, {}, {} and {}", in[0].type_string(), in[1].type_string(),
                                in[2].type_string(), in[3].type_string()),
                    "Pad dl in front and du behind; give b as columns", dl.where);
  return apply(ops::kTridiagonalSolve, {in[0], in[1], in[2], in[3]}, {}, dl.where)[0];
}

}  // namespace xylem::lax::linalg
