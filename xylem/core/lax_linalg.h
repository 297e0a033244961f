#pragma once

#include <optional>

#include "xylem/core/array.h"

// Functions of jax.lax.linalg: factorisations as LAPACK makes them, on matrices in the last two
// axes behind any number of batch axes. Dtypes f32, f64, c64, c128; integers are computed in float.
// Nothing is refused for its values: what fails, or is not finite, gives NaN. UserError for
// operands of wrong rank or shape. All can be mapped; derivatives as said.
namespace xylem::lax::linalg {

// lower factor, from the mean of both triangles if symmetrize_input.
Array cholesky(const ArrayArg& a, bool symmetrize_input = true);

struct TriangularSolveOptions {
  bool left_side = false;  // a x = b, else x a = b
  bool lower = false;
  bool transpose_a = false;
  bool conjugate_a = false;
  bool unit_diagonal = false;
};
// a and b of one rank and one batch, or b a vector per matrix.
Array triangular_solve(const ArrayArg& a, const ArrayArg& b,
                       const TriangularSolveOptions& options = {});

// a[permutation] = L U; L (unit lower) and U (upper) share lu [..., m, n]. pivots i32 [min(m, n)]:
// row i was exchanged with row pivots[i]; permutation i32 [m]. Differentiable.
struct LuResult {
  Array lu, pivots, permutation;
};
LuResult lu(const ArrayArg& a);
// The permutation of `permutation_size` rows that these exchanges make.
Array lu_pivots_to_permutation(const ArrayArg& pivots, std::int64_t permutation_size);
// x with a x = b (trans = 0), aᵀ x = b (1) or aᴴ x = b (2), from lu and permutation of a.
Array lu_solve(const ArrayArg& lu, const ArrayArg& permutation, const ArrayArg& b, int trans = 0);

// a = q r, or a[:, permutation] = q r. Differentiable, but not through the permutation.
struct QrResult {
  Array q, r;
};
struct PivotedQrResult {
  Array q, r, permutation;
};
QrResult qr(const ArrayArg& a, bool full_matrices = true);
PivotedQrResult qr_pivoting(const ArrayArg& a, bool full_matrices = true);

// Householder vectors below the diagonal of a, R in and above it. No derivative.
struct HouseholderResult {
  Array a, taus;
};
HouseholderResult geqrf(const ArrayArg& a);
// The product of the reflections that the columns of a and taus hold, first columns of it.
Array householder_product(const ArrayArg& a, const ArrayArg& taus);
// c times that product, or its adjoint, from the left or the right.
Array ormqr(const ArrayArg& a, const ArrayArg& taus, const ArrayArg& c, bool left = true,
            bool transpose = false);

// a v = v diag(w), w rising. Differentiable; see docs/numerics.md for equal eigenvalues.
struct EighResult {
  Array v, w;
};
EighResult eigh(const ArrayArg& a, bool lower = true, bool symmetrize_input = true);

enum class SvdAlgorithm { kDefault, kQr };
// a = u diag(s) vh, s falling. Differentiable if full_matrices is false or a is square.
struct SvdResult {
  Array u, s, vh;
};
SvdResult svd(const ArrayArg& a, bool full_matrices = true,
              SvdAlgorithm algorithm = SvdAlgorithm::kDefault);
// Singular values alone.
Array singular_values(const ArrayArg& a, SvdAlgorithm algorithm = SvdAlgorithm::kDefault);

// Eigenvalues and eigenvectors of any square matrix, complex: a vr = vr diag(w), vlᴴ a = diag(w)
// vlᴴ. Not asked for, a member is undefined. Eigenvalues alone are differentiable; vectors if that
// is allowed, which is right only where the eigenvalues differ.
struct EigOptions {
  bool compute_left_eigenvectors = true;
  bool compute_right_eigenvectors = true;
  bool enable_eigvec_derivs = false;
};
struct EigResult {
  Array w, vl, vr;
};
EigResult eig(const ArrayArg& a, const EigOptions& options = {});

// a = z t zᴴ. No derivative.
struct SchurResult {
  Array t, z;
};
SchurResult schur(const ArrayArg& a);
// Hessenberg form and Householder vectors in one matrix. No derivative.
HouseholderResult hessenberg(const ArrayArg& a);
// Tridiagonal form of Hermitian matrices: diagonal d and second diagonal e, both real. No
// derivative.
struct TridiagonalResult {
  Array a, d, e, taus;
};
TridiagonalResult tridiagonal(const ArrayArg& a, bool lower = true);
// x [..., n, k] of tridiagonal systems: dl, d, du [..., n], of which dl[0] and du[n - 1] are not
// read; b [..., n, k]. Differentiable.
Array tridiagonal_solve(const ArrayArg& dl, const ArrayArg& d, const ArrayArg& du,
                        const ArrayArg& b);

}  // namespace xylem::lax::linalg
