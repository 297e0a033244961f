#pragma once

#include "xylem/ir/op_def.h"

// Elementwise ops of one operand whose result is exact or correctly rounded. Result i depends on
// operand i only. Elementary functions are in elementary.h.

namespace xylem::ir::ops {

// |x|; the least integer stays what it is; complex: sqrt(re^2 + im^2) without overflow, as the
// real type.
extern const OpDef kAbs;
extern const OpDef kCeil, kFloor;
// To an integer, ties away from zero / to the even neighbour.
extern const OpDef kRoundNearestAfz, kRoundNearestEven;
// -x; integers wrap.
extern const OpDef kNegate;
// Logical for bool, bitwise for integers.
extern const OpDef kNot;
// -1, 0, 1 with NaN -> NaN and -0 -> -0; complex: x / |x|.
extern const OpDef kSign;
// i1: neither infinite nor NaN.
extern const OpDef kIsFinite;
// Counts of zero bits above the highest one, and of one bits.
extern const OpDef kCountLeadingZeros, kPopcnt;
// Parts of a complex number; of a real x: x and 0.
extern const OpDef kReal, kImag;
// sqrt(x), correctly rounded for real types.
extern const OpDef kSqrt;
// x * x (chlo.square).
extern const OpDef kSquare;
// Identity that compilers do not look through; any number of operands of any type.
extern const OpDef kOptimizationBarrier;

}  // namespace xylem::ir::ops
