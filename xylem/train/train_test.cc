#include "xylem/train/train.h"

#include <gtest/gtest.h>

#include <string>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/signal.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/core/transforms.h"
#include "xylem/train/dataset.h"
#include "xylem/train/loss.h"
#include "xylem/train/metrics.h"

namespace xylem::train {
namespace {

class TrainTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = make_temporary_directory("train-test");
    std::string text;
    for (int i = 0; i < 1200; ++i) text += "abcdefgh \n"[i * 7 % 10];
    write_file(at("text"), text);
    config_.run_name = "r";
    config_.base_output_directory = dir_;
    config_.dataset_path = at("text");
    config_.max_target_length = 8;
    config_.per_device_batch_size = 4;
    config_.base_emb_dim = 8;
    config_.base_num_decoder_layers = 1;
    config_.base_num_query_heads = 2;
    config_.head_dim = 4;
    config_.base_mlp_dim = 16;
    config_.steps = 40;
    config_.learning_rate = 1e-2;
    config_.max_predict_length = 4;
    config_.peak_flops = 1e9;
    out_ = std::fopen(at("out").c_str(), "w");
  }
  void TearDown() override {
    clear_stop_request();
    std::fclose(out_);
    remove_tree(dir_);
  }
  std::string at(std::string_view name) const { return join_path(dir_, name); }
  train::Run run() const { return {config_, {at("r")}}; }
  TrainStatus go() const { return train(run(), {.out = out_}); }

  std::string dir_;
  Config config_;
  std::FILE* out_ = nullptr;
};

TEST_F(TrainTest, LearnsAndLeavesAModelThatLoads) {
  EXPECT_EQ(go(), TrainStatus::kFinished);
  const auto metrics = read_metrics(run().folder.metrics());
  ASSERT_EQ(metrics.size(), 40u);
  EXPECT_LT(metrics.back().loss, metrics.front().loss - 0.3);
  ASSERT_TRUE(metrics.back().eval_loss);

  const TrainedModel trained = load_run(run().folder.path);
  EXPECT_EQ(trained.step, 40);
  // The recorded validation loss is the mean over all windows of the text's end.
  const Dataset dataset = Dataset::load(config_);
  double total = 0;
  for (std::int64_t i = 0; i < dataset.validation.size(); ++i)
    total += next_token_loss(trained.model, Array(dataset.validation.range(i, 1))).item<double>();
  EXPECT_NEAR(total / static_cast<double>(dataset.validation.size()), *metrics.back().eval_loss,
              1e-5);
}

TEST_F(TrainTest, ARequestToStopSavesAfterTheStepInProgress) {
  request_stop();
  EXPECT_EQ(go(), TrainStatus::kStopped);
  EXPECT_EQ(read_metrics(run().folder.metrics()).size(), 1u);
  EXPECT_EQ(load_run(run().folder.path).step, 1);
  clear_stop_request();
  EXPECT_EQ(go(), TrainStatus::kFinished);
  EXPECT_EQ(read_metrics(run().folder.metrics()).size(), 40u);
}

TEST_F(TrainTest, StoppingWithoutCheckpointsIsAnError) {
  config_.enable_checkpointing = false;
  request_stop();
  EXPECT_THROW(go(), EnvironmentError);
}

TEST_F(TrainTest, TheFolderIsLockedAgainstASecondTrainer) {
  make_directories(run().folder.path);
  const RunLock lock(run().folder);
  EXPECT_THROW(go(), EnvironmentError);
}

TEST_F(TrainTest, TheAbstractModelHasTheShapesOfTheRealOne) {
  const models::Gpt real = initial_model(config_), abstract = abstract_model(config_);
  std::vector<std::string> a, b;
  tree::visit<Array>(real, [&](const std::string& path, const Array& x) {
    if (x.defined()) a.push_back(path + " " + x.type_string());
  });
  tree::visit<Array>(abstract, [&](const std::string& path, const Array& x) {
    if (x.defined()) b.push_back(path + " " + x.type_string());
  });
  EXPECT_EQ(a, b);
  EXPECT_EQ(a[0], "embed.embedding f32[256,8]");
}

TEST_F(TrainTest, TokenizersOfFilesGiveTheTokens) {
  write_file(
      at("tokenizer.json"),
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ċ": 3, "Ġ": 4, "<e>": 5},
                 "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
                 "decoder": {"type": "ByteLevel"}, "added_tokens": [{"id": 5, "content": "<e>"}]})");
  write_file(at("tokenizer_config.json"), R"({"eos_token": "<e>"})");
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string("ab a b abab").substr(0, 2 + i % 9) + "\n";
  write_file(at("letters"), text);
  config_.dataset_type = "grain";
  config_.dataset_path = at("letters");
  config_.document_split = "line";
  config_.tokenizer_type = "huggingface";
  config_.tokenizer_path = at("tokenizer.json").substr(0, at("tokenizer.json").rfind('/'));
  config_.vocab_size = 6;
  config_.steps = 4;
  config_.max_predict_length = 8;
  EXPECT_EQ(train({config_, {at("letters-run")}}, {.out = out_}), TrainStatus::kFinished);
  EXPECT_NE(read_file(at("letters-run/metrics.jsonl")).find("eval_bits_per_token"),
            std::string::npos);
  const auto refused = [&](const char* part) {
    try {
      train({config_, {at("refused")}}, {.out = out_});
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
      return;
    }
    ADD_FAILURE() << "not refused: " << part;
  };
  config_.vocab_size = 5;
  refused("Set vocab_size=6");
  config_.vocab_size = 6;
  config_.tokenizer_path = at("absent");
  refused("absent");
}

TEST_F(TrainTest, DocumentsArePackedAndResumedExactly) {
  std::string lines, chats;
  for (int i = 0; i < 90; ++i) {
    lines += "{\"text\": \"" + std::string(static_cast<std::size_t>(i * 7 % 23 + 2), "abc"[i % 3]) +
             "\"}\n";
    chats +=
        R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})";
    chats += "\n";
  }
  write_file(at("a.jsonl"), lines);
  write_file(at("chat.jsonl"), chats);
  config_.dataset_type = "grain";
  config_.grain_train_files = at("a.jsonl") + ",0.8;" + at("text") + ",0.2";
  config_.document_split = "line";
  config_.vocab_size = 260;
  config_.fim_rate = 0.5;
  config_.steps = 12;
  config_.eval_interval = 5;
  for (const char* packing : {"first_fit", "best_fit", "concat_then_split", "none"}) {
    SCOPED_TRACE(packing);
    config_.packing = std::string_view(packing) != "none";
    if (config_.packing) config_.grain_packing_type = packing;
    const auto metrics = [&](const std::string& name, bool stops) {
      const train::Run r{config_, {at(std::string(packing) + name)}};
      if (stops) {
        request_stop();
        EXPECT_EQ(train(r, {.out = out_}), TrainStatus::kStopped);
        clear_stop_request();
      }
      EXPECT_EQ(train(r, {.out = out_}), TrainStatus::kFinished);
      std::vector<std::pair<double, double>> out;
      for (const StepMetrics& m : read_metrics(r.folder.metrics()))
        out.emplace_back(m.loss, m.eval_loss.value_or(-1));
      return out;
    };
    const auto whole = metrics("whole", false);
    EXPECT_EQ(whole.size(), 12u);
    EXPECT_LT(whole.back().first, whole.front().first);
    EXPECT_GT(whole[4].second, 0);
    EXPECT_EQ(metrics("parts", true), whole);
  }
  // Other documents are not what the run began with.
  write_file(at("a.jsonl"), lines + lines);
  config_.steps = 20;
  const train::Run r{config_, {at("nonewhole")}};
  EXPECT_THROW(train(r, {.out = out_}), UserError);

  config_.packing = true;
  config_.use_sft = true;
  config_.fim_rate = 0;
  config_.grain_train_files = at("chat.jsonl");
  EXPECT_EQ(train({config_, {at("chat")}}, {.out = out_}), TrainStatus::kFinished);
}

TEST_F(TrainTest, InputStatisticsAreAPage) {
  config_.input_statistics = true;
  config_.steps = 3;
  EXPECT_EQ(go(), TrainStatus::kFinished);
  const std::string page = read_file(run().folder.input());
  EXPECT_NE(page.find("shuffle(seed=0)"), std::string::npos);
  EXPECT_NE(page.find("the consumer waits"), std::string::npos);
}

TEST_F(TrainTest, WindowLossesAverageToTheLossOfTheBatch) {
  const models::Gpt model = initial_model(config_);
  const Array tokens(Dataset::load(config_).training.range(0, 4));
  double mean = 0;
  for (const float l : window_losses(model, tokens).to_vector<float>()) mean += l / 4;
  EXPECT_NEAR(mean, next_token_loss(model, tokens).item<double>(), 1e-5);
}

}  // namespace
}  // namespace xylem::train
