#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "xylem/base/file.h"
#include "xylem/data/dataset.h"
#include "xylem/data/testing/elements.h"

namespace xylem::data {
namespace {

using testing::all;
using Ints = std::vector<std::int64_t>;

std::size_t threads_of_this_process() { return list_directory("/proc/self/task").size(); }

// ---- threads

TEST(Threads, LeaveWithTheirIterators) {
  std::thread([] {}).join();  // a sanitizer keeps one of its own from the first on
  const std::size_t before = threads_of_this_process();
  for (int i = 0; i < 1000; ++i) {
    auto it = range(100000)
                  .map([](std::int64_t x) { return x; })
                  .to_iter_dataset({.num_threads = 4, .prefetch_buffer_size = 8})
                  .thread_prefetch(2)
                  .map([](std::int64_t x) { return x + 1; })
                  .thread_prefetch(3)
                  .iterator();
    if (i % 10 == 0) it.start_prefetch();
    if (i % 3 > 0) it.next();
    if (i % 2 > 0) it.close();
  }
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(Threads, KeepNoMoreThanTheBuffer) {
  std::atomic<int> made{0};
  auto slow = [&made](std::int64_t x) {
    ++made;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return x;
  };
  auto it = range(100000)
                .map(slow)
                .to_iter_dataset({.num_threads = 3, .prefetch_buffer_size = 20})
                .iterator();
  for (int i = 0; i < 10; ++i) it.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_LE(made, 10 + 20 + 3);
  EXPECT_GE(made, 10);
}

TEST(Threads, AreNoMoreThanAskedFor) {
  std::atomic<int> now{0}, most{0};
  auto work = [&](std::int64_t x) {
    const int n = ++now;
    int seen = most;
    while (n > seen && !most.compare_exchange_weak(seen, n)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --now;
    return x;
  };
  all(range(200).map(work).to_iter_dataset({.num_threads = 2, .prefetch_buffer_size = 50}));
  EXPECT_LE(most, 2);
}

// ---- sources

struct CountingSource {
  std::shared_ptr<std::vector<Ints>> reads = std::make_shared<std::vector<Ints>>();
  std::int64_t size() const { return 50000; }
  std::int64_t get(std::int64_t i) const { return i; }
  void get_batch(std::span<const std::int64_t> indices,
                 std::span<std::optional<std::int64_t>> out) const {
    reads->emplace_back(indices.begin(), indices.end());
    for (std::size_t k = 0; k < indices.size(); ++k) out[k] = indices[k];
  }
};

TEST(Sources, AreAskedForSortedRuns) {
  CountingSource s;
  const auto ds = source(s, "counting").shuffle(1).batch(64);
  const HostArray b = ds[0];
  ASSERT_EQ(s.reads->size(), 1u);
  EXPECT_EQ((*s.reads)[0].size(), 64u);
  EXPECT_TRUE(std::is_sorted((*s.reads)[0].begin(), (*s.reads)[0].end()));
  const IndexShuffle order(50000, 1);
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(b.as<std::int64_t>()[i], order(i));
}

}  // namespace
}  // namespace xylem::data
