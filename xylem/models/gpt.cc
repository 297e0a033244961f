#include "xylem/models/gpt.h"

#include <cmath>

#include "xylem/core/core.h"

namespace xylem::models {
namespace {

Array embed_tokens(const Gpt& m, const ArrayArg& tokens, const Array& positions) {
  Array x = m.embed(tokens);
  if (m.scale_embedding) x = x * std::sqrt(static_cast<double>(m.embed.embedding.dim(1)));
  if (m.positions) x = x + (*m.positions)(positions);
  return x;
}

}  // namespace

Array Block::operator()(const ArrayArg& x) const {
  Array h = x.array + attention(attention_norm(x));
  return h + mlp(mlp_norm(h));
}

Array Block::operator()(const ArrayArg& x, const Packing& packing) const {
  // [B, 1, T, T]: the same for all heads.
  Array mask = equal(expand_dims(expand_dims(packing.segment_ids, 1), 3),
                     expand_dims(expand_dims(packing.segment_ids, 1), 2));
  Array h = x.array + attention(attention_norm(x), packing.positions, mask);
  return h + mlp(mlp_norm(h));
}

std::pair<Array, nn::KVCache> Block::operator()(const ArrayArg& x, const nn::KVCache& cache) const {
  auto [y, next] = attention(attention_norm(x), cache);
  Array h = x.array + y;
  return {h + mlp(mlp_norm(h)), next};
}

Gpt Gpt::make(const GptConfig& c, nn::Rngs& rngs) {
  Gpt m;
  m.scale_embedding = c.scale_embedding;
  m.remat = c.remat;
  m.embed = nn::Embed::make(c.vocab_size, c.emb_dim, rngs);
  if (c.trainable_position_size > 0)
    m.positions = nn::Embed::make(c.trainable_position_size, c.emb_dim, rngs);
  nn::NormOptions norm{.epsilon = c.norm_epsilon};
  nn::AttentionConfig attention{.num_heads = c.num_heads,
                                .head_dim = c.head_dim,
                                .use_bias = false,
                                .is_causal = true,
                                .rotary = c.trainable_position_size <= 0,
                                .rope_max_timescale = c.rope_max_timescale};
  for (std::int64_t i = 0; i < c.num_layers; ++i) {
    Block b;
    b.attention_norm = nn::RMSNorm::make(c.emb_dim, rngs, norm);
    b.attention = nn::MultiHeadAttention::make(c.emb_dim, rngs, attention);
    b.mlp_norm = nn::RMSNorm::make(c.emb_dim, rngs, norm);
    b.mlp.up = nn::Linear::make(c.emb_dim, c.mlp_dim, rngs, {.use_bias = false});
    b.mlp.down = nn::Linear::make(c.mlp_dim, c.emb_dim, rngs, {.use_bias = false});
    m.layers.push_back(std::move(b));
  }
  m.norm = nn::RMSNorm::make(c.emb_dim, rngs, norm);
  return m;
}

Array Gpt::operator()(const ArrayArg& tokens) const {
  Array x = embed_tokens(*this, tokens, arange(tokens.array.dim(-1)));
  for (const Block& b : layers) {
    if (remat)
      x = xylem::remat([](const Block& block, const Array& h) { return block(h); })(b, x);
    else
      x = b(x);
  }
  return embed.attend(norm(x));
}

Array Gpt::operator()(const ArrayArg& tokens, const Packing& packing) const {
  Array x = embed_tokens(*this, tokens, packing.positions);
  for (const Block& b : layers) {
    if (remat)
      x = xylem::remat([](const Block& block, const Array& h, const Packing& p) {
        return block(h, p);
      })(b, x, packing);
    else
      x = b(x, packing);
  }
  return embed.attend(norm(x));
}

std::pair<Array, std::vector<nn::KVCache>> Gpt::operator()(
    const ArrayArg& tokens, const std::vector<nn::KVCache>& caches) const {
  Array position = caches.front().length + arange(tokens.array.dim(-1));
  Array x = embed_tokens(*this, tokens, position);
  std::vector<nn::KVCache> next;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto [y, cache] = layers[i](x, caches[i]);
    x = y;
    next.push_back(std::move(cache));
  }
  return {embed.attend(norm(x)), std::move(next)};
}

std::vector<nn::KVCache> Gpt::make_caches(std::int64_t batch, std::int64_t max_length) const {
  std::vector<nn::KVCache> r;
  for (const Block& b : layers)
    r.push_back(nn::KVCache::make(batch, max_length, b.attention.num_kv_heads, b.attention.head_dim,
                                  embed.embedding.dtype()));
  return r;
}

}  // namespace xylem::models
