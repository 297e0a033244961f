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
// xlogy with log(1 + y); -x log x; x log(x / y) - x + y and x log(x / y), infinite where undefined.
Array xlog1py(const ArrayArg& x, const ArrayArg& y);
Array entr(const ArrayArg& x);
Array kl_div(const ArrayArg& x, const ArrayArg& y);
Array rel_entr(const ArrayArg& x, const ArrayArg& y);
// log |Γ(x)|, its derivative, the n-th derivative of that (n an integer), log |B(a, b)|.
Array gammaln(const ArrayArg& x);
Array digamma(const ArrayArg& x);
Array polygamma(const ArrayArg& n, const ArrayArg& x);
Array betaln(const ArrayArg& a, const ArrayArg& b);
// Σ (q + i)^-x over i >= 0; no derivative.
Array zeta(const ArrayArg& x, const ArrayArg& q);
// Modified Bessel functions of order 0 and 1, and times e^-|x|.
Array i0(const ArrayArg& x);
Array i0e(const ArrayArg& x);
Array i1(const ArrayArg& x);
Array i1e(const ArrayArg& x);
// Normal distribution function.
Array ndtr(const ArrayArg& x);
// The next float from x towards y (lax.nextafter).
Array nextafter(const ArrayArg& x, const ArrayArg& y);

}  // namespace xylem::special
