#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

// When to save and what to keep: Orbax's policies (save_decision_policy, preservation_policy), as
// plain functions.
namespace xylem::checkpoint {

// ---- when to save

struct SaveContext {
  std::int64_t step = 0;
  std::optional<std::int64_t> latest_step;     // that was saved or is being saved
  std::optional<std::int64_t> latest_time_ns;  // when, in this process
  bool is_saving = false;
  std::int64_t now_ns = 0;  // Unix epoch
};
using SaveDecision = std::function<bool(const SaveContext&)>;

SaveDecision save_every_n_steps(std::int64_t n);  // FixedInterval
SaveDecision save_on_steps(std::vector<std::int64_t> steps);
SaveDecision save_first();          // InitialSave: if nothing is saved yet
SaveDecision save_on_preemption();  // if a stop was asked for, see signal.h
// Whenever no save is under way, but not before `min_seconds` after the last.
SaveDecision save_continuously(double min_seconds = 0);
SaveDecision save_if_any(std::vector<SaveDecision> policies);

// ---- what to keep

struct CheckpointInfo {
  std::int64_t step = 0;
  std::int64_t time_ns = 0;  // of the commit
  std::optional<double> metric;
};
// A flag for each of the checkpoints, which are in order of steps; false: may be removed.
using Preservation =
    std::function<std::vector<bool>(const std::vector<CheckpointInfo>&, std::int64_t now_ns)>;

Preservation keep_all();
Preservation keep_latest(std::int64_t n);
// The first, then each that is at least so much later than the last one kept.
Preservation keep_every_n_seconds(double seconds);
// Steps divisible by n; or, if not `exact`, the first and then each at least n after the last one
// kept. Of those the newest max_to_keep.
Preservation keep_every_n_steps(std::int64_t n, bool exact = true,
                                std::optional<std::int64_t> max_to_keep = std::nullopt);
// For each multiple of n the nearest step, the later of two, and always the newest.
Preservation keep_closest_to_n_steps(std::int64_t n,
                                     std::optional<std::int64_t> max_to_keep = std::nullopt);
Preservation keep_steps(std::vector<std::int64_t> steps);
// The n of greatest metric (least, if `least`); of equal ones the newest.
Preservation keep_best(std::int64_t n, bool least = false, bool keep_without_metric = true);
// All from the first that is not older.
Preservation keep_for(double seconds);
Preservation keep_if_any(std::vector<Preservation> policies);

}  // namespace xylem::checkpoint
