#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "xylem/models/gpt.h"

namespace xylem::models {

struct SamplingOptions {
  double temperature = 1.0;  // 0: always the most probable token
  std::int64_t top_k = 0;    // draw among so many most probable tokens; 0: all
  double top_p = 1.0;        // draw among the fewest tokens whose probabilities reach this sum
  std::uint64_t seed = 0;
};

// Draws tokens from logits: divided by the temperature, cut to top_k, then to top_p. The same seed
// and logits give the same tokens on every machine. Not thread safe.
class Sampler {
 public:
  // UserError for a negative temperature or top_k, or top_p outside (0, 1].
  explicit Sampler(const SamplingOptions& options);
  std::int32_t sample(std::span<const float> logits);

 private:
  SamplingOptions options_;
  std::mt19937_64 random_;
};

// Runs a model token by token with a cache of keys and values, through two kinds of compiled
// programs: one that takes several tokens (padded to a power of two, so that few are compiled), and
// one that takes one. Not thread safe.
class Decoder {
 public:
  // `context`: the most tokens the model attends to. When they are full, the older half is dropped
  // and the newer half read again.
  Decoder(Gpt model, std::int64_t context);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Logits of the token that follows `tokens`, of which the last `context` count. Forgets what was
  // read before. At least one token.
  std::vector<float> start(std::span<const std::int32_t> tokens);
  // Logits of the token after `token`, which follows what was read.
  std::vector<float> next(std::int32_t token);

 private:
  struct Programs;
  std::vector<float> read(std::span<const std::int32_t> tokens);

  Gpt model_;
  std::int64_t context_;
  std::vector<std::int32_t> read_;
  std::vector<nn::KVCache> caches_;
  std::unique_ptr<Programs> programs_;
};

// Up to `max_tokens` tokens that follow the prompt. `on_token` is called for each as it comes;
// false ends the generation. An empty prompt is a UserError.
std::vector<std::int32_t> generate(Decoder& decoder, std::span<const std::int32_t> prompt,
                                   std::int64_t max_tokens, Sampler& sampler,
                                   const std::function<bool(std::int32_t)>& on_token = nullptr);

}  // namespace xylem::models
