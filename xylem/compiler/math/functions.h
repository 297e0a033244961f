#pragma once

#include "xylem/compiler/math/expr.h"

// The elementary functions as expressions. Arguments are f32 or f64, results have the argument's
// dtype. Stated errors are the largest measured ones in ulp, f32 / f64; docs/accuracy.md has the
// whole table. Special values follow C (Annex F) where nothing else is said.

namespace xylem::compiler::math {

// exp.cc
V exponential(V x);
V exponential_minus_one(V x);
V logistic(V x);  // 1 / (1 + e^-x), relative accuracy kept down to subnormal results
V tanh(V x);

// log.cc
V log(V x);
V log_plus_one(V x);

// erf.cc
V erf(V x);
V erf_inv(V x);

// trig.cc
V sine(V x);
V cosine(V x);

// power.cc
V rsqrt(V x);
V power(V x, V y);

}  // namespace xylem::compiler::math
