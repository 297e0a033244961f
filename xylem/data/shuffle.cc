#include "xylem/data/shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>

#include "xylem/base/error.h"

namespace xylem::data {
namespace {

int half_width(std::uint64_t max_index) {
  int width = std::max(16, static_cast<int>(std::bit_width(max_index)));
  width += width % 2;
  return width > 62 ? 32 : width / 2;
}

std::uint64_t mask(int width) { return (std::uint64_t{1} << width) - 1; }

std::uint64_t rotate_left(std::uint64_t x, int by, int width) {
  by %= width;
  if (by == 0) return x;
  return ((x << by) | (x >> (width - by))) & mask(width);
}

}  // namespace

IndexShuffle::IndexShuffle(std::int64_t n, std::uint32_t seed) : n_(n) {
  if (n < 1)
    throw_user_error({"IndexShuffle", "at least one element", fmt::format("n = {}", n),
                      "Give a data set that is not empty"});
  half_width_ = half_width(static_cast<std::uint64_t>(n - 1));
  std::seed_seq sequence{seed};
  std::array<std::uint32_t, 4> words;
  sequence.generate(words.begin(), words.end());
  for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = words[i] & mask(half_width_);
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
  std::uint64_t x = static_cast<std::uint64_t>(index);
  do x = encrypt(x);
  while (x >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(x);
}

}  // namespace xylem::data
