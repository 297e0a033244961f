#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "xylem/models/gpt.h"

namespace xylem::train {

// Everything that decides a training run. Fields are named as their keys, which are MaxText's where
// MaxText has them. What each means and may be stands in one table, config.cc.
struct Config {
  // run
  std::string run_name;
  std::string base_output_directory = "runs";
  // data
  std::string dataset_type = "windows";
  std::string dataset_path = "bible";
  std::string grain_train_files;
  std::string grain_eval_files;
  std::string grain_file_type;
  std::string document_split = "paragraph";
  std::string train_data_columns = "text";
  std::string tokenizer_type = "byte";
  std::string tokenizer_path;
  bool add_bos = true;
  bool add_eos = true;
  bool packing = true;
  std::string grain_packing_type = "first_fit";
  std::int64_t max_segments_per_seq = -1;
  double fim_rate = 0;
  double fim_spm_rate = 0.5;
  bool use_sft = false;
  bool sft_train_on_completion_only = true;
  std::int64_t max_target_length = 256;
  std::int64_t per_device_batch_size = 8;
  bool enable_data_shuffling = true;
  std::int64_t data_shuffle_seed = 0;
  // model
  std::int64_t vocab_size = 256;
  std::int64_t base_emb_dim = 128;
  std::int64_t base_num_decoder_layers = 4;
  std::int64_t base_num_query_heads = 4;
  std::int64_t head_dim = 32;
  std::int64_t base_mlp_dim = 512;
  double normalization_layer_epsilon = 1e-6;
  double rope_max_timescale = 10000;
  std::int64_t trainable_position_size = -1;
  bool scale_embedding = false;
  std::int64_t init_weights_seed = 0;
  std::string load_parameters_path;
  std::string remat_policy = "none";
  // optimizer
  std::int64_t steps = 1000;
  double learning_rate = 1e-3;
  std::string lr_schedule_type = "cosine";
  std::int64_t learning_rate_schedule_steps = -1;
  double warmup_steps_fraction = 0.1;
  double learning_rate_final_fraction = 0.1;
  double adam_b1 = 0.9;
  double adam_b2 = 0.95;
  double adam_eps = 1e-8;
  double adam_eps_root = 0;
  double adam_weight_decay = 0.1;
  double gradient_clipping_threshold = 1.0;
  // loop
  std::int64_t log_period = 10;
  std::int64_t eval_interval = -1;
  std::int64_t eval_steps = -1;
  std::int64_t eval_per_device_batch_size = 32;
  double target_eval_loss = 0;
  bool abort_on_nan_loss = true;
  bool abort_on_inf_loss = true;
  bool enable_checkpointing = true;
  bool async_checkpointing = true;
  std::int64_t checkpoint_period = 500;
  std::int64_t max_num_checkpoints_to_keep = 3;
  bool save_checkpoint_on_completion = true;
  // report
  std::string prompt;
  std::int64_t max_predict_length = 300;
  double decode_sampling_temperature = 0.8;
  double peak_flops = 0;
  bool input_statistics = false;
};

enum class KeyGroup : std::uint8_t { kRun, kData, kModel, kOptimizer, kLoop, kReport };
std::string_view group_name(KeyGroup group);

using ConfigField =
    std::variant<std::string Config::*, std::int64_t Config::*, double Config::*, bool Config::*>;
struct ConfigKey {
  std::string_view name;
  KeyGroup group;
  ConfigField field;
  std::string_view doc;
  // Fixed for the life of a run: the saved state would not fit, or would mean something else.
  bool fixed = false;
};

// Every key, in the order of the fields.
std::span<const ConfigKey> config_keys();
std::string_view type_name(const ConfigKey& key);
// The value as YAML; the default if `config` is default-constructed.
std::string format_value(const ConfigKey& key, const Config& config);
// One line per key, by groups: name, default, meaning. For --help.
std::string describe_keys();

// Sets a key from text. UserError if the key is unknown (the nearest known one is named) or the
// text is not of its type.
void set_key(Config& config, std::string_view key, std::string_view value);
// "key=value"; UserError also without '='.
void apply_override(Config& config, std::string_view assignment);

// Reads keys of a YAML file over what `config` holds. UserError that names file and line.
void load_yaml(Config& config, const std::string& path);
// All keys, with comments; load_yaml reads the same values from it.
std::string to_yaml(const Config& config);
// UserError for values that cannot work, by themselves or together.
void validate(const Config& config);

models::GptConfig model_config(const Config& config);

}  // namespace xylem::train
