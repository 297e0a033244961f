#pragma once

#include "xylem/train/config.h"

namespace xylem::train {

// Operations of one training step: three times those of the matrix products of the forward pass;
// causal attention counts half of its square, as in MaxText.
double training_step_flops(const Config& config);

// The f32 multiply-adds, counted as two, that all threads of the process do in a second at best, as
// measured with vector registers alone in some 50 ms.
double measure_peak_flops();

}  // namespace xylem::train
