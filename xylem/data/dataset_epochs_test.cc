#include <gtest/gtest.h>

#include <set>
#include <string>

#include "xylem/base/file.h"
#include "xylem/data/dataset.h"
#include "xylem/data/testing/elements.h"

namespace xylem::data {
namespace {

TEST(Slice, AfterShuffleKeepsItsRecordsInEveryEpoch) {
  const auto part = range(100).shuffle(3).slice(0, 10);
  std::set<std::int64_t> first;
  for (std::int64_t i = 0; i < 10; ++i) first.insert(part[i]);
  bool reordered = false;
  for (std::int64_t epoch = 1; epoch < 5; ++epoch) {
    std::set<std::int64_t> records;
    for (std::int64_t i = 0; i < 10; ++i) {
      records.insert(part[epoch * 10 + i]);
      reordered |= part[epoch * 10 + i] != part[i];
    }
    EXPECT_EQ(records, first);
  }
  EXPECT_TRUE(reordered);
  // The rest is the rest.
  const auto others = range(100).shuffle(3).slice(10, std::nullopt);
  for (std::int64_t i = 0; i < 270; ++i) EXPECT_FALSE(first.contains(others[i]));
}

TEST(Slice, OfRepeatedShufflesKeepsItsRecords) {
  const auto part = range(20).shuffle(3).repeat(2).slice(5, 15);
  std::multiset<std::int64_t> first, second;
  for (std::int64_t i = 0; i < 10; ++i) first.insert(part[i]), second.insert(part[10 + i]);
  EXPECT_EQ(first, second);
}

TEST(WindowShuffle, IsAPermutationOfEveryEpoch) {
  for (const std::int64_t n : {1, 3, 10, 12})
    for (const std::int64_t w : {1, 4, 5, 40}) {
      const auto ds = range(n).window_shuffle(w, 9);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        std::set<std::int64_t> seen;
        for (std::int64_t i = 0; i < n; ++i) seen.insert(ds[epoch * n + i]);
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), n);
      }
    }
}

TEST(Elements, AreFlatInMemoryOverManyEpochs) {
  auto it = range(1000).shuffle(1).repeat().batch(64).to_iter_dataset().iterator();
  const auto resident = [] {
    const std::string s = read_file("/proc/self/statm");
    return std::stoll(s.substr(s.find(' '))) * 4096;
  };
  // Orders and freed batches are kept up to a bound, which is reached first.
  for (int i = 0; i < 10000; ++i) it.next();
  const auto before = resident();
  for (int i = 0; i < 20000; ++i) it.next();
  EXPECT_LT(resident() - before, 4 << 20);
}

}  // namespace
}  // namespace xylem::data
