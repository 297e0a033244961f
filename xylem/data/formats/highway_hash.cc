#include "xylem/data/formats/internal/highway_hash.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>

namespace xylem::data::internal {
namespace {

constexpr std::uint64_t kInit0[4] = {0xdbe6d5d5fe4cce2fu, 0xa4093822299f31d0u, 0x13198a2e03707344u,
                                     0x243f6a8885a308d3u};
constexpr std::uint64_t kInit1[4] = {0x3bd39e10cb0ef593u, 0xc0acf169b5f18a8cu, 0xbe5466cf34e90c6cu,
                                     0x452821e638d01377u};
constexpr std::array<std::uint64_t, 4> kRiegeliKey = {0x2f696c6567656952u, 0x0a7364726f636572u,
                                                      0x2f696c6567656952u, 0x0a7364726f636572u};

constexpr std::uint64_t swap_halves(std::uint64_t v) { return v >> 32 | v << 32; }

// The last 1 to 31 bytes, spread over a packet of 32.
void fill_remainder(const char* data, std::size_t m, char packet[32]) {
  std::memset(packet, 0, 32);
  const std::size_t whole = m & ~std::size_t{3};
  std::memcpy(packet, data, whole);
  if ((m & 16) != 0) {
    std::memcpy(packet + 28, data + m - 4, 4);
  } else if (const std::size_t t = m & 3; t > 0) {
    packet[16] = data[whole];
    packet[17] = data[whole + t / 2];
    packet[18] = data[whole + t - 1];
  }
}

struct PortableState {
  std::uint64_t v0[4], v1[4], mul0[4], mul1[4];

  explicit PortableState(const std::array<std::uint64_t, 4>& key) {
    for (int i = 0; i < 4; ++i) {
      mul0[i] = kInit0[i];
      mul1[i] = kInit1[i];
      v0[i] = kInit0[i] ^ key[static_cast<std::size_t>(i)];
      v1[i] = kInit1[i] ^ swap_halves(key[static_cast<std::size_t>(i)]);
    }
  }
  static std::uint64_t byte(std::uint64_t v, int from, int to) {
    return (v >> (8 * from) & 0xff) << (8 * to);
  }
  // Bytes 0 to 7 of the pair are the even lane, 8 to 15 the odd one.
  static void zipper(const std::uint64_t* from, std::uint64_t* to) {
    const std::uint64_t e = from[0], o = from[1];
    to[0] += byte(e, 3, 0) | byte(o, 4, 1) | byte(e, 2, 2) | byte(e, 5, 3) | byte(o, 6, 4) |
             byte(e, 1, 5) | byte(o, 7, 6) | byte(e, 0, 7);
    to[1] += byte(o, 3, 0) | byte(e, 4, 1) | byte(o, 2, 2) | byte(o, 5, 3) | byte(o, 1, 4) |
             byte(e, 6, 5) | byte(o, 0, 6) | byte(e, 7, 7);
  }
  void update(const std::uint64_t p[4]) {
    for (int i = 0; i < 4; ++i) {
      v1[i] += mul0[i] + p[i];
      mul0[i] ^= (v1[i] & 0xffffffffu) * (v0[i] >> 32);
      v0[i] += mul1[i];
      mul1[i] ^= (v0[i] & 0xffffffffu) * (v1[i] >> 32);
    }
    zipper(v1, v0);
    zipper(v1 + 2, v0 + 2);
    zipper(v0, v1);
    zipper(v0 + 2, v1 + 2);
  }
  void update(const char* packet) {
    std::uint64_t p[4];
    std::memcpy(p, packet, 32);
    update(p);
  }
  void remainder(const char* data, std::size_t m) {
    for (int i = 0; i < 4; ++i) {
      v0[i] += (std::uint64_t{m} << 32) + m;
      const auto low = static_cast<std::uint32_t>(v1[i]);
      const auto high = static_cast<std::uint32_t>(v1[i] >> 32);
      const auto rotate = [m](std::uint32_t x) { return x << m | x >> (32 - m); };
      v1[i] = std::uint64_t{rotate(high)} << 32 | rotate(low);
    }
    char packet[32];
    fill_remainder(data, m, packet);
    update(packet);
  }
  std::uint64_t finish() {
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t p[4] = {swap_halves(v0[2]), swap_halves(v0[3]), swap_halves(v0[0]),
                                  swap_halves(v0[1])};
      update(p);
    }
    return v0[0] + v1[0] + mul0[0] + mul1[0];
  }
};

#if defined(__x86_64__)

struct Avx2State {
  __m256i v0, v1, mul0, mul1;
};

__attribute__((target("avx2"))) inline void update(Avx2State& s, __m256i p) {
  const __m256i order = _mm256_setr_epi8(3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7, 3,
                                         12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7);
  s.v1 = _mm256_add_epi64(s.v1, _mm256_add_epi64(s.mul0, p));
  s.mul0 = _mm256_xor_si256(s.mul0, _mm256_mul_epu32(s.v1, _mm256_srli_epi64(s.v0, 32)));
  s.v0 = _mm256_add_epi64(s.v0, s.mul1);
  s.mul1 = _mm256_xor_si256(s.mul1, _mm256_mul_epu32(s.v0, _mm256_srli_epi64(s.v1, 32)));
  s.v0 = _mm256_add_epi64(s.v0, _mm256_shuffle_epi8(s.v1, order));
  s.v1 = _mm256_add_epi64(s.v1, _mm256_shuffle_epi8(s.v0, order));
}

__attribute__((target("avx2"))) std::uint64_t hash_avx2(std::string_view data,
                                                        const std::array<std::uint64_t, 4>& key) {
  const PortableState start(key);
  const auto load = [](const void* p) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  };
  Avx2State s{load(start.v0), load(start.v1), load(start.mul0), load(start.mul1)};
  const char* p = data.data();
  std::size_t n = data.size();
  for (; n >= 32; n -= 32, p += 32) update(s, load(p));
  PortableState end(key);
  std::memcpy(end.v0, &s.v0, 32);
  std::memcpy(end.v1, &s.v1, 32);
  std::memcpy(end.mul0, &s.mul0, 32);
  std::memcpy(end.mul1, &s.mul1, 32);
  if (n > 0) end.remainder(p, n);
  return end.finish();
}

#endif

}  // namespace

std::uint64_t highway_hash64_portable(std::string_view data,
                                      const std::array<std::uint64_t, 4>& key) {
  PortableState s(key);
  const char* p = data.data();
  std::size_t n = data.size();
  for (; n >= 32; n -= 32, p += 32) s.update(p);
  if (n > 0) s.remainder(p, n);
  return s.finish();
}

std::uint64_t highway_hash64(std::string_view data, const std::array<std::uint64_t, 4>& key) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return hash_avx2(data, key);
#endif
  return highway_hash64_portable(data, key);
}

std::uint64_t riegeli_hash(std::string_view data) { return highway_hash64(data, kRiegeliKey); }

}  // namespace xylem::data::internal
