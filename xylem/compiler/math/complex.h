#pragma once

#include "xylem/compiler/math/expr.h"

namespace xylem::compiler::math {

// A complex number by its parts, f64. Elementary functions are accurate relative to |f(z)|, not in
// each part. Branch cuts and signs of zeros are C's (Annex G); of its rules for infinities and NaN
// those hold that follow from the parts' own.
struct C {
  V re, im;
};

C complex_exponential(C z);
C complex_exponential_minus_one(C z);
C complex_log(C z);
C complex_log_plus_one(C z);
C complex_logistic(C z);
C complex_sqrt(C z);
C complex_rsqrt(C z);
C complex_cbrt(C z);
C complex_sine(C z);
C complex_cosine(C z);
C complex_tan(C z);
C complex_sinh(C z);
C complex_cosh(C z);
C complex_tanh(C z);
C complex_asin(C z);
C complex_acos(C z);
C complex_atan(C z);
C complex_asinh(C z);
C complex_acosh(C z);
C complex_atanh(C z);
C complex_power(C z, C w);
C complex_atan2(C y, C x);

}  // namespace xylem::compiler::math
