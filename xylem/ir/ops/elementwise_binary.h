#pragma once

#include "xylem/ir/op_def.h"

// Elementwise ops of two and three operands. Operands have equal types unless said otherwise.

namespace xylem::ir::ops {

// Integers wrap; bool: add is or, multiply is and. Complex products are (ac - bd, ad + bc) with
// each real operation rounded.
extern const OpDef kAdd, kSubtract, kMultiply;
// Integers truncate; x / 0 has all bits set (-1, or the largest unsigned); least / -1 = least.
extern const OpDef kDivide;
// Sign of the dividend; x % 0 = x for integers and NaN for floats; least % -1 = 0.
extern const OpDef kRemainder;
// NaN if an operand is NaN; +0 is larger than -0; complex compares real parts, then imaginary.
extern const OpDef kMaximum, kMinimum;
// Floats as C's pow. Integers: wraps; 0^0 = 1; negative exponents give 0 but for base 1 (1) and
// base -1 (1 or -1).
extern const OpDef kPower;
extern const OpDef kAtan2;
// chlo.next_after(x, y): the number next to x in the direction of y; y if they are equal, NaN if
// either is. f16, bf16, f32, f64.
extern const OpDef kNextAfter;
// Logical for bool, bitwise for integers.
extern const OpDef kAnd, kOr, kXor;
// Amounts that are negative or at least the width give 0, arithmetic shifts all sign bits.
extern const OpDef kShiftLeft, kShiftRightLogical, kShiftRightArithmetic;
// (re, im) of f32 or f64 to a complex number.
extern const OpDef kComplex;
// compare {comparison_direction, compare_type}: i1. FLOAT: every comparison with NaN is false but
// NE, -0 equals +0. TOTALORDER: -NaN < -inf < … < -0 < +0 < … < +inf < +NaN. Complex numbers have
// EQ and NE.
extern const OpDef kCompare;
// select(pred, on_true, on_false); pred is i1, a scalar or of the full shape.
extern const OpDef kSelect;
// clamp(min, x, max) = minimum(maximum(x, min), max); the bounds may be scalars.
extern const OpDef kClamp;

}  // namespace xylem::ir::ops
