#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "xylem/base/file.h"
#include "xylem/data/dataset.h"

namespace xylem::data {
namespace {

std::int64_t resident_bytes() {
  const std::string s = read_file("/proc/self/statm");
  return std::stoll(s.substr(s.find(' '))) * 4096;
}

// Takes batches until `elements` have come, and gives how far memory grew after the first tenth.
template <class Iterator>
std::int64_t growth(Iterator it, std::int64_t elements) {
  std::int64_t taken = 0, start = 0, most = 0;
  while (taken < elements) {
    for (int i = 0; i < 1000; ++i) taken += it.next().value().dims()[0];
    if (start == 0 && taken > elements / 10) start = resident_bytes();
    if (start != 0) most = std::max(most, resident_bytes() - start);
    EXPECT_LT(it.get_state().size(), 4096u);
  }
  return most;
}

TEST(Memory, IsFlatOverAHundredMillionElements) {
  constexpr std::int64_t kElements = 100'000'000;
  const auto batches =
      range(1'000'003).shuffle(1).map([](std::int64_t x) { return x + 1; }).repeat();
  EXPECT_LT(growth(batches.batch(64).to_iter_dataset({.num_threads = 0}).iterator(), kElements),
            1 << 20);
  EXPECT_LT(growth(batches.batch(64)
                       .to_iter_dataset({.num_threads = 2, .prefetch_buffer_size = 16})
                       .thread_prefetch(4)
                       .iterator(),
                   kElements),
            4 << 20);
}

TEST(Memory, IsFlatOverPackedAndMixedElements) {
  const auto documents = [](std::int64_t n) {
    return range(n).shuffle(3).repeat().map([](std::int64_t x) {
      return std::vector<std::int32_t>(static_cast<std::size_t>(x % 50 + 1), 1);
    });
  };
  const auto rows = mix({documents(1000), documents(777)}, {0.7, 0.3})
                        .to_iter_dataset({.num_threads = 1, .prefetch_buffer_size = 64})
                        .window_shuffle(100, 5)
                        .first_fit_pack({.length = {{"", 256}}, .num_packing_bins = 16})
                        .map([](const Packed<HostArray>& p) { return p.values; })
                        .batch(8);
  EXPECT_LT(growth(rows.iterator(), 60'000), 4 << 20);
}

}  // namespace
}  // namespace xylem::data
