#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace xylem::data {

// Which of two behaviours a pipeline has where Grain's differs from what one would expect. `fixed`
// is right everywhere; `grain` reproduces Grain 0.2.18, to continue its runs:
//
//   shuffle of 2^k + 1 elements, k >= 16 even      grain loses one element and repeats another
//   window shuffle whose window does not divide    grain repeats and loses elements at epoch ends
//   slice after shuffle, epochs after the first    grain gives elements outside the first slice
//   concat-then-split of several features          grain repeats and delays tokens of an element
//                                                  that is cut twice
//   IndexSampler, unequal shards, several epochs   grain gives shards unequal parts
enum class Compat : std::uint8_t { fixed, grain };

// A permutation of [0, n) that costs no memory: element i of the order is computed from i. So the
// state of a shuffled pass over a data set is its position alone.
//
// It is Grain's index_shuffle: a Feistel network on Simon's round function with keys from
// std::seed_seq, walked until the image lies in range. Immutable.
class IndexShuffle {
 public:
  // n >= 1; rounds even, from 4 to 1024.
  IndexShuffle(std::int64_t n, std::uint32_t seed, Compat compat = Compat::fixed, int rounds = 4);
  // Where element `index` of [0, n) goes. A dozen nanoseconds for n >= 2^14; up to 2^16 / n
  // times that below.
  std::int64_t operator()(std::int64_t index) const;
  std::int64_t size() const { return n_; }
  // All of it, for n < 2^16: about 0.1 ms.
  std::vector<std::int32_t> table() const;

 private:
  std::uint64_t encrypt(std::uint64_t x) const;

  std::int64_t n_;
  int half_width_;
  std::uint64_t entry_mask_;
  std::vector<std::uint64_t> keys_;
};

// The orders of one shuffle node: that of epoch e is IndexShuffle(n, seed + e). Orders of short
// lengths, for which IndexShuffle is slow, are kept as tables. Thread-safe.
class ShuffleOrders {
 public:
  ShuffleOrders(std::uint32_t seed, Compat compat);
  ~ShuffleOrders();
  ShuffleOrders(const ShuffleOrders& other);
  ShuffleOrders& operator=(const ShuffleOrders&) = delete;

  // Replaces each index i, in epoch e = i / n, by e * n + order(e)(i % n). With `first_epoch_only`
  // every epoch has the order of epoch 0.
  void apply(std::int64_t n, std::span<const std::int64_t> in, std::span<std::int64_t> out,
             bool first_epoch_only = false) const;
  std::uint32_t seed() const { return seed_; }

 private:
  struct Tables;
  std::uint32_t seed_;
  Compat compat_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace xylem::data
