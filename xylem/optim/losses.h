#pragma once

#include "xylem/core/array.h"

namespace xylem::optim {

// logsumexp(logits) - logits[label] along the last axis. labels: integers of the other axes' shape.
Array softmax_cross_entropy_with_integer_labels(const ArrayArg& logits, const ArrayArg& labels);
// -sum(labels * log_softmax(logits)) along the last axis.
Array softmax_cross_entropy(const ArrayArg& logits, const ArrayArg& labels);
// (x - target)^2 and half of it.
Array squared_error(const ArrayArg& predictions, const ArrayArg& targets);
Array l2_loss(const ArrayArg& predictions, const ArrayArg& targets);
// Of logits against labels in [0, 1].
Array sigmoid_binary_cross_entropy(const ArrayArg& logits, const ArrayArg& labels);

}  // namespace xylem::optim
