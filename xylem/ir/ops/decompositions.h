#pragma once

#include "xylem/ir/op_def.h"

// Matrix factorisations, on LAPACK. Matrices are the last two dimensions (vectors the last one),
// what is in front is a batch. Dtypes f32, f64, c64, c128; sizes are static. Every op is decomposed
// into the custom calls that JAX's lowering for CPUs makes (xylem/ir/lapack/call.h); a routine that
// fails gives NaN. A matrix that is not finite gives NaN.

namespace xylem::ir::ops {

// lu(a [m, n]) -> lu [m, n], pivots i32 [min(m, n)], permutation i32 [m]. a[permutation] = L U, L
// unit lower and U upper, both in lu; row i was exchanged with row pivots[i].
extern const OpDef kLu;
// lu_pivots_to_permutation(pivots i32 [k]) {permutation_size} -> i32 [permutation_size]: the
// permutation that the exchanges of row i with row pivots[i], i = 0 … k - 1, make.
extern const OpDef kLuPivotsToPermutation;
// geqrf(a [m, n]) -> a, taus [min(m, n)]: R in and above the diagonal, Householder vectors below.
extern const OpDef kGeqrf;
// geqp3(a [m, n], jpvt i32 [n]) -> a, jpvt, taus: the same with columns exchanged by falling norm;
// columns with jpvt not 0 come first. Indices from 1.
extern const OpDef kGeqp3;
// householder_product(a [m, n], taus [k]) -> [m, n], k <= n <= m: the first n columns of the
// product of the reflections I - tau v v^H.
extern const OpDef kHouseholderProduct;
// ormqr(a [m, n], taus [k], c [p, q]) {left, transpose} -> c: the product of all reflections, or
// its adjoint (transpose), times c from the left or the right.
extern const OpDef kOrmqr;
// qr(a [m, n]) {full_matrices, pivoting} -> q [m, k], r [k, n] and, if pivoting, permutation i32
// [n]; k = m for full matrices, else min(m, n). a (or a[:, permutation]) = q r.
extern const OpDef kQr;
// eigh(a [n, n]) {lower} -> v [n, n], w [n] real and rising, a v = v diag(w). One triangle is read.
extern const OpDef kEigh;
// svd(a [m, n]) {full_matrices, compute_uv, algorithm ("DEFAULT" divide and conquer, "QR")} ->
// s [min(m, n)] real and falling and, if compute_uv, u, vh: a = u diag(s) vh.
extern const OpDef kSvd;
// eig(a [n, n]) {compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs} ->
// w [n] complex and, as asked for, vl, vr: a vr = vr diag(w), vl^H a = diag(w) vl^H, of norm 1 with
// a real largest element. Derivatives of the vectors only if they are enabled.
extern const OpDef kEig;
// schur(a [n, n]) {compute_schur_vectors} -> t [n, n] and, as asked for, z: a = z t z^H, t upper
// triangular or, of real matrices, with 2 x 2 blocks on the diagonal.
extern const OpDef kSchur;
// hessenberg(a [n, n]) -> a, taus [n - 1]: the Hessenberg form in and above the first subdiagonal,
// Householder vectors below. n >= 1.
extern const OpDef kHessenberg;
// tridiagonal(a [n, n]) {lower} -> a, d [n] real, e [n - 1] real, taus [n - 1]. n >= 1.
extern const OpDef kTridiagonal;
// tridiagonal_solve(dl [n], d [n], du [n], b [n, k]) -> x [n, k]. dl[0] and du[n - 1] are not read.
extern const OpDef kTridiagonalSolve;

}  // namespace xylem::ir::ops
