#pragma once

#include <cstdint>
#include <utility>

#include "xylem/core/array.h"
#include "xylem/nn/functional.h"
#include "xylem/nn/linear.h"

namespace xylem::nn {

// Keys and values of the positions seen so far: [B, S, G, K] each, and how many are filled.
struct KVCache {
  Array key, value;
  Array length;  // i32[]

  static KVCache make(std::int64_t batch, std::int64_t max_length, std::int64_t num_kv_heads,
                      std::int64_t head_dim, DType dtype = DType::kF32);
};

struct AttentionConfig {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = -1;      // features / num_heads
  std::int64_t num_kv_heads = -1;  // num_heads
  bool use_bias = true;
  bool is_causal = false;
  bool rotary = false;
  double rope_max_timescale = 10000;
};

// softmax(Q K^T / sqrt(K)) V with projections of the input: kernels [D, H K], out [H K, D]. Head h
// takes columns h K … h K + K - 1.
struct MultiHeadAttention {
  Linear query, key, value, out;
  std::int64_t num_heads = 1, num_kv_heads = 1, head_dim = 1;
  bool is_causal = false;
  bool rotary = false;
  double rope_max_timescale = 10000;

  static MultiHeadAttention make(std::int64_t features, Rngs& rngs, const AttentionConfig& config);
  // x: [B, T, D].
  Array operator()(const ArrayArg& x) const;
  // Packed rows: positions i32[B, T] for the rotary turn; mask bool, broadcasts to [B, H, T, T],
  // and is met by is_causal.
  Array operator()(const ArrayArg& x, const ArrayArg& positions, const ArrayArg& mask) const;
  // Appends x's T positions to the cache and attends to everything in it. A write past the end of
  // the cache is clamped to its last slots.
  std::pair<Array, KVCache> operator()(const ArrayArg& x, const KVCache& cache) const;
};

}  // namespace xylem::nn
