#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xylem/checkpoint/manager.h"
#include "xylem/models/gpt.h"
#include "xylem/train/config.h"

namespace xylem::train {

// The files of a run folder.
struct RunFolder {
  std::string path;

  std::string config() const;       // config.yaml: every key as the run uses it
  std::string metrics() const;      // metrics.jsonl: one line a step
  std::string checkpoints() const;  // checkpoints/<step>
  std::string loss_svg() const;     // loss.svg
  std::string report() const;       // report.html
  std::string input() const;        // input.html
};

// A configuration and the folder it runs in.
struct Run {
  Config config;
  RunFolder folder;
};

// From a YAML file, or from a run folder, whose own configuration is then taken, and overrides.
// The configuration is validated.
Run resolve_run(const std::string& config_or_folder, const std::vector<std::string>& overrides);

// UserError that names the first key fixed for the life of a run in which the two differ.
void check_fixed_keys(const Config& saved, const Config& now, const RunFolder& folder);

// Keeps other processes from training in the same folder while it exists. EnvironmentError if one
// does. The system releases it when the process ends, however it ends.
class RunLock {
 public:
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

// A model with random parameters by init_weights_seed, or those of load_parameters_path.
models::Gpt initial_model(const Config& config);
// The same without contents: shapes and dtypes only.
models::Gpt abstract_model(const Config& config);

// The newest step, if there is any. Its error if it is damaged: to go on from an older one is for
// the user to decide.
std::optional<std::int64_t> newest_step(const checkpoint::CheckpointManager& manager);

// The newest checkpoint's model.
struct TrainedModel {
  Config config;
  models::Gpt model;
  std::int64_t step = 0;
};
TrainedModel load_run(const std::string& folder);

}  // namespace xylem::train
