#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "xylem/base/error.h"

// The random numbers of pipelines, bit for bit those of Grain and NumPy. All are counter based or
// seeded anew for each use, so that nothing depends on how far iteration has come.

namespace xylem::data {

// NumPy's SeedSequence over a list of integers, each split into 32-bit words, the least significant
// first: `count` output words of 32 bits.
std::vector<std::uint32_t> seed_sequence(std::span<const std::uint64_t> entropy, std::size_t count);

// The seed of a random node without one of its own: the first word of SeedSequence over
// (seed, distance) of the marked ancestors.
std::uint32_t derive_seed(std::span<const std::uint64_t> entropy);

// Philox-4x64-10 as numpy.random.Philox.
class Philox {
 public:
  using Key = std::array<std::uint64_t, 2>;
  using Counter = std::array<std::uint64_t, 4>;

  Philox() = default;
  Philox(Key key, Counter counter) : key_(key), counter_(counter) {}
  // Key from SeedSequence(seed), as Philox(seed) does.
  static Key key_of_seed(std::uint64_t seed);

  std::uint64_t next() {
    if (used_ == 4) refill();
    return block_[static_cast<std::size_t>(used_++)];
  }

 private:
  void refill();

  Key key_{};
  Counter counter_{};
  std::array<std::uint64_t, 4> block_{};
  int used_ = 4;
};

// PCG64 (XSL-RR 128/64) as numpy.random.PCG64, what default_rng uses.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);
  std::uint64_t next();

 private:
  unsigned __int128 state_ = 0, increment_ = 0;
};

// numpy.random.Generator's methods whose results are the same bits. `random` and `integers` (the
// bounded methods with masks or tables are NumPy's own business, so normal, choice and the like are
// not offered: draw them from these). One thread at a time.
template <class Bits>
class BasicGenerator {
 public:
  BasicGenerator() = default;
  explicit BasicGenerator(Bits bits) : bits_(bits) {}

  // 64 raw bits.
  std::uint64_t next_u64() { return bits_.next(); }
  // 32 bits: the low half of a word, then its high half.
  std::uint32_t next_u32() {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    const std::uint64_t w = bits_.next();
    has_half_ = true;
    half_ = static_cast<std::uint32_t>(w >> 32);
    return static_cast<std::uint32_t>(w);
  }
  // Uniform in [0, 1): 53 bits.
  double random() { return static_cast<double>(bits_.next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * random(); }
  // Uniform integer in [low, high), as integers(low, high) of dtype int64. UserError if low >=
  // high.
  std::int64_t integers(std::int64_t low, std::int64_t high);
  std::int64_t integers(std::int64_t high) { return integers(0, high); }
  // The values in random order, as `permuted` (and `shuffle`).
  template <class T>
  void permute(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) {
      const std::size_t j = static_cast<std::size_t>(masked(i));
      std::swap(values[i], values[j]);
    }
  }

 private:
  // Uniform in [0, max] by masked rejection.
  std::uint64_t masked(std::uint64_t max);

  Bits bits_;
  std::uint32_t half_ = 0;
  bool has_half_ = false;
};

extern template class BasicGenerator<Philox>;
extern template class BasicGenerator<Pcg64>;

// The generator that random_map and DataLoader hand to a function, one for each record.
using Generator = BasicGenerator<Philox>;

// That of record `index` of a random_map with this seed.
class RecordGenerators {
 public:
  explicit RecordGenerators(std::uint64_t seed) : key_(Philox::key_of_seed(seed)) {}
  Generator operator()(std::int64_t index) const {
    return Generator(Philox(key_, {0, 0, 0, static_cast<std::uint64_t>(index)}));
  }

 private:
  Philox::Key key_;
};

// That of a sampler's record: Philox(key = seed + index).
Generator sampler_generator(std::uint64_t seed, std::int64_t index);

// default_rng(seed).permuted(range(n)).
std::vector<std::int64_t> permuted_range(std::uint64_t seed, std::int64_t n);

}  // namespace xylem::data
