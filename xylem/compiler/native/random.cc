#include "xylem/compiler/native/random.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "xylem/base/host_array.h"

namespace xylem::compiler {
namespace {

struct Philox {
  std::uint64_t key, low, high;

  // The four words of the counter, which moves on.
  void next(std::uint32_t* out) {
    std::uint32_t x0 = static_cast<std::uint32_t>(low), x1 = static_cast<std::uint32_t>(low >> 32);
    std::uint32_t x2 = static_cast<std::uint32_t>(high),
                  x3 = static_cast<std::uint32_t>(high >> 32);
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p = std::uint64_t{0xD2511F53u} * x0, q = std::uint64_t{0xCD9E8D57u} * x2;
      x0 = static_cast<std::uint32_t>(q >> 32) ^ x1 ^ k0;
      x1 = static_cast<std::uint32_t>(q);
      x2 = static_cast<std::uint32_t>(p >> 32) ^ x3 ^ k1;
      x3 = static_cast<std::uint32_t>(p);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
    if (++low == 0) ++high;
  }
};

// Narrow results take the low bits of a 32-bit word each.
template <class T>
void fill(Philox& g, T* out, std::int64_t n) {
  std::uint32_t words[4];
  constexpr std::int64_t kPer = sizeof(T) == 8 ? 2 : 4;
  for (std::int64_t i = 0; i < n; i += kPer) {
    g.next(words);
    for (std::int64_t j = 0; j < kPer && i + j < n; ++j) {
      if constexpr (sizeof(T) == 8)
        out[i + j] = words[2 * j] | static_cast<std::uint64_t>(words[2 * j + 1]) << 32;
      else
        out[i + j] = static_cast<T>(words[j]);
    }
  }
}

}  // namespace

void philox_bits(const std::uint64_t* state, std::int64_t words, std::uint64_t* next, DType dtype,
                 void* out, std::int64_t n) {
  // With two words of state the counter starts at (low = the counter, high = the key).
  Philox g{state[0], state[1], words == 2 ? state[0] : state[2]};
  switch (dtype_bytes(dtype)) {
    case 1: fill(g, static_cast<std::uint8_t*>(out), n); break;
    case 2: fill(g, static_cast<std::uint16_t*>(out), n); break;
    case 4: fill(g, static_cast<std::uint32_t*>(out), n); break;
    default: fill(g, static_cast<std::uint64_t*>(out), n); break;
  }
  next[0] = g.key;
  next[1] = g.low;
  if (words > 2) next[2] = g.high;
}

void random_numbers(bool normal, DType dtype, const void* a, const void* b, void* out,
                    std::int64_t n) {
  static std::atomic<std::uint64_t> streams{0};
  Philox g{streams.fetch_add(1), 0, 0};
  const auto bytes = static_cast<std::size_t>(dtype_bytes(dtype));
  const auto scalar = [&](const void* p) {
    return HostArray::from_bytes(dtype, {}, {static_cast<const std::byte*>(p), bytes});
  };
  std::vector<std::uint64_t> words(static_cast<std::size_t>(2 * n));
  fill(g, words.data(), 2 * n);
  const auto word = [&](std::int64_t i) { return words[static_cast<std::size_t>(i)]; };
  HostArray result;
  if (is_float(dtype)) {
    const auto unit = [&](std::int64_t i) { return static_cast<double>(word(i) >> 11) * 0x1p-53; };
    const double low = scalar(a).at(0), high = scalar(b).at(0);
    std::vector<double> values(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i)
      values[static_cast<std::size_t>(i)] =
          normal ? low + high * std::sqrt(-2 * std::log1p(-unit(2 * i))) *
                             std::cos(2 * std::numbers::pi * unit(2 * i + 1))
                 : low + (high - low) * unit(2 * i);
    result = HostArray::from(values, {n}).astype(dtype);
    // Rounding may reach the open end.
    if (!normal && low < high)
      for (std::int64_t i = 0; i < n; ++i)
        if (!(result.at(i) < high))
          std::memcpy(result.data() + static_cast<std::size_t>(i) * bytes, a, bytes);
  } else {
    const std::int64_t low = *scalar(a).astype(DType::kI64).as<std::int64_t>();
    const std::int64_t high = *scalar(b).astype(DType::kI64).as<std::int64_t>();
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    std::vector<std::int64_t> values(static_cast<std::size_t>(n), low);
    if (high > low)
      for (std::int64_t i = 0; i < n; ++i)
        values[static_cast<std::size_t>(i)] =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + word(2 * i) % span);
    result = HostArray::from(values, {n}).astype(dtype);
  }
  std::memcpy(out, result.data(), result.nbytes());
}

}  // namespace xylem::compiler
