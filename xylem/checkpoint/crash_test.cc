#include <gtest/gtest.h>

#include <cerrno>

#include "xylem/base/error.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/checkpoint/testing/crash_runs.h"
#include "xylem/checkpoint/testing/faulty_calls.h"

namespace xylem::checkpoint {
namespace {

// Samples; crash_slow_test.cc looks at every call.
TEST(Crashes, LoseNoCommittedStep) { EXPECT_GT(check_crashes(5, 2, 1, false).states, 50); }
TEST(Crashes, LoseNoCommittedStepWhereTheCommitFileDecides) {
  EXPECT_GT(check_crashes(5, 2, 2, true).states, 50);
}
TEST(Crashes, LeaveStepsThatShareChunksWhole) {
  EXPECT_GT(check_crashes(5, 2, 3, false, true).states, 50);
}
TEST(Faults, LeaveEarlierStepsAndAllowAnotherTry) { EXPECT_GT(check_faults(7).faults, 50); }

StepContents one_array() {
  StepContents c;
  c.items["params"] = {
      array_leaf(parse_path_text("w"), HostArray::from(std::vector<float>(5000, 1.5f), {5000}))};
  return c;
}

TEST(Faults, ShortTransfersAreContinued) {
  const auto calls = std::make_shared<FaultyCalls>();
  calls->set_short_transfers(true);
  CheckpointManager m("/c", {.fs = FileSystem(calls)});
  m.prepare();
  m.save(1, one_array());
  EXPECT_TRUE(
      m.restore(1).items.at("params")[0].value.bit_equal(one_array().items.at("params")[0].value));
}

TEST(Faults, ARefusedRenameIsAnErrorAndTheCommitFileAWayOut) {
  for (const int error : {ENOSYS, EXDEV, EPERM}) {
    const auto calls = std::make_shared<FaultyCalls>();
    calls->set_rename_error(error);
    CheckpointManager m("/c", {.fs = FileSystem(calls)});
    m.prepare();
    EXPECT_THROW(m.save(1, one_array()), EnvironmentError);
    EXPECT_EQ(m.latest_step(), std::nullopt);
    CheckpointManager in_place("/c", {.commit = Commit::kFile, .fs = FileSystem(calls)});
    in_place.prepare();
    in_place.save(1, one_array());
    EXPECT_EQ(in_place.latest_step(), 1);
  }
}

TEST(Faults, AFailedBackgroundSaveIsToldAndHidesNoStep) {
  const auto calls = std::make_shared<FaultyCalls>();
  std::string told;
  ManagerOptions o;
  o.async = true;
  o.fs = FileSystem(calls);
  o.on_error = [&](std::int64_t step, const std::string& message) {
    told = std::to_string(step) + " " + message;
  };
  CheckpointManager m("/c", o);
  m.prepare();
  m.save(1, one_array());
  m.wait();
  calls->fail_at(20, ENOSPC);
  m.save(2, one_array());
  EXPECT_THROW(m.wait(), EnvironmentError);
  EXPECT_TRUE(told.starts_with("2 ")) << told;
  EXPECT_EQ(m.latest_step(), 1);
  m.save(2, one_array());
  m.wait();
  EXPECT_EQ(m.latest_step(), 2);
}

}  // namespace
}  // namespace xylem::checkpoint
