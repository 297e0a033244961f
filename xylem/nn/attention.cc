#include "xylem/nn/attention.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/lax.h"

namespace xylem::nn {

KVCache KVCache::make(std::int64_t batch, std::int64_t max_length, std::int64_t num_kv_heads,
                      std::int64_t head_dim, DType dtype) {
  Dims shape = {batch, max_length, num_kv_heads, head_dim};
  return {zeros(shape, dtype), zeros(shape, dtype), zeros({}, DType::kI32)};
}

MultiHeadAttention MultiHeadAttention::make(std::int64_t features, Rngs& rngs,
                                            const AttentionConfig& config) {
  MultiHeadAttention a;
  a.num_heads = config.num_heads;
  a.num_kv_heads = config.num_kv_heads > 0 ? config.num_kv_heads : config.num_heads;
  a.head_dim = config.head_dim > 0 ? config.head_dim : features / config.num_heads;
  if (a.num_heads <= 0 || a.num_heads % a.num_kv_heads != 0 ||
      (config.head_dim <= 0 && features % config.num_heads != 0))
    throw_user_error(
        {"nn.MultiHeadAttention", "num_kv_heads must divide num_heads, and num_heads the features",
         fmt::format("{} heads, {} key heads, {} features", a.num_heads, a.num_kv_heads, features),
         "Choose sizes that divide, or give head_dim"});
  a.is_causal = config.is_causal;
  a.rotary = config.rotary;
  a.rope_max_timescale = config.rope_max_timescale;
  LinearOptions options{.use_bias = config.use_bias};
  a.query = Linear::make(features, a.num_heads * a.head_dim, rngs, options);
  a.key = Linear::make(features, a.num_kv_heads * a.head_dim, rngs, options);
  a.value = Linear::make(features, a.num_kv_heads * a.head_dim, rngs, options);
  a.out = Linear::make(a.num_heads * a.head_dim, features, rngs, options);
  return a;
}

namespace {

struct Projected {
  Array q, k, v;
};

// Without positions they are 0 … T-1.
Projected project(const MultiHeadAttention& a, const Array& x, const Array* positions) {
  if (x.ndim() != 3)
    throw_user_error({"nn.MultiHeadAttention", "the input must be [batch, time, features]",
                      x.type_string(), "Reshape it, or map with vmap"});
  std::int64_t B = x.dim(0), T = x.dim(1);
  Projected p{a.query(x).reshape({B, T, a.num_heads, a.head_dim}),
              a.key(x).reshape({B, T, a.num_kv_heads, a.head_dim}),
              a.value(x).reshape({B, T, a.num_kv_heads, a.head_dim})};
  if (a.rotary && positions) {
    p.q = apply_rotary(p.q, *positions, a.rope_max_timescale);
    p.k = apply_rotary(p.k, *positions, a.rope_max_timescale);
  } else if (a.rotary) {
    p.q = apply_rotary(p.q, a.rope_max_timescale);
    p.k = apply_rotary(p.k, a.rope_max_timescale);
  }
  return p;
}

}  // namespace

Array MultiHeadAttention::operator()(const ArrayArg& x) const {
  std::int64_t B = x.array.dim(0), T = x.array.dim(1);
  Projected p = project(*this, x.array, nullptr);
  Array y = dot_product_attention(p.q, p.k, p.v, {.is_causal = is_causal, .mask = {}});
  return out(y.reshape({B, T, num_heads * head_dim}));
}

Array MultiHeadAttention::operator()(const ArrayArg& x, const ArrayArg& positions,
                                     const ArrayArg& mask) const {
  std::int64_t B = x.array.dim(0), T = x.array.dim(1);
  Projected p = project(*this, x.array, &positions.array);
  Array y = dot_product_attention(p.q, p.k, p.v, {.is_causal = is_causal, .mask = mask.array});
  return out(y.reshape({B, T, num_heads * head_dim}));
}

std::pair<Array, KVCache> MultiHeadAttention::operator()(const ArrayArg& x,
                                                         const KVCache& cache) const {
  std::int64_t B = x.array.dim(0), T = x.array.dim(1), S = cache.key.dim(1);
  Array positions = cache.length + arange(T);
  Projected p = project(*this, x.array, &positions);
  KVCache next;
  Array zero = zeros({}, DType::kI32);
  next.key = lax::dynamic_update_slice(cache.key, p.k.astype(cache.key.dtype()),
                                       {zero, cache.length, zero, zero});
  next.value = lax::dynamic_update_slice(cache.value, p.v.astype(cache.value.dtype()),
                                         {zero, cache.length, zero, zero});
  next.length = cache.length + static_cast<int>(T);
  Array slots = arange(S);
  Array may = is_causal ? greater_equal(expand_dims(positions, 1), slots)
                        : broadcast_to(less(slots, next.length), {T, S});
  Array y = dot_product_attention(p.q, next.key, next.value, {.is_causal = false, .mask = may});
  return {out(y.reshape({B, T, num_heads * head_dim})), next};
}

}  // namespace xylem::nn
