#pragma once

#include "xylem/ir/op_def.h"

// Batch normalisation over all dimensions but `feature_index`, with the biased variance.

namespace xylem::ir::ops {

// batch_norm_training(x, scale, offset) {epsilon, feature_index} -> (y, mean, variance)
// y = scale (x - mean) / sqrt(variance + epsilon) + offset
extern const OpDef kBatchNormTraining;
// batch_norm_inference(x, scale, offset, mean, variance) {epsilon, feature_index} -> y
extern const OpDef kBatchNormInference;
// batch_norm_grad(x, scale, mean, variance, grad_output) {epsilon, feature_index} -> (grad_operand,
// grad_scale, grad_offset): the derivatives of batch_norm_training's y.
extern const OpDef kBatchNormGrad;

}  // namespace xylem::ir::ops
