#pragma once

#include "xylem/ir/op_def.h"

// Elementary functions: elementwise, of floats and complex numbers, with an error bound in ulp
// (OpDef::max_ulp) instead of a defined rounding. The reference evaluates narrow types in double
// and f64 in long double and rounds once, so its own error is close to half an ulp.

namespace xylem::ir::ops {

extern const OpDef kExponential, kExponentialMinusOne, kLog, kLogPlusOne;
extern const OpDef kLogistic;  // 1 / (1 + e^-x)
extern const OpDef kTanh, kSine, kCosine, kTan, kCbrt;
extern const OpDef kRsqrt;  // 1 / sqrt(x); rsqrt(+-0) = +-inf

// CHLO.
extern const OpDef kErf, kErfc;  // real types
extern const OpDef kErfInv;      // erf_inv(+-1) = +-inf, NaN outside [-1, 1]
extern const OpDef kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh, kAcosh, kAtanh;

}  // namespace xylem::ir::ops
