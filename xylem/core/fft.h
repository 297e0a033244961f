#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "xylem/core/numpy.h"

// Discrete Fourier transforms, as jax.numpy.fft. `n` is the length that the axis is cut or padded
// to; `norm` is "backward" (the inverse divides by n), "ortho" (both by its root) or "forward".
// f64 and complex128 stay, everything else computes in c64.
namespace xylem::fft {

Array fft(const ArrayArg& x, std::optional<std::int64_t> n = std::nullopt, int axis = -1,
          std::string_view norm = "backward");
Array ifft(const ArrayArg& x, std::optional<std::int64_t> n = std::nullopt, int axis = -1,
           std::string_view norm = "backward");
// Of real signals: n / 2 + 1 frequencies. irfft gives 2 (m - 1) values unless n is given.
Array rfft(const ArrayArg& x, std::optional<std::int64_t> n = std::nullopt, int axis = -1,
           std::string_view norm = "backward");
Array irfft(const ArrayArg& x, std::optional<std::int64_t> n = std::nullopt, int axis = -1,
            std::string_view norm = "backward");
// Over several axes, all by default.
Array fftn(const ArrayArg& x, const std::vector<int>& axes = {},
           std::string_view norm = "backward");
Array ifftn(const ArrayArg& x, const std::vector<int>& axes = {},
            std::string_view norm = "backward");
Array fft2(const ArrayArg& x, std::string_view norm = "backward");
Array ifft2(const ArrayArg& x, std::string_view norm = "backward");
Array rfftn(const ArrayArg& x, const std::vector<int>& axes = {},
            std::string_view norm = "backward");
Array irfftn(const ArrayArg& x, const std::vector<int>& axes = {},
             std::string_view norm = "backward");
Array rfft2(const ArrayArg& x, std::string_view norm = "backward");
Array irfft2(const ArrayArg& x, std::string_view norm = "backward");
// Frequencies of the bins, in cycles per unit of the sample spacing d.
Array fftfreq(std::int64_t n, double d = 1.0);
Array rfftfreq(std::int64_t n, double d = 1.0);
// Moves frequency 0 to the middle, and back.
Array fftshift(const ArrayArg& x, const AxisArg& axes = {});
Array ifftshift(const ArrayArg& x, const AxisArg& axes = {});

}  // namespace xylem::fft
