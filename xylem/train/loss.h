#pragma once

#include <variant>

#include "xylem/core/array.h"
#include "xylem/models/gpt.h"

namespace xylem::train {

// Losses of next-token prediction, in nats per token. tokens: i32[B, T + 1].
Array next_token_loss(const models::Gpt& model, const Array& tokens);  // over all tokens: scalar
Array window_losses(const models::Gpt& model, const Array& tokens);    // of each window: [B]

// Rows of packed documents, as data::LmBatch: i32[B, T] each, weights f32.
struct PackedRows {
  Array inputs, targets, weights, segment_ids, positions;
};
// Sum of weight times loss, and the sum of weights: both f32[].
struct WeightedLoss {
  Array sum, weight;
};
WeightedLoss weighted_loss(const models::Gpt& model, const PackedRows& rows);

// What a step trains on: windows of T + 1 tokens, or packed rows.
using StepTokens = std::variant<Array, PackedRows>;
// Mean loss of the tokens that count; 0 if none does.
Array step_loss(const models::Gpt& model, const StepTokens& tokens);

}  // namespace xylem::train
