// Properties of random pipelines: every recorded state restores to the same remainder.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "xylem/data/testing/property.h"

namespace xylem::data {
namespace {

TEST(RandomPipelines, EveryStateRestoresToTheSameRemainder) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::string problem = testing::check_restores(testing::random_spec(seed, false));
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

TEST(RandomPipelines, ThreadsChangeNeitherElementsNorStates) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::string problem = testing::check_threads(testing::random_spec(seed, true));
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

TEST(RandomPipelines, RefuseHostileStatesAndGoOn) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string problem =
        testing::check_hostile_states(testing::random_spec(seed, false), seed);
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

TEST(Shuffle, IsAPermutationForAllLengths) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 1; n <= 130; ++n) lengths.push_back(n);
  for (int k = 8; k <= 17; ++k)
    for (const int d : {-1, 0, 1}) lengths.push_back((std::int64_t{1} << k) + d);
  for (const std::int64_t n : lengths) {
    const auto ds = range(n).shuffle(n % 17);
    std::vector<std::int64_t> at(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) at[static_cast<std::size_t>(i)] = n + i;
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (const auto& e : ds.get(at)) {
      ASSERT_TRUE(e && *e >= 0 && *e < n && !seen[static_cast<std::size_t>(*e)]) << n;
      seen[static_cast<std::size_t>(*e)] = true;
    }
  }
}

TEST(Shards, CoverEveryRecordOnceOnAllHostsAndWorkers) {
  for (const std::int64_t n : {1, 7, 24, 61})
    for (const std::int64_t hosts : {1, 2, 3, 5})
      for (const int workers : {0, 1, 2, 4}) {
        std::multiset<std::int64_t> seen;
        for (std::int64_t h = 0; h < hosts; ++h) {
          const auto own =
              range(n).shuffle(3).shard(h, hosts).repeat(2).to_iter_dataset({.num_threads = 0});
          std::vector<std::int64_t> alone, together;
          for (const std::int64_t x : own.iterator()) alone.push_back(x);
          for (const std::int64_t x : own.mp_prefetch({.num_workers = workers}).iterator())
            together.push_back(x);
          EXPECT_EQ(alone, together);
          seen.insert(alone.begin(), alone.end());
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), 2 * n);
        for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(seen.count(i), 2u);
      }
}

TEST(Elastic, ContinuesOnAnotherNumberOfHostsWithoutLossOrRepetition) {
  const auto data = range(240).shuffle(5);
  std::vector<std::int64_t> seen;
  std::string state;
  const std::int64_t hosts[] = {2, 3, 6, 1, 4};
  for (const std::int64_t k : hosts) {
    std::string next;
    for (std::int64_t h = 0; h < k; ++h) {
      auto it = elastic(data, 24, {h, k}, {.num_threads = 0}).iterator();
      if (!state.empty()) it.set_state(state);
      for (int step = 0; step < 2; ++step) {
        const HostArray batch = it.next().value();
        for (const std::int64_t x : batch.span<std::int64_t>()) seen.push_back(x);
      }
      if (h > 0) {
        EXPECT_EQ(it.get_state(), next);
      }
      next = it.get_state();
    }
    state = next;
  }
  EXPECT_EQ(state, "{\"global_next_index\": 240}");
  EXPECT_EQ(seen.size(), 240u);
  EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 240u);
}

}  // namespace
}  // namespace xylem::data
