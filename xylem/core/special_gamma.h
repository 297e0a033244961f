#pragma once

#include "xylem/core/array.h"

// The incomplete gamma functions and what is made of their derivatives by the first parameter.
namespace xylem::special {

// P(a, x) = ∫_0^x t^(a-1) e^-t dt / Γ(a) and Q = 1 - P; a > 0, x >= 0, NaN elsewhere.
// Differentiable by both.
Array gammainc(const ArrayArg& a, const ArrayArg& x);
Array gammaincc(const ArrayArg& a, const ArrayArg& x);

}  // namespace xylem::special

namespace xylem::lax {

Array igamma(const ArrayArg& a, const ArrayArg& x);
Array igammac(const ArrayArg& a, const ArrayArg& x);
// ∂P(a, x)/∂a, and dx/da at a fixed P: how a gamma sample moves with its shape parameter.
Array igamma_grad_a(const ArrayArg& a, const ArrayArg& x);
Array random_gamma_grad(const ArrayArg& a, const ArrayArg& x);

}  // namespace xylem::lax
