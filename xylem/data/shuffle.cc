#include "xylem/data/shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <mutex>
#include <optional>
#include <random>

#include "xylem/base/error.h"

namespace xylem::data {
namespace {

// Below this length an epoch's order is computed once and kept.
constexpr std::int64_t kTableLimit = 8192;

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
    auto table = std::make_shared<std::vector<std::int32_t>>();
    const IndexShuffle shuffle(n, seed, compat);
    for (std::int64_t i = 0; i < n; ++i) table->push_back(static_cast<std::int32_t>(shuffle(i)));
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
