#include "xylem/nn/normalization.h"

#include <initializer_list>

#include "xylem/core/lax.h"
#include "xylem/core/numpy.h"
#include "xylem/core/promotion.h"

namespace xylem::nn {
namespace {

// Statistics are computed in f32 at least.
Array wide(const ArrayArg& x) {
  DType t = x.array.dtype();
  return t == DType::kF64 ? x.array : x.array.astype(DType::kF32, x.where);
}

// The dtype of a layer's result: that to which its input and parameters promote.
DType result_dtype(const Array& x, std::initializer_list<Array> params) {
  WeakDType t = to_inexact({x.dtype(), x.weak_type()});
  for (const Array& p : params)
    if (p.defined()) t = promote_types(t, {p.dtype(), p.weak_type()});
  return t.dtype;
}

}  // namespace

LayerNorm LayerNorm::make(std::int64_t num_features, Rngs& rngs, const NormOptions& options) {
  LayerNorm n;
  n.epsilon = options.epsilon;
  n.use_fast_variance = options.use_fast_variance;
  // Flax draws a key for each parameter that it makes, used or not.
  if (options.use_scale) {
    rngs.params();
    n.scale = ones({num_features}, options.param_dtype);
  }
  if (options.use_bias) {
    rngs.params();
    n.bias = zeros({num_features}, options.param_dtype);
  }
  return n;
}

Array LayerNorm::operator()(const ArrayArg& x) const {
  Array a = wide(x);
  Array mu = mean(a, -1, true);
  Array variance = use_fast_variance ? maximum(mean(square(a), -1, true) - square(mu), 0.0)
                                     : mean(square(a - mu), -1, true);
  Array factor = lax::rsqrt(variance + epsilon);
  if (scale.defined()) factor = factor * scale;
  Array y = (a - mu) * factor;
  if (bias.defined()) y = y + bias;
  return y.astype(result_dtype(x.array, {scale, bias}));
}

RMSNorm RMSNorm::make(std::int64_t num_features, Rngs& rngs, const NormOptions& options) {
  RMSNorm n;
  n.epsilon = options.epsilon;
  if (options.use_scale) {
    rngs.params();
    n.scale = ones({num_features}, options.param_dtype);
  }
  return n;
}

Array RMSNorm::operator()(const ArrayArg& x) const {
  Array a = wide(x);
  Array factor = lax::rsqrt(mean(square(a), -1, true) + epsilon);
  if (scale.defined()) factor = factor * scale;
  return (a * factor).astype(result_dtype(x.array, {scale}));
}

}  // namespace xylem::nn
