#pragma once

#include "xylem/core/array.h"

// Functions of jax.scipy.special. Integers compute in f32.
namespace xylem::special {

Array erf(const ArrayArg& x);
Array erfc(const ArrayArg& x);
Array erfinv(const ArrayArg& x);
// The logistic function 1 / (1 + e^-x).
Array expit(const ArrayArg& x);
Array logit(const ArrayArg& x);
Array xlogy(const ArrayArg& x, const ArrayArg& y);  // 0 where x is 0
// Normal distribution function.
Array ndtr(const ArrayArg& x);
// The next float from x towards y (lax.nextafter).
Array nextafter(const ArrayArg& x, const ArrayArg& y);

}  // namespace xylem::special
