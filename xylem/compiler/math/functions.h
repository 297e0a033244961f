#pragma once

#include "xylem/compiler/math/dd.h"
#include "xylem/compiler/math/expr.h"

// The elementary functions as expressions. Arguments are f32 or f64, results have the argument's
// dtype. Special values follow C (Annex F). docs/accuracy.md lists the errors.

namespace xylem::compiler::math {

// exp.cc
V exponential(V x);
V exponential_minus_one(V x);
V logistic(V x);  // 1 / (1 + e^-x), relative accuracy kept down to subnormal results

// hyperbolic.cc
V tanh(V x);
V sinh(V x);
V cosh(V x);
V asinh(V x);
V acosh(V x);
V atanh(V x);

// log.cc
V log(V x);
V log_plus_one(V x);

// erf.cc
V erf(V x);
V erfc(V x);
V erf_inv(V x);

// trig.cc
V sine(V x);
V cosine(V x);
V tan(V x);

// inverse_trig.cc
V asin(V x);
V acos(V x);
V atan(V x);
V atan2(V y, V x);

// power.cc
V rsqrt(V x);
V cbrt(V x);
V power(V x, V y);

// Parts that several functions are made of.

// x as an integer, for |x| < 2^22 (f32) or 2^51 (f64): rounded to nearest even, by an addition that
// leaves the integer in the low bits of the sum. Cheaper than a conversion, which must saturate.
struct Rounded {
  V value;    // in the dtype of x
  V integer;  // i32
};
Rounded round_to_int(V x);

// x = n ln 2 + r, |r| <= ln(2) / 2, for x so small that n does not overflow a float's exponent by
// far.
struct ExpReduced {
  Rounded n;
  V r;
  V unrounded;  // x - n p, p the leading part of ln 2
  // What r lost by rounding: x = n ln 2 + (r + low()).
  V low() const;
};
ExpReduced exp_reduce(V x);
V exp_tail(V r);               // e^r - 1 - r for a reduced r
V exp_minus_one_reduced(V r);  // e^r - 1
V pow2(V like, V k);           // 2^k in the dtype of `like`, k i32

// log(x.hi + x.lo) for finite x > 0, x.hi normal.
V log_sum(DD x);
// log(x 2^k), likewise.
V log_sum(DD x, V k);

// In f64 for arguments that came from f32: relative errors below 2^-33.
V log2_lite(V x);          // x >= 0 or NaN, normal
V log_plus_one_lite(V x);  // x >= -1 or NaN
V exp2_lite(V x);

}  // namespace xylem::compiler::math
