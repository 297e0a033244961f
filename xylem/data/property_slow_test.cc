// The properties of property_test.cc over many more pipelines.

#include <gtest/gtest.h>

#include "xylem/data/testing/property.h"

namespace xylem::data {
namespace {

TEST(RandomPipelines, EveryStateRestoresToTheSameRemainder) {
  for (std::uint64_t seed = 1000; seed < 1400; ++seed) {
    const std::string problem = testing::check_restores(testing::random_spec(seed, false));
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

TEST(RandomPipelines, ThreadsChangeNeitherElementsNorStates) {
  for (std::uint64_t seed = 1000; seed < 1300; ++seed) {
    const std::string problem = testing::check_threads(testing::random_spec(seed, true));
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

TEST(RandomPipelines, RefuseHostileStatesAndGoOn) {
  for (std::uint64_t seed = 1000; seed < 2000; ++seed) {
    const std::string problem =
        testing::check_hostile_states(testing::random_spec(seed, seed % 2 == 0), seed);
    ASSERT_EQ(problem, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace xylem::data
