#pragma once

#include "xylem/core/array.h"
#include "xylem/models/gpt.h"

namespace xylem::train {

// Losses of next-token prediction, in nats per token. tokens: i32[B, T + 1].
Array next_token_loss(const models::Gpt& model, const Array& tokens);  // over all tokens: scalar
Array window_losses(const models::Gpt& model, const Array& tokens);    // of each window: [B]

}  // namespace xylem::train
