#pragma once

#include <cstdint>

namespace xylem::compiler {

// Dense linear algebra on row-major matrices. T: float, double and std::complex of both. Matrices
// of a batch are spread over the process's pool.

// StableHLO's cholesky of `batch` matrices [n, n]: lower: A = L L^H, read from and written to the
// lower triangle; else A = U^H U in the upper one. The other triangle becomes zero. A matrix that
// is not positive definite gives NaN throughout.
template <class T>
void cholesky(const T* a, T* out, std::int64_t batch, std::int64_t n, bool lower);

enum class Transpose : std::uint8_t { kNone, kTranspose, kAdjoint };

// StableHLO's triangular_solve: op(A) X = B (left_side) or X op(A) = B, A [n, n] lower or upper
// triangular, B and X [rows, columns]. The other triangle, and the diagonal if `unit_diagonal`, is
// not read.
template <class T>
void triangular_solve(const T* a, const T* b, T* out, std::int64_t batch, std::int64_t rows,
                      std::int64_t columns, bool left_side, bool lower, bool unit_diagonal,
                      Transpose transpose);

}  // namespace xylem::compiler
