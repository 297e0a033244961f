#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "xylem/core/array.h"

namespace xylem::optim {

// The value of a hyperparameter by step count (i32 scalar). A number is a constant schedule.
class Schedule {
 public:
  template <class S>
  requires std::is_arithmetic_v<S> Schedule(S value) : constant_(static_cast<double>(value)) {}
  Schedule(std::function<Array(const Array&)> fn) : fn_(std::move(fn)) {}
  Array operator()(const Array& count) const;

 private:
  double constant_ = 0;
  std::function<Array(const Array&)> fn_;
};

Schedule constant_schedule(double value);
Schedule linear_schedule(double init_value, double end_value, std::int64_t transition_steps);
// init * ((1 - alpha) * (0.5 (1 + cos(pi t / decay_steps)))^exponent + alpha).
Schedule cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha = 0,
                               double exponent = 1);
// Linear to peak_value in warmup_steps, then cosine to end_value at decay_steps.
Schedule warmup_cosine_decay_schedule(double init_value, double peak_value,
                                      std::int64_t warmup_steps, std::int64_t decay_steps,
                                      double end_value = 0, double exponent = 1);

}  // namespace xylem::optim
