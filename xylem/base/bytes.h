#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Little-endian bytes in and out, checksums, hashes, hexadecimal text.

namespace xylem {

static_assert(std::endian::native == std::endian::little,
              "host memory is taken to be little-endian throughout");

inline std::span<const std::byte> as_byte_span(std::string_view s) {
  return std::as_bytes(std::span<const char>(s.data(), s.size()));
}
inline std::string_view as_string_view(std::span<const std::byte> b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

// Reads numbers from memory, from front to back. Every read is checked: UserError that says what
// was to be read, where, and how much there is. `name` opens the message ("x.npy") and must live as
// long as the reader.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> data, std::string_view name) : data_(data), name_(name) {}
  ByteReader(std::string_view data, std::string_view name) : ByteReader(as_byte_span(data), name) {}

  std::size_t position() const { return at_; }
  std::size_t remaining() const { return data_.size() - at_; }
  bool done() const { return remaining() == 0; }
  std::string_view name() const { return name_; }

  // An integer or float of sizeof(T) bytes.
  template <class T>
  T read() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    need(sizeof(T));
    T v;
    std::memcpy(&v, data_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return v;
  }
  // Base 128, least significant group first, as protobuf's; at most ten bytes.
  std::uint64_t read_varint();
  // The sign in the lowest bit (zigzag).
  std::int64_t read_signed_varint() {
    const std::uint64_t v = read_varint();
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
  }
  std::span<const std::byte> read_bytes(std::uint64_t n) {
    need(n);
    at_ += static_cast<std::size_t>(n);
    return data_.subspan(at_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }
  std::string_view read_string(std::uint64_t n) { return as_string_view(read_bytes(n)); }
  void skip(std::uint64_t n) { read_bytes(n); }
  // UserError if position > size.
  void seek(std::uint64_t position);

  // Throws UserError about the data at the current position.
  [[noreturn]] void fail(std::string_view expected, std::string_view given) const;

 private:
  void need(std::uint64_t n) const {
    if (n > remaining()) throw_short(n);
  }
  [[noreturn]] void throw_short(std::uint64_t n) const;

  std::span<const std::byte> data_;
  std::size_t at_ = 0;
  std::string_view name_;
};

// Appends numbers to a string of bytes.
class ByteWriter {
 public:
  template <class T>
  void write(T v) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    out_.append(reinterpret_cast<const char*>(&v), sizeof(T));
  }
  void write_varint(std::uint64_t v);
  void write_signed_varint(std::int64_t v) {
    write_varint(static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63));
  }
  void write_bytes(std::span<const std::byte> b) { out_ += as_string_view(b); }
  void write_string(std::string_view s) { out_ += s; }
  // Zero bytes up to a multiple of `alignment`.
  void align(std::size_t alignment) {
    out_.resize((out_.size() + alignment - 1) / alignment * alignment);
  }
  std::size_t size() const { return out_.size(); }
  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// CRC-32C (Castagnoli) of the data that follows data of checksum `crc`. In hardware where there is.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t crc = 0);
inline std::uint32_t crc32c(std::string_view data, std::uint32_t crc = 0) {
  return crc32c(as_byte_span(data), crc);
}
// As TFRecord and LevelDB store it, so that the checksum of data with checksums stays good.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
constexpr std::uint32_t unmask_crc32c(std::uint32_t masked) {
  const std::uint32_t r = masked - 0xa282ead8u;
  return r >> 17 | r << 15;
}

// XXH64. The same on every machine and in every version: may be stored. Not for hostile data.
std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed = 0);
inline std::uint64_t hash64(std::string_view data, std::uint64_t seed = 0) {
  return hash64(as_byte_span(data), seed);
}
// Hash of a pair of hashes; order matters.
constexpr std::uint64_t combine_hash(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = (a ^ 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  h = (h ^ (h >> 32) ^ b) * 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 29);
}

// "00ff", lower case.
std::string to_hex(std::span<const std::byte> data);
inline std::string to_hex(std::string_view data) { return to_hex(as_byte_span(data)); }
// Bytes of hexadecimal text of either case; UserError if it is not that.
std::string from_hex(std::string_view hex);

}  // namespace xylem
