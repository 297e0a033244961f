#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/numpy.h"

// Functions of jax.numpy.linalg and jax.scipy.linalg. Matrices are the last two axes, behind any
// number of batch axes. Dtypes f32, f64, c64, c128; integers are computed in float. A matrix for
// which there is no answer gives NaN or infinities, never an error; wrong ranks and shapes are
// UserErrors. The factorisations themselves are in xylem/core/lax_linalg.h.
namespace xylem::linalg {

// Order of a norm: a number, or the names of NumPy.
class Order {
 public:
  Order(double p) : p_(p) {}
  Order(int p) : p_(p) {}
  Order(const char* name) : name_(name) {}
  double p() const { return p_; }
  // "fro", "nuc" or empty.
  std::string_view name() const { return name_; }

 private:
  double p_ = 2;
  std::string_view name_ = {};
};

// Norms ------------------------------------------------------------------------------------------

// The 2-norm of all elements.
Array norm(const ArrayArg& x);
// Vector norms along one axis: sqrt(sum |x|^2), or by order: max and min of |x| for ±inf, the
// number of nonzeros for 0, (sum |x|^p)^(1/p) else. At the zero vector the gradient is 0 (NaN under
// Numerics::jax).
Array norm(const ArrayArg& x, std::optional<Order> order, std::optional<int> axis = std::nullopt,
           bool keepdims = false);
// Matrix norms over a pair of axes.
Array norm(const ArrayArg& x, std::optional<Order> order, std::pair<int, int> axes,
           bool keepdims = false);
Array vector_norm(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false,
                  double order = 2);
// Matrix norms: "fro"; "nuc", 2 and -2 (sum, maximum and minimum of the singular values); 1 and -1
// (column sums), inf and -inf (row sums).
Array matrix_norm(const ArrayArg& x, const Order& order = "fro", bool keepdims = false);
// |x| |x⁻¹| in a matrix norm; for 2 and -2 the quotient of the extreme singular values, of any
// matrix.
Array cond(const ArrayArg& x, const Order& order = 2);
// How many singular values are above rtol; by default the largest times eps times the larger size.
struct RankOptions {
  std::optional<double> rtol = std::nullopt;
  bool hermitian = false;
};
Array matrix_rank(const ArrayArg& x, const RankOptions& options = {});

// Products ---------------------------------------------------------------------------------------

// x multiplied n times; of the inverse if n is negative.
Array matrix_power(const ArrayArg& x, int n);
Array multi_dot(std::span<const Array> xs, SourceLoc where = SourceLoc::current());
Array outer(const ArrayArg& x, const ArrayArg& y);
Array trace(const ArrayArg& x, int offset = 0);
Array diagonal(const ArrayArg& x, int offset = 0);
Array matrix_transpose(const ArrayArg& x);
Array vecdot(const ArrayArg& x, const ArrayArg& y, int axis = -1);
Array cross(const ArrayArg& x, const ArrayArg& y, int axis = -1);

// Factorisations ---------------------------------------------------------------------------------

// Lower factor of Hermitian positive definite matrices, the mean of both triangles being taken; NaN
// in the lower triangle of a matrix that is not positive definite.
Array cholesky(const ArrayArg& x, bool upper = false, bool symmetrize_input = true);
// The factor as cho_solve takes it; one triangle of x is read.
struct CholeskyFactor {
  Array c;
  bool lower = false;
};
CholeskyFactor cho_factor(const ArrayArg& x, bool lower = false);

// x = q r. Modes: "reduced" (also "full", "economic"): q [m, k], r [k, n], k = min(m, n);
// "complete": k = m; "r": r alone, q undefined; "raw": q is the transposed Householder form and r
// the taus.
struct QrResult {
  Array q, r;
};
QrResult qr(const ArrayArg& x, std::string_view mode = "reduced");
// x[:, p] = q r, columns by falling norm.
struct PivotedQrResult {
  Array q, r, p;
};
PivotedQrResult qr_pivoting(const ArrayArg& x, bool full_matrices = true);
// c q (mode "right") or q c (mode "left") and r, without forming the q of x = q r.
std::pair<Array, Array> qr_multiply(const ArrayArg& x, const ArrayArg& c,
                                    std::string_view mode = "right", bool conjugate = false);

// x = u diag(s) vh, s falling. Hermitian matrices go by their eigenvalues.
struct SvdOptions {
  bool full_matrices = true;
  bool hermitian = false;
};
struct SvdResult {
  Array u, s, vh;
};
SvdResult svd(const ArrayArg& x, const SvdOptions& options = {});
Array svdvals(const ArrayArg& x, bool hermitian = false);

// x v = v diag(w) of Hermitian matrices, w real and rising. `uplo`: the triangle that is read where
// x is not symmetrised.
struct EighOptions {
  char uplo = 'L';
  bool symmetrize_input = true;
};
struct EighResult {
  Array eigenvalues, eigenvectors;
};
EighResult eigh(const ArrayArg& x, const EighOptions& options = {});
Array eigvalsh(const ArrayArg& x, const EighOptions& options = {});

// x v = v diag(w) of any square matrices, complex. Vectors have derivatives only if they are
// enabled: those hold where the eigenvalues differ.
struct EigResult {
  Array eigenvalues, eigenvectors;
};
struct EigOptions {
  bool enable_eigvec_derivs = false;
};
EigResult eig(const ArrayArg& x, const EigOptions& options = {});
Array eigvals(const ArrayArg& x);

// x = p l u, p a permutation; permute_l gives p l and u, p undefined.
struct LuResult {
  Array p, l, u;
};
LuResult lu(const ArrayArg& x, bool permute_l = false);
struct LuFactor {
  Array lu, pivots;
};
LuFactor lu_factor(const ArrayArg& x);

// x = z t zᴴ. output: "real" (blocks of 2 x 2 on the diagonal of real matrices) or "complex".
struct SchurResult {
  Array t, z;
};
SchurResult schur(const ArrayArg& x, std::string_view output = "real");
// The upper triangular complex form of a real one.
SchurResult rsf2csf(const ArrayArg& t, const ArrayArg& z);
// x = q h qᴴ, h zero below the first subdiagonal.
struct HessenbergResult {
  Array h, q;
};
HessenbergResult hessenberg(const ArrayArg& x);
// x = u p (side "right") or p u ("left"), u with orthonormal columns (rows), p Hermitian and not
// negative. By singular values.
struct PolarResult {
  Array u, p;
};
PolarResult polar(const ArrayArg& x, std::string_view side = "right");

// Systems of equations ---------------------------------------------------------------------------

// x with a x = b for triangular matrices a; of them only one triangle is read. b is a vector or
// columns. As jax.scipy.linalg.solve_triangular.
struct TriangularOptions {
  bool lower = false;
  bool transpose = false;  // solves aᵀ x = b
  bool unit_diagonal = false;
};
Array solve_triangular(const ArrayArg& a, const ArrayArg& b, const TriangularOptions& options = {});
// x with a x = b from the factor of a (cho_factor's).
Array cho_solve(const ArrayArg& factor, bool lower, const ArrayArg& b);
Array cho_solve(const CholeskyFactor& factor, const ArrayArg& b);
// x with a x = b (trans = 0), aᵀ x = b (1) or aᴴ x = b (2).
Array lu_solve(const LuFactor& factor, const ArrayArg& b, int trans = 0);
// x with a x = b; b is a vector or columns. By LU with pivots, or, for assume_a = "pos", by
// Cholesky of the upper (lower) triangle. Derivatives use the same factors. A singular matrix gives
// infinities or NaN.
struct SolveOptions {
  std::string_view assume_a = "gen";  // "gen", "sym", "her", "pos"
  bool lower = false;
};
Array solve(const ArrayArg& a, const ArrayArg& b, const SolveOptions& options = {});
Array inv(const ArrayArg& x);
// The Moore-Penrose inverse: singular values of at most rtol times the largest count as zero; by
// default 10 times the larger size times eps.
struct PinvOptions {
  std::optional<double> rtol = std::nullopt;
  bool hermitian = false;
};
Array pinv(const ArrayArg& x, const PinvOptions& options = {});
// x of least |a x - b|², and of least norm among these; |a x - b|² per column; the rank; the
// singular values. rcond: what counts as zero relative to the largest singular value (by default
// eps times the larger size). NumPy's residuals, empty unless a has full rank and m > n, need
// concrete matrices.
struct LstsqOptions {
  std::optional<double> rcond = std::nullopt;
  bool numpy_resid = false;
};
struct LstsqResult {
  Array x, residuals, rank, s;
};
LstsqResult lstsq(const ArrayArg& a, const ArrayArg& b, const LstsqOptions& options = {});
// The inverse of x as a map from its last axes to its first `ind`.
Array tensorinv(const ArrayArg& x, int ind = 2);
// y with sum a y = b over the last axes of a; `axes` are moved there before.
Array tensorsolve(const ArrayArg& a, const ArrayArg& b, const std::vector<int>& axes = {});
// x with a x + x b = c. NaN if an eigenvalue of a and one of b add up to less than tol.
Array solve_sylvester(const ArrayArg& a, const ArrayArg& b, const ArrayArg& c, double tol = 1e-8);

// Functions of matrices --------------------------------------------------------------------------

// Derivatives are right also where one pivot is zero.
Array det(const ArrayArg& x);
// det x = sign exp(logabsdet); (0, -inf) for singular matrices. method: "lu", or "qr" (real only).
struct SlogdetResult {
  Array sign, logabsdet;
};
SlogdetResult slogdet(const ArrayArg& x, std::string_view method = "lu");
// By Padé approximants with scaling and squaring; NaN if more than max_squarings were needed.
struct ExpmOptions {
  bool upper_triangular = false;
  int max_squarings = 16;
};
Array expm(const ArrayArg& x, const ExpmOptions& options = {});
// exp(x) and its derivative in direction e.
std::pair<Array, Array> expm_frechet(const ArrayArg& x, const ArrayArg& e);
// The principal square root, complex; by the Schur form.
Array sqrtm(const ArrayArg& x);

// Special matrices -------------------------------------------------------------------------------

// The arrays (matrices, vectors as rows, numbers) along the diagonal.
Array block_diag(std::span<const Array> xs, SourceLoc where = SourceLoc::current());
Array block_diag(std::initializer_list<Array> xs, SourceLoc where = SourceLoc::current());
// First column c, first row r (without its first element); the conjugate of c by default.
Array toeplitz(const ArrayArg& c, std::optional<Array> r = std::nullopt);
// First column c, last row r (without its first element); zeros by default.
Array hankel(const ArrayArg& c, std::optional<Array> r = std::nullopt);
Array circulant(const ArrayArg& c);
Array companion(const ArrayArg& a);
Array hilbert(std::int64_t n);
// kind: "symmetric", "lower" or "upper".
Array pascal(std::int64_t n, std::string_view kind = "symmetric");
Array hadamard(std::int64_t n, DType dtype = DType::kI32);
// scale: "" , "sqrtn" or "n".
Array dft(std::int64_t n, std::string_view scale = "");

}  // namespace xylem::linalg
