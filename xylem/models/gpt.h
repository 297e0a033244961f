#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/nn/nn.h"

namespace xylem::models {

// A decoder-only transformer over token ids: pre-norm, GELU MLP, tied embeddings.
struct GptConfig {
  std::int64_t vocab_size = 256;
  std::int64_t num_layers = 4;
  std::int64_t emb_dim = 128;
  std::int64_t num_heads = 4;
  std::int64_t head_dim = 32;
  std::int64_t mlp_dim = 512;
  double norm_epsilon = 1e-6;
  double rope_max_timescale = 10000;
  std::int64_t trainable_position_size = -1;  // rotary positions; > 0: so many learned ones
  bool scale_embedding = false;               // embeddings times sqrt(emb_dim)
  bool remat = false;                         // recompute layers in the backward pass
};

struct Mlp {
  nn::Linear up, down;

  Array operator()(const ArrayArg& x) const { return down(nn::gelu(up(x))); }
};

// Rows that hold several sequences: tokens attend within their own only. Segment ids and positions
// i32[B, T]; positions count from 0 in each sequence.
struct Packing {
  Array segment_ids, positions;
};

// x + attention(norm(x)), then x + mlp(norm(x)).
struct Block {
  nn::RMSNorm attention_norm;
  nn::MultiHeadAttention attention;
  nn::RMSNorm mlp_norm;
  Mlp mlp;

  Array operator()(const ArrayArg& x) const;
  Array operator()(const ArrayArg& x, const Packing& packing) const;
  std::pair<Array, nn::KVCache> operator()(const ArrayArg& x, const nn::KVCache& cache) const;
};

struct Gpt {
  nn::Embed embed;
  std::optional<nn::Embed> positions;
  std::vector<Block> layers;
  nn::RMSNorm norm;
  bool scale_embedding = false;
  bool remat = false;

  static Gpt make(const GptConfig& config, nn::Rngs& rngs);
  // tokens i32[B, T] -> logits [B, T, V].
  Array operator()(const ArrayArg& tokens) const;
  Array operator()(const ArrayArg& tokens, const Packing& packing) const;
  // Continues from the caches (one per layer): logits of the given tokens and the new caches.
  std::pair<Array, std::vector<nn::KVCache>> operator()(
      const ArrayArg& tokens, const std::vector<nn::KVCache>& caches) const;
  std::vector<nn::KVCache> make_caches(std::int64_t batch, std::int64_t max_length) const;
};

}  // namespace xylem::models
