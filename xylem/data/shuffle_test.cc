#include "xylem/data/shuffle.h"

#include <gtest/gtest.h>

#include <vector>

#include "xylem/base/error.h"

namespace xylem::data {
namespace {

std::vector<std::int64_t> order(std::int64_t n, std::uint32_t seed) {
  const IndexShuffle shuffle(n, seed);
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(shuffle(i));
  return out;
}

// range(10).shuffle(42) of Grain 0.2.18, epochs 0 and 1 (seeds 42 and 43); index_shuffle(i, 4, 0,
// 4).
TEST(IndexShuffle, GivesGrainsOrders) {
  EXPECT_EQ(order(10, 42), (std::vector<std::int64_t>{8, 6, 7, 9, 0, 5, 1, 2, 4, 3}));
  EXPECT_EQ(order(10, 43), (std::vector<std::int64_t>{2, 0, 9, 1, 5, 7, 6, 8, 4, 3}));
  EXPECT_EQ(order(5, 0), (std::vector<std::int64_t>{0, 4, 1, 2, 3}));
}

TEST(IndexShuffle, VisitsEachElementOnce) {
  for (const std::int64_t n : {1, 2, 3, 255, 256, 257, 1000, 65535, 65536, 65537, 70000})
    for (const std::uint32_t seed : {0u, 1u, 4294967295u}) {
      std::vector<bool> seen(static_cast<std::size_t>(n));
      for (const std::int64_t i : order(n, seed)) {
        ASSERT_GE(i, 0);
        ASSERT_LT(i, n);
        ASSERT_FALSE(seen[static_cast<std::size_t>(i)]) << n << " " << seed;
        seen[static_cast<std::size_t>(i)] = true;
      }
    }
}

TEST(IndexShuffle, TablesHoldTheSameOrder) {
  for (const Compat compat : {Compat::fixed, Compat::grain})
    for (const std::int64_t n : {1, 2, 3, 17, 255, 256, 1000, 4097, 32768, 65534, 65535}) {
      const IndexShuffle shuffle(n, static_cast<std::uint32_t>(n * 7 + 1), compat);
      const std::vector<std::int32_t> table = shuffle.table();
      ASSERT_EQ(static_cast<std::int64_t>(table.size()), n);
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(table[static_cast<std::size_t>(i)], shuffle(i));
    }
}

TEST(IndexShuffle, DiffersBetweenSeeds) { EXPECT_NE(order(1000, 1), order(1000, 2)); }

TEST(IndexShuffle, TakesHugeRangesWithoutMemory) {
  const std::int64_t n = std::int64_t{1} << 40;
  const IndexShuffle shuffle(n, 7);
  for (const std::int64_t i : {std::int64_t{0}, n / 2, n - 1}) {
    EXPECT_GE(shuffle(i), 0);
    EXPECT_LT(shuffle(i), n);
  }
}

TEST(IndexShuffle, RefusesAnEmptyRange) { EXPECT_THROW(IndexShuffle(0, 0), UserError); }

}  // namespace
}  // namespace xylem::data
