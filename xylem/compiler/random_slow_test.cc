// Thousands of random programs against the interpreter, from a seed that is printed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "xylem/compiler/testing/compare.h"

namespace xylem::compiler {
namespace {

// XYLEM_SEED repeats a run.
std::uint64_t first_seed() {
  const char* given = std::getenv("XYLEM_SEED");
  return given ? std::strtoull(given, nullptr, 10) : 5'000'000;
}

void run(bool exact, int count) {
  const std::uint64_t first = first_seed();
  ::testing::Test::RecordProperty("seed", std::to_string(first));
  int failures = 0;
  for (int i = 0; i < count && failures < 5; ++i) {
    const std::string failure =
        testing::random_failure(exact, first + static_cast<std::uint64_t>(i));
    EXPECT_EQ(failure, "");
    failures += failure.empty() ? 0 : 1;
  }
}

TEST(RandomProgramsSlow, ExactOnesAgreeBitForBit) { run(true, 2500); }
TEST(RandomProgramsSlow, OthersAgreeClosely) { run(false, 1500); }

}  // namespace
}  // namespace xylem::compiler
