#include "xylem/data/shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>

#include "xylem/base/error.h"

namespace xylem::data {
namespace {

// Below this length, where the network permutes 16 bits, an epoch's order is computed once and
// kept.
constexpr std::int64_t kTableLimit = 65536;

int half_width(std::uint64_t max_index, Compat compat) {
  int width = std::max(16, static_cast<int>(std::bit_width(max_index)));
  // Grain takes the logarithm of the largest index, which is a bit short for powers of two.
  if (compat == Compat::grain)
    width = std::max(16, static_cast<int>(std::ceil(std::log2(static_cast<double>(max_index)))));
  width += width % 2;
  return width > 62 ? 32 : width / 2;
}

std::uint64_t mask(int width) { return (std::uint64_t{1} << width) - 1; }

std::uint64_t rotate_left(std::uint64_t x, int by, int width) {
  // by <= width, so that no shift count is negative; by == width gives x.
  return ((x << by) | (x >> (width - by))) & mask(width);
}

}  // namespace

IndexShuffle::IndexShuffle(std::int64_t n, std::uint32_t seed, Compat compat, int rounds) : n_(n) {
  if (n < 1)
    throw_user_error({"IndexShuffle", "at least one element", fmt::format("n = {}", n),
                      "Give a data set that is not empty"});
  if (rounds < 4 || rounds > 1024 || rounds % 2 != 0)
    throw_user_error({"IndexShuffle: rounds", "an even number from 4 to 1024",
                      fmt::format("{}", rounds), "Use 4, as shuffling does"});
  half_width_ = half_width(static_cast<std::uint64_t>(n - 1), compat);
  entry_mask_ = half_width_ == 32 ? ~std::uint64_t{0} : mask(2 * half_width_);
  std::seed_seq sequence{seed};
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rounds));
  sequence.generate(words.begin(), words.end());
  for (const std::uint32_t w : words) keys_.push_back(w & mask(half_width_));
}

std::uint64_t IndexShuffle::encrypt(std::uint64_t x) const {
  const int w = half_width_;
  std::uint64_t left = x >> w, right = x & mask(w);
  const auto round = [w](std::uint64_t v) {
    return (rotate_left(v, 1, w) & rotate_left(v, 8, w)) ^ rotate_left(v, 2, w);
  };
  for (std::size_t i = 0; i < keys_.size(); i += 2) {
    left ^= round(right) ^ keys_[i];
    right ^= round(left) ^ keys_[i + 1];
  }
  return left << w | right;
}

std::int64_t IndexShuffle::operator()(std::int64_t index) const {
  XYLEM_CHECK(index >= 0 && index < n_, "index outside the permutation");
  if (n_ == 1) return 0;
  std::uint64_t x = static_cast<std::uint64_t>(index) & entry_mask_;
  do x = encrypt(x);
  while (x >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(x);
}

// The network over all of its domain, sixteen lanes at a time; then all elements walk side by side,
// so that their lookups do not wait for one another.
std::vector<std::int32_t> IndexShuffle::table() const {
  XYLEM_CHECK(half_width_ == 8, "tables are for permutations of 16 bits");
  using Lanes = std::uint8_t __attribute__((vector_size(16)));
  using Words = std::uint16_t __attribute__((vector_size(32)));
  const auto round = [](Lanes v) {
    // A rotation by the width of 8 leaves v as it is.
    return ((v << 1 | v >> 7) & v) ^ (v << 2 | v >> 6);
  };
  std::vector<std::uint16_t> next(65536);
  Lanes first;
  for (int i = 0; i < 16; ++i) first[i] = static_cast<std::uint8_t>(i);
  for (std::size_t x = 0; x < next.size(); x += 16) {
    Lanes left = Lanes{} + static_cast<std::uint8_t>(x >> 8);
    Lanes right = first + static_cast<std::uint8_t>(x);
    for (std::size_t i = 0; i < keys_.size(); i += 2) {
      left ^= round(right) ^ static_cast<std::uint8_t>(keys_[i]);
      right ^= round(left) ^ static_cast<std::uint8_t>(keys_[i + 1]);
    }
    const Words out =
        __builtin_convertvector(left, Words) << 8 | __builtin_convertvector(right, Words);
    std::memcpy(&next[x], &out, sizeof out);
  }
  std::vector<std::int32_t> order(static_cast<std::size_t>(n_));
  if (n_ == 1) return order;
  std::vector<std::uint16_t> element(order.size()), place(order.size());
  std::size_t walking = order.size();
  for (std::size_t i = 0; i < walking; ++i) element[i] = place[i] = static_cast<std::uint16_t>(i);
  while (walking > 0) {
    std::size_t left = 0;
    for (std::size_t k = 0; k < walking; ++k) {
      const std::uint16_t x = next[place[k]], i = element[k];
      order[i] = x;  // for good, once x is in range
      element[left] = i;
      place[left] = x;
      left += x >= n_ ? 1 : 0;
    }
    walking = left;
  }
  return order;
}

// ---- ShuffleOrders

struct ShuffleOrders::Tables {
  using Table = std::shared_ptr<const std::vector<std::int32_t>>;
  struct Entry {
    std::int64_t n = 0;
    std::uint32_t seed = 0;
    Table table;
  };
  std::mutex mutex;
  std::array<Entry, 4> entries;
  std::size_t next = 0;

  Table get(std::int64_t n, std::uint32_t seed, Compat compat) {
    std::lock_guard lock(mutex);
    for (const Entry& e : entries)
      if (e.table && e.n == n && e.seed == seed) return e.table;
    auto table = std::make_shared<std::vector<std::int32_t>>(IndexShuffle(n, seed, compat).table());
    entries[next] = {n, seed, table};
    next = (next + 1) % entries.size();
    return table;
  }
};

ShuffleOrders::ShuffleOrders(std::uint32_t seed, Compat compat)
    : seed_(seed), compat_(compat), tables_(std::make_unique<Tables>()) {}
ShuffleOrders::~ShuffleOrders() = default;
ShuffleOrders::ShuffleOrders(const ShuffleOrders& o) : ShuffleOrders(o.seed_, o.compat_) {}

void ShuffleOrders::apply(std::int64_t n, std::span<const std::int64_t> in,
                          std::span<std::int64_t> out, bool first_epoch_only) const {
  std::int64_t begin = 0, end = 0;  // the epoch that `shuffle` or `table` is for
  std::optional<IndexShuffle> shuffle;
  Tables::Table table;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] < begin || in[i] >= end) {
      const std::int64_t epoch = in[i] / n;
      begin = epoch * n;
      end = begin > INT64_MAX - n ? INT64_MAX : begin + n;
      const auto seed = static_cast<std::uint32_t>(
          first_epoch_only ? seed_ : seed_ + static_cast<std::uint64_t>(epoch));
      if (n < kTableLimit)
        table = tables_->get(n, seed, compat_);
      else
        shuffle.emplace(n, seed, compat_);
    }
    const std::int64_t r = in[i] - begin;
    out[i] = begin + (table ? (*table)[static_cast<std::size_t>(r)] : (*shuffle)(r));
  }
}

}  // namespace xylem::data
