// Derivatives and batching of matrix factorisations. The formulas are those of JAX, with its choice
// of signs and phases; under Numerics::safe differences of equal values, which divide, count as
// infinite.

#include <algorithm>
#include <limits>

#include "xylem/core/lax/matrix.h"
#include "xylem/core/numerics.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/decompositions.h"

namespace xylem::lax {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::compare;
using ir::convert;
using ir::Expr;
using ir::kNoValue;
using ir::like;
using ir::select;
using ir::unary;
using ir::ValueId;
using transform::JvpCall;
using transform::RuleTable;
using transform::TransposeCall;
namespace ops = ir::ops;

bool safe() { return numerics() == Numerics::safe; }

std::int64_t rows(Expr a) { return a.dims()[a.rank() - 2]; }
std::int64_t columns(Expr a) { return a.dims()[a.rank() - 1]; }

Expr real(Expr x) { return is_complex(x.dtype()) ? unary(ops::kReal, x) : x; }
Expr imag(Expr x) { return unary(ops::kImag, x); }

// Below this two values of a spectrum cannot be told apart: n eps max |w|, the error bound of
// LAPACK. `sizes`: nonnegative, [..., n] -> [...].
Expr resolution(Expr sizes, std::int64_t n) {
  const double eps = sizes.dtype() == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                                  : std::numeric_limits<float>::epsilon();
  const Expr largest = ir::reduce(ops::kMaximum, sizes, {sizes.rank() - 1});
  return largest * (eps * static_cast<double>(n));
}

// [...] to the shape of x, whose leading dimensions it has.
Expr spread(Expr t, Expr x) { return ir::broadcast_in_dim(t, x.dims(), range(t.rank())); }

// 1 / x where |x| is above `least`, else 0.
Expr reciprocal_above(Expr x, Expr size, Expr least) {
  const Expr small = compare(size, least, "LE");
  return select(small, like(x, 0), 1.0 / select(small, like(x, 1), x));
}

// 1 / (w_j - w_i) off the diagonal, 0 on it. w [..., n], sizes |w|.
Expr inverse_gaps(Expr w, Expr sizes) {
  const std::int64_t n = w.dims()[w.rank() - 1];
  const Expr gap = as_rows(w, n) - as_columns(w, n);
  if (safe())
    return reciprocal_above(gap, unary(ops::kAbs, gap),
                            spread(resolution(sizes, n), unary(ops::kAbs, gap)));
  const Expr eye = identity_like(gap);
  return 1.0 / (eye + gap) - eye;
}

// --- lu -----------------------------------------------------------------------------------------

// dL = L tril(L⁻¹ dA U⁻¹, -1), dU = triu(L⁻¹ dA U⁻¹) U, with L and U made square.
void lu_jvp(JvpCall& c) {
  ir::ValueIds f = c.b.clone(c.op, c.primals);
  c.primal_out.assign(f.begin(), f.end());
  c.tangent_out.assign(3, kNoValue);
  Expr lu{&c.b, f[0]}, permutation{&c.b, f[2]}, da{&c.b, c.tangents[0]};
  const std::int64_t m = rows(lu), n = columns(lu), k = std::min(m, n);
  if (k == 0) return;
  const Expr zero = ir::scalar(c.b, lu.dtype(), 0);
  Dims none(static_cast<std::size_t>(lu.rank()), 0), wider = none, taller = none;
  wider[lu.rank() - 1] = m - k;
  taller[lu.rank() - 2] = n - k;
  Expr l = ir::pad(triangle(block(lu, 0, m, 0, k), true, true), zero, none, wider, none);
  l = l + identity_like(l);
  Expr u = ir::pad(triangle(block(lu, 0, k, 0, n), false, false), zero, none, taller, none);
  if (n > k) {
    const Expr row = ir::iota(c.b, DType::kI32, u.dims(), u.rank() - 2);
    u = select(compare(row, static_cast<double>(k), "GE"), identity_like(u), u);
  }
  const Expr la = triangular_solve(l, take_rows(da, permutation), true, true, true, "NO_TRANSPOSE");
  const Expr lau = triangular_solve(u, la, false, false, false, "NO_TRANSPOSE");
  c.tangent_out[0] =
      (matmul(l, triangle(lau, true, true)) + matmul(triangle(lau, false, false), u)).v;
}

// --- qr -----------------------------------------------------------------------------------------

struct Tangents {
  Expr q, r;
};

// https://j-towns.github.io/papers/qr-derivative.pdf, of m >= n.
Tangents thin_qr(Expr q, Expr r, Expr dx) {
  const Expr x = triangular_solve(r, dx, false, false, false, "NO_TRANSPOSE");
  const Expr y = matmul(adjoint(q), x);
  const Expr lower = triangle(y, true, true);
  Expr skew = lower - adjoint(lower);
  if (is_complex(q.dtype())) {
    // R has a real diagonal.
    const Expr zero = like(y, 0);
    skew = skew + where_triangle(y, "EQ", y - convert(real(y), y.dtype()), zero);
  }
  return {matmul(q, skew - y) + x, matmul(y - skew, r)};
}

Expr beside(Expr x, Expr y, bool columns_too) {
  const Expr parts[2] = {x, y};
  return ir::concatenate(parts, columns_too ? x.rank() - 1 : x.rank() - 2);
}

void qr_jvp(JvpCall& c) {
  const bool full = c.op.attrs.flag("full_matrices"), pivoting = c.op.attrs.flag("pivoting");
  ir::ValueIds f = c.b.clone(c.op, c.primals);
  c.primal_out.assign(f.begin(), f.end());
  c.tangent_out.assign(f.size(), kNoValue);
  Expr x{&c.b, c.primals[0]}, q{&c.b, f[0]}, r{&c.b, f[1]}, dx{&c.b, c.tangents[0]};
  const std::int64_t m = rows(x), n = columns(x);
  if (m == 0 || n == 0) return;
  if (pivoting) {
    const Expr order{&c.b, f[2]};
    dx = take_columns(dx, order);
    x = take_columns(x, order);
  }
  Tangents d;
  if (m < n) {
    // The first m columns are a square matrix; R2 = Q^H X2.
    d = thin_qr(q, block(r, 0, m, 0, m), block(dx, 0, m, 0, m));
    const Expr rest =
        matmul(adjoint(d.q), block(x, 0, m, m, n)) + matmul(adjoint(q), block(dx, 0, m, m, n));
    d.r = beside(d.r, rest, true);
  } else {
    const Expr thin = block(q, 0, m, 0, n);
    d = thin_qr(thin, block(r, 0, n, 0, n), dx);
    if (full && m > n) {
      // Equations 32 and 33 of https://arxiv.org/abs/2409.13374: the complement turns with the
      // columns, Z = Q_pn (Q_nn - 1)⁻¹.
      const Expr top = block(thin, 0, n, 0, n), rest = block(q, 0, m, n, m);
      const Expr z_h = lu_solve(top - identity_like(top), adjoint(block(thin, n, m, 0, n)), true);
      const Expr z = adjoint(z_h);
      const Expr turned = block(d.q, n, m, 0, n) - matmul(z, block(d.q, 0, n, 0, n));
      const Expr dq = matmul(d.q, z_h) - matmul(thin + matmul(rest, z), adjoint(turned));
      d.q = beside(d.q, dq, true);
      Dims none(static_cast<std::size_t>(d.r.rank()), 0), below = none;
      below[d.r.rank() - 2] = m - n;
      d.r = ir::pad(d.r, ir::scalar(c.b, d.r.dtype(), 0), none, below, none);
    }
  }
  c.tangent_out[0] = d.q.v;
  c.tangent_out[1] = d.r.v;
}

// --- eigh ---------------------------------------------------------------------------------------

// dw = diag(V^H dA V), dV = V (F ∘ V^H dA V), F_ij = 1 / (w_j - w_i).
void eigh_jvp(JvpCall& c) {
  ir::ValueIds f = c.b.clone(c.op, c.primals);
  c.primal_out.assign(f.begin(), f.end());
  Expr v{&c.b, f[0]}, w{&c.b, f[1]}, da{&c.b, c.tangents[0]};
  const Expr p = matmul(matmul(adjoint(v), da), v);
  const Expr gaps =
      safe() ? inverse_gaps(w, unary(ops::kAbs, w)) : inverse_gaps(convert(w, v.dtype()), w);
  c.tangent_out = {matmul(v, convert(gaps, v.dtype()) * p).v, diagonal_of(real(p)).v};
}

// --- svd ----------------------------------------------------------------------------------------

// Section 3.3 of https://people.maths.ox.ac.uk/gilesm/files/NA-08-01.pdf.
void svd_jvp(JvpCall& c) {
  const bool vectors = c.op.attrs.flag("compute_uv");
  Expr a{&c.b, c.primals[0]}, da{&c.b, c.tangents[0]};
  const std::int64_t m = rows(a), n = columns(a), k = std::min(m, n);
  if (vectors && c.op.attrs.flag("full_matrices") && m != n)
    throw_user_error({"differentiate svd", "thin factors, or a square matrix",
                      "full_matrices is set and the matrix is " + a.type().to_string(),
                      "Pass full_matrices = false"},
                     c.op.loc.source);
  Attrs thin = c.op.attrs;
  thin.set("full_matrices", Attr(false));
  thin.set("compute_uv", Attr(true));
  ir::ValueIds f = c.b.op(ops::kSvd, {a.v}, thin);
  Expr s{&c.b, f[0]}, u{&c.b, f[1]}, vh{&c.b, f[2]};
  c.primal_out = {s.v};
  if (vectors) c.primal_out.insert(c.primal_out.end(), {u.v, vh.v});
  c.tangent_out.assign(c.primal_out.size(), kNoValue);
  if (k == 0) return;
  const DType t = a.dtype();
  const Expr uh = adjoint(u), v = adjoint(vh);
  const Expr p = matmul(matmul(uh, da), v);
  c.tangent_out[0] = diagonal_of(real(p)).v;
  if (!vectors) return;

  const Expr along = as_rows(s, k), down = as_columns(s, k);
  const Expr eye = identity_like(along);
  Expr gaps, inverse;
  if (safe()) {
    const Expr least = resolution(s, std::max(m, n));
    const Expr gap = along - down;
    gaps = reciprocal_above((along + down) * gap, unary(ops::kAbs, gap), spread(least, gap));
    inverse = reciprocal_above(s, s, spread(least, s));
  } else {
    gaps = 1.0 / ((along + down) * (along - down) + eye) - eye;
    const Expr zero = convert(compare(s, 0, "EQ"), s.dtype());
    inverse = 1.0 / (s + zero) - zero;
  }
  gaps = convert(gaps, t);
  const Expr ps = convert(along, t) * p, sp = convert(down, t) * p;
  Expr du = gaps * (ps + adjoint(ps));
  const Expr turn = (p - adjoint(p)) * 0.5;
  du = du + where_triangle(turn, "EQ", turn * convert(as_rows(inverse, k), t), like(turn, 0));
  du = matmul(u, du);
  Expr dv = matmul(v, gaps * (sp + adjoint(sp)));
  // What leaves the column space. Without the safe mode a singular value of zero divides.
  const Expr divisor = convert(safe() ? inverse : 1.0 / s, t);
  if (m > n) {
    const Expr x = matmul(da, v);
    du = du + (x - matmul(u, matmul(uh, x))) * as_rows(divisor, m);
  }
  if (n > m) {
    const Expr x = matmul(adjoint(da), u);
    dv = dv + (x - matmul(v, matmul(vh, x))) * as_rows(divisor, n);
  }
  c.tangent_out[1] = du.v;
  c.tangent_out[2] = adjoint(dv).v;
}

// --- eig ----------------------------------------------------------------------------------------

struct Spectrum {
  Expr w, v;
};

// Tangents of eigenvalues and eigenvectors of norm 1 with a real largest element.
Spectrum eigenvectors(Expr w, Expr v, Expr da) {
  const Expr p = matmul(lu_solve(v, da), v);
  const Expr u = matmul(v, inverse_gaps(w, unary(ops::kAbs, w)) * p);
  // v_j moves by u_j + c v_j; norm and phase give the real and the imaginary part of c.
  const Expr k{v.b, v.b->one(ops::kArgmax, {unary(ops::kAbs, v).v},
                             {{"dimension", Attr(v.rank() - 2)}, {"index_dtype", DType::kI32}})};
  const Expr row = ir::iota(*v.b, DType::kI32, v.dims(), v.rank() - 2);
  const Expr top = compare(row, as_rows(k, rows(v)), "EQ");
  auto pick = [&](Expr x) { return ir::reduce_sum(select(top, x, like(x, 0)), {x.rank() - 2}); };
  const Expr along = real(ir::reduce_sum(conj(v) * u, {v.rank() - 2}));
  const Expr turn = imag(pick(u)) / real(pick(v));
  const Expr factor = ir::binary(ops::kComplex, -along, -turn);
  return {diagonal_of(p), u + v * as_rows(factor, rows(v))};
}

void eig_jvp(JvpCall& c) {
  const bool left = c.op.attrs.flag("compute_left_eigenvectors"),
             right = c.op.attrs.flag("compute_right_eigenvectors");
  if ((left || right) && !c.op.attrs.flag("enable_eigvec_derivs"))
    throw_user_error({"differentiate eig", "eigenvalues alone, or enable_eigvec_derivs",
                      "eigenvectors of a general matrix, whose derivatives hold only where the "
                      "eigenvalues differ and the largest elements are not ties",
                      "Pass enable_eigvec_derivs = true, or use eigvals or eigh"},
                     c.op.loc.source);
  Attrs attrs = c.op.attrs;
  attrs.set("compute_right_eigenvectors", Attr(true));
  // Eigenvalues alone do not depend on the choice of the vectors, in any order of derivative.
  if (!left && !right) attrs.set("enable_eigvec_derivs", Attr(true));
  ir::ValueIds f = c.b.op(ops::kEig, {c.primals[0]}, attrs);
  Expr w{&c.b, f[0]}, vr{&c.b, f[f.size() - 1]};
  c.primal_out = {w.v};
  const std::size_t count = 1u + (left ? 1u : 0u) + (right ? 1u : 0u);
  c.tangent_out.assign(count, kNoValue);
  const Expr da = convert(Expr{&c.b, c.tangents[0]}, vr.dtype());
  if (left) c.primal_out.push_back(f[1]);
  if (right) c.primal_out.push_back(vr.v);
  if (rows(vr) == 0) return;
  if (!left && !right) {
    c.tangent_out[0] = ir::reduce_sum(lu_solve(vr, da) * swapped(vr), {vr.rank() - 1}).v;
    return;
  }
  const Spectrum d = eigenvectors(w, vr, da);
  c.tangent_out[0] = d.w.v;
  if (left) c.tangent_out[1] = eigenvectors(conj(w), Expr{&c.b, f[1]}, adjoint(da)).v.v;
  if (right) c.tangent_out[count - 1] = d.v.v;
}

// --- tridiagonal_solve ---------------------------------------------------------------------------

// x[i] moved to x[i + by] along dimension `at`, 0 at the end that is left.
Expr shifted(Expr x, int at, int by) {
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low, none = low;
  low[at] = by;
  high[at] = -by;
  return ir::pad(x, ir::scalar(*x.b, x.dtype(), 0), low, high, none);
}

void tridiagonal_solve_jvp(JvpCall& c) {
  Expr x{&c.b, c.b.clone(c.op, c.primals)[0]};
  c.primal_out = {x.v};
  Expr rhs{&c.b, c.tangents[3]};
  const int at = x.rank() - 2;
  const std::int64_t k = columns(x);
  auto subtract = [&](Expr product) { rhs = rhs.defined() ? rhs - product : -product; };
  if (c.tangents[0] != kNoValue)
    subtract(as_columns(Expr{&c.b, c.tangents[0]}, k) * shifted(x, at, 1));
  if (c.tangents[1] != kNoValue) subtract(as_columns(Expr{&c.b, c.tangents[1]}, k) * x);
  if (c.tangents[2] != kNoValue)
    subtract(as_columns(Expr{&c.b, c.tangents[2]}, k) * shifted(x, at, -1));
  const ValueId operands[4] = {c.primals[0], c.primals[1], c.primals[2], rhs.v};
  c.tangent_out = {c.b.clone(c.op, std::span<const ValueId>(operands, 4))[0]};
}

void tridiagonal_solve_transpose(TransposeCall& c) {
  XYLEM_CHECK(!c.linear[0] && !c.linear[1] && !c.linear[2],
              "a solution is not linear in the matrix");
  const Expr dl{&c.b, c.operands[0]}, du{&c.b, c.operands[2]};
  const int at = dl.rank() - 1;
  const ValueId operands[4] = {shifted(du, at, 1).v, c.operands[1], shifted(dl, at, -1).v,
                               c.cotangents[0]};
  c.operand_ct[3] = c.b.clone(c.op, std::span<const ValueId>(operands, 4))[0];
}

}  // namespace

void register_decomposition_rules(RuleTable& t) {
  for (const ir::OpDef* def :
       {&ops::kLu, &ops::kLuPivotsToPermutation, &ops::kGeqrf, &ops::kGeqp3,
        &ops::kHouseholderProduct, &ops::kOrmqr, &ops::kQr, &ops::kEigh, &ops::kSvd, &ops::kEig,
        &ops::kSchur, &ops::kHessenberg, &ops::kTridiagonal, &ops::kTridiagonalSolve})
    t[*def].batch = leading_batch;
  t[ops::kLu].jvp = lu_jvp;
  t[ops::kLuPivotsToPermutation].no_derivative = true;
  t[ops::kQr].jvp = qr_jvp;
  t[ops::kEigh].jvp = eigh_jvp;
  t[ops::kSvd].jvp = svd_jvp;
  t[ops::kEig].jvp = eig_jvp;
  t[ops::kTridiagonalSolve].jvp = tridiagonal_solve_jvp;
  t[ops::kTridiagonalSolve].transpose = tridiagonal_solve_transpose;
  for (const ir::OpDef* def : {&ops::kGeqrf, &ops::kGeqp3, &ops::kHouseholderProduct, &ops::kOrmqr,
                               &ops::kSchur, &ops::kHessenberg, &ops::kTridiagonal})
    t[*def].refuse_jvp = "this factorisation has no derivative rule, as in JAX";
}

}  // namespace xylem::lax
