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

}  // namespace xylem::train
