#include "xylem/data/random.h"

#include <fmt/format.h>

#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

namespace xylem::data {

std::vector<std::uint32_t> seed_sequence(std::span<const std::uint64_t> entropy,
                                         std::size_t count) {
  std::vector<std::uint32_t> words;
  for (const std::uint64_t e : entropy) {
    words.push_back(static_cast<std::uint32_t>(e));
    if (e >> 32) words.push_back(static_cast<std::uint32_t>(e >> 32));
  }
  std::uint32_t h = 0x43b0d7e5u;
  const auto hash = [&h](std::uint32_t v) {
    v ^= h;
    h *= 0x931e8875u;
    v *= h;
    return v ^ v >> 16;
  };
  const auto mix = [](std::uint32_t x, std::uint32_t y) {
    const std::uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;
    return r ^ r >> 16;
  };
  std::array<std::uint32_t, 4> pool;
  for (std::size_t k = 0; k < 4; ++k) pool[k] = hash(k < words.size() ? words[k] : 0);
  for (std::size_t s = 0; s < 4; ++s)
    for (std::size_t d = 0; d < 4; ++d)
      if (d != s) pool[d] = mix(pool[d], hash(pool[s]));
  for (std::size_t w = 4; w < words.size(); ++w)
    for (std::size_t d = 0; d < 4; ++d) pool[d] = mix(pool[d], hash(words[w]));
  std::vector<std::uint32_t> out(count);
  std::uint32_t g = 0x8b51f9ddu;
  for (std::size_t k = 0; k < count; ++k) {
    std::uint32_t v = pool[k % 4] ^ g;
    g *= 0x58f38dedu;
    v *= g;
    out[k] = v ^ v >> 16;
  }
  return out;
}

std::uint32_t derive_seed(std::span<const std::uint64_t> entropy) {
  return seed_sequence(entropy, 1)[0];
}

namespace {

std::vector<std::uint64_t> seed_words(std::uint64_t seed, std::size_t count) {
  const std::uint64_t entropy[] = {seed};
  const std::vector<std::uint32_t> w = seed_sequence(entropy, 2 * count);
  std::vector<std::uint64_t> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = w[2 * i] | static_cast<std::uint64_t>(w[2 * i + 1]) << 32;
  return out;
}

std::pair<std::uint64_t, std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 p = static_cast<unsigned __int128>(a) * b;
  return {static_cast<std::uint64_t>(p >> 64), static_cast<std::uint64_t>(p)};
}

}  // namespace

// ---- Philox

Philox::Key Philox::key_of_seed(std::uint64_t seed) {
  const std::vector<std::uint64_t> w = seed_words(seed, 2);
  return {w[0], w[1]};
}

void Philox::refill() {
  for (std::uint64_t& word : counter_)
    if (++word != 0) break;
  std::uint64_t a = counter_[0], b = counter_[1], c = counter_[2], d = counter_[3];
  std::uint64_t k0 = key_[0], k1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      k0 += 0x9E3779B97F4A7C15u;
      k1 += 0xBB67AE8584CAA73Bu;
    }
    const auto [high0, low0] = multiply(0xD2E7470EE14C6C93u, a);
    const auto [high1, low1] = multiply(0xCA5A826395121157u, c);
    a = high1 ^ b ^ k0;
    b = low1;
    c = high0 ^ d ^ k1;
    d = low0;
  }
  block_ = {a, b, c, d};
  used_ = 0;
}

// ---- Pcg64

Pcg64::Pcg64(std::uint64_t seed) {
  const std::vector<std::uint64_t> w = seed_words(seed, 4);
  const auto wide = [&](std::size_t i) {
    return static_cast<unsigned __int128>(w[i]) << 64 | w[i + 1];
  };
  increment_ = wide(2) << 1 | 1;
  next();
  state_ += wide(0);
  next();
}

std::uint64_t Pcg64::next() {
  constexpr unsigned __int128 kMultiplier =
      static_cast<unsigned __int128>(0x2360ED051FC65DA4u) << 64 | 0x4385DF649FCCF645u;
  state_ = state_ * kMultiplier + increment_;
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

// ---- BasicGenerator

template <class Bits>
std::int64_t BasicGenerator<Bits>::integers(std::int64_t low, std::int64_t high) {
  if (low >= high)
    throw_user_error({"Generator::integers", "low < high", fmt::format("[{}, {})", low, high),
                      "Give a range with at least one integer"});
  const std::uint64_t range =
      static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1;
  std::uint64_t offset = 0;
  if (range == 0) {
    offset = 0;
  } else if (range == 0xffffffffu) {
    offset = next_u32();
  } else if (range < 0xffffffffu) {
    // Lemire's method, 32 bits.
    const std::uint32_t n = static_cast<std::uint32_t>(range) + 1;
    std::uint64_t m = static_cast<std::uint64_t>(next_u32()) * n;
    if (static_cast<std::uint32_t>(m) < n) {
      const std::uint32_t threshold = (0xffffffffu - static_cast<std::uint32_t>(range)) % n;
      while (static_cast<std::uint32_t>(m) < threshold)
        m = static_cast<std::uint64_t>(next_u32()) * n;
    }
    offset = m >> 32;
  } else if (range == ~std::uint64_t{0}) {
    offset = next_u64();
  } else {
    const std::uint64_t n = range + 1;
    auto [high_word, low_word] = multiply(next_u64(), n);
    if (low_word < n) {
      const std::uint64_t threshold = (~std::uint64_t{0} - range) % n;
      while (low_word < threshold) std::tie(high_word, low_word) = multiply(next_u64(), n);
    }
    offset = high_word;
  }
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

template <class Bits>
std::uint64_t BasicGenerator<Bits>::masked(std::uint64_t max) {
  if (max == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(max);
  std::uint64_t v;
  if (max <= 0xffffffffu) do
      v = next_u32() & mask;
    while (v > max);
  else
    do v = next_u64() & mask;
    while (v > max);
  return v;
}

template class BasicGenerator<Philox>;
template class BasicGenerator<Pcg64>;

Generator sampler_generator(std::uint64_t seed, std::int64_t index) {
  return Generator(Philox({seed + static_cast<std::uint64_t>(index), 0}, {0, 0, 0, 0}));
}

std::vector<std::int64_t> permuted_range(std::uint64_t seed, std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  BasicGenerator<Pcg64>(Pcg64(seed)).permute(std::span(order));
  return order;
}

}  // namespace xylem::data
