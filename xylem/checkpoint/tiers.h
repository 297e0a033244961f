#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xylem/checkpoint/manager.h"

namespace xylem::checkpoint {

struct TierOptions {
  // Of each tier: what it keeps, how it commits, its file system. `fast.async` decides whether
  // save() returns before the fast tier has the step.
  ManagerOptions fast, slow;
  // Which steps go to the slow tier. Each that is wanted gets there, and stays in the fast tier
  // until then. Without it the newest one whenever the thread is free.
  SaveDecision should_promote = nullptr;
  // Called on the thread that copies, with the message, when a step does not get to the slow tier.
  std::function<void(std::int64_t step, const std::string& message)> on_error = nullptr;
};

// Steps in two places: a fast one that may be lost with the machine (a RAM disk, a local NVMe), in
// which a save ends, and a slow one that outlives it, to which a thread copies steps. A restore
// takes the newest step that is whole in either. For one thread at a time.
class TieredCheckpointManager {
 public:
  using MakeFormat = std::function<std::unique_ptr<StepFormat>()>;
  TieredCheckpointManager(
      std::string fast_directory, std::string slow_directory, TierOptions options = {},
      MakeFormat make_format = [] { return make_orbax_format(); });
  // Waits for the save and the copy that are under way; steps that wait for their turn are taken up
  // by the next prepare().
  ~TieredCheckpointManager();

  // As CheckpointManager::prepare, of both; then takes up the newest step that the slow tier lacks.
  void prepare();
  bool should_save(std::int64_t step) const;
  // Into the fast tier. UserError for a step that is not above the latest of both.
  void save(std::int64_t step, StepContents contents);
  // For a save into the fast tier, throwing its error.
  void wait();
  // For the save and for the slow tier to have all steps that it is to get. Throws the error of the
  // first copy that failed since the last call.
  void wait_promoted();

  // Of either tier, ascending.
  std::vector<std::int64_t> steps() const;
  // The newest step that can be restored from either.
  std::optional<std::int64_t> latest_step() const;
  // From the fast tier; from the slow one if it is not whole there.
  StepContents restore(std::int64_t step, const std::vector<std::string>& items = {}) const;

  const CheckpointManager& fast() const { return *fast_; }
  const CheckpointManager& slow() const { return *slow_; }

 private:
  struct Promoter;

  TierOptions options_;
  std::unique_ptr<Promoter> promoter_;
  std::unique_ptr<CheckpointManager> fast_, slow_;
};

}  // namespace xylem::checkpoint
