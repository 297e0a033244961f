#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xylem/checkpoint/format.h"

namespace xylem::checkpoint {

struct ManagerOptions {
  // Complete steps kept; older ones are removed after a newer one is committed. At least 1.
  std::int64_t max_to_keep = 3;
  // Write on a thread of its own: save() returns at once, and a failure reaches the caller with the
  // next save() or wait().
  bool async = false;
};

// The steps of one run, each in a directory <directory>/<step>. A step is written under the name
// <step>.xylem-checkpoint-tmp, flushed to disk and renamed, so that a directory with a step's plain
// name is complete whatever happened; removal renames first, too. Any number of processes may read,
// one may write. Objects are for one thread at a time.
class CheckpointManager {
 public:
  explicit CheckpointManager(std::string directory, const ManagerOptions& options = {},
                             std::unique_ptr<StepFormat> format = make_safetensors_format());
  // Waits for a save in progress; its failure is lost unless wait() was called.
  ~CheckpointManager();

  // For the writer, before the first save: makes the directory and removes what writers that died
  // have left.
  void prepare();
  // Writes a step; one that exists already is left as it is. After a failure all earlier steps are
  // as they were.
  void save(std::int64_t step, StepContents contents);
  // Waits for a save in progress and throws its error.
  void wait();
  // Throws the error of a save that has ended meanwhile; never waits.
  void poll();

  // Complete steps, ascending.
  std::vector<std::int64_t> steps() const;
  std::optional<std::int64_t> latest_step() const;
  std::string step_directory(std::int64_t step) const;
  // The contents of a step, or only the items named. Errors name the file at fault.
  StepContents restore(std::int64_t step, const std::vector<std::string>& items = {}) const;

 private:
  struct Pending;
  void write_step(std::int64_t step, const StepContents& contents);
  void remove_old();

  std::string directory_;
  ManagerOptions options_;
  std::unique_ptr<StepFormat> format_;
  std::unique_ptr<Pending> pending_;
};

}  // namespace xylem::checkpoint
