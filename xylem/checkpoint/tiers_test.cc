#include "xylem/checkpoint/tiers.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/checkpoint/testing/crash_runs.h"
#include "xylem/checkpoint/testing/faulty_calls.h"

namespace xylem::checkpoint {
namespace {

StepContents contents(std::int64_t step) {
  StepContents c;
  c.items["params"] = {
      array_leaf(parse_path_text("w"),
                 HostArray::from(std::vector<float>(3000, static_cast<float>(step)), {3000}))};
  c.state = "{\"step\": " + std::to_string(step) + "}";
  return c;
}

TierOptions options(const FileSystem& fast, const FileSystem& slow) {
  TierOptions o;
  o.fast.fs = fast;
  o.slow.fs = slow;
  o.fast.max_to_keep = 1;
  return o;
}

void expect_step(const TieredCheckpointManager& m, std::int64_t step) {
  EXPECT_TRUE(m.restore(step).items.at("params")[0].value.bit_equal(
      contents(step).items.at("params")[0].value));
}

using Steps = std::vector<std::int64_t>;

TEST(Tiers, StepsGoToTheFastTierAndFromThereToTheSlowOne) {
  const FileSystem fast = FileSystem::memory(), slow = FileSystem::memory();
  {
    TieredCheckpointManager m("/f", "/s", options(fast, slow));
    m.prepare();
    EXPECT_EQ(m.latest_step(), std::nullopt);
    for (const std::int64_t step : {1, 2, 3}) {
      m.save(step, contents(step));
      m.wait_promoted();
    }
    EXPECT_EQ(m.fast().steps(), (Steps{3}));
    EXPECT_EQ(m.slow().steps(), (Steps{1, 2, 3}));
    EXPECT_EQ(m.steps(), (Steps{1, 2, 3}));
    expect_step(m, 1);
    expect_step(m, 3);
    EXPECT_THROW(m.save(3, contents(3)), UserError);
    EXPECT_FALSE(m.should_save(3));
    EXPECT_TRUE(m.should_save(4));
  }
  // The machine is lost, and the fast tier with it.
  TieredCheckpointManager m("/f", "/s", options(FileSystem::memory(), slow));
  m.prepare();
  EXPECT_EQ(m.latest_step(), 3);
  expect_step(m, 3);
  EXPECT_THROW(m.save(2, contents(2)), UserError);
  m.save(4, contents(4));
  m.wait_promoted();
  EXPECT_EQ(m.slow().steps(), (Steps{2, 3, 4}));
}

TEST(Tiers, APolicyDecidesWhatIsPromotedAndNothingWantedIsLost) {
  const FileSystem fast = FileSystem::memory(), slow = FileSystem::memory();
  TierOptions o = options(fast, slow);
  o.should_promote = save_every_n_steps(2);
  o.slow.max_to_keep = 10;
  TieredCheckpointManager m("/f", "/s", o);
  m.prepare();
  // Without a pause: the fast tier keeps what has to be copied yet.
  for (std::int64_t step = 1; step <= 9; ++step) m.save(step, contents(step));
  m.wait_promoted();
  EXPECT_EQ(m.slow().steps(), (Steps{2, 4, 6, 8}));
  EXPECT_EQ(m.latest_step(), 9);
  for (const std::int64_t step : m.steps()) expect_step(m, step);
}

TEST(Tiers, DamageInOneTierIsNoLoss) {
  const FileSystem fast = FileSystem::memory(), slow = FileSystem::memory();
  TieredCheckpointManager m("/f", "/s", options(fast, slow));
  m.prepare();
  m.save(1, contents(1));
  m.wait_promoted();
  fast.write_file("/f/1/params/manifest.ocdbt", "x");
  EXPECT_EQ(m.latest_step(), 1);
  expect_step(m, 1);
  // A damaged step is not copied.
  m.save(2, contents(2));
  m.wait_promoted();
  fast.write_file("/f/2/params/manifest.ocdbt", "x");
  slow.remove_tree("/s/2");
  TieredCheckpointManager again("/f", "/s", options(fast, slow));
  again.prepare();
  again.wait_promoted();
  EXPECT_EQ(again.latest_step(), 1);
}

TEST(Tiers, AFailedCopyIsToldAndMadeUpFor) {
  const FileSystem fast = FileSystem::memory();
  const auto calls = std::make_shared<FaultyCalls>();
  std::vector<std::int64_t> failed;
  TierOptions o = options(fast, FileSystem(calls));
  o.on_error = [&](std::int64_t step, const std::string&) { failed.push_back(step); };
  TieredCheckpointManager m("/f", "/s", o);
  m.prepare();
  m.save(1, contents(1));
  m.wait_promoted();
  calls->fail_at(8, ENOSPC);
  m.save(2, contents(2));
  EXPECT_THROW(m.wait_promoted(), EnvironmentError);
  EXPECT_EQ(failed, (Steps{2}));
  EXPECT_EQ(m.slow().steps(), (Steps{1}));
  EXPECT_EQ(m.latest_step(), 2);
  m.wait_promoted();  // an error is told once
  m.prepare();
  m.wait_promoted();
  EXPECT_EQ(m.slow().steps(), (Steps{1, 2}));
}

TEST(Tiers, CrashesLoseNothingThatWasPromised) {
  EXPECT_GT(check_tier_crashes(9, 2, 3).states, 60);
}

}  // namespace
}  // namespace xylem::checkpoint
