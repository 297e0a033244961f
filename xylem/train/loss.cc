#include "xylem/train/loss.h"

#include "xylem/core/lax.h"
#include "xylem/core/numpy.h"
#include "xylem/optim/losses.h"

namespace xylem::train {
namespace {

Array token_losses(const models::Gpt& model, const Array& tokens) {
  const std::int64_t B = tokens.dim(0), T = tokens.dim(1) - 1;
  const Array inputs = lax::slice(tokens, {0, 0}, {B, T});
  const Array targets = lax::slice(tokens, {0, 1}, {B, T + 1});
  return optim::softmax_cross_entropy_with_integer_labels(model(inputs), targets);
}

}  // namespace

Array next_token_loss(const models::Gpt& model, const Array& tokens) {
  return mean(token_losses(model, tokens));
}

Array window_losses(const models::Gpt& model, const Array& tokens) {
  return mean(token_losses(model, tokens), -1);
}

WeightedLoss weighted_loss(const models::Gpt& model, const PackedRows& rows) {
  const Array logits = model(rows.inputs, models::Packing{rows.segment_ids, rows.positions});
  const Array losses = optim::softmax_cross_entropy_with_integer_labels(logits, rows.targets);
  return {sum(losses * rows.weights), sum(rows.weights)};
}

Array step_loss(const models::Gpt& model, const StepTokens& tokens) {
  if (const auto* windows = std::get_if<Array>(&tokens)) return next_token_loss(model, *windows);
  const WeightedLoss l = weighted_loss(model, std::get<PackedRows>(tokens));
  return l.sum / maximum(l.weight, 1.0);
}

}  // namespace xylem::train
