#pragma once

#include <cstdint>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/array.h"

// Sequences and polynomials of jax.numpy. Coefficients stand with the highest power first.
namespace xylem {

// Σ_j x[j] y[i - j], and Σ_j x[i + j] conj(y[j]). mode: "full", "same" or "valid". Integers compute
// in floats.
Array convolve(const ArrayArg& x, const ArrayArg& y, std::string_view mode = "full");
Array correlate(const ArrayArg& x, const ArrayArg& y, std::string_view mode = "valid");
// Windows of m points, f32.
Array bartlett(std::int64_t m);
Array blackman(std::int64_t m);
Array hamming(std::int64_t m);
Array hanning(std::int64_t m);
Array kaiser(std::int64_t m, const ArrayArg& beta);
// Adds multiples of the period so that neighbours differ by half a period at most.
Array unwrap(const ArrayArg& x, std::optional<double> discont = std::nullopt, int axis = -1,
             double period = 2 * std::numbers::pi);
// Without zeros in front ("f") and behind ("b"); the contents must be known.
Array trim_zeros(const ArrayArg& x, std::string_view trim = "fb");

Array polyadd(const ArrayArg& a, const ArrayArg& b);
Array polysub(const ArrayArg& a, const ArrayArg& b);
Array polymul(const ArrayArg& a, const ArrayArg& b);
// Quotient and remainder, which keeps the length of u.
std::pair<Array, Array> polydiv(const ArrayArg& u, const ArrayArg& v);
Array polyder(const ArrayArg& p, int m = 1);
// With the constant of integration k, or one for each of the m integrations.
Array polyint(const ArrayArg& p, int m = 1, const ArrayArg& k = 0);
// The polynomial with these zeros.
Array poly(const ArrayArg& zeros);
// Zeros of a polynomial, complex; leading coefficients that are zero must be known.
Array roots(const ArrayArg& p);
// Coefficients of the polynomial of a degree that fits y [n] or [n, k] at x best in the least
// squares, with weights w [n].
Array polyfit(const ArrayArg& x, const ArrayArg& y, int degree, const Array& w = Array(),
              std::optional<double> rcond = std::nullopt);

}  // namespace xylem
