#include "xylem/models/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "xylem/base/error.h"
#include "xylem/core/core.h"

namespace xylem::models {

Sampler::Sampler(const SamplingOptions& o) : options_(o), random_(o.seed) {
  if (!(o.temperature >= 0) || !std::isfinite(o.temperature))
    throw_user_error({"sampling: temperature", "0 or more", fmt::format("{}", o.temperature),
                      "Use 0 for the most probable token, 1 for the model's own distribution"});
  if (o.top_k < 0)
    throw_user_error({"sampling: top_k", "0 or more", fmt::format("{}", o.top_k),
                      "Use 0 to draw among all tokens"});
  if (!(o.top_p > 0 && o.top_p <= 1))
    throw_user_error({"sampling: top_p", "more than 0 and at most 1", fmt::format("{}", o.top_p),
                      "Use 1 to draw among all tokens"});
}

std::int32_t Sampler::sample(std::span<const float> logits) {
  XYLEM_CHECK(!logits.empty(), "no logits");
  for (const float l : logits)
    if (std::isnan(l))
      throw_user_error({"sampling", "logits that are numbers", "one is NaN",
                        "The parameters are damaged: use an earlier checkpoint"});
  // Ties go to the lower token, so that the order is the same everywhere.
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  if (options_.temperature == 0) return order[0];

  std::size_t count = logits.size();
  if (options_.top_k > 0) count = std::min(count, static_cast<std::size_t>(options_.top_k));
  std::vector<double> weights(count);
  const double top = logits[static_cast<std::size_t>(order[0])];
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double l = logits[static_cast<std::size_t>(order[i])];
    weights[i] = std::exp((l - top) / options_.temperature);
    total += weights[i];
  }
  double kept = 0;
  std::size_t cut = 0;
  while (cut < count && (cut == 0 || kept < options_.top_p * total)) kept += weights[cut++];

  // 53 random bits: a double on [0, 1). std::uniform_real_distribution differs between libraries.
  double point = static_cast<double>(random_() >> 11) * 0x1p-53 * kept;
  for (std::size_t i = 0; i < cut; ++i) {
    if (point < weights[i]) return order[i];
    point -= weights[i];
  }
  return order[cut - 1];
}

namespace {

using Result = std::pair<Array, std::vector<nn::KVCache>>;

// Tokens i32[1, P] of which `count` are real. What is computed for the others is overwritten by the
// tokens that come later, and nothing attends to it before.
Result read_tokens(const Gpt& model, const Array& tokens, const Array& count,
                   const std::vector<nn::KVCache>& caches) {
  auto [logits, next] = model(tokens, caches);
  const Array zero = zeros({}, DType::kI32);
  Array last = lax::dynamic_slice(logits, {zero, count - 1, zero}, {1, 1, logits.dim(2)});
  for (std::size_t i = 0; i < next.size(); ++i) next[i].length = caches[i].length + count;
  return {last.reshape({logits.dim(2)}), std::move(next)};
}

Result read_one(const Gpt& model, const Array& token, const std::vector<nn::KVCache>& caches) {
  auto [logits, next] = model(token, caches);
  return {logits.reshape({logits.dim(2)}), std::move(next)};
}

}  // namespace

struct Decoder::Programs {
  Jitted<Result (*)(const Gpt&, const Array&, const Array&, const std::vector<nn::KVCache>&)>
      several = jit(&read_tokens, {.name = "prefill"});
  Jitted<Result (*)(const Gpt&, const Array&, const std::vector<nn::KVCache>&)> one =
      jit(&read_one, {.name = "decode"});
};

Decoder::Decoder(Gpt model, std::int64_t context)
    : model_(std::move(model)), context_(context), programs_(std::make_unique<Programs>()) {
  if (context < 2)
    throw_user_error({"Decoder: context", "at least 2 tokens", fmt::format("{}", context),
                      "Use a model with a larger max_target_length"});
}

Decoder::~Decoder() = default;

std::vector<float> Decoder::start(std::span<const std::int32_t> tokens) {
  if (tokens.empty())
    throw_user_error({"generate: prompt", "at least one token", "it is empty", "Give a prompt"});
  const auto context = static_cast<std::size_t>(context_);
  if (tokens.size() > context) tokens = tokens.subspan(tokens.size() - context);
  read_.assign(tokens.begin(), tokens.end());
  return read(read_);
}

std::vector<float> Decoder::read(std::span<const std::int32_t> tokens) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  std::int64_t padded = 1;
  while (padded < n) padded *= 2;
  padded = std::min(padded, context_);
  HostArray batch = HostArray::zeros(DType::kI32, {1, padded});
  std::copy(tokens.begin(), tokens.end(), batch.as<std::int32_t>());
  const Array count(HostArray::scalar(static_cast<std::int32_t>(n)));
  std::vector<nn::KVCache> empty = model_.make_caches(1, context_);
  auto [logits, caches] = programs_->several(model_, Array(batch), count, std::move(empty));
  caches_ = std::move(caches);
  return logits.to_vector<float>();
}

std::vector<float> Decoder::next(std::int32_t token) {
  if (static_cast<std::int64_t>(read_.size()) == context_) {
    read_.erase(read_.begin(), read_.end() - context_ / 2);
    read_.push_back(token);
    return read(read_);
  }
  read_.push_back(token);
  const Array one(HostArray::from(std::vector<std::int32_t>{token}, {1, 1}));
  auto [logits, caches] = programs_->one(model_, one, std::move(caches_));
  caches_ = std::move(caches);
  return logits.to_vector<float>();
}

std::vector<std::int32_t> generate(Decoder& decoder, std::span<const std::int32_t> prompt,
                                   std::int64_t max_tokens, Sampler& sampler,
                                   const std::function<bool(std::int32_t)>& on_token) {
  std::vector<std::int32_t> out;
  if (max_tokens <= 0) return out;
  std::vector<float> logits = decoder.start(prompt);
  while (true) {
    out.push_back(sampler.sample(logits));
    if (on_token && !on_token(out.back())) break;
    if (static_cast<std::int64_t>(out.size()) == max_tokens) break;
    logits = decoder.next(out.back());
  }
  return out;
}

}  // namespace xylem::models
