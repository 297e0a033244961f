#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "xylem/data/dataset.h"
#include "xylem/data/testing/elements.h"

namespace xylem::data {
namespace {

using testing::all;
using testing::error_of;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

std::int64_t fails_at_7(std::int64_t i) {
  if (i == 7) throw std::runtime_error("cannot decode");
  return i;
}

TEST(Errors, NameTheNodeTheElementAndTheRecordAtItsPosition) {
  for (const int threads : {0, 3}) {
    const auto ds =
        source(Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "numbers.txt")
            .shuffle(42)
            .map(fails_at_7, "decode")
            .to_iter_dataset({.num_threads = threads, .prefetch_buffer_size = 4 * threads});
    auto it = ds.iterator();
    EXPECT_EQ(it.next(), 8);
    EXPECT_EQ(it.next(), 6);
    const std::string e = error_of([&] { it.next(); });
    EXPECT_THAT(e, HasSubstr("shuffle(seed=42) > map:decode, element 2 (record 7 of numbers.txt)"));
    EXPECT_THAT(e, HasSubstr("cannot decode"));
    // The position is that of the failing element.
    EXPECT_EQ(it.get_state(), "{\"next_index\": 2}");
    EXPECT_NE(error_of([&] { it.next(); }), "none");
    it.set_state("{\"next_index\": 3}");
    EXPECT_EQ(it.next(), 9);
  }
}

TEST(Errors, OfLaterNodesNameTheRecordToo) {
  const auto ds = source(Ints{5, 6, 7, 8}, "f").to_iter_dataset().map(fails_at_7, "g");
  for (const auto& d : {ds, ds.thread_prefetch(2), ds.mp_prefetch({.num_workers = 2})}) {
    auto it = d.iterator();
    it.next();
    it.next();
    const std::string e = error_of([&] { it.next(); });
    EXPECT_THAT(e, HasSubstr("map:g (record 2 of f)"));
  }
}

TEST(Errors, CanBeSkippedAndAreCounted) {
  for (const int threads : {0, 2}) {
    const auto ds =
        range(20)
            .map(fails_at_7)
            .to_iter_dataset(
                {.num_threads = threads, .prefetch_buffer_size = 8, .on_error = OnError::skip});
    EXPECT_EQ(all(ds).size(), 19u);
    EXPECT_EQ(ds.node()->stats().skipped, 1);
  }
  const auto later =
      range(20).to_iter_dataset().map(fails_at_7).with_options({.on_error = OnError::skip});
  EXPECT_EQ(all(later).size(), 19u);
  EXPECT_THAT(later.describe(), HasSubstr("1 skipped"));
}

TEST(Errors, KeepTheirKind) {
  const auto ds = range(3).map([](std::int64_t) -> std::int64_t {
    throw EnvironmentError(ErrorParts{"read x", "a disk", "none", "Mount it"});
  });
  EXPECT_THROW(ds[0], EnvironmentError);
}

TEST(Filter, WarnsOrFailsWhenItRejectsNearlyEverything) {
  const auto ds = range(5000).to_iter_dataset().filter([](std::int64_t i) { return i % 100 == 0; });
  EXPECT_EQ(all(ds).size(), 50u);
  EXPECT_THAT(error_of([&] { all(ds.with_options({.filter_raise_threshold = 0.95})); }),
              HasSubstr("99.00 %"));
}

}  // namespace
}  // namespace xylem::data
