#include "xylem/models/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/core/core.h"

namespace xylem::models {
namespace {

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

std::map<std::int32_t, double> shares(const SamplingOptions& options, int n = 20000) {
  Sampler sampler(options);
  std::map<std::int32_t, double> out;
  for (int i = 0; i < n; ++i) out[sampler.sample(kLogits)] += 1.0 / n;
  return out;
}

TEST(Sampler, DrawsWithTheModelsProbabilities) {
  const auto s = shares({});
  EXPECT_NEAR(s.at(0), 0.1, 0.01);
  EXPECT_NEAR(s.at(1), 0.4, 0.015);
  EXPECT_NEAR(s.at(2), 0.2, 0.015);
  EXPECT_NEAR(s.at(3), 0.3, 0.015);
}

TEST(Sampler, TemperatureSharpensAndZeroTakesTheBest) {
  const auto s = shares({.temperature = 0.5});
  EXPECT_NEAR(s.at(1), 0.16 / 0.30, 0.015);
  EXPECT_EQ(shares({.temperature = 0}).size(), 1u);
  EXPECT_EQ(Sampler({.temperature = 0}).sample(std::vector<float>{1, 3, 3}), 1);
}

TEST(Sampler, TopKAndTopPCutTheTail) {
  EXPECT_EQ(shares({.top_k = 2}).size(), 2u);
  EXPECT_NEAR(shares({.top_k = 2}).at(1), 4.0 / 7, 0.015);
  EXPECT_EQ(shares({.top_p = 0.39}).size(), 1u);
  EXPECT_EQ(shares({.top_p = 0.69}).size(), 2u);
  EXPECT_EQ(shares({.top_p = 0.75}).size(), 3u);
  EXPECT_EQ(shares({.top_k = 100}).size(), 4u);
}

TEST(Sampler, ASeedFixesTheDraws) {
  Sampler a({.seed = 5}), b({.seed = 5}), c({.seed = 6});
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int32_t t = a.sample(kLogits);
    EXPECT_EQ(t, b.sample(kLogits));
    different += t != c.sample(kLogits);
  }
  EXPECT_GT(different, 10);
}

TEST(Sampler, RefusesOptionsAndLogitsWithoutMeaning) {
  for (const SamplingOptions& bad : std::initializer_list<SamplingOptions>{{.temperature = -1},
                                                                           {.temperature = NAN},
                                                                           {.top_k = -1},
                                                                           {.top_p = 0},
                                                                           {.top_p = 1.1},
                                                                           {.top_p = NAN}})
    EXPECT_THROW(Sampler{bad}, UserError);
  EXPECT_THROW(Sampler({}).sample(std::vector<float>{0, NAN}), UserError);
}

class DecoderTest : public testing::TestWithParam<std::int64_t> {
 protected:
  static Gpt make() {
    nn::Rngs rngs(3);
    return Gpt::make({.vocab_size = 32,
                      .num_layers = 2,
                      .emb_dim = 16,
                      .num_heads = 2,
                      .head_dim = 8,
                      .mlp_dim = 32,
                      .trainable_position_size = GetParam()},
                     rngs);
  }
  // Logits of the token after the last, without a cache.
  static std::vector<float> direct(const Gpt& model, const std::vector<std::int32_t>& tokens) {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const std::vector<float> all = model(Array(HostArray::from(tokens, {1, n}))).to_vector<float>();
    return {all.end() - 32, all.end()};
  }
  static void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5) << i;
  }
};

TEST_P(DecoderTest, TheCacheGivesWhatTheWholeSequenceGives) {
  const Gpt model = make();
  Decoder decoder(model, 12);
  for (const std::size_t n : {1u, 2u, 3u, 5u, 8u, 11u}) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(i * 7 % 32));
    expect_near(decoder.start(tokens), direct(model, tokens));
    while (tokens.size() < 12) {
      tokens.push_back(static_cast<std::int32_t>(tokens.size() * 5 % 32));
      expect_near(decoder.next(tokens.back()), direct(model, tokens));
    }
  }
}

TEST_P(DecoderTest, AFullContextForgetsItsOlderHalf) {
  const Gpt model = make();
  Decoder decoder(model, 8);
  std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  decoder.start(tokens);
  const std::vector<float> after = decoder.next(9);
  expect_near(after, direct(model, {5, 6, 7, 8, 9}));
  expect_near(decoder.next(10), direct(model, {5, 6, 7, 8, 9, 10}));
}

TEST_P(DecoderTest, LongPromptsKeepTheirEnd) {
  const Gpt model = make();
  Decoder decoder(model, 8);
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 30; ++i) tokens.push_back(i);
  expect_near(decoder.start(tokens), direct(model, {tokens.end() - 8, tokens.end()}));
}

TEST_P(DecoderTest, GenerationStopsWhenToldTo) {
  Decoder decoder(make(), 8);
  Sampler sampler({});
  const std::vector<std::int32_t> prompt = {1};
  EXPECT_EQ(generate(decoder, prompt, 30, sampler).size(), 30u);
  EXPECT_EQ(generate(decoder, prompt, 0, sampler).size(), 0u);
  int calls = 0;
  EXPECT_EQ(
      generate(decoder, prompt, 30, sampler, [&](std::int32_t) { return ++calls < 3; }).size(), 3u);
  EXPECT_THROW(generate(decoder, {}, 1, sampler), UserError);
}

INSTANTIATE_TEST_SUITE_P(Positions, DecoderTest, testing::Values(-1, 12));

}  // namespace
}  // namespace xylem::models
