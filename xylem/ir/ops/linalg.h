#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// cholesky(a) {lower}: the factor of each symmetric or Hermitian positive definite matrix, of
// which only the named triangle is read. The other triangle of the result is zero; a matrix that
// is not positive definite gives NaN everywhere, as XLA does.
extern const OpDef kCholesky;
// triangular_solve(a, b) {left_side, lower, unit_diagonal, transpose_a}: x with op(a) x = b, or
// x op(a) = b; only the named triangle of a is read, and with unit_diagonal not its diagonal.
extern const OpDef kTriangularSolve;
// fft(x) {fft_type, fft_length}: discrete Fourier transform over the last 1 to 3 dimensions.
// IFFT and IRFFT divide by the number of points. RFFT keeps n / 2 + 1 elements of the last
// dimension; IRFFT ignores the imaginary parts that a real signal cannot have.
extern const OpDef kFft;

}  // namespace xylem::ir::ops
