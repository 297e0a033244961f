#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/data/dataset.h"
#include "xylem/models/gpt.h"
#include "xylem/train/config.h"
#include "xylem/train/loss.h"

namespace xylem {
class Tokenizer;
}

namespace xylem::train {

// What a run trains on and is validated with, by dataset_type: windows of one text, or rows of
// packed documents (data::language_model_batches). One thread at a time.
class TrainingData {
 public:
  virtual ~TrainingData() = default;
  // UserError or EnvironmentError if there is no such data, or too little.
  static std::unique_ptr<TrainingData> open(const Config& config,
                                            const data::PipelineOptions& options = {});

  // The tokens of the next step. There is no end.
  virtual StepTokens next() = 0;
  // The place behind them, as data::DatasetIterator gives it.
  virtual std::string get_state() const = 0;
  virtual void set_state(std::string_view json) = 0;
  virtual void start_prefetch() = 0;

  // Mean loss of the tokens held out.
  virtual double evaluate(const models::Gpt& model) = 0;

  // Contents that resuming compares: bytes of the text, or documents; and a hash.
  virtual std::uint64_t size() const = 0;
  virtual std::string hash() const = 0;
  // "12 training and 2 validation windows of 256 bytes".
  virtual std::string describe() const = 0;
  // How the report's sample begins if nobody says: the first tokens of what is held out.
  virtual std::vector<std::int32_t> prompt() const = 0;
  // What the steps' tokens come from, to be looked into.
  virtual const data::DatasetBase& pipeline() const = 0;
};

// What turns the run's documents into tokens.
// UserError or EnvironmentError if tokenizer_path is none, or vocab_size too small for it.
std::shared_ptr<const Tokenizer> make_tokenizer(const Config& config);
// Tokens of a text that the model is to continue, as documents begin.
std::vector<std::int32_t> prompt_tokens(const Config& config, const Tokenizer& tokenizer,
                                        std::string_view prompt);
// Whether the model has said with this token that its text ends.
bool ends_text(const Config& config, const Tokenizer& tokenizer, std::int32_t token);

}  // namespace xylem::train
