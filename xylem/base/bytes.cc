#include "xylem/base/bytes.h"

#include <fmt/format.h>

#include <array>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "xylem/base/error.h"

namespace xylem {

void ByteReader::throw_short(std::uint64_t n) const {
  throw_user_error({name_, fmt::format("{} bytes must follow at offset {}", n, at_),
                    fmt::format("{} of {} bytes are left", remaining(), data_.size()),
                    "The data is cut short or damaged: get it again"});
}

void ByteReader::fail(std::string_view expected, std::string_view given) const {
  throw_user_error({name_, expected, fmt::format("{} (at offset {})", given, at_),
                    "The data is damaged or of another format"});
}

void ByteReader::seek(std::uint64_t position) {
  if (position > data_.size())
    fail(fmt::format("offsets must lie within {} bytes", data_.size()),
         fmt::format("offset {} is asked for", position));
  at_ = static_cast<std::size_t>(position);
}

std::uint64_t ByteReader::read_varint() {
  std::uint64_t v = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto b = read<std::uint8_t>();
    if (shift == 63 && b > 1) break;
    v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
    if (b < 0x80) return v;
  }
  fail("a variable-length integer must fit 64 bits", "it does not");
}

void ByteWriter::write_varint(std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out_ += static_cast<char>(v | 0x80);
  out_ += static_cast<char>(v);
}

// ---- CRC-32C

namespace {

constexpr std::array<std::array<std::uint32_t, 256>, 8> make_crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    t[0][i] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
  return t;
}

constexpr auto kCrc = make_crc_tables();

std::uint32_t crc_portable(const std::byte* p, std::size_t n, std::uint32_t c) {
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t w;
    std::memcpy(&w, p, 8);
    w ^= c;
    c = 0;
    for (std::size_t k = 0; k < 8; ++k) c ^= kCrc[7 - k][w >> (8 * k) & 255];
  }
  for (; n > 0; ++p, --n) c = c >> 8 ^ kCrc[0][(c ^ static_cast<std::uint32_t>(*p)) & 255];
  return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_hardware(const std::byte* p, std::size_t n,
                                                             std::uint32_t c) {
  std::uint64_t c64 = c;
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t w;
    std::memcpy(&w, p, 8);
    c64 = _mm_crc32_u64(c64, w);
  }
  c = static_cast<std::uint32_t>(c64);
  for (; n > 0; ++p, --n) c = _mm_crc32_u8(c, static_cast<unsigned char>(*p));
  return c;
}
#endif

}  // namespace

namespace internal {
// For the test, which compares it with the hardware's.
std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t crc) {
  return ~crc_portable(data.data(), data.size(), ~crc);
}
}  // namespace internal

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool hardware = __builtin_cpu_supports("sse4.2");
  if (hardware) return ~crc_hardware(data.data(), data.size(), ~crc);
#endif
  return internal::crc32c_portable(data, crc);
}

// ---- XXH64

namespace {

constexpr std::uint64_t kP1 = 0x9e3779b185ebca87u;
constexpr std::uint64_t kP2 = 0xc2b2ae3d27d4eb4fu;
constexpr std::uint64_t kP3 = 0x165667b19e3779f9u;
constexpr std::uint64_t kP4 = 0x85ebca77c2b2ae63u;
constexpr std::uint64_t kP5 = 0x27d4eb2f165667c5u;

std::uint64_t load64(const std::byte* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

std::uint64_t round64(std::uint64_t acc, std::uint64_t v) {
  return std::rotl(acc + v * kP2, 31) * kP1;
}

}  // namespace

std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed) {
  const std::byte* p = data.data();
  std::size_t n = data.size();
  std::uint64_t h;
  if (n >= 32) {
    std::uint64_t v[4] = {seed + kP1 + kP2, seed + kP2, seed, seed - kP1};
    for (; n >= 32; p += 32, n -= 32)
      for (int k = 0; k < 4; ++k) v[k] = round64(v[k], load64(p + 8 * k));
    h = std::rotl(v[0], 1) + std::rotl(v[1], 7) + std::rotl(v[2], 12) + std::rotl(v[3], 18);
    for (std::uint64_t x : v) h = (h ^ round64(0, x)) * kP1 + kP4;
  } else {
    h = seed + kP5;
  }
  h += data.size();
  for (; n >= 8; p += 8, n -= 8) h = std::rotl(h ^ round64(0, load64(p)), 27) * kP1 + kP4;
  if (n >= 4) {
    std::uint32_t w;
    std::memcpy(&w, p, 4);
    h = std::rotl(h ^ w * kP1, 23) * kP2 + kP3;
    p += 4;
    n -= 4;
  }
  for (; n > 0; ++p, --n) h = std::rotl(h ^ static_cast<std::uint64_t>(*p) * kP5, 11) * kP1;
  h = (h ^ h >> 33) * kP2;
  h = (h ^ h >> 29) * kP3;
  return h ^ h >> 32;
}

// ---- hexadecimal

std::string to_hex(std::span<const std::byte> data) {
  constexpr char digits[] = "0123456789abcdef";
  std::string s;
  s.reserve(2 * data.size());
  for (std::byte b : data) {
    s += digits[static_cast<unsigned>(b) >> 4];
    s += digits[static_cast<unsigned>(b) & 15];
  }
  return s;
}

std::string from_hex(std::string_view hex) {
  const auto value = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw_user_error({"from_hex", "the text must consist of hexadecimal digits",
                      fmt::format("it holds the character with code {}", static_cast<int>(c)),
                      "Remove prefixes and separators"});
  };
  if (hex.size() % 2 != 0)
    throw_user_error({"from_hex", "the text must have two digits for each byte",
                      fmt::format("it has {} digits", hex.size()), "Add the missing digit"});
  std::string s;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    s += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  return s;
}

}  // namespace xylem
