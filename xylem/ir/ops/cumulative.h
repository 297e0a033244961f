#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// xylem.cumsum and friends (x) {dimension, reverse}: element i combines elements 0 … i along the
// dimension (i … n - 1 if `reverse`). Integers wrap; floats accumulate in double (f64: long double)
// and every element is rounded once; max and min as the binary ops.
extern const OpDef kCumsum, kCumprod, kCummax, kCummin;

// xylem.argmax / argmin (x) {dimension, index_dtype}: index of the first largest (smallest)
// element; the first NaN wins over all numbers; -0 equals +0. The dimension is removed; it must
// not be empty.
extern const OpDef kArgmax, kArgmin;

}  // namespace xylem::ir::ops
