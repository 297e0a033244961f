// The whole rule matrix. XYLEM_SEED gives other inputs.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "xylem/core/testing/rule_matrix.h"

namespace xylem::transform {
namespace {

using testing::Cell;
using testing::Row;

TEST(RuleMatrixSoak, EveryCellIsCompiledAsItIsInterpreted) {
  const char* given = std::getenv("XYLEM_SEED");
  std::uint64_t seed = given ? std::stoull(given) : 1;
  std::vector<Row> rows = testing::rule_rows();
  std::vector<Cell> cells = testing::rule_matrix(rows);
  std::printf("rule matrix: %zu cells of %zu rows\n", cells.size(), rows.size());
  for (std::size_t i = 0; i < cells.size(); ++i)
    testing::check_cell(cells[i], rows[cells[i].row], seed + i);
  EXPECT_GT(cells.size(), 10000u);
}

}  // namespace
}  // namespace xylem::transform
