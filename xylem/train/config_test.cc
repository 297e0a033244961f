#include "xylem/train/config.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <variant>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/train/flops.h"
#include "xylem/train/optimizer.h"

namespace xylem::train {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_temporary_directory("config-test"); }
  void TearDown() override { remove_tree(dir_); }
  Config load(const std::string& text) const {
    const std::string path = join_path(dir_, "c.yaml");
    write_file(path, text);
    Config c;
    load_yaml(c, path);
    return c;
  }
  std::string dir_;
};

TEST_F(ConfigTest, TheTableHasEveryFieldOnceWithADescription) {
  std::set<std::string_view> names;
  for (const ConfigKey& k : config_keys()) {
    EXPECT_TRUE(names.insert(k.name).second) << k.name;
    EXPECT_FALSE(k.doc.empty()) << k.name;
    EXPECT_NE(describe_keys().find(k.name), std::string::npos);
  }
  // A field without a key would be lost in config.yaml. The fields of the keys follow one another
  // in the struct without a gap larger than padding.
  const Config c;
  const auto* begin = reinterpret_cast<const std::byte*>(&c);
  std::ptrdiff_t end = 0;
  for (const ConfigKey& k : config_keys()) {
    const auto [at, size] = std::visit(
        [&](auto field) {
          return std::pair(reinterpret_cast<const std::byte*>(&(c.*field)) - begin,
                           static_cast<std::ptrdiff_t>(sizeof(c.*field)));
        },
        k.field);
    EXPECT_GE(at, end) << k.name;
    EXPECT_LT(at - end, 8) << "a field before " << k.name;
    end = at + size;
  }
  EXPECT_LT(static_cast<std::ptrdiff_t>(sizeof(Config)) - end, 8);
}

TEST_F(ConfigTest, YamlRoundTripsEveryKey) {
  Config c;
  c.run_name = "a \"quoted\" name: # \\ \xc3\xa9";
  c.dataset_path = "true";
  c.learning_rate = 1.25e-7;
  c.adam_eps = 1e-8;
  c.peak_flops = 123456789012;
  c.scale_embedding = true;
  c.trainable_position_size = 300;
  const Config back = load(to_yaml(c));
  for (const ConfigKey& k : config_keys())
    EXPECT_EQ(format_value(k, back), format_value(k, c)) << k.name;
  EXPECT_EQ(back.run_name, c.run_name);
  EXPECT_NE(to_yaml(c).find("adam_eps: 1.0e-08"), std::string::npos);
}

TEST_F(ConfigTest, LaterAssignmentsWin) {
  Config c = load("steps: 7\nlearning_rate: 1\nscale_embedding: True\n");
  EXPECT_EQ(c.steps, 7);
  EXPECT_TRUE(c.scale_embedding);
  apply_override(c, "steps=9");
  apply_override(c, "dataset_path=a=b");
  EXPECT_EQ(c.steps, 9);
  EXPECT_EQ(c.dataset_path, "a=b");
  EXPECT_EQ(load("").steps, Config{}.steps);
}

TEST_F(ConfigTest, MistakesNameTheKeyThePlaceAndTheRemedy) {
  const auto refused = [&](const std::string& text, std::string_view part) {
    const std::string e = error_of([&] { load(text); });
    EXPECT_NE(e.find(part), std::string::npos) << text << "\n" << e;
  };
  refused("learnin_rate: 1\n", "Did you mean learning_rate?");
  refused("chekpoint_period: 1\n", "Did you mean checkpoint_period?");
  refused("\n\nsteps: ten\n", "c.yaml:3");
  refused("steps: 1.5\n", "integer");
  refused("steps: 99999999999999999999\n", "integer");
  refused("learning_rate: .inf\n", "number");
  refused("learning_rate: inf\n", "number");
  refused("enable_checkpointing: 2\n", "true or false");
  refused("steps: 1\nsteps: 1\n", "line 2 has steps again");
  refused("steps: {a: 1}\n", "line 1");
  refused("? [a]\n: 1\n", "words");
  refused("- steps\n", "keys with values");
  refused("steps: \"1\n", "integer");
  refused("steps: &\n", "line 1");
  Config c;
  EXPECT_NE(error_of([&] { apply_override(c, "steps"); }).find("key=value"), std::string::npos);
  EXPECT_NE(error_of([&] { apply_override(c, "=3"); }).find("known key"), std::string::npos);
}

TEST_F(ConfigTest, ValuesThatCannotWorkAreRefused) {
  const auto refused = [](const char* key, const char* value) {
    Config c;
    c.run_name = "r";
    validate(c);
    set_key(c, key, value);
    EXPECT_NE(error_of([&] { validate(c); }).find(key), std::string::npos) << key << "=" << value;
  };
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"run_name", ""},
           {"run_name", ".."},
           {"steps", "0"},
           {"steps", "-3"},
           {"max_target_length", "0"},
           {"max_target_length", "4611686018427387904"},
           {"vocab_size", "255"},
           {"tokenizer_type", "sentencepiece"},
           {"head_dim", "31"},
           {"trainable_position_size", "5"},
           {"remat_policy", "minimal"},
           {"lr_schedule_type", "linear"},
           {"adam_b2", "1"},
           {"warmup_steps_fraction", "1"},
           {"learning_rate", "-1"},
           {"data_shuffle_seed", "-1"},
           {"max_num_checkpoints_to_keep", "0"},
           {"rope_max_timescale", "0"}})
    refused(key, value);
}

TEST_F(ConfigTest, TokenizersOfFilesNeedAPathAndDocuments) {
  Config c;
  c.run_name = "r";
  c.tokenizer_type = "huggingface";
  c.vocab_size = 10;
  EXPECT_NE(error_of([&] { validate(c); }).find("tokenizer_path"), std::string::npos);
  c.tokenizer_path = "tokenizer.json";
  EXPECT_NE(error_of([&] { validate(c); }).find("Set dataset_type=grain"), std::string::npos);
  c.dataset_type = "grain";
  validate(c);
}

TEST(Schedule, RisesFallsAndCopesWithShortRuns) {
  Config c;
  c.steps = 100;
  c.learning_rate = 1;
  const auto rate = [&](int step) {
    return learning_rate_schedule(c)(Array(HostArray::scalar(std::int32_t{step}))).item<double>();
  };
  EXPECT_EQ(rate(0), 0);
  EXPECT_NEAR(rate(5), 0.5, 1e-6);
  EXPECT_NEAR(rate(10), 1, 1e-6);
  EXPECT_NEAR(rate(55), 0.55, 1e-6);
  EXPECT_NEAR(rate(100), 0.1, 1e-6);
  c.steps = 1;
  c.warmup_steps_fraction = 0.9;
  EXPECT_GT(rate(0), 0);
  c.lr_schedule_type = "constant";
  EXPECT_EQ(rate(50), 1);
}

TEST(Flops, AreThoseOfTheMatrixProducts) {
  Config c;
  c.base_emb_dim = 10;
  c.base_mlp_dim = 40;
  c.base_num_decoder_layers = 2;
  c.base_num_query_heads = 2;
  c.head_dim = 5;
  c.max_target_length = 8;
  c.per_device_batch_size = 3;
  // A token and layer: MLP 1600, query, key and value 600, attention 160, output 200; logits 5120.
  EXPECT_EQ(training_step_flops(c), 3.0 * (2 * (1600 + 600 + 160 + 200) + 5120) * 24);
}

TEST(Flops, ThePeakIsPlausible) {
  const double peak = measure_peak_flops();
  EXPECT_GT(peak, 1e8);
  EXPECT_LT(peak, 1e15);
}

}  // namespace
}  // namespace xylem::train
