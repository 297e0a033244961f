#pragma once

#include "xylem/compiler/math/dd.h"

namespace xylem::compiler::math {

// a = n pi/2 + r for a >= 0, |r| <= pi/4 but for rounding. NaN and infinity give r = NaN.
struct Quadrant {
  DD r;  // f32: lo is not set
  V n;   // an integer of r's width; only the two lowest bits count
};

Quadrant reduce_angle(V a);
// The same for an f32 `a`, r in f64.
Quadrant reduce_angle_lite(V a);

}  // namespace xylem::compiler::math
