#include "xylem/optim/losses.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"

namespace xylem::optim {

Array softmax_cross_entropy_with_integer_labels(const ArrayArg& logits, const ArrayArg& labels) {
  Dims expected = logits.array.shape();
  if (expected.empty() || !is_inexact(logits.array.dtype()) || !is_integer(labels.array.dtype()))
    throw UserError(
        ErrorParts{"softmax_cross_entropy_with_integer_labels",
                   "float logits [..., classes] and integer labels [...] are needed",
                   fmt::format("logits {}, labels {}", logits.array.type_string(),
                               labels.array.type_string()),
                   "Convert the labels, or use softmax_cross_entropy for distributions"},
        logits.where);
  expected.pop_back();
  if (labels.array.shape() != expected)
    throw UserError(ErrorParts{"softmax_cross_entropy_with_integer_labels: labels",
                               fmt::format("the shape must be {}", to_string(expected)),
                               labels.array.type_string(), "Drop the class axis of the labels"},
                    logits.where);
  Array label_logits = take_along_axis(logits, expand_dims(labels, -1), -1);
  return logsumexp(logits, -1) - label_logits.reshape(expected);
}

Array softmax_cross_entropy(const ArrayArg& logits, const ArrayArg& labels) {
  Array log_p = subtract(logits, logsumexp(logits, -1, true));
  return -sum(multiply(labels, log_p), -1);
}

Array squared_error(const ArrayArg& predictions, const ArrayArg& targets) {
  return square(subtract(predictions, targets));
}
Array l2_loss(const ArrayArg& predictions, const ArrayArg& targets) {
  return 0.5 * squared_error(predictions, targets);
}

Array sigmoid_binary_cross_entropy(const ArrayArg& logits, const ArrayArg& labels) {
  // -y log sigmoid(x) - (1 - y) log sigmoid(-x), with log sigmoid(x) = -logaddexp(0, -x).
  Array log_p = -logaddexp(0.0, -logits.array), log_not_p = -logaddexp(0.0, logits.array);
  return -(labels.array * log_p) - (1.0 - labels.array) * log_not_p;
}

}  // namespace xylem::optim
