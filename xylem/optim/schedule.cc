#include "xylem/optim/schedule.h"

#include <fmt/format.h>

#include <cmath>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"

namespace xylem::optim {

// Optax's dtypes with 64-bit types on, so that parameters of f64 are trained with the same numbers:
// what is linear in the count is f32, a cosine is f64, and joined schedules take their common f32.
Array Schedule::operator()(const Array& count) const {
  return fn_ ? fn_(count) : ArrayArg(constant_).array;
}

Schedule constant_schedule(double value) { return {value}; }

Schedule linear_schedule(double init_value, double end_value, std::int64_t transition_steps) {
  if (transition_steps <= 0) return {init_value};
  return {[=](const Array& count) {
    Array t = clip(count, 0, static_cast<int>(transition_steps)).astype(DType::kF32);
    Array left = 1.0 - t / static_cast<double>(transition_steps);
    return (init_value - end_value) * left + end_value;
  }};
}

Schedule cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha,
                               double exponent) {
  if (decay_steps <= 0)
    throw_user_error({"cosine_decay_schedule", "decay_steps must be positive",
                      fmt::format("given {}", decay_steps),
                      "Train for more steps than the warm-up"});
  return {[=](const Array& count) {
    Array t = minimum(count, static_cast<int>(decay_steps)).astype(DType::kF64);
    Array wave = 0.5 * (1.0 + cos(M_PI * t / static_cast<double>(decay_steps)));
    if (exponent != 1) wave = power(wave, exponent);
    return init_value * ((1 - alpha) * wave + alpha);
  }};
}

Schedule warmup_cosine_decay_schedule(double init_value, double peak_value,
                                      std::int64_t warmup_steps, std::int64_t decay_steps,
                                      double end_value, double exponent) {
  Schedule up = linear_schedule(init_value, peak_value, warmup_steps);
  double alpha = peak_value == 0 ? 0 : end_value / peak_value;
  Schedule down = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent);
  return {[=](const Array& count) {
    int boundary = static_cast<int>(warmup_steps);
    return where(count < boundary, up(count), down(count - boundary).astype(DType::kF32));
  }};
}

}  // namespace xylem::optim
