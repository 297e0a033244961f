#pragma once

#include "xylem/compiler/math/expr.h"

// Unevaluated sums of two floats of one dtype, |lo| at most half an ulp of hi, for places where a
// function would lose more than it may. Error-free transformations after Dekker and Knuth; products
// by fma.

namespace xylem::compiler::math {

struct DD {
  V hi, lo;
};

// a + b exactly, given |a| >= |b| or a = 0.
inline DD fast_two_sum(V a, V b) {
  V s = a + b;
  return {s, b - (s - a)};
}

// a + b exactly.
inline DD two_sum(V a, V b) {
  V s = a + b;
  V bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

// a b exactly (unless it underflows).
inline DD two_product(V a, V b) {
  V p = a * b;
  return {p, fma(a, b, -p)};
}

// sqrt(x) for x.hi > 0.
inline DD sqrt(DD x) {
  V s = sqrt(x.hi);
  return {s, (fma(-s, s, x.hi) + x.lo) / (s + s)};
}

// a / b with one division.
inline DD divide(DD a, DD b) {
  V inverse = 1 / b.hi;
  V q = a.hi * inverse;
  V rest = fma(-q, b.hi, a.hi) + fma(-q, b.lo, a.lo);
  return {q, rest * inverse};
}

}  // namespace xylem::compiler::math
