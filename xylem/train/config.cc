#include "xylem/train/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/json.h"

namespace xylem::train {
namespace {

using C = Config;
using G = KeyGroup;

constexpr bool kFixed = true;

const ConfigKey kKeys[] = {
    {"run_name", G::kRun, &C::run_name, "name of the run's folder"},
    {"base_output_directory", G::kRun, &C::base_output_directory, "where run folders lie"},

    {"dataset_type", G::kData, &C::dataset_type,
     "windows: the texts are joined and cut; grain: documents are tokenized and packed", kFixed},
    {"dataset_path", G::kData, &C::dataset_path,
     "\"bible\", or text files: paths, patterns and directories separated by commas", kFixed},
    {"grain_train_files", G::kData, &C::grain_train_files,
     "grain: PATH,WEIGHT;PATH,WEIGHT of texts or record files; empty: dataset_path", kFixed},
    {"grain_eval_files", G::kData, &C::grain_eval_files,
     "grain: the same for validation; empty: the last 1/20 of each corpus' documents", kFixed},
    {"grain_file_type", G::kData, &C::grain_file_type,
     "grain: array_record, parquet, tfrecord, jsonl, text, …; empty: told by the file", kFixed},
    {"document_split", G::kData, &C::document_split,
     "grain: what a document of a text is: file, line or paragraph", kFixed},
    {"train_data_columns", G::kData, &C::train_data_columns,
     "grain: column, or feature of tf.train.Examples, that holds the text; empty: the record",
     kFixed},
    {"tokenizer_type", G::kData, &C::tokenizer_type,
     "byte: a token is a byte; huggingface: tokenizer_path, with dataset_type=grain", kFixed},
    {"tokenizer_path", G::kData, &C::tokenizer_path,
     "huggingface: a tokenizer.json, or a folder with one", kFixed},
    {"add_bos", G::kData, &C::add_bos,
     "grain: begin documents with the tokenizer's first token, where it has one", kFixed},
    {"add_eos", G::kData, &C::add_eos, "grain: the same for the end", kFixed},
    {"packing", G::kData, &C::packing,
     "grain: several documents in a row; false: one, cut or padded", kFixed},
    {"grain_packing_type", G::kData, &C::grain_packing_type,
     "grain: first_fit, best_fit, or concat_then_split (full rows, documents are cut)", kFixed},
    {"max_segments_per_seq", G::kData, &C::max_segments_per_seq,
     "grain: documents in a row of first_fit and best_fit; not positive: any number", kFixed},
    {"fim_rate", G::kData, &C::fim_rate,
     "grain: share of documents that come as prefix, suffix, middle; their marks are the three "
     "tokens behind the tokenizer's",
     kFixed},
    {"fim_spm_rate", G::kData, &C::fim_spm_rate,
     "grain: share of those that come as suffix, prefix, middle", kFixed},
    {"use_sft", G::kData, &C::use_sft,
     "grain: documents are lines {\"messages\": [{\"role\": …, \"content\": …}]}, written as "
     "ChatML",
     kFixed},
    {"sft_train_on_completion_only", G::kData, &C::sft_train_on_completion_only,
     "with use_sft: only what the assistant says is learnt", kFixed},
    {"max_target_length", G::kData, &C::max_target_length, "tokens that the model sees at once",
     kFixed},
    {"per_device_batch_size", G::kData, &C::per_device_batch_size,
     "windows or rows in a training step"},
    {"enable_data_shuffling", G::kData, &C::enable_data_shuffling,
     "visit windows or documents in an order drawn anew for each epoch", kFixed},
    {"data_shuffle_seed", G::kData, &C::data_shuffle_seed, "seed of that order", kFixed},

    {"vocab_size", G::kModel, &C::vocab_size, "rows of the embedding", kFixed},
    {"base_emb_dim", G::kModel, &C::base_emb_dim, "width of the model", kFixed},
    {"base_num_decoder_layers", G::kModel, &C::base_num_decoder_layers, "number of layers", kFixed},
    {"base_num_query_heads", G::kModel, &C::base_num_query_heads, "attention heads", kFixed},
    {"head_dim", G::kModel, &C::head_dim, "width of a head", kFixed},
    {"base_mlp_dim", G::kModel, &C::base_mlp_dim, "width of the MLP's hidden layer", kFixed},
    {"normalization_layer_epsilon", G::kModel, &C::normalization_layer_epsilon,
     "added to the mean square in RMSNorm", kFixed},
    {"rope_max_timescale", G::kModel, &C::rope_max_timescale, "base of the rotary positions",
     kFixed},
    {"trainable_position_size", G::kModel, &C::trainable_position_size,
     "rotary positions if not positive, else so many learned ones", kFixed},
    {"scale_embedding", G::kModel, &C::scale_embedding,
     "multiply embeddings by the square root of base_emb_dim", kFixed},
    {"init_weights_seed", G::kModel, &C::init_weights_seed, "seed of the initial parameters",
     kFixed},
    {"load_parameters_path", G::kModel, &C::load_parameters_path,
     "safetensors file with the initial parameters, instead of random ones", kFixed},
    {"remat_policy", G::kModel, &C::remat_policy,
     "none, or full: compute layers again in the backward pass, which saves memory"},

    {"steps", G::kOptimizer, &C::steps, "training steps"},
    {"learning_rate", G::kOptimizer, &C::learning_rate, "peak learning rate"},
    {"lr_schedule_type", G::kOptimizer, &C::lr_schedule_type,
     "cosine (after a linear warm-up), or constant"},
    {"learning_rate_schedule_steps", G::kOptimizer, &C::learning_rate_schedule_steps,
     "length of the schedule; -1: steps"},
    {"warmup_steps_fraction", G::kOptimizer, &C::warmup_steps_fraction,
     "part of the schedule in which the rate rises from 0"},
    {"learning_rate_final_fraction", G::kOptimizer, &C::learning_rate_final_fraction,
     "last rate over peak rate"},
    {"adam_b1", G::kOptimizer, &C::adam_b1, "decay of the first moment"},
    {"adam_b2", G::kOptimizer, &C::adam_b2, "decay of the second moment"},
    {"adam_eps", G::kOptimizer, &C::adam_eps, "added outside the root"},
    {"adam_eps_root", G::kOptimizer, &C::adam_eps_root, "added inside the root"},
    {"adam_weight_decay", G::kOptimizer, &C::adam_weight_decay,
     "weight decay of kernels and embeddings"},
    {"gradient_clipping_threshold", G::kOptimizer, &C::gradient_clipping_threshold,
     "largest global norm of the gradient; 0: no limit"},

    {"log_period", G::kLoop, &C::log_period, "steps between lines of progress off a terminal"},
    {"eval_interval", G::kLoop, &C::eval_interval,
     "steps between validations; not positive: only at the end"},
    {"eval_steps", G::kLoop, &C::eval_steps,
     "validation batches; not positive: the whole validation text"},
    {"eval_per_device_batch_size", G::kLoop, &C::eval_per_device_batch_size,
     "windows in a validation batch"},
    {"target_eval_loss", G::kLoop, &C::target_eval_loss,
     "stop once the validation loss is this low; 0: never"},
    {"abort_on_nan_loss", G::kLoop, &C::abort_on_nan_loss, "fail when the loss is not a number"},
    {"abort_on_inf_loss", G::kLoop, &C::abort_on_inf_loss, "fail when the loss is infinite"},
    {"enable_checkpointing", G::kLoop, &C::enable_checkpointing, "save checkpoints"},
    {"async_checkpointing", G::kLoop, &C::async_checkpointing,
     "write checkpoints while training goes on"},
    {"checkpoint_period", G::kLoop, &C::checkpoint_period, "steps between checkpoints"},
    {"max_num_checkpoints_to_keep", G::kLoop, &C::max_num_checkpoints_to_keep,
     "older checkpoints are removed"},
    {"save_checkpoint_on_completion", G::kLoop, &C::save_checkpoint_on_completion,
     "save after the last step, too"},

    {"prompt", G::kReport, &C::prompt,
     "beginning of the report's sample; empty: that of the validation text"},
    {"max_predict_length", G::kReport, &C::max_predict_length, "tokens of the sample; 0: none"},
    {"decode_sampling_temperature", G::kReport, &C::decode_sampling_temperature,
     "temperature of the sample"},
    {"peak_flops", G::kReport, &C::peak_flops,
     "f32 operations per second that mfu divides by; 0: measured at the first start"},
    {"input_statistics", G::kReport, &C::input_statistics,
     "measure the input; input.html in the run's folder says where its time goes"},
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view name) {
  return std::min_element(std::begin(kKeys), std::end(kKeys),
                          [&](const ConfigKey& a, const ConfigKey& b) {
                            return edit_distance(name, a.name) < edit_distance(name, b.name);
                          })
      ->name;
}

const ConfigKey& find_key(std::string_view name) {
  for (const ConfigKey& k : kKeys)
    if (k.name == name) return k;
  throw_user_error({fmt::format("configuration key \"{}\"", name), "a known key",
                    "there is none of this name",
                    fmt::format("Did you mean {}? `xylem train --help` lists all", nearest(name))});
}

[[noreturn]] void bad_value(const ConfigKey& key, std::string_view value) {
  throw_user_error({fmt::format("configuration key {}", key.name),
                    fmt::format("a value of type {} ({})", type_name(key), key.doc),
                    fmt::format("\"{}\"", value),
                    fmt::format("Write for example {}={}", key.name, format_value(key, Config{}))});
}

template <class T>
T parse_number(const ConfigKey& key, std::string_view text) {
  T v{};
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (error != std::errc() || end != digits.data() + digits.size()) bad_value(key, text);
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(v)) bad_value(key, text);
  return v;
}

bool parse_bool(const ConfigKey& key, std::string_view text) {
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  bad_value(key, text);
}

// YAML 1.1 readers take 1e-06 for a string: a number with an exponent needs a point.
std::string format_double(double v) {
  std::string s = fmt::format("{}", v);
  const std::size_t e = s.find('e');
  if (e != std::string::npos && s.find('.') == std::string::npos) s.insert(e, ".0");
  return s;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::string_view group_name(KeyGroup group) {
  constexpr std::string_view kNames[] = {"run", "data", "model", "optimizer", "loop", "report"};
  return kNames[static_cast<std::size_t>(group)];
}

std::span<const ConfigKey> config_keys() { return kKeys; }

std::string_view type_name(const ConfigKey& key) {
  constexpr std::string_view kNames[] = {"text", "integer", "number", "true or false"};
  return kNames[key.field.index()];
}

std::string format_value(const ConfigKey& key, const Config& config) {
  return std::visit(
      Overloaded{[&](std::string C::*f) { return json_quote(config.*f); },
                 [&](std::int64_t C::*f) { return fmt::format("{}", config.*f); },
                 [&](double C::*f) { return format_double(config.*f); },
                 [&](bool C::*f) { return std::string(config.*f ? "true" : "false"); }},
      key.field);
}

std::string describe_keys() {
  std::string out;
  const Config defaults;
  const ConfigKey* before = nullptr;
  for (const ConfigKey& k : kKeys) {
    if (!before || before->group != k.group)
      out += fmt::format("{}[{}]\n", before ? "\n" : "", group_name(k.group));
    out += fmt::format("  {:<45} {}\n", fmt::format("{}={}", k.name, format_value(k, defaults)),
                       k.doc);
    before = &k;
  }
  return out;
}

void set_key(Config& config, std::string_view name, std::string_view value) {
  const ConfigKey& key = find_key(name);
  std::visit(
      Overloaded{[&](std::string C::*f) { config.*f = value; },
                 [&](std::int64_t C::*f) { config.*f = parse_number<std::int64_t>(key, value); },
                 [&](double C::*f) { config.*f = parse_number<double>(key, value); },
                 [&](bool C::*f) { config.*f = parse_bool(key, value); }},
      key.field);
}

void apply_override(Config& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    throw_user_error({"configuration override", "key=value", fmt::format("\"{}\"", assignment),
                      "Put = between key and value, without spaces"});
  set_key(config, assignment.substr(0, equals), assignment.substr(equals + 1));
}

void load_yaml(Config& config, const std::string& path) {
  const std::string text = read_file(path);
  const auto refuse = [&](std::string_view expected, const std::string& given) {
    throw_user_error({fmt::format("read {}", path), expected, given,
                      "Write one `key: value` a line; `xylem train --help` lists the keys"});
  };
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& e) {
    refuse("a YAML file", fmt::format("line {}: {}", e.mark.line + 1, e.msg));
  }
  if (root.IsNull()) return;
  if (!root.IsMap()) refuse("keys with values", "something else");
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) refuse("keys that are words", fmt::format("line {}", line));
    const std::string key = entry.first.Scalar();
    if (!seen.insert(key).second)
      refuse("every key once", fmt::format("line {} has {} again", line, key));
    if (!entry.second.IsScalar() && !entry.second.IsNull())
      refuse("values that are a word or a number", fmt::format("line {}: {}", line, key));
    try {
      set_key(config, key, entry.second.IsNull() ? "" : entry.second.Scalar());
    } catch (Error& e) {
      e.add_context(fmt::format("{}:{}", path, line));
      throw;
    }
  }
}

std::string to_yaml(const Config& config) {
  std::string out;
  const ConfigKey* before = nullptr;
  for (const ConfigKey& k : kKeys) {
    if (!before || before->group != k.group)
      out += fmt::format("{}# {}\n", before ? "\n" : "", group_name(k.group));
    out += fmt::format("{}: {}\n", k.name, format_value(k, config));
    before = &k;
  }
  return out;
}

void validate(const Config& c) {
  const auto require = [](bool ok, std::string_view key, std::string_view expected,
                          const std::string& given, std::string_view advice) {
    if (!ok) throw_user_error({fmt::format("configuration key {}", key), expected, given, advice});
  };
  const auto number = [](auto v) { return fmt::format("{}", v); };
  require(!c.run_name.empty(), "run_name", "a name for the run's folder", "none",
          "Set run_name in the file or as run_name=NAME");
  require(c.run_name.find('/') == std::string::npos && c.run_name != "." && c.run_name != "..",
          "run_name", "a plain name without /", c.run_name,
          "Set base_output_directory for the path");
  const std::pair<std::string_view, std::int64_t> positive[] = {
      {"max_target_length", c.max_target_length},
      {"per_device_batch_size", c.per_device_batch_size},
      {"base_emb_dim", c.base_emb_dim},
      {"base_num_decoder_layers", c.base_num_decoder_layers},
      {"base_num_query_heads", c.base_num_query_heads},
      {"head_dim", c.head_dim},
      {"base_mlp_dim", c.base_mlp_dim},
      {"steps", c.steps},
      {"log_period", c.log_period},
      {"eval_per_device_batch_size", c.eval_per_device_batch_size},
      {"checkpoint_period", c.checkpoint_period},
      {"max_num_checkpoints_to_keep", c.max_num_checkpoints_to_keep}};
  for (const auto& [key, value] : positive)
    require(value >= 1, key, "at least 1", number(value), "Give a positive number");
  const std::int64_t limit = std::int64_t{1} << 30;
  for (const auto& [key, value] : positive)
    require(value <= limit, key, "at most 2^30", number(value), "Give a smaller number");
  const bool bytes = c.tokenizer_type == "byte";
  require(c.vocab_size >= (bytes ? 256 : 1) && c.vocab_size <= limit, "vocab_size",
          bytes ? "at least 256, as tokens are bytes" : "1 to 2^30", number(c.vocab_size),
          bytes ? "Set vocab_size=256" : "Set it to the tokenizer's number of tokens");
  const auto one_of = [&](std::string_view key, const std::string& value,
                          std::initializer_list<std::string_view> known) {
    std::string list;
    for (const std::string_view k : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", k);
    require(std::find(known.begin(), known.end(), value) != known.end(), key, "one of " + list,
            value, "Set one of these");
  };
  one_of("dataset_type", c.dataset_type, {"windows", "grain"});
  one_of("tokenizer_type", c.tokenizer_type, {"byte", "huggingface"});
  require(bytes || !c.tokenizer_path.empty(), "tokenizer_path",
          "a path with tokenizer_type=" + c.tokenizer_type, "an empty text",
          "Name the tokenizer.json or the folder that holds it");
  require(bytes || c.dataset_type == "grain", "dataset_type",
          "grain with tokenizer_type=huggingface",
          c.dataset_type + ", whose windows are cut from bytes", "Set dataset_type=grain");
  one_of("document_split", c.document_split, {"file", "line", "paragraph"});
  one_of("grain_packing_type", c.grain_packing_type,
         {"first_fit", "best_fit", "concat_then_split"});
  require(c.fim_rate >= 0 && c.fim_rate <= 1, "fim_rate", "0 to 1", number(c.fim_rate),
          "Give 0 for never");
  require(c.fim_spm_rate >= 0 && c.fim_spm_rate <= 1, "fim_spm_rate", "0 to 1",
          number(c.fim_spm_rate), "Give 0 for never");
  require(c.fim_rate == 0 || !bytes || c.vocab_size >= 259, "vocab_size",
          "at least 259 with fim_rate: bytes and three marks", number(c.vocab_size),
          "Set vocab_size=259");
  require(c.trainable_position_size <= limit &&
              (c.trainable_position_size <= 0 || c.trainable_position_size >= c.max_target_length),
          "trainable_position_size", "at least max_target_length, or -1 for rotary positions",
          number(c.trainable_position_size), "Raise it, or set it to -1");
  require(c.trainable_position_size > 0 || c.head_dim % 2 == 0, "head_dim",
          "an even number, as rotary positions turn pairs of channels", number(c.head_dim),
          "Choose an even head_dim, or learned positions (trainable_position_size)");
  require(c.remat_policy == "none" || c.remat_policy == "full", "remat_policy", "none or full",
          c.remat_policy, "Set one of these");
  require(c.lr_schedule_type == "cosine" || c.lr_schedule_type == "constant", "lr_schedule_type",
          "cosine or constant", c.lr_schedule_type, "Set one of these");
  const std::pair<std::string_view, double> fractions[] = {
      {"warmup_steps_fraction", c.warmup_steps_fraction},
      {"adam_b1", c.adam_b1},
      {"adam_b2", c.adam_b2}};
  for (const auto& [key, value] : fractions)
    require(value >= 0 && value < 1, key, "at least 0 and below 1", number(value),
            "Give a fraction");
  const std::pair<std::string_view, double> not_negative[] = {
      {"learning_rate", c.learning_rate},
      {"learning_rate_final_fraction", c.learning_rate_final_fraction},
      {"normalization_layer_epsilon", c.normalization_layer_epsilon},
      {"adam_eps", c.adam_eps},
      {"adam_eps_root", c.adam_eps_root},
      {"adam_weight_decay", c.adam_weight_decay},
      {"gradient_clipping_threshold", c.gradient_clipping_threshold},
      {"decode_sampling_temperature", c.decode_sampling_temperature},
      {"peak_flops", c.peak_flops}};
  for (const auto& [key, value] : not_negative)
    require(value >= 0, key, "not negative", number(value), "Give 0 or more");
  require(c.rope_max_timescale > 0, "rope_max_timescale", "positive", number(c.rope_max_timescale),
          "Set it to 10000");
  require(c.data_shuffle_seed >= 0 && c.data_shuffle_seed < std::int64_t{1} << 32,
          "data_shuffle_seed", "a number of 32 bits", number(c.data_shuffle_seed),
          "Give a seed from 0 to 4294967295");
  require(c.max_predict_length >= 0 && c.max_predict_length <= limit, "max_predict_length",
          "not negative", number(c.max_predict_length), "Give 0 for no sample");
}

models::GptConfig model_config(const Config& c) {
  return {.vocab_size = c.vocab_size,
          .num_layers = c.base_num_decoder_layers,
          .emb_dim = c.base_emb_dim,
          .num_heads = c.base_num_query_heads,
          .head_dim = c.head_dim,
          .mlp_dim = c.base_mlp_dim,
          .norm_epsilon = c.normalization_layer_epsilon,
          .rope_max_timescale = c.rope_max_timescale,
          .trainable_position_size = c.trainable_position_size,
          .scale_embedding = c.scale_embedding,
          .remat = c.remat_policy == "full"};
}

}  // namespace xylem::train
