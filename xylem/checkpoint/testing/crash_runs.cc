#include "xylem/checkpoint/testing/crash_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>

#include "xylem/base/error.h"
#include "xylem/checkpoint/manager.h"
#include "xylem/checkpoint/testing/faulty_calls.h"
#include "xylem/checkpoint/tiers.h"

namespace xylem::checkpoint {
namespace {

constexpr std::int64_t kSteps = 3;

StepContents contents_of(std::int64_t step) {
  StepContents c;
  std::vector<float> big(3000);
  for (std::size_t i = 0; i < big.size(); ++i)
    big[i] = static_cast<float>(step * 10000) + static_cast<float>(i);
  c.items["params"] = {
      array_leaf(parse_path_text("a.w"), HostArray::from(big, {30, 100})),
      array_leaf(
          parse_path_text("a.b"),
          HostArray::from(std::vector<std::int32_t>{1, 2, static_cast<std::int32_t>(step)}, {3})),
      array_leaf(parse_path_text("frozen"), HostArray::from(std::vector<float>(1500, 2), {1500})),
      string_leaf(parse_path_text("name"), "step " + std::to_string(step))};
  c.state = "{\"step\": " + std::to_string(step) + "}";
  return c;
}

void expect_whole(const CheckpointManager& m, std::int64_t step, const std::string& where) {
  try {
    const StepContents got = m.restore(step), want = contents_of(step);
    EXPECT_EQ(got.state, want.state) << where;
    const LeafTree& a = got.items.at("params");
    const LeafTree& b = want.items.at("params");
    ASSERT_EQ(a.size(), b.size()) << where;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].text, b[i].text) << where;
      EXPECT_TRUE(!b[i].value.defined() || a[i].value.bit_equal(b[i].value)) << where;
    }
  } catch (const Error& e) {
    ADD_FAILURE() << where << ": step " << step << ": " << e.message();
  }
}

ManagerOptions options_for(const std::shared_ptr<FaultyCalls>& calls, Commit commit) {
  ManagerOptions o;
  o.max_to_keep = 2;
  o.commit = commit;
  o.fs = FileSystem(calls);
  return o;
}

// Saves steps 1 to kSteps; the number of the last one that was committed.
std::int64_t save_all(CheckpointManager& m) {
  std::int64_t committed = 0;
  try {
    m.prepare();
    for (std::int64_t s = 1; s <= kSteps; ++s) {
      m.save(s, contents_of(s));
      committed = s;
    }
  } catch (const Error&) {
  }
  return committed;
}

}  // namespace

CrashCounts check_crashes(std::int64_t stride, int states_each, unsigned seed, bool commit_file,
                          bool deduplicate) {
  const auto format = [&] {
    orbax::StepOptions o;
    o.link_bytes = 4000;
    return make_orbax_format(o, deduplicate);
  };
  const Commit commit = commit_file ? Commit::kFile : Commit::kRename;
  CrashCounts counts;
  std::mt19937 random(seed);
  std::int64_t total = 0;
  {
    const auto calls = std::make_shared<FaultyCalls>();
    CheckpointManager m("/run/checkpoints", options_for(calls, commit), format());
    EXPECT_EQ(save_all(m), kSteps);
    total = calls->calls();
  }
  for (std::int64_t stop = static_cast<std::int64_t>(random() % static_cast<unsigned>(stride));
       stop <= total; stop += stride) {
    const auto calls = std::make_shared<FaultyCalls>();
    calls->stop_at(stop);
    std::int64_t committed = 0;
    {
      CheckpointManager m("/run/checkpoints", options_for(calls, commit), format());
      committed = save_all(m);
    }
    ++counts.stops;
    for (int k = 0; k < states_each; ++k) {
      ++counts.states;
      const auto disk = calls->after_crash(random);
      const std::string where = "seed " + std::to_string(seed) + ", call " + std::to_string(stop) +
                                ", state " + std::to_string(k);
      {
        // A reader changes nothing.
        const std::int64_t before = disk->writes();
        const CheckpointManager reader("/run/checkpoints", options_for(disk, commit));
        const std::vector<std::int64_t> steps = reader.steps();
        for (const std::int64_t s : steps) expect_whole(reader, s, where);
        const auto latest = reader.latest_step();
        EXPECT_EQ(latest.value_or(0), steps.empty() ? 0 : steps.back()) << where;
        EXPECT_GE(latest.value_or(0), committed) << where << ": a committed step is gone";
        EXPECT_EQ(disk->writes(), before) << where;
      }
      CheckpointManager m("/run/checkpoints", options_for(disk, commit), format());
      m.prepare();
      const std::int64_t next = m.latest_step().value_or(0) + 1;
      m.save(next, contents_of(next));
      expect_whole(m, next, where);
      EXPECT_LE(m.steps().size(), 2u) << where;
      if (testing::Test::HasFailure()) return counts;
    }
  }
  return counts;
}

CrashCounts check_tier_crashes(std::int64_t stride, int states_each, unsigned seed) {
  CrashCounts counts;
  std::mt19937 random(seed);
  const auto options = [](const std::shared_ptr<FaultyCalls>& calls) {
    TierOptions o;
    o.fast = o.slow = options_for(calls, Commit::kRename);
    o.fast.max_to_keep = 1;
    return o;
  };
  // The thread that copies and this one take turns, so that calls are counted alike every time.
  struct Promised {
    std::int64_t committed = 0, promoted = 0;
  };
  const auto run = [&](const std::shared_ptr<FaultyCalls>& calls) {
    Promised p;
    TieredCheckpointManager m("/fast", "/slow", options(calls));
    try {
      m.prepare();
      m.wait_promoted();
      for (std::int64_t s = 1; s <= kSteps; ++s) {
        m.save(s, contents_of(s));
        p.committed = s;
        m.wait_promoted();
        p.promoted = s;
      }
    } catch (const Error&) {
      try {
        m.wait_promoted();
      } catch (const Error&) {
      }
    }
    return p;
  };
  std::int64_t total = 0;
  {
    const auto calls = std::make_shared<FaultyCalls>();
    EXPECT_EQ(run(calls).promoted, kSteps);
    total = calls->calls();
  }
  for (std::int64_t stop = static_cast<std::int64_t>(random() % static_cast<unsigned>(stride));
       stop <= total; stop += stride) {
    const auto calls = std::make_shared<FaultyCalls>();
    calls->stop_at(stop);
    const Promised promised = run(calls);
    ++counts.stops;
    for (int k = 0; k < states_each; ++k) {
      ++counts.states;
      const auto disk = calls->after_crash(random);
      const bool lost = random() % 2 == 0;
      const std::string where = "seed " + std::to_string(seed) + ", call " + std::to_string(stop) +
                                ", state " + std::to_string(k) + (lost ? ", fast tier lost" : "");
      if (lost) FileSystem(disk).remove_tree("/fast");
      TieredCheckpointManager m("/fast", "/slow", options(disk));
      const std::int64_t latest = m.latest_step().value_or(0);
      EXPECT_GE(latest, lost ? promised.promoted : promised.committed) << where;
      for (const std::int64_t s : m.steps()) {
        const StepContents got = m.restore(s), want = contents_of(s);
        EXPECT_EQ(got.state, want.state) << where;
        EXPECT_TRUE(got.items.at("params")[0].value.bit_equal(want.items.at("params")[0].value))
            << where;
      }
      m.prepare();
      m.wait_promoted();
      m.save(latest + 1, contents_of(latest + 1));
      m.wait_promoted();
      EXPECT_EQ(m.slow().latest_step(), latest + 1) << where;
      if (testing::Test::HasFailure()) return counts;
    }
  }
  return counts;
}

CrashCounts check_faults(std::int64_t stride) {
  CrashCounts counts;
  std::int64_t first = 0, second = 0;
  {
    const auto calls = std::make_shared<FaultyCalls>();
    CheckpointManager m("/run/checkpoints", options_for(calls, Commit::kRename));
    m.prepare();
    m.save(1, contents_of(1));
    first = calls->calls();
    m.save(2, contents_of(2));
    m.restore(2);
    second = calls->calls() - first;
  }
  for (const int error : {EIO, ENOSPC, EINTR, ENOSYS})
    for (std::int64_t n = 0; n < second; n += stride) {
      ++counts.faults;
      const auto calls = std::make_shared<FaultyCalls>();
      CheckpointManager m("/run/checkpoints", options_for(calls, Commit::kRename));
      m.prepare();
      m.save(1, contents_of(1));
      calls->fail_at(n, error);
      const std::string where = "error " + std::to_string(error) + " at call " + std::to_string(n);
      bool failed = false;
      try {
        m.save(2, contents_of(2));
        m.restore(2);
      } catch (const Error& e) {
        failed = true;
        EXPECT_NE(e.message().find("/run/checkpoints"), std::string::npos)
            << where << ": " << e.message();
      }
      calls->fail_at(-1, 0);
      EXPECT_FALSE(error == EINTR && failed) << where;
      expect_whole(m, 1, where);
      const std::vector<std::int64_t> steps = m.steps();
      if (std::find(steps.begin(), steps.end(), 2) == steps.end()) m.save(2, contents_of(2));
      expect_whole(m, 2, where);
      if (testing::Test::HasFailure()) return counts;
    }
  return counts;
}

}  // namespace xylem::checkpoint
