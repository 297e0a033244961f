#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xylem/checkpoint/coordination.h"
#include "xylem/checkpoint/format.h"
#include "xylem/checkpoint/policies.h"

namespace xylem::checkpoint {

// How a step becomes visible.
enum class Commit {
  kRename,  // written under a temporary name, then renamed: for file systems
  kFile,    // written in place; final once commit_success.txt is there: for stores without rename
};

struct ManagerOptions {
  // Complete steps kept; older ones are removed after a newer one is committed. At least 1.
  std::int64_t max_to_keep = 3;
  // Write on a thread of its own: save() returns at once, and a failure reaches the caller with the
  // next save() or wait(). One save is under way at a time; another waits for it.
  bool async = false;
  // Instead of max_to_keep.
  Preservation preserve = nullptr;
  // For should_save(); without it every step is saved.
  SaveDecision should_save = nullptr;
  // The member of the metrics that best_step() and keep_best() go by.
  std::string metric;
  bool least_is_best = false;
  Commit commit = Commit::kRename;
  // Names of steps: "<prefix>_", digits padded with zeros to a length.
  std::string step_prefix;
  int step_digits = 0;
  // Called on the thread that writes, with the message, when an async save fails.
  std::function<void(std::int64_t step, const std::string& message)> on_error = nullptr;
  // Called on the thread that writes, once a step is committed and before others are removed.
  std::function<void(std::int64_t step)> on_commit = nullptr;
  FileSystem fs = {};
  // Where several processes save one run: each makes its own manager and the same calls of
  // prepare() and save(), with its parts of the arrays (Leaf::parts). The first one makes
  // directories, commits and removes. A save fails everywhere if it fails anywhere.
  std::shared_ptr<Coordinator> coordinator = nullptr;
};

// The steps of one run, each in a directory <directory>/<step>. A step is written under the name
// <step>.orbax-checkpoint-tmp, flushed to disk and renamed, so that a directory with a step's plain
// name is complete whatever happened; removal renames first, too. Any number of processes may read,
// one may write. Objects are for one thread at a time.
class CheckpointManager {
 public:
  // Steps are written in `format`, and read in it and in the others.
  explicit CheckpointManager(std::string directory, ManagerOptions options = {},
                             std::unique_ptr<StepFormat> format = make_orbax_format());
  // Waits for a save in progress; its failure is lost unless wait() was called.
  ~CheckpointManager();

  // For the writer, before the first save: makes the directory and removes what writers that died
  // have left.
  void prepare();
  // Whether the policy wants this step saved. A step that is not above the latest is never wanted.
  bool should_save(std::int64_t step) const;
  // Writes a step. UserError, and nothing is written, if a step of this number or a higher one is
  // there: training that has gone back would lose its steps to those ahead of it. After a failure
  // all earlier steps are as they were, and the same step may be saved again. Contents are not
  // copied: arrays never change, and their memory is kept until they are written.
  void save(std::int64_t step, StepContents contents);
  // Waits for a save in progress and throws its error.
  void wait();
  // Throws the error of a save that has ended meanwhile; never waits.
  void poll();
  bool is_saving() const;

  // Committed steps, ascending.
  std::vector<std::int64_t> steps() const;
  // The newest step that can be restored: committed, and its metadata and databases whole.
  std::optional<std::int64_t> latest_step() const;
  // UserError or EnvironmentError that says why a step cannot be restored; judged without reading
  // its arrays.
  void check_step(std::int64_t step) const;
  // By `metric`; nothing if no step has it.
  std::optional<std::int64_t> best_step() const;
  std::vector<CheckpointInfo> infos() const;
  std::string step_directory(std::int64_t step) const;
  // The contents of a step, or only the items named. Errors name the file at fault.
  StepContents restore(std::int64_t step, const std::vector<std::string>& items = {}) const;
  // Commits a copy of a whole step that lies in another directory, perhaps of another file system,
  // as save() would commit it. Nothing is read but its files.
  void copy_step(std::int64_t step, const FileSystem& source, const std::string& directory);
  // Removes a step: at once invisible, then its files.
  void remove(std::int64_t step);

 private:
  struct Pending;
  void write_step(std::int64_t step, const StepContents& contents);
  void prepare_directory();
  void write_together(std::int64_t step, const StepContents& contents);
  bool is_primary() const { return options_.coordinator->process() == 0; }
  void remove_unfinished(const std::string& directory);
  void commit_in_place(std::int64_t step, const StepContents& contents);
  void apply_preservation();
  void remove_directory(const std::string& directory);
  std::optional<std::int64_t> parse_name(const std::string& name) const;
  const StepFormat* format_of(const std::string& directory) const;
  const StepFormat& require_format(std::int64_t step) const;

  std::string directory_;
  ManagerOptions options_;
  std::vector<std::unique_ptr<StepFormat>> formats_;  // the first one writes
  std::unique_ptr<Pending> pending_;
  std::optional<std::int64_t> last_time_ns_;
};

}  // namespace xylem::checkpoint
