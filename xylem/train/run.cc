#include "xylem/train/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/checkpoint/safetensors.h"
#include "xylem/checkpoint/struct_tree.h"
#include "xylem/core/transforms.h"

namespace xylem::train {

std::string RunFolder::config() const { return join_path(path, "config.yaml"); }
std::string RunFolder::metrics() const { return join_path(path, "metrics.jsonl"); }
std::string RunFolder::checkpoints() const { return join_path(path, "checkpoints"); }
std::string RunFolder::loss_svg() const { return join_path(path, "loss.svg"); }
std::string RunFolder::report() const { return join_path(path, "report.html"); }
std::string RunFolder::input() const { return join_path(path, "input.html"); }

Run resolve_run(const std::string& config_or_folder, const std::vector<std::string>& overrides) {
  Run run;
  const bool folder = is_directory(config_or_folder);
  if (folder) {
    run.folder.path = config_or_folder;
    if (!path_exists(run.folder.config()))
      throw_user_error({fmt::format("run folder {}", config_or_folder), "a folder with config.yaml",
                        "it has none", "Name a YAML file, or the folder of a run"});
    load_yaml(run.config, run.folder.config());
  } else {
    load_yaml(run.config, config_or_folder);
  }
  for (const std::string& o : overrides) apply_override(run.config, o);
  validate(run.config);
  // A folder stands for itself, wherever it has been moved to.
  if (!folder) run.folder.path = join_path(run.config.base_output_directory, run.config.run_name);
  return run;
}

void check_fixed_keys(const Config& saved, const Config& now, const RunFolder& folder) {
  for (const ConfigKey& k : config_keys()) {
    if (!k.fixed || format_value(k, saved) == format_value(k, now)) continue;
    throw_user_error({fmt::format("resume {}: configuration key {}", folder.path, k.name),
                      fmt::format("the value that the run began with, {}", format_value(k, saved)),
                      format_value(k, now),
                      fmt::format("Set {}={} to go on, or another run_name to begin anew", k.name,
                                  format_value(k, saved))});
  }
}

RunLock::RunLock(const RunFolder& folder) {
  const std::string path = join_path(folder.path, ".lock");
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw_file_error("open", path, errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(fd_);
  if (error != EWOULDBLOCK) throw_file_error("lock", path, error);
  throw EnvironmentError(ErrorParts{
      fmt::format("train in {}", folder.path), "a folder that no other process trains in",
      "another one holds its lock", "Wait for it or stop it, or set another run_name"});
}

RunLock::~RunLock() { ::close(fd_); }

models::Gpt abstract_model(const Config& config) {
  return eval_shape([&] {
    nn::Rngs rngs({{"params", config.init_weights_seed}});
    return models::Gpt::make(model_config(config), rngs);
  });
}

models::Gpt initial_model(const Config& config) {
  if (!config.load_parameters_path.empty())
    return checkpoint::from_named_arrays(
        abstract_model(config), checkpoint::read_safetensors(config.load_parameters_path),
        fmt::format("load_parameters_path={}", config.load_parameters_path));
  nn::Rngs rngs({{"params", config.init_weights_seed}});
  return models::Gpt::make(model_config(config), rngs);
}

std::optional<std::int64_t> newest_step(const checkpoint::CheckpointManager& manager) {
  const std::vector<std::int64_t> all = manager.steps();
  if (all.empty()) return std::nullopt;
  manager.check_step(all.back());
  return all.back();
}

TrainedModel load_run(const std::string& path) {
  const RunFolder folder{path};
  if (!is_directory(path) || !path_exists(folder.config()))
    throw_user_error({fmt::format("run folder {}", path), "a folder that `xylem train` made",
                      is_directory(path) ? "there is no config.yaml in it" : "no such folder",
                      "Name the run's folder: base_output_directory/run_name"});
  TrainedModel out;
  load_yaml(out.config, folder.config());
  validate(out.config);
  const checkpoint::CheckpointManager manager(folder.checkpoints());
  const std::optional<std::int64_t> step = newest_step(manager);
  if (!step)
    throw_user_error({fmt::format("run folder {}", path), "at least one complete checkpoint",
                      "there is none", "Train until the first checkpoint is saved"});
  out.step = *step;
  checkpoint::StepContents contents;
  try {
    contents = manager.restore(out.step, {"params"});
  } catch (const Error&) {
    // A run in progress may just have replaced it by a newer one.
    const std::optional<std::int64_t> newer = newest_step(manager);
    if (!newer || *newer == out.step) throw;
    out.step = *newer;
    contents = manager.restore(out.step, {"params"});
  }
  out.model =
      checkpoint::from_leaf_tree(abstract_model(out.config), contents.items.at("params"),
                                 fmt::format("checkpoint {}", manager.step_directory(out.step)));
  return out;
}

}  // namespace xylem::train
