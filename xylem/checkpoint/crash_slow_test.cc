#include <gtest/gtest.h>

#include <cstdio>

#include "xylem/checkpoint/testing/crash_runs.h"

namespace xylem::checkpoint {
namespace {

TEST(EveryCall, CrashesThereLoseNoCommittedStep) {
  for (const bool commit_file : {false, true})
    for (unsigned seed = 1; seed <= 3; ++seed) {
      const CrashCounts c = check_crashes(1, 10, seed, commit_file);
      std::printf("%lld stops, %lld states after a crash\n", static_cast<long long>(c.stops),
                  static_cast<long long>(c.states));
    }
}

TEST(EveryCall, CrashesThereLeaveStepsThatShareChunksWhole) {
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const CrashCounts c = check_crashes(1, 10, seed, false, true);
    std::printf("%lld stops, %lld states after a crash\n", static_cast<long long>(c.stops),
                static_cast<long long>(c.states));
  }
}

TEST(EveryCall, CrashesThereLoseNothingThatTwoTiersPromised) {
  const CrashCounts c = check_tier_crashes(1, 10, 1);
  std::printf("%lld stops, %lld states after a crash\n", static_cast<long long>(c.stops),
              static_cast<long long>(c.states));
}

TEST(EveryCall, FaultsThereLeaveEarlierStepsAndAllowAnotherTry) {
  const CrashCounts c = check_faults(1);
  std::printf("%lld faults\n", static_cast<long long>(c.faults));
}

}  // namespace
}  // namespace xylem::checkpoint
