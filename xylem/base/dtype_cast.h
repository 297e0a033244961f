#pragma once

#include <cstddef>
#include <cstdint>

#include "xylem/base/dtype.h"

namespace xylem {

// Converts n contiguous elements with the semantics of StableHLO's `convert` as XLA runs it:
//
//   bool -> number     0 or 1
//   number -> bool     x != 0 (NaN gives true)
//   int -> int         wraps
//   int -> float       one rounding, to nearest even
//   float -> int       truncates and saturates; NaN gives 0
//   float -> float     one rounding, to nearest even, from the exact value; subnormals are kept
//   complex -> real    drops the imaginary part
//
// Overflow of a float target: f16, bf16, f32, f8E5M2, f8E4M3, f8E3M4 give infinity; f8E4M3FN and
// the FNUZ types NaN; f4 and f6 types saturate, and NaN becomes -0 there; f8E8M0FNU has NaN for
// zero, negative, infinite and NaN input and on overflow, its least value for smaller positive
// numbers, and rounds up in the binade above that value (as XLA and ml_dtypes do).
//
// `src` and `dst` must not overlap unless they are equal and the types have the same size. The
// result does not depend on the floating-point mode (rounding, flush to zero) of the thread.
// float0 as a source gives zeros; as a target nothing is written. Thread-safe.
void convert_elements(DType from, const void* src, DType to, void* dst, std::int64_t n);

// One element of type `from`, rounded to double (integers over 2^53 round); real part of complex.
double element_to_double(DType from, const void* src);
// Stores v as one element of type `to`; imaginary part 0.
void double_to_element(double v, DType to, void* dst);

}  // namespace xylem
