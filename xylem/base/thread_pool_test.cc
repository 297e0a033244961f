#include "xylem/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace xylem {
namespace {

TEST(ThreadPoolTest, EveryChunkRunsOnceWithTheBoundsOfTheCaller) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (std::int64_t n : {0, 1, 2, 7, 64, 1000, 4097}) {
      for (std::int64_t grain : {1, 3, 64, 5000}) {
        std::vector<int> seen(static_cast<std::size_t>(n), 0);
        pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          EXPECT_EQ(begin % grain, 0);
          EXPECT_EQ(end, std::min(n, begin + grain));
          for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(n), 1));
      }
    }
  }
}

TEST(ThreadPoolTest, RawCallsCoverAllChunks) {
  ThreadPool pool(3);
  struct Context {
    std::atomic<std::int64_t> sum{0};
  } context;
  for (int round = 0; round < 2000; ++round) {
    context.sum = 0;
    pool.parallel_for_raw(
        17,
        [](void* p, std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) static_cast<Context*>(p)->sum += i;
        },
        &context);
    ASSERT_EQ(context.sum, 17 * 16 / 2);
  }
}

TEST(ThreadPoolTest, WritesOfWorkersAreVisibleToTheCaller) {
  ThreadPool pool(4);
  std::vector<std::int64_t> v(10000);
  for (int round = 1; round <= 50; ++round) {
    pool.parallel_for(10000, 100, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) v[static_cast<std::size_t>(i)] += i;
    });
    ASSERT_EQ(std::accumulate(v.begin(), v.end(), std::int64_t{0}), round * 49995000ll);
  }
}

TEST(ThreadPoolTest, WorkersThatSleptWakeUp) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    // Each chunk waits for the other: passes only if two threads take part.
    std::atomic<int> arrived{0};
    pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(ThreadPoolTest, TheFirstExceptionReachesTheCaller) {
  ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) {
    try {
      pool.parallel_for(1000, 10, [](std::int64_t begin, std::int64_t) {
        if (begin >= 100) throw std::runtime_error(std::to_string(begin));
      });
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_GE(std::stoi(e.what()), 100);
    }
  }
  // The pool works on.
  std::atomic<int> count{0};
  pool.parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++count; });
  EXPECT_EQ(count, 10);
  // With one thread chunks run in order.
  ThreadPool one(1);
  try {
    one.parallel_for(10, 1, [](std::int64_t begin, std::int64_t) {
      if (begin >= 3) throw std::runtime_error(std::to_string(begin));
    });
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "3");
  }
}

TEST(ThreadPoolTest, NestedCallsRunInlineInOrder) {
  ThreadPool pool(3);
  std::atomic<int> wrong{0};
  pool.parallel_for(30, 1, [&](std::int64_t, std::int64_t) {
    if (!ThreadPool::in_parallel()) ++wrong;
    const auto id = std::this_thread::get_id();
    std::int64_t last = -1;
    pool.parallel_for(10, 1, [&](std::int64_t begin, std::int64_t) {
      if (std::this_thread::get_id() != id || begin <= last) ++wrong;
      last = begin;
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(ThreadPool::in_parallel());
}

TEST(ThreadPoolTest, SeveralThreadsCallAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> failures{0};
  for (int t = 0; t < 12; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<std::int64_t> sum{0};
        pool.parallel_for(50, 1, [&](std::int64_t begin, std::int64_t) { sum += begin; });
        if (sum != 50 * 49 / 2) ++failures;
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(failures, 0);
}

TEST(ThreadPoolTest, PoolsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(3);
    if (i % 2) continue;
    std::atomic<int> count{0};
    pool.parallel_for(5, 1, [&](std::int64_t, std::int64_t) { ++count; });
    ASSERT_EQ(count, 5);
  }
}

TEST(ThreadPoolTest, TheGlobalPoolHasAtLeastTheCaller) {
  EXPECT_GE(ThreadPool::global().num_threads(), 1);
  EXPECT_GE(ThreadPool::default_num_threads(), 1);
  EXPECT_EQ(&ThreadPool::global(), &ThreadPool::global());
}

}  // namespace
}  // namespace xylem
