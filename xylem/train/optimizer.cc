#include "xylem/train/optimizer.h"

#include <algorithm>

namespace xylem::train {

optim::Schedule learning_rate_schedule(const Config& c) {
  if (c.lr_schedule_type == "constant") return optim::constant_schedule(c.learning_rate);
  const std::int64_t steps =
      c.learning_rate_schedule_steps > 0 ? c.learning_rate_schedule_steps : c.steps;
  // A run of one step has no room for a warm-up; the cosine needs a step of its own.
  const std::int64_t warmup = std::min(
      static_cast<std::int64_t>(static_cast<double>(steps) * c.warmup_steps_fraction), steps - 1);
  return optim::warmup_cosine_decay_schedule(0, c.learning_rate, warmup, steps,
                                             c.learning_rate * c.learning_rate_final_fraction);
}

}  // namespace xylem::train
