#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "xylem/core/control_flow.h"
#include "xylem/core/implicit.h"
#include "xylem/core/lax.h"
#include "xylem/core/lax_linalg.h"
#include "xylem/core/linalg/internal/util.h"

namespace xylem::linalg {

using detail::adjoint;
using detail::column;
using detail::factorable;
using detail::leading;
using detail::need_square;
using detail::with_batch;
using detail::wrong;
using internal::CallSite;
namespace ll = lax::linalg;

namespace {

// b as columns against the square matrices a.
struct System {
  Array a, b;
  bool vector = false;
  Dims batch;
};

// Vectors where b has one axis.
System system_of(const char* what, const ArrayArg& a_arg, const ArrayArg& b_arg) {
  System s;
  std::tie(s.a, s.b) = detail::inexact(a_arg, b_arg);
  factorable(what, ArrayArg(s.a, a_arg.where), true);
  s.vector = s.b.ndim() == 1;
  if (s.vector) s.b = column(s.b);
  if (s.b.ndim() < 2 || s.b.dim(-2) != s.a.dim(-1))
    wrong(what, "as many rows of b as a has columns",
          fmt::format("{} and {}", s.a.type_string(), b_arg.array.type_string()),
          "Transpose b; give batches of vectors as columns, expand_dims(b, -1)", a_arg.where);
  const Dims both[2] = {leading(s.a, 2), leading(s.b, 2)};
  s.batch = internal::broadcast_shapes(both, what, a_arg.where);
  return s;
}

// All columns of a batch of right sides beside each other, for one matrix, and back.
Array beside(const Array& b) { return reshape(moveaxis(b, -2, 0), {b.dim(-2), -1}); }
Array apart(const Array& x, const Array& like) {
  Dims shape{like.dim(-2)};
  for (std::int64_t n : leading(like, 2)) shape.push_back(n);
  shape.push_back(like.dim(-1));
  return moveaxis(reshape(x, shape), 0, -2);
}

}  // namespace

Array solve(const ArrayArg& a_arg, const ArrayArg& b_arg, const SolveOptions& o) {
  CallSite site(a_arg.where);
  if (o.assume_a != "gen" && o.assume_a != "sym" && o.assume_a != "her" && o.assume_a != "pos")
    wrong("solve: assume_a", "\"gen\", \"sym\", \"her\" or \"pos\"", std::string(o.assume_a),
          "Leave it out", a_arg.where);
  System s = system_of("solve", a_arg, b_arg);
  // One matrix for a batch of right sides is factored once.
  const bool many = s.a.ndim() == 2 && s.b.ndim() > 2 && s.b.size() > 0;
  Array b = many ? beside(s.b) : with_batch(s.b, s.batch, 2);
  Array a = many ? s.a : with_batch(s.a, s.batch, 2);
  auto product = [&](const Array& x) { return matmul(a, x); };
  Array x;
  if (o.assume_a == "pos") {
    CholeskyFactor f = cho_factor(stop_gradient(a), o.lower);
    x = custom_linear_solve(
        product, b, [&](const auto&, const Array& r) { return cho_solve(f, r); }, symmetric);
  } else {
    ll::LuResult f = ll::lu(stop_gradient(a));
    x = custom_linear_solve(
        product, b,
        [&](const auto&, const Array& r) { return ll::lu_solve(f.lu, f.permutation, r, 0); },
        [&](const auto&, const Array& r) { return ll::lu_solve(f.lu, f.permutation, r, 1); });
  }
  if (many) x = apart(x, s.b);
  return s.vector ? squeeze(x, -1) : x;
}

Array inv(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = factorable("inv", x, true);
  return solve(a, broadcast_to(eye(a.dim(-1), -1, 0, a.dtype()), a.shape()));
}

Array cho_solve(const CholeskyFactor& factor, const ArrayArg& b) {
  return cho_solve(factor.c, factor.lower, b);
}

CholeskyFactor cho_factor(const ArrayArg& x, bool lower) {
  CallSite site(x.where);
  Array a = factorable("cho_factor", x, true);
  Array l = cholesky(lower ? a : adjoint(a), false, false);
  return {lower ? l : adjoint(l), lower};
}

LuFactor lu_factor(const ArrayArg& x) {
  ll::LuResult r = ll::lu(x);
  return {r.lu, r.pivots};
}

Array lu_solve(const LuFactor& factor, const ArrayArg& b_arg, int trans) {
  CallSite site(b_arg.where);
  System s = system_of("lu_solve", factor.lu, b_arg);
  Array x = ll::lu_solve(s.a, ll::lu_pivots_to_permutation(factor.pivots, s.a.dim(-1)), s.b, trans);
  return s.vector ? squeeze(x, -1) : x;
}

namespace {

Array pinv_value(const Array& a, double rtol, bool hermitian) {
  SvdResult f = svd(conj(a), {.full_matrices = false, .hermitian = hermitian});
  Array cutoff = rtol * max(f.s, -1, true);
  Array s = where(f.s > cutoff, f.s, std::numeric_limits<double>::infinity());
  return matmul(xylem::matrix_transpose(f.vh),
                xylem::matrix_transpose(f.u) / column(s).astype(a.dtype()));
}

// The derivative of the pseudo-inverse: Golub and Pereyra, SIAM Journal on Numerical Analysis 10,
// 2 (1973), 413-432. Unlike that of the singular vectors it does not mind equal singular values, so
// the rule itself is derived by it, `order` times.
Array pinv_derived(const Array& x, double rtol, bool hermitian, int order) {
  if (order == 0) return pinv_value(x, rtol, hermitian);
  const bool is_tall = x.dim(-2) >= x.dim(-1);
  auto value = [rtol, hermitian](const Array& a) { return pinv_value(a, rtol, hermitian); };
  auto rule = [=](const auto& primals, const auto& tangents) {
    Array a = std::get<0>(primals), da = std::get<0>(tangents);
    Array p = pinv_derived(a, rtol, hermitian, order - 1);
    if (hermitian) {
      a = (a + adjoint(a)) / 2.0;
      da = (da + adjoint(da)) / 2.0;
    }
    Array ph = adjoint(p), dah = adjoint(da), dot;
    if (is_tall) {
      Array s = matmul(matmul(p, ph), dah), t = matmul(matmul(dah, ph), p);
      dot = -matmul(matmul(p, da), p) + s - matmul(matmul(s, a), p) + t - matmul(matmul(p, a), t);
    } else {
      Array s = matmul(p, matmul(ph, dah)), t = matmul(dah, matmul(ph, p));
      dot = -matmul(p, matmul(da, p)) + s - matmul(s, matmul(a, p)) + t - matmul(p, matmul(a, t));
    }
    return std::pair{p, dot};
  };
  return custom_jvp(value, rule)(x);
}

}  // namespace

Array pinv(const ArrayArg& x, const PinvOptions& o) {
  CallSite site(x.where);
  Array a = factorable("pinv", x, o.hermitian);
  const std::int64_t m = a.dim(-2), n = a.dim(-1);
  if (m == 0 || n == 0) return zeros(detail::joined(leading(a, 2), {n, m}), a.dtype());
  const double rtol =
      o.rtol.value_or(10.0 * static_cast<double>(std::max(m, n)) * detail::epsilon(a.dtype()));
  return pinv_derived(a, rtol, o.hermitian, 2);
}

LstsqResult lstsq(const ArrayArg& a_arg, const ArrayArg& b_arg, const LstsqOptions& o) {
  CallSite site(a_arg.where);
  auto [a, b] = detail::inexact(a_arg, b_arg);
  if (a.ndim() != 2 || b.ndim() < 1 || b.ndim() > 2 || a.dim(0) != b.dim(0))
    wrong("lstsq", "a matrix a, and b a vector or matrix with as many rows",
          fmt::format("{} and {}", a.type_string(), b.type_string()),
          "Map it over further axes with vmap", a_arg.where);
  factorable("lstsq", ArrayArg(a, a_arg.where));
  const bool vector = b.ndim() == 1;
  if (vector) b = column(b);
  const std::int64_t m = a.dim(0), n = a.dim(1);
  const DType real_type = real_dtype(a.dtype());
  LstsqResult r;
  if (a.size() == 0) {
    r.s = zeros({0}, real_type);
    r.rank = zeros({}, DType::kI32);
    r.x = zeros({n, b.dim(1)}, a.dtype());
  } else {
    const double eps = detail::epsilon(a.dtype());
    double rcond = o.rcond.value_or(eps * static_cast<double>(std::max(m, n)));
    if (rcond < 0) rcond = eps;
    SvdResult f = svd(a, {.full_matrices = false});
    r.s = f.s;
    Array mask = logical_and(f.s > 0.0, f.s >= rcond * f.s(0));
    r.rank = sum(mask.astype(DType::kI32));
    Array inverse = where(mask, 1.0 / where(mask, f.s, 1.0), 0.0);
    r.x = matmul(adjoint(f.vh), column(inverse).astype(a.dtype()) * matmul(adjoint(f.u), b));
  }
  if (o.numpy_resid && (m <= n || r.rank.item<int>() < n)) {
    r.residuals = zeros({0}, real_type);
  } else {
    r.residuals = square(vector_norm(b - matmul(a, r.x), 0));
  }
  if (vector) r.x = reshape(r.x, {n});
  return r;
}

Array tensorinv(const ArrayArg& x, int ind) {
  CallSite site(x.where);
  const Dims& d = x.array.shape();
  const auto k = static_cast<std::size_t>(std::max(ind, 0));
  std::int64_t rows = 1, columns = 1;
  for (std::size_t i = 0; i < d.size(); ++i) (i < k ? rows : columns) *= d[i];
  if (ind <= 0 || rows != columns)
    wrong("tensorinv", "ind >= 1 leading axes with the product of the other axes' sizes",
          fmt::format("ind = {} and {}", ind, x.array.type_string()),
          "Choose ind so that both products agree", x.where);
  Dims shape;
  for (std::size_t i = std::min(k, d.size()); i < d.size(); ++i) shape.push_back(d[i]);
  for (std::size_t i = 0; i < std::min(k, d.size()); ++i) shape.push_back(d[i]);
  return reshape(inv(reshape(x.array, {rows, columns})), shape);
}

Array tensorsolve(const ArrayArg& a_arg, const ArrayArg& b_arg, const std::vector<int>& axes) {
  CallSite site(a_arg.where);
  Array a = a_arg.array, b = b_arg.array;
  if (!axes.empty()) {
    // One after the other to the end, as JAX moves them.
    std::vector<int> moved;
    Dims order;
    for (int axis : axes) moved.push_back(axis < 0 ? axis + a.ndim() : axis);
    for (int i = 0; i < a.ndim(); ++i)
      if (std::find(moved.begin(), moved.end(), i) == moved.end()) order.push_back(i);
    for (int axis : moved) {
      if (axis < 0 || axis >= a.ndim() || std::count(moved.begin(), moved.end(), axis) != 1)
        wrong("tensorsolve: axes", fmt::format("different axes of {}", a.type_string()),
              fmt::format("{}", axis), "Name axes of a", a_arg.where);
      order.push_back(axis);
    }
    a = transpose(a, order);
  }
  const Dims& d = a.shape();
  Dims head, rest;
  std::int64_t unknowns = 1;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (i < b.shape().size()) {
      head.push_back(d[i]);
    } else {
      rest.push_back(d[i]);
      unknowns *= d[i];
    }
  }
  if (head != b.shape() || unknowns != b.size())
    wrong("tensorsolve", "a whose leading axes are b's and whose other axes hold as many elements",
          fmt::format("{} and {}", a.type_string(), b.type_string()), "Move axes of a with `axes`",
          a_arg.where);
  return reshape(solve(reshape(a, {b.size(), unknowns}), reshape(b, {b.size()})), rest);
}

// By Schur forms: r y + y sᴴ = uᴴ c v is solved from the last element backwards.
Array solve_sylvester(const ArrayArg& a_arg, const ArrayArg& b_arg, const ArrayArg& c_arg,
                      double tol) {
  CallSite site(a_arg.where);
  auto [a, b] = detail::inexact(a_arg, b_arg);
  Array c = detail::inexact(c_arg);
  WeakDType t = promote_types(promote_types(internal::weak_dtype(a), internal::weak_dtype(b), {}),
                              internal::weak_dtype(c), {});
  a = a.astype(t.dtype), b = b.astype(t.dtype), c = c.astype(t.dtype);
  need_square("solve_sylvester", a, a_arg.where);
  need_square("solve_sylvester", b, a_arg.where);
  if (a.ndim() != 2 || b.ndim() != 2 || c.ndim() != 2 || c.dim(0) != a.dim(0) ||
      c.dim(1) != b.dim(0))
    wrong("solve_sylvester", "a [m, m], b [n, n] and c [m, n]",
          fmt::format("{}, {} and {}", a.type_string(), b.type_string(), c.type_string()),
          "Map it over further axes with vmap", a_arg.where);
  const std::int64_t m = a.dim(0), n = b.dim(0);
  SchurResult fa = schur(a, "complex"), fb = schur(adjoint(b), "complex");
  Array right = adjoint(fb.t);
  Array y = matmul(matmul(adjoint(fa.z), c.astype(fa.t.dtype())), fb.z);
  // Columns from the last: (r + s_jj) y_j = f_j - Σ_k y_k s_kj over k > j, triangular systems.
  Array one = eye(m, -1, 0, fa.t.dtype());
  Array x = fori_loop(
      0, n,
      [&](const Array& i, const Array& done) {
        Array j = n - 1 - i;
        Array s = lax::dynamic_slice_in_dim(right, j, 1, 1);
        Array rhs = lax::dynamic_slice_in_dim(y, j, 1, 1) - matmul(done, s);
        Array pivot = lax::dynamic_index_in_dim(squeeze(s, 1), j, 0, false);
        return lax::dynamic_update_slice_in_dim(done, solve_triangular(fa.t + pivot * one, rhs), j,
                                                1);
      },
      zeros_like(y));
  x = matmul(matmul(fa.z, x), adjoint(fb.z));
  Array sums = column(linalg::diagonal(fa.t)) + detail::row(linalg::diagonal(right));
  Array singular = any(abs(sums) < tol);
  if (!is_complex(c.dtype())) x = real(x);
  return where(singular, full_like(x, std::numeric_limits<double>::quiet_NaN()), x);
}

}  // namespace xylem::linalg
