#include "xylem/nn/linear.h"

#include <fmt/format.h>

#include "xylem/base/error.h"

namespace xylem::nn {

Linear Linear::make(std::int64_t in_features, std::int64_t out_features, Rngs& rngs,
                    const LinearOptions& options) {
  Linear l;
  l.kernel = options.kernel_init(rngs.params(), {in_features, out_features}, options.param_dtype);
  if (options.use_bias)
    l.bias = options.bias_init(rngs.params(), {out_features}, options.param_dtype);
  return l;
}

Array Linear::operator()(const ArrayArg& x) const {
  if (x.array.ndim() == 0 || x.array.dim(-1) != kernel.dim(0))
    throw UserError(ErrorParts{"nn.Linear", fmt::format("the last axis must be {}", kernel.dim(0)),
                               fmt::format("given {}", x.array.type_string()),
                               "Reshape the input, or make the layer with that many inputs"},
                    x.where);
  Array y = dot(x, kernel);
  return bias.defined() ? y + bias : y;
}

Embed Embed::make(std::int64_t num_embeddings, std::int64_t features, Rngs& rngs,
                  DType param_dtype) {
  auto init = initializers::variance_scaling(1, initializers::Mode::kFanIn,
                                             initializers::Distribution::kNormal, -1, 0);
  return {init(rngs.params(), {num_embeddings, features}, param_dtype)};
}

Array Embed::operator()(const ArrayArg& indices) const {
  if (embedding.dim(0) != 1 || !is_integer(indices.array.dtype()))
    return take(ArrayArg(embedding, indices.where), indices, 0);
  Dims shape = indices.array.shape();
  shape.push_back(embedding.dim(1));
  return broadcast_to(embedding, shape);
}

Array Embed::attend(const ArrayArg& x) const {
  return inner(ArrayArg(x.array.astype(embedding.dtype()), x.where), embedding);
}

Array Dropout::operator()(const ArrayArg& x, const random::Key& key, bool deterministic) const {
  if (deterministic || rate == 0) return x.array;
  if (rate >= 1) return zeros_like(x);
  double keep = 1 - rate;
  Array mask = random::bernoulli(key, keep, x.array.shape());
  return where(mask, divide(x, keep), zeros_like(x));
}

}  // namespace xylem::nn
