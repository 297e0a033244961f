#pragma once

#include <span>

#include "xylem/core/linalg.h"
#include "xylem/core/numpy/ops.h"

// What the functions of linalg share.
namespace xylem::linalg::detail {

// Integers as floats.
Array inexact(const ArrayArg& x);
// x and y in one dtype that is a float or complex.
std::pair<Array, Array> inexact(const ArrayArg& x, const ArrayArg& y);
// UserErrors naming `what`.
void need_matrix(const char* what, const Array& x, SourceLoc where);
void need_square(const char* what, const Array& x, SourceLoc where);
[[noreturn]] void wrong(const char* what, std::string_view expected, const std::string& given,
                        std::string_view advice, SourceLoc where);
// Integers as floats; must be matrices of a dtype that LAPACK has.
Array factorable(const char* what, const ArrayArg& x, bool square = false);

Array adjoint(const Array& x);
double epsilon(DType dtype);
// The shape without its last `n` axes, and with `tail` behind.
Dims leading(const Array& x, std::size_t n);
Dims joined(Dims head, std::initializer_list<std::int64_t> tail);
// The leading axes of matrices broadcast to `batch`.
Array with_batch(const Array& x, const Dims& batch, std::size_t inner);
// [..., 1 or n] columns: x[..., :, None] and x[..., None, :].
Array column(const Array& x);
Array row(const Array& x);

}  // namespace xylem::linalg::detail
