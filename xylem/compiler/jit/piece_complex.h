#pragma once

#include "xylem/compiler/jit/piece_ops.h"

// Complex arithmetic on pieces (v: real parts, im: imaginary parts).

namespace xylem::jit {

// (ac - bd, ad + bc), every real operation rounded.
Piece complex_multiply(PieceOps& o, const Piece& x, const Piece& y);
Piece complex_divide(PieceOps& o, const Piece& x, const Piece& y);
// Lexicographic; x if it has a NaN, else y if it has one.
Piece complex_extremum(PieceOps& o, const Piece& x, const Piece& y, bool maximum);
Value* complex_abs(PieceOps& o, const Piece& x);
// x / |x|; zeros stay, NaN gives (NaN, NaN).
Piece complex_sign(PieceOps& o, const Piece& x);

}  // namespace xylem::jit
