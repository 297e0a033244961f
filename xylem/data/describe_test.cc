#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "xylem/data/dataset.h"
#include "xylem/data/testing/elements.h"

namespace xylem::data {
namespace {

using testing::all;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

TEST(Describe, ShowsTypesShapesAndCounts) {
  const auto ds = range(10).shuffle(1).batch(4).to_iter_dataset().map(
      [](HostArray a) { return a.astype(DType::kF32); }, "cast");
  const std::string text = ds.describe();
  const std::string integer(reflect::type_name<std::int64_t>());  // compilers differ
  EXPECT_EQ(text,
            "map:cast: HostArray = f32[4]\n"
            "  to_iter_dataset(num_threads=16, prefetch_buffer_size=500): HostArray = i64[4]\n"
            "    batch(4): HostArray = i64[4], 3 elements\n"
            "      shuffle(seed=1): " +
                integer +
                " = i64, 10 elements\n"
                "        range(0, 10, 1): " +
                integer + " = i64, 10 elements\n");
  EXPECT_THAT(ds.dot(), HasSubstr("shuffle(seed=1)"));
  EXPECT_EQ(ds.verdict(), "not measured: set PipelineOptions::timing");
}

TEST(Describe, MeasuresNodesAndNamesTheSlowest) {
  const auto slow = [](std::int64_t x) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return x;
  };
  const auto ds = range(200)
                      .map(slow, "tokenize")
                      .batch(10)
                      .to_iter_dataset({.num_threads = 0})
                      .with_options({.timing = true});
  EXPECT_EQ(all(ds).size(), 20u);
  EXPECT_THAT(ds.verdict(), HasSubstr("input-bound"));
  EXPECT_THAT(ds.verdict(), HasSubstr("`map:tokenize` takes "));
  EXPECT_THAT(ds.verdict(), HasSubstr("threads"));
  EXPECT_THAT(ds.describe(), HasSubstr("200 elements"));
  EXPECT_THAT(ds.html(), HasSubstr("map:tokenize"));
}

TEST(Describe, DebugModeReportsEveryNodesElements) {
  std::vector<std::string> lines;
  PipelineOptions o;
  o.debug = true;
  o.debug_sink = [&](const std::string& s) { lines.push_back(s); };
  const auto ds = range(2)
                      .map([](std::int64_t x) { return x * 2; }, "double")
                      .to_iter_dataset({.num_threads = 4})
                      .thread_prefetch(3)
                      .with_options(o);
  EXPECT_EQ(all(ds), (Ints{0, 2}));
  EXPECT_THAT(lines, ::testing::Contains("range(0, 2, 1) > map:double [1]: i64 = 2"));
}

}  // namespace
}  // namespace xylem::data
