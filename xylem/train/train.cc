#include "xylem/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/json.h"
#include "xylem/base/signal.h"
#include "xylem/base/tokenizer.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/checkpoint/struct_tree.h"
#include "xylem/core/transforms.h"
#include "xylem/models/sampler.h"
#include "xylem/train/flops.h"
#include "xylem/train/internal/progress.h"
#include "xylem/train/loss.h"
#include "xylem/train/metrics.h"
#include "xylem/train/optimizer.h"
#include "xylem/train/report.h"
#include "xylem/train/training_data.h"

namespace xylem::train {
namespace {

using Clock = std::chrono::steady_clock;

struct StepOutputs {
  Array loss, grad_norm, learning_rate;
};

// A step that was begun, and when the call that began it returned.
struct Pending {
  StepOutputs outputs;
  Clock::time_point returned;
};

auto make_step(const Config& config) {
  auto tx = make_optimizer(config);
  return jit(
      [tx, rate = learning_rate_schedule(config)](const TrainState& s, const StepTokens& tokens) {
        auto [loss, grads] = value_and_grad(step_loss)(s.params, tokens);
        StepOutputs out{loss, optim::global_norm(grads),
                        rate(std::get<0>(std::get<1>(s.optimizer)).count).astype(DType::kF32)};
        auto [updates, optimizer] = tx.update(grads, s.optimizer, s.params);
        return std::pair{TrainState{optim::apply_updates(s.params, updates), optimizer}, out};
      },
      {.name = "train_step"});
}
// How report.html shows that nothing is missing.
constexpr std::string_view kFinishedRow = "<td>finished</td>";

using Step = decltype(make_step(std::declval<const Config&>()));

double count_parameters(const models::Gpt& model) {
  double n = 0;
  for (const Array& a : tree::leaves<Array>(model))
    if (a.defined()) n += static_cast<double>(a.size());
  return n;
}

// Writes config.yaml so that it says what this process runs with, and takes over what the run has
// measured before.
Config settle_config(const Run& run, bool resuming) {
  Config config = run.config;
  if (path_exists(run.folder.config())) {
    Config saved;
    load_yaml(saved, run.folder.config());
    if (resuming) check_fixed_keys(saved, config, run.folder);
    if (config.peak_flops == 0) config.peak_flops = saved.peak_flops;
  }
  if (config.peak_flops == 0) config.peak_flops = std::round(measure_peak_flops());
  return config;
}

class Training {
 public:
  Training(const Run& run, const TrainOptions& options)
      : folder_(run.folder),
        manager_(folder_.checkpoints(), {.max_to_keep = run.config.max_num_checkpoints_to_keep,
                                         .async = run.config.async_checkpointing}),
        config_(settle_config(run, !manager_.steps().empty())),
        data_(TrainingData::open(config_, {.timing = config_.input_statistics})),
        step_(make_step(config_)),
        progress_(options.out, options.terminal, config_.steps, config_.log_period) {
    manager_.prepare();
    restore();
    write_file_atomic(folder_.config(), to_yaml(config_));
    log_.emplace(folder_.metrics(), next_step_);
    metrics_ = read_metrics(folder_.metrics());
  }

  TrainStatus run() {
    announce();
    if (next_step_ >= config_.steps) {
      // The former process may have ended between its last checkpoint and its report.
      if (!path_exists(folder_.report()) ||
          read_file(folder_.report()).find(kFinishedRow) == std::string::npos)
        write_report("finished", /*sample=*/true);
      progress_.note(fmt::format("all {} steps are done already", config_.steps));
      return TrainStatus::kFinished;
    }
    mark_ = Clock::now();
    bool stopped = false, reached = false;
    while (next_step_ < config_.steps && !stopped && !reached) {
      enqueue_step();
      stopped = stop_requested();
      manager_.poll();
      const bool last = next_step_ == config_.steps;
      const bool evaluates =
          last || (config_.eval_interval > 0 && next_step_ % config_.eval_interval == 0);
      const bool saves =
          config_.enable_checkpointing && next_step_ % config_.checkpoint_period == 0;
      if (!evaluates && !saves && !stopped) continue;
      // Due work is done even when stopping: the records of a run do not depend on interruptions.
      finish_step(evaluates);
      reached =
          config_.target_eval_loss > 0 && last_eval_ && *last_eval_ <= config_.target_eval_loss;
      if (config_.enable_checkpointing &&
          (saves || stopped || ((last || reached) && config_.save_checkpoint_on_completion)))
        save();
      if (evaluates && !last && !reached && !stopped) write_report("running", /*sample=*/false);
      mark_ = Clock::now();
    }
    manager_.wait();
    progress_.finish();
    if (stopped && next_step_ < config_.steps) return stop();
    write_report("finished", /*sample=*/true);
    progress_.note(fmt::format("finished {} steps{}; report: {}", next_step_,
                               last_eval_ ? fmt::format(", validation {:.4f} bits per {}",
                                                        bits_per_byte(*last_eval_), unit())
                                          : "",
                               folder_.report()));
    return TrainStatus::kFinished;
  }

 private:
  void announce() {
    progress_.note(fmt::format("{}: {:.0f} parameters, {}, peak {:.0f} GFLOP/s", folder_.path,
                               count_parameters(state_.params), data_->describe(),
                               config_.peak_flops / 1e9));
    if (next_step_ > 0)
      progress_.note(fmt::format("resumed from the checkpoint of step {}", next_step_));
  }

  // Begins the step after the ones before, while their results may still be on the way, and deals
  // with those of the step before: the device always has work.
  void enqueue_step() {
    const StepTokens tokens = data_->next();
    auto [state, outputs] = step_(std::move(state_), tokens);
    const Clock::time_point returned = Clock::now();
    state_ = std::move(state);
    if (pending_) finish_step(false);
    pending_ = Pending{std::move(outputs), returned};
    ++next_step_;
  }

  // Waits for the pending step and writes down what it gave. `evaluates` only if it is the last
  // one.
  void finish_step(bool evaluates) {
    const auto [outputs, returned] = *std::exchange(pending_, std::nullopt);
    const Clock::time_point asked = Clock::now();
    StepMetrics m;
    m.step = finished_;
    m.loss = outputs.loss.item<double>();
    m.grad_norm = outputs.grad_norm.item<double>();
    m.learning_rate = outputs.learning_rate.item<double>();
    // When did the step end? Now, if there was a wait for it; otherwise it was there before the
    // next one was begun, as with a device that works while it is called.
    Clock::time_point end = Clock::now();
    if (end - asked < (end - returned) / 10 && returned > mark_) end = returned;
    m.step_seconds = std::chrono::duration<double>(end - std::exchange(mark_, end)).count();
    m.tokens_per_second = static_cast<double>(config_.per_device_batch_size) *
                          static_cast<double>(config_.max_target_length) / m.step_seconds;
    m.mfu = training_step_flops(config_) / m.step_seconds / config_.peak_flops;
    ++finished_;
    const bool bad = (std::isnan(m.loss) && config_.abort_on_nan_loss) ||
                     (std::isinf(m.loss) && config_.abort_on_inf_loss);
    m.byte_tokens = config_.tokenizer_type == "byte";
    if (evaluates && !bad) {
      m.eval_loss = last_eval_ = data_->evaluate(state_.params);
    }
    log_->write(m);
    metrics_.push_back(m);
    if (bad) fail(m);
    progress_.step(m);
    if (m.eval_loss)
      progress_.note(fmt::format("step {}: validation loss {:.4f}, {:.4f} bits per {}", m.step + 1,
                                 *m.eval_loss, bits_per_byte(*m.eval_loss), unit()));
  }

  [[noreturn]] void fail(const StepMetrics& m) {
    log_->sync();
    manager_.wait();
    const auto saved = manager_.latest_step();
    progress_.finish();
    throw_user_error(
        {fmt::format("train in {}", folder_.path), "a loss that is a finite number",
         fmt::format("step {} has loss {}, gradient norm {}", m.step, m.loss, m.grad_norm),
         fmt::format(
             "Lower learning_rate or gradient_clipping_threshold and begin anew{}",
             saved ? fmt::format(", or resume from the checkpoint of step {}", *saved) : "")});
  }

  void save() {
    log_->sync();
    checkpoint::StepContents contents;
    contents.items["params"] = checkpoint::to_leaf_tree(state_.params);
    contents.items["optimizer"] = checkpoint::to_leaf_tree(state_.optimizer);
    JsonWriter w;
    w.begin_object();
    w.field("step", next_step_);
    w.key("data_iterator");
    w.raw(data_->get_state());
    w.key("text");
    w.begin_object();
    w.field("bytes", data_->size());
    w.field("hash64", data_->hash());
    w.end_object();
    // The key of a step is fold_in(key(seed), step): nothing else is needed to go on drawing.
    w.key("prng");
    w.begin_object();
    w.field("impl", "threefry2x32");
    w.field("seed", config_.init_weights_seed);
    w.field("step", next_step_);
    w.end_object();
    w.end_object();
    contents.state = w.take();
    manager_.save(next_step_, std::move(contents));
  }

  void restore() {
    const std::optional<std::int64_t> newest = newest_step(manager_);
    auto tx = make_optimizer(config_);
    if (!newest) {
      state_.params = initial_model(config_);
      state_.optimizer = tx.init(state_.params);
    } else {
      const std::string where = manager_.step_directory(*newest);
      const checkpoint::StepContents saved = manager_.restore(*newest, {"params", "optimizer"});
      const TrainState like = eval_shape([&] {
        nn::Rngs rngs({{"params", std::int64_t{0}}});
        TrainState s;
        s.params = models::Gpt::make(model_config(config_), rngs);
        s.optimizer = tx.init(s.params);
        return s;
      });
      state_.params = checkpoint::from_leaf_tree(like.params, saved.items.at("params"),
                                                 fmt::format("checkpoint {}: params", where));
      state_.optimizer = checkpoint::from_leaf_tree(like.optimizer, saved.items.at("optimizer"),
                                                    fmt::format("checkpoint {}: optimizer", where));
      restore_position(*newest, where, saved.state);
    }
    finished_ = next_step_;
    data_->start_prefetch();
  }

  void restore_position(std::int64_t step, const std::string& where, const std::string& state) {
    const nlohmann::json j = nlohmann::json::parse(state, nullptr, false);
    const auto refuse = [&](std::string_view expected, const std::string& given,
                            std::string_view advice) {
      throw_user_error({fmt::format("checkpoint {}", where), expected, given, advice});
    };
    if (!j.is_object() || j.value("step", nlohmann::json()) != step || !j.contains("data_iterator"))
      refuse(fmt::format("the state of step {}", step), state.substr(0, 200),
             "Remove the directory to go on from the step before");
    const nlohmann::json text = j.value("text", nlohmann::json::object());
    if (text.value("hash64", nlohmann::json()) != data_->hash())
      refuse(fmt::format("the text that the run began with, {} bytes with hash {}",
                         text.value("bytes", nlohmann::json()).dump(),
                         text.value("hash64", nlohmann::json()).dump()),
             fmt::format("{} bytes with hash {}", data_->size(), data_->hash()),
             "Bring the text back, or set another run_name to begin anew");
    data_->set_state(j["data_iterator"].dump());
    next_step_ = step;
  }

  TrainStatus stop() {
    const std::string at = fmt::format("stopped after {} of {} steps", next_step_, config_.steps);
    write_report(at, /*sample=*/false);
    if (!config_.enable_checkpointing)
      throw EnvironmentError(ErrorParts{
          fmt::format("train in {}", folder_.path), "all steps before the process is told to end",
          at, "Set enable_checkpointing=true so that it can go on later"});
    progress_.note(fmt::format("{}, saved; run the same command to go on", at));
    return TrainStatus::kStopped;
  }

  void write_report(const std::string& status, bool sample) {
    ReportInput in{.config = config_,
                   .metrics = metrics_,
                   .parameters = count_parameters(state_.params),
                   .status = status,
                   .prompt = config_.prompt,
                   .sample = ""};
    if (sample && config_.max_predict_length > 0) {
      if (in.prompt.empty()) {
        std::vector<std::int32_t> tokens = data_->prompt();
        std::erase_if(tokens, [&](std::int32_t t) {
          return t >= tokenizer_->vocab_size() || t == tokenizer_->bos_id();
        });
        in.prompt = tokenizer_->decode(tokens);
      }
      in.sample = make_sample(in.prompt);
    }
    write_file_atomic(folder_.loss_svg(), loss_svg(metrics_, config_.run_name));
    write_file_atomic(folder_.report(), report_html(in));
    if (config_.input_statistics) {
      write_file_atomic(folder_.input(), data_->pipeline().html(status == "running" ? 5 : 0));
      progress_.note(data_->pipeline().verdict());
    }
  }

  const char* unit() const { return config_.tokenizer_type == "byte" ? "byte" : "token"; }

  std::string make_sample(const std::string& prompt) {
    if (config_.max_target_length < 2) return "";
    models::Decoder decoder(state_.params, config_.max_target_length);
    models::Sampler sampler({.temperature = config_.decode_sampling_temperature});
    const std::vector<std::int32_t> tokens = prompt_tokens(config_, *tokenizer_, prompt);
    if (tokens.empty()) return "";
    std::string text;
    TextStream stream(*tokenizer_);
    models::generate(decoder, tokens, config_.max_predict_length, sampler, [&](std::int32_t token) {
      if (ends_text(config_, *tokenizer_, token)) return false;
      text += stream.add(token);
      return !stop_requested();
    });
    return text + stream.finish();
  }

  RunFolder folder_;
  checkpoint::CheckpointManager manager_;
  Config config_;
  std::unique_ptr<TrainingData> data_;
  std::shared_ptr<const Tokenizer> tokenizer_ = make_tokenizer(config_);
  Step step_;
  internal::Progress progress_;
  std::optional<MetricsLog> log_;
  std::vector<StepMetrics> metrics_;  // what log_ holds

  TrainState state_;
  std::int64_t next_step_ = 0;  // also the number of steps begun
  std::int64_t finished_ = 0;   // steps whose results are written down
  std::optional<Pending> pending_;
  std::optional<double> last_eval_;
  Clock::time_point mark_;
};

}  // namespace

TrainStatus train(const Run& run, const TrainOptions& options) {
  make_directories(run.folder.path);
  const RunLock lock(run.folder);
  const StopSignals signals;
  return Training(run, options).run();
}

}  // namespace xylem::train
