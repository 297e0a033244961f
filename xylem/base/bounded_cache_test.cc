#include "xylem/base/bounded_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace xylem {
namespace {

TEST(BoundedCache, PushesOutWhatWasUsedLongestAgo) {
  BoundedCache<std::string, int> cache(3);
  cache.insert("a", 1);
  cache.insert("b", 2);
  cache.insert("c", 3);
  EXPECT_EQ(cache.find("a"), 1);  // now b is the oldest
  cache.insert("d", 4);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.find("b"), std::nullopt);
  EXPECT_EQ(cache.find("a"), 1);
  EXPECT_EQ(cache.find("c"), 3);
  EXPECT_EQ(cache.find("d"), 4);
}

TEST(BoundedCache, KeepsTheFirstValueOfAKey) {
  BoundedCache<int, std::string> cache(2);
  EXPECT_EQ(cache.insert(1, "first"), "first");
  EXPECT_EQ(cache.insert(1, "second"), "first");
  EXPECT_EQ(cache.size(), 1u);
}

TEST(BoundedCache, HoldsOneValueAtLeast) {
  BoundedCache<int, int> cache(0);
  EXPECT_EQ(cache.insert(1, 10), 10);
  EXPECT_EQ(cache.find(1), 10);
  EXPECT_EQ(cache.insert(2, 20), 20);
  EXPECT_EQ(cache.find(1), std::nullopt);
  EXPECT_EQ(cache.find(2), 20);
}

// A value whose destructor uses the cache, as that of a program that holds another one may.
TEST(BoundedCache, DestroysValuesOutsideOfItsLock) {
  struct Cache {
    BoundedCache<int, std::shared_ptr<void>> values{1};
    int asked = 0;
  } cache;
  cache.values.insert(1, std::shared_ptr<void>(nullptr, [&](void*) {
                        cache.values.find(2);
                        ++cache.asked;
                      }));
  cache.values.insert(2, nullptr);
  EXPECT_EQ(cache.asked, 1);
}

TEST(BoundedCache, ThreadsMayUseItAtOnce) {
  BoundedCache<int, int> cache(16);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const int key = (i * 7 + t) % 40;
        const std::optional<int> found = cache.find(key);
        if (found ? *found != key * 3 : cache.insert(key, key * 3) != key * 3) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.size(), 16u);
}

}  // namespace
}  // namespace xylem
