// A sample of the rule matrix; XYLEM_SEED repeats one. The soak runs all cells.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "xylem/core/testing/rule_matrix.h"

namespace xylem::transform {
namespace {

using testing::Cell;
using testing::Row;

TEST(RuleMatrix, SampledCellsAreCompiledAsTheyAreInterpreted) {
  constexpr int kSample = 60;
  const char* given = std::getenv("XYLEM_SEED");
  std::uint64_t seed = given ? std::stoull(given) : std::random_device{}();
  std::printf("rule matrix: XYLEM_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::vector<Row> rows = testing::rule_rows();
  std::vector<Cell> cells = testing::rule_matrix(rows);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < kSample; ++i) {
    const Cell& c = cells[rng() % cells.size()];
    testing::check_cell(c, rows[c.row], rng());
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace xylem::transform
