#pragma once

#include <cstdint>

namespace xylem::checkpoint {

struct CrashCounts {
  std::int64_t stops = 0, states = 0, faults = 0;
};

// Saves steps with a manager on a FaultyCalls, stops at every `stride`-th call, and looks at
// `states_each` after-crash states of each stop: every listed step restores bit by bit, no
// committed step is gone, and saving goes on without cleaning by hand. Failures are gtest's.
CrashCounts check_crashes(std::int64_t stride, int states_each, unsigned seed, bool commit_file,
                          bool deduplicate = false);

// The same with a fast and a slow tier. A save that returned is in one of them after the machine
// stopped; one that was promoted is in the slow tier even if the fast one is gone.
CrashCounts check_tier_crashes(std::int64_t stride, int states_each, unsigned seed);

// Fails every `stride`-th call once with each of EIO, ENOSPC, EINTR, ENOSYS: EINTR changes nothing;
// after the others earlier steps are whole, and the same step saves at the second try.
CrashCounts check_faults(std::int64_t stride);

}  // namespace xylem::checkpoint
