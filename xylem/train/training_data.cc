#include "xylem/train/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/tokenizer.h"
#include "xylem/core/transforms.h"
#include "xylem/data/language_model.h"
#include "xylem/models/tokenizers/hf_tokenizer.h"
#include "xylem/train/dataset.h"

namespace xylem::train {
namespace {

// ---- windows of one text

class WindowData final : public TrainingData {
 public:
  WindowData(const Config& config, const data::PipelineOptions& options)
      : config_(config),
        dataset_(Dataset::load(config)),
        pipeline_(training_batches(config, dataset_).with_options(options)),
        batches_(pipeline_.iterator()),
        losses_(jit(window_losses, {.name = "evaluate"})) {}

  StepTokens next() override { return Array(batches_.next().value()); }
  std::string get_state() const override { return batches_.get_state(); }
  void set_state(std::string_view json) override { batches_.set_state(json); }
  void start_prefetch() override { batches_.start_prefetch(); }
  const data::DatasetBase& pipeline() const override { return pipeline_; }

  // The last batch is filled up with windows that do not count.
  double evaluate(const models::Gpt& model) override {
    const std::int64_t B = config_.eval_per_device_batch_size;
    std::int64_t windows = dataset_.validation.size();
    if (config_.eval_steps > 0) windows = std::min(windows, config_.eval_steps * B);
    double total = 0;
    for (std::int64_t first = 0; first < windows; first += B) {
      const Array tokens(dataset_.validation.range(first, B));
      const std::vector<float> losses = losses_(model, tokens).to_vector<float>();
      for (std::int64_t i = 0; i < std::min(B, windows - first); ++i)
        total += static_cast<double>(losses[static_cast<std::size_t>(i)]);
    }
    return total / static_cast<double>(windows);
  }

  std::uint64_t size() const override { return dataset_.text->size(); }
  std::string hash() const override { return fmt::format("{:016x}", hash64(*dataset_.text)); }
  std::string describe() const override {
    return fmt::format("{} training and {} validation windows of {} bytes",
                       dataset_.training.size(), dataset_.validation.size(),
                       config_.max_target_length);
  }
  std::vector<std::int32_t> prompt() const override {
    const HostArray window = dataset_.validation.range(0, 1);
    const auto tokens = window.span<std::int32_t>();
    return {tokens.begin(), tokens.begin() + std::min<std::ptrdiff_t>(std::ssize(tokens), 32)};
  }

 private:
  Config config_;
  Dataset dataset_;
  data::IterDataset<HostArray> pipeline_;
  data::DatasetIterator<HostArray> batches_;
  decltype(jit(window_losses)) losses_;
};

// ---- packed documents

struct Mixture {
  std::string path;
  double weight = 1;
};

// "PATH,WEIGHT;PATH,WEIGHT": a weight is what follows the last comma, if it is a number.
std::vector<Mixture> parse_mixture(std::string_view key, std::string_view text) {
  std::vector<Mixture> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.find_first_not_of(' ') == part.npos) continue;
    Mixture m;
    if (const std::size_t comma = part.rfind(','); comma != part.npos) {
      std::string_view number = part.substr(comma + 1);
      number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
      const auto r = std::from_chars(number.data(), number.data() + number.size(), m.weight);
      if (r.ec == std::errc() && r.ptr == number.data() + number.size())
        part = part.substr(0, comma);
      else
        m.weight = 1;
    }
    if (!(m.weight > 0) || !std::isfinite(m.weight))
      throw_user_error({fmt::format("configuration key {}", key), "weights above 0",
                        fmt::format("{} for {}", m.weight, part), "Leave the path out"});
    m.path = part;
    parts.push_back(std::move(m));
  }
  return parts;
}

data::MapDataset<std::string> open_documents(const Config& c, const std::string& path) {
  data::DocumentOptions o{
      .format = c.grain_file_type == "arrayrecord" ? "array_record" : c.grain_file_type,
      .column = c.train_data_columns};
  for (const auto& [name, split] : {std::pair{"file", data::DocumentSplit::file},
                                    {"line", data::DocumentSplit::line},
                                    {"paragraph", data::DocumentSplit::paragraph}})
    if (c.document_split == name) o.split = split;
  // A conversation is a whole line, not one of its columns.
  if (c.use_sft && o.format.empty()) o.format = "text";
  if (c.use_sft) o.split = data::DocumentSplit::line;
  return data::documents(path, o);
}

data::LmPacking packing_of(const Config& c) {
  if (!c.packing) return data::LmPacking::none;
  if (c.grain_packing_type == "first_fit") return data::LmPacking::first_fit;
  if (c.grain_packing_type == "best_fit") return data::LmPacking::best_fit;
  return data::LmPacking::concat_then_split;
}

data::LmOptions lm_options(const Config& c) {
  data::LmOptions o;
  o.sequence_length = c.max_target_length;
  o.batch_size = c.per_device_batch_size;
  o.tokenizer = make_tokenizer(c);
  o.add_bos = c.add_bos;
  o.add_eos = c.add_eos;
  o.packing = packing_of(c);
  if (c.max_segments_per_seq > 0) o.max_segments_per_seq = c.max_segments_per_seq;
  if (c.fim_rate > 0) {
    const std::int32_t first = o.tokenizer->vocab_size();
    o.hook = data::fill_in_the_middle({.rate = c.fim_rate,
                                       .spm_rate = c.fim_spm_rate,
                                       .prefix_id = first,
                                       .middle_id = first + 1,
                                       .suffix_id = first + 2});
  }
  if (c.use_sft)
    o.tokenize = [tokenizer = o.tokenizer,
                  only = c.sft_train_on_completion_only](const std::string& document) {
      const std::vector<data::ChatMessage> messages = data::parse_chat(document);
      data::TokenSequence s = data::chat_tokens(messages, *tokenizer);
      if (!only) s.weights.clear();
      return s;
    };
  o.seed = static_cast<std::uint32_t>(c.data_shuffle_seed);
  o.shuffle = c.enable_data_shuffling;
  o.read = {.num_threads = 1, .prefetch_buffer_size = 64};
  return o;
}

// What says which tokens a text has.
std::string tokenizer_contents(const std::string& path) {
  return read_file(is_directory(path) ? path + "/tokenizer.json" : path);
}

HostArray pad_rows(const HostArray& a, std::int64_t rows) {
  if (a.dims()[0] == rows) return a;
  Dims dims = a.dims();
  dims[0] = rows;
  HostArray out = HostArray::zeros(a.dtype(), dims);
  const HostArray whole = a.to_contiguous();
  std::copy_n(whole.data(), whole.nbytes(), out.data());
  return out;
}

class DocumentData final : public TrainingData {
 public:
  DocumentData(const Config& config, const data::PipelineOptions& options)
      : config_(config), losses_(jit(weighted_loss, {.name = "evaluate"})) {
    std::vector<data::WeightedDocuments> training;
    std::vector<data::MapDataset<std::string>> held_out;
    const std::string& files =
        config.grain_train_files.empty() ? config.dataset_path : config.grain_train_files;
    const auto parts = config.grain_train_files.empty() ? std::vector<Mixture>{{files, 1}}
                                                        : parse_mixture("grain_train_files", files);
    if (parts.empty())
      throw_user_error({"configuration key grain_train_files", "at least one path", "none",
                        "Write PATH,WEIGHT;PATH,WEIGHT"});
    std::string contents;
    for (const Mixture& part : parts) {
      data::MapDataset<std::string> all = open_documents(config, part.path);
      const std::int64_t n = all.size();
      // The last 1/20 is held out if nothing else is named.
      std::int64_t held = 0;
      if (config.grain_eval_files.empty()) {
        held = std::max<std::int64_t>(1, n / 20);
        if (n < 2)
          throw_user_error({fmt::format("training documents in {}", part.path),
                            "at least 2 documents, one of them to be held out",
                            fmt::format("{}", n),
                            "Name more files or another document_split, or set "
                            "grain_eval_files"});
        held_out.push_back(all.slice(n - held, n));
      }
      contents += fmt::format("{};", n);
      if (n > 0) contents += all.at(0).value_or("") + all.at(n - 1).value_or("");
      documents_ += n - held;
      training.push_back({held > 0 ? all.slice(0, n - held) : all, part.weight});
    }
    if (config.tokenizer_type != "byte") contents += tokenizer_contents(config.tokenizer_path);
    hash_ = fmt::format("{:016x}", hash64(contents));
    for (const Mixture& part : parse_mixture("grain_eval_files", config.grain_eval_files))
      held_out.push_back(open_documents(config, part.path));

    data::LmOptions o = lm_options(config);
    pipeline_ = data::language_model_batches(training, o).thread_prefetch(2).with_options(options);
    const data::MapDataset<std::string> valid =
        held_out.size() == 1 ? held_out[0] : data::concatenate(held_out);
    held_out_ = valid.size();
    o.batch_size = config.eval_per_device_batch_size;
    o.shuffle = false;
    o.num_epochs = 1;
    o.drop_remainder = false;
    o.hook = {};  // as the texts are
    if (o.packing != data::LmPacking::none) o.packing = data::LmPacking::concat_then_split;
    validation_ = data::language_model_batches({data::WeightedDocuments{valid, 1}}, o);
    batches_.emplace(pipeline_->iterator());
  }

  StepTokens next() override { return on_device(batches_->next().value()); }
  std::string get_state() const override { return batches_->get_state(); }
  void set_state(std::string_view json) override { batches_->set_state(json); }
  void start_prefetch() override { batches_->start_prefetch(); }
  const data::DatasetBase& pipeline() const override { return *pipeline_; }

  double evaluate(const models::Gpt& model) override {
    auto batches = validation_->iterator();
    double total = 0, weight = 0;
    for (std::int64_t i = 0; config_.eval_steps <= 0 || i < config_.eval_steps; ++i) {
      std::optional<data::LmBatch> b = batches.next();
      if (!b) break;
      for (HostArray* a : {&b->inputs, &b->targets, &b->weights, &b->segment_ids, &b->positions})
        *a = pad_rows(*a, config_.eval_per_device_batch_size);
      const WeightedLoss l = losses_(model, on_device(*b));
      total += l.sum.item<double>();
      weight += l.weight.item<double>();
    }
    if (weight == 0)
      throw_user_error({"validation", "at least one token that counts in the documents held out",
                        "none", "Hold other documents out (grain_eval_files)"});
    return total / weight;
  }

  std::uint64_t size() const override { return static_cast<std::uint64_t>(documents_); }
  std::string hash() const override { return hash_; }
  std::string describe() const override {
    return fmt::format("{} training and {} validation documents, packed into rows of {} tokens",
                       documents_, held_out_, config_.max_target_length);
  }
  std::vector<std::int32_t> prompt() const override {
    auto batches = validation_->iterator();
    const std::optional<data::LmBatch> b = batches.next();
    if (!b) return {};
    const auto tokens = b->inputs.span<std::int32_t>();
    const auto n = std::min({std::ssize(tokens), std::ptrdiff_t{32},
                             static_cast<std::ptrdiff_t>(config_.max_target_length)});
    return {tokens.begin(), tokens.begin() + n};
  }

 private:
  static PackedRows on_device(const data::LmBatch& b) {
    return {Array(b.inputs), Array(b.targets), Array(b.weights), Array(b.segment_ids),
            Array(b.positions)};
  }

  Config config_;
  std::int64_t documents_ = 0, held_out_ = 0;
  std::string hash_;
  std::optional<data::IterDataset<data::LmBatch>> pipeline_, validation_;
  std::optional<data::DatasetIterator<data::LmBatch>> batches_;
  decltype(jit(weighted_loss)) losses_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(const Config& c) {
  if (c.tokenizer_type == "byte") return std::make_shared<ByteTokenizer>();
  std::shared_ptr<const Tokenizer> t = models::HfTokenizer::open(c.tokenizer_path);
  const std::int64_t needed = t->vocab_size() + (c.fim_rate > 0 ? 3 : 0);
  if (c.vocab_size < needed)
    throw_user_error({"configuration key vocab_size",
                      fmt::format("at least {}: the tokens of {}{}", needed, c.tokenizer_path,
                                  c.fim_rate > 0 ? " and three marks of fim_rate" : ""),
                      fmt::format("{}", c.vocab_size), fmt::format("Set vocab_size={}", needed)});
  return t;
}

std::vector<std::int32_t> prompt_tokens(const Config& c, const Tokenizer& tokenizer,
                                        std::string_view prompt) {
  std::vector<std::int32_t> tokens = tokenizer.encode(prompt);
  if (c.add_bos && tokenizer.bos_id()) tokens.insert(tokens.begin(), *tokenizer.bos_id());
  return tokens;
}

bool ends_text(const Config& c, const Tokenizer& tokenizer, std::int32_t token) {
  return c.add_eos && tokenizer.eos_id() == token;
}

std::unique_ptr<TrainingData> TrainingData::open(const Config& config,
                                                 const data::PipelineOptions& options) {
  if (config.dataset_type == "grain") return std::make_unique<DocumentData>(config, options);
  return std::make_unique<WindowData>(config, options);
}

}  // namespace xylem::train
