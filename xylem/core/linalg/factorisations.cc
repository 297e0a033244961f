#include <fmt/format.h>

#include <algorithm>

#include "xylem/core/lax_linalg.h"
#include "xylem/core/linalg/internal/util.h"

namespace xylem::linalg {

using detail::adjoint;
using detail::column;
using detail::factorable;
using detail::row;
using detail::wrong;
using internal::CallSite;
namespace ll = lax::linalg;

QrResult qr(const ArrayArg& x, std::string_view mode) {
  CallSite site(x.where);
  Array a = factorable("qr", x);
  if (mode == "raw") {
    ll::HouseholderResult f = ll::geqrf(a);
    return {xylem::matrix_transpose(f.a), f.taus};
  }
  const bool complete = mode == "complete", r_alone = mode == "r";
  if (!complete && !r_alone && mode != "reduced" && mode != "full" && mode != "economic")
    wrong("qr: mode", "\"reduced\", \"complete\", \"r\" or \"raw\"", std::string(mode),
          "Leave it out", x.where);
  ll::QrResult f = ll::qr(a, complete);
  return {r_alone ? Array() : f.q, f.r};
}

PivotedQrResult qr_pivoting(const ArrayArg& x, bool full_matrices) {
  ll::PivotedQrResult f = ll::qr_pivoting(x, full_matrices);
  return {f.q, f.r, f.permutation};
}

std::pair<Array, Array> qr_multiply(const ArrayArg& x, const ArrayArg& c_arg, std::string_view mode,
                                    bool conjugate) {
  CallSite site(x.where);
  auto [a, c] = detail::inexact(x, c_arg);
  factorable("qr_multiply", ArrayArg(a, x.where));
  const bool left = mode == "left", vector = c.ndim() == 1;
  if (!left && mode != "right")
    wrong("qr_multiply: mode", "\"left\" or \"right\"", std::string(mode), "Leave it out", x.where);
  if (vector) c = left ? column(c) : row(c);
  const std::int64_t m = a.dim(-2), k = std::min(m, a.dim(-1));
  if (c.ndim() < 2 || (left ? c.dim(-2) != k : c.dim(-1) != m))
    wrong("qr_multiply",
          left ? fmt::format("c with {} rows, the columns of q", k)
               : fmt::format("c with {} columns, the rows of q", m),
          c.type_string(), "Cut or transpose c", x.where);
  const Dims both[2] = {detail::leading(a, 2), detail::leading(c, 2)};
  const Dims batch = internal::broadcast_shapes(both, "qr_multiply", x.where);
  a = detail::with_batch(a, batch, 2);
  c = detail::with_batch(c, batch, 2);
  ll::HouseholderResult f = ll::geqrf(a);
  if (left && m > k)
    c = concatenate({c, zeros(detail::joined(batch, {m - k, c.dim(-1)}), c.dtype())}, -2);
  // conj(q) c is the transpose of cᵀ qᴴ.
  if (conjugate) c = xylem::matrix_transpose(c);
  Array r = ll::ormqr(f.a, f.taus, c, left != conjugate, conjugate);
  if (conjugate) r = xylem::matrix_transpose(r);
  if (!left) r = r(idx::ellipsis, idx::slice(0, k));
  if (vector) r = reshape(r, {r.size()});
  return {r, triu(f.a(idx::ellipsis, idx::slice(0, k), idx::all))};
}

namespace {

// By eigenvalues: |w| falling, signs into vh.
SvdResult hermitian_svd(const Array& a) {
  ll::EighResult e = ll::eigh(a);
  Array s = abs(e.w);
  Array order = flip(argsort(s, -1), -1);
  Array columns = broadcast_to(row(order), e.v.shape());
  Array u = take_along_axis(e.v, columns, -1);
  Array signs = take_along_axis(sign(e.w), order, -1);
  return {u, take_along_axis(s, order, -1), adjoint(u * row(signs).astype(u.dtype()))};
}

}  // namespace

SvdResult svd(const ArrayArg& x, const SvdOptions& o) {
  CallSite site(x.where);
  Array a = factorable("svd", x, o.hermitian);
  if (o.hermitian) return hermitian_svd(a);
  ll::SvdResult r = ll::svd(a, o.full_matrices);
  return {r.u, r.s, r.vh};
}

Array svdvals(const ArrayArg& x, bool hermitian) {
  CallSite site(x.where);
  Array a = factorable("svdvals", x, hermitian);
  if (!hermitian) return ll::singular_values(a);
  return flip(sort(abs(ll::eigh(a).w), -1), -1);
}

EighResult eigh(const ArrayArg& x, const EighOptions& o) {
  CallSite site(x.where);
  if (o.uplo != 'L' && o.uplo != 'U')
    wrong("eigh: uplo", "'L' or 'U'", std::string(1, o.uplo), "Name the triangle to be read",
          x.where);
  ll::EighResult r = ll::eigh(x, o.uplo == 'L', o.symmetrize_input);
  return {r.w, r.v};
}

Array eigvalsh(const ArrayArg& x, const EighOptions& o) { return eigh(x, o).eigenvalues; }

EigResult eig(const ArrayArg& x, const EigOptions& o) {
  ll::EigResult r = ll::eig(
      x, {.compute_left_eigenvectors = false, .enable_eigvec_derivs = o.enable_eigvec_derivs});
  return {r.w, r.vr};
}

Array eigvals(const ArrayArg& x) {
  return ll::eig(x, {.compute_left_eigenvectors = false, .compute_right_eigenvectors = false}).w;
}

LuResult lu(const ArrayArg& x, bool permute_l) {
  CallSite site(x.where);
  Array a = factorable("lu", x);
  const std::int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
  ll::LuResult f = ll::lu(a);
  Array p =
      (row(f.permutation) == column(arange(0, m, 1, DType::kI32))).astype(real_dtype(a.dtype()));
  Array l = tril(f.lu, -1)(idx::ellipsis, idx::all, idx::slice(0, k)) + eye(m, k, 0, a.dtype());
  Array u = triu(f.lu)(idx::ellipsis, idx::slice(0, k), idx::all);
  if (!permute_l) return {p, l, u};
  return {Array(), matmul(p.astype(a.dtype()), l), u};
}

SchurResult schur(const ArrayArg& x, std::string_view output) {
  CallSite site(x.where);
  if (output != "real" && output != "complex")
    wrong("schur: output", "\"real\" or \"complex\"", std::string(output), "Leave it out", x.where);
  Array a = factorable("schur", x, true);
  if (output == "complex") a = a.astype(complex_dtype(real_dtype(a.dtype())));
  ll::SchurResult r = ll::schur(a);
  return {r.t, r.z};
}

// Rotations that remove the subdiagonal elements of 2 x 2 blocks, from the last row up.
SchurResult rsf2csf(const ArrayArg& t_arg, const ArrayArg& z_arg) {
  CallSite site(t_arg.where);
  Array t = factorable("rsf2csf", t_arg, true), z = factorable("rsf2csf", z_arg, true);
  if (t.shape() != z.shape())
    wrong("rsf2csf", "t and z of one shape",
          fmt::format("{} and {}", t.type_string(), z.type_string()), "Pass both results of schur",
          t_arg.where);
  const DType dtype =
      complex_dtype(real_dtype(promote_types({t.dtype(), false}, {z.dtype(), false}, {}).dtype));
  t = t.astype(dtype), z = z.astype(dtype);
  const double eps = detail::epsilon(dtype);
  const std::int64_t n = t.dim(-1);
  for (std::int64_t m = n - 1; m > 0; --m) {
    Array a = t(idx::ellipsis, m - 1, m - 1), b = t(idx::ellipsis, m - 1, m),
          c = t(idx::ellipsis, m, m - 1), d = t(idx::ellipsis, m, m);
    Array coupled = abs(c) > eps * (abs(a) + abs(d));
    // An eigenvalue of the block, less d: the vector (mu, c) spans its eigenspace. The 0 makes a
    // negative zero in the imaginary part positive, so that the root lies above the axis.
    Array half = (a - d) / 2.0;
    Array root = sqrt(half * half + b * c + 0.0);
    Array mu = half + root;
    Array r = sqrt(square(abs(mu)) + square(abs(c)));
    Array safe = where(coupled, r, ones_like(r)).astype(dtype);
    Array one = ones_like(a);
    Array co = where(coupled, mu / safe, one), si = where(coupled, c / safe, zeros_like(c));
    auto turn_rows = [&](const Array& x) {
      Array upper = x(idx::ellipsis, m - 1, idx::all), lower = x(idx::ellipsis, m, idx::all);
      Array u = column(conj(co)) * upper + column(si) * lower;
      Array l = -column(si) * upper + column(co) * lower;
      return x.at(idx::ellipsis, m - 1, idx::all).set(u).at(idx::ellipsis, m, idx::all).set(l);
    };
    auto turn_columns = [&](const Array& x) {
      Array left = x(idx::ellipsis, idx::all, m - 1), right = x(idx::ellipsis, idx::all, m);
      Array l = left * column(co) + right * column(conj(si));
      Array u = -left * column(conj(si)) + right * column(conj(co));
      return x.at(idx::ellipsis, idx::all, m - 1).set(l).at(idx::ellipsis, idx::all, m).set(u);
    };
    t = turn_columns(turn_rows(t));
    z = turn_columns(z);
    t = t.at(idx::ellipsis, m, m - 1).set(0.0);
  }
  return {t, z};
}

HessenbergResult hessenberg(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = factorable("hessenberg", x, true);
  const std::int64_t n = a.dim(-1);
  if (n == 0) return {a, a};
  ll::HouseholderResult f = ll::hessenberg(a);
  Array h = triu(f.a, -1);
  Array q =
      ll::householder_product(f.a(idx::ellipsis, idx::slice(1, n), idx::slice(0, n - 1)), f.taus);
  const Dims batch = detail::leading(a, 2);
  Array top = zeros(detail::joined(batch, {1, n - 1}), a.dtype());
  Array side = zeros(detail::joined(batch, {n - 1, 1}), a.dtype());
  Array first = ones(detail::joined(batch, {1, 1}), a.dtype());
  return {h, block({{first, top}, {side, q}})};
}

PolarResult polar(const ArrayArg& x, std::string_view side) {
  CallSite site(x.where);
  if (side != "right" && side != "left")
    wrong("polar: side", "\"right\" or \"left\"", std::string(side), "Leave it out", x.where);
  Array a = factorable("polar", x);
  ll::SvdResult f = ll::svd(a, false);
  Array s = f.s.astype(a.dtype());
  Array p =
      side == "right" ? matmul(adjoint(f.vh) * row(s), f.vh) : matmul(f.u * row(s), adjoint(f.u));
  return {matmul(f.u, f.vh), p};
}

}  // namespace xylem::linalg
