#pragma once

#include <limits>
#include <string>

#include "xylem/models/gpt.h"
#include "xylem/optim/optim.h"
#include "xylem/train/config.h"

namespace xylem::train {

// The learning rate by step.
optim::Schedule learning_rate_schedule(const Config& config);

// What weight decay applies to: kernels and embeddings.
inline bool is_decayed(const std::string& path, const Array&) {
  return path.ends_with(".kernel") || path.ends_with(".embedding");
}

// Clipping by the global norm, then AdamW.
inline auto make_optimizer(const Config& c) {
  const double limit = c.gradient_clipping_threshold > 0 ? c.gradient_clipping_threshold
                                                         : std::numeric_limits<double>::infinity();
  return optim::chain(optim::clip_by_global_norm(limit),
                      optim::adamw(learning_rate_schedule(c), {.b1 = c.adam_b1,
                                                               .b2 = c.adam_b2,
                                                               .eps = c.adam_eps,
                                                               .eps_root = c.adam_eps_root,
                                                               .weight_decay = c.adam_weight_decay,
                                                               .mask = is_decayed}));
}

using OptimizerState = decltype(make_optimizer(std::declval<const Config&>())
                                    .init(std::declval<const models::Gpt&>()));

// What a training step takes and gives back. A tree; its paths name the leaves in checkpoints.
struct TrainState {
  models::Gpt params;
  OptimizerState optimizer;
};

}  // namespace xylem::train
