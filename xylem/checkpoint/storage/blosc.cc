#include <fmt/format.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/checkpoint/storage/codec.h"

// Reader of Blosc 1 buffers: a header of 16 bytes, the offset of each block, and in each block one
// or more streams ("splits"), each with its length. Blocks are shuffled by byte or by bit.

namespace xylem::checkpoint::internal {
namespace {

constexpr std::size_t kHeader = 16;

struct Header {
  unsigned flags = 0, type_size = 0;
  std::uint32_t size = 0, block_size = 0, encoded = 0;
  bool copied() const { return (flags & 2) != 0; }
  bool byte_shuffle() const { return (flags & 1) != 0; }
  bool bit_shuffle() const { return (flags & 4) != 0; }
  bool never_split() const { return (flags & 16) != 0; }
  unsigned codec() const { return flags >> 5; }
};

[[noreturn]] void damaged(std::string_view what, std::string_view expected,
                          std::string_view given) {
  throw_user_error({what, expected, given,
                    "The data is damaged: restore it from a copy, or use another checkpoint"});
}

std::uint32_t read_u32(const std::byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

Header parse(std::span<const std::byte> in, std::string_view what) {
  if (in.size() < kHeader)
    damaged(what, "a blosc header of 16 bytes", fmt::format("{} bytes", in.size()));
  Header h;
  const auto version = static_cast<unsigned>(in[0]);
  h.flags = static_cast<unsigned>(in[2]);
  h.type_size = static_cast<unsigned>(in[3]);
  h.size = read_u32(in.data() + 4);
  h.block_size = read_u32(in.data() + 8);
  h.encoded = read_u32(in.data() + 12);
  if (version != 2) damaged(what, "blosc format 2", fmt::format("{}", version));
  if (h.encoded != in.size())
    damaged(what, fmt::format("blosc data of {} bytes", h.encoded), fmt::format("{}", in.size()));
  if (h.type_size == 0) h.type_size = 1;
  if (h.size > 0 && (h.block_size == 0 || h.block_size > (1u << 30)))
    damaged(what, "a block size", fmt::format("{}", h.block_size));
  // No codec here expands beyond this, so a hostile size ends before memory is asked for.
  if (h.size / 100'000 > in.size()) damaged(what, "a size it can hold", fmt::format("{}", h.size));
  return h;
}

void unshuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t type) {
  const std::size_t n = in.size() / type;
  for (std::size_t b = 0; b < type; ++b)
    for (std::size_t i = 0; i < n; ++i) out[i * type + b] = in[b * n + i];
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * type), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(n * type));
}

// Bit k of byte b of every element stands together: rows of n / 8 bytes.
void unshuffle_bits(std::span<const std::byte> in, std::span<std::byte> out, std::size_t type) {
  const std::size_t n = in.size() / type / 8 * 8;
  std::fill(out.begin(), out.end(), std::byte{0});
  for (std::size_t b = 0; b < type; ++b)
    for (std::size_t k = 0; k < 8; ++k) {
      const std::byte* row = in.data() + (b * 8 + k) * (n / 8);
      for (std::size_t i = 0; i < n; ++i)
        if ((row[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0})
          out[i * type + b] |= std::byte{1} << k;
    }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * type), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(n * type));
}

bool decode_stream(unsigned codec, std::span<const std::byte> in, std::span<std::byte> out) {
  switch (codec) {
    case 0: return blosclz_decode(in, out);
    case 1: return lz4_decode(in, out);
    case 2: {
      const char* from = reinterpret_cast<const char*>(in.data());
      std::size_t n = 0;
      return ::snappy_uncompressed_length(from, in.size(), &n) == SNAPPY_OK && n == out.size() &&
             ::snappy_uncompress(from, in.size(), reinterpret_cast<char*>(out.data()), &n) ==
                 SNAPPY_OK;
    }
    case 3: {
      uLongf n = static_cast<uLongf>(out.size());
      return ::uncompress(reinterpret_cast<Bytef*>(out.data()), &n,
                          reinterpret_cast<const Bytef*>(in.data()),
                          static_cast<uLong>(in.size())) == Z_OK &&
             n == out.size();
    }
    case 4: return ZSTD_decompress(out.data(), out.size(), in.data(), in.size()) == out.size();
    default: return false;
  }
}

}  // namespace

bool lz4_decode(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t i = 0, o = 0;
  const auto more = [&](std::size_t& n) {
    unsigned b = 255;
    while (b == 255) {
      if (i >= in.size()) return false;
      b = static_cast<unsigned>(in[i++]);
      n += b;
    }
    return true;
  };
  while (i < in.size()) {
    const auto token = static_cast<unsigned>(in[i++]);
    std::size_t literals = token >> 4;
    if (literals == 15 && !more(literals)) return false;
    if (literals > in.size() - i || literals > out.size() - o) return false;
    if (literals > 0) std::memcpy(out.data() + o, in.data() + i, literals);
    i += literals;
    o += literals;
    if (i == in.size()) break;  // the last sequence has no match
    if (in.size() - i < 2) return false;
    const std::size_t distance =
        static_cast<std::size_t>(in[i]) | static_cast<std::size_t>(in[i + 1]) << 8;
    i += 2;
    std::size_t length = token & 15;
    if (length == 15 && !more(length)) return false;
    length += 4;
    if (distance == 0 || distance > o || length > out.size() - o) return false;
    for (std::size_t k = 0; k < length; ++k, ++o) out[o] = out[o - distance];
  }
  return o == out.size();
}

bool blosclz_decode(std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.empty()) return out.empty();
  std::size_t i = 0, o = 0;
  const auto next = [&](unsigned& v) {
    if (i >= in.size()) return false;
    v = static_cast<unsigned>(in[i++]);
    return true;
  };
  unsigned control = static_cast<unsigned>(in[i++]) & 31;
  while (true) {
    if (control >= 32) {
      std::size_t length = (control >> 5) - 1;
      std::size_t distance = (control & 31) << 8;
      unsigned code = 0;
      if (length == 6) {
        do {
          if (!next(code)) return false;
          length += code;
        } while (code == 255);
      }
      if (!next(code)) return false;
      distance += code;
      if (code == 255 && (control & 31) == 31) {
        unsigned high = 0, low = 0;
        if (!next(high) || !next(low)) return false;
        distance = (static_cast<std::size_t>(high) << 8 | low) + 8191;
      }
      length += 3;
      distance += 1;
      if (distance > o || length > out.size() - o) return false;
      for (std::size_t k = 0; k < length; ++k, ++o) out[o] = out[o - distance];
    } else {
      const std::size_t n = control + 1;
      if (n > in.size() - i || n > out.size() - o) return false;
      std::memcpy(out.data() + o, in.data() + i, n);
      i += n;
      o += n;
    }
    if (i >= in.size()) break;
    control = static_cast<unsigned>(in[i++]);
  }
  return o == out.size();
}

std::uint64_t blosc_size(std::span<const std::byte> in, std::string_view what) {
  return parse(in, what).size;
}

void blosc_decode(std::span<const std::byte> in, std::span<std::byte> out, std::string_view what) {
  const Header h = parse(in, what);
  if (h.size != out.size())
    damaged(what, fmt::format("{} bytes", out.size()), fmt::format("{} bytes", h.size));
  if (out.empty()) return;
  if (h.copied()) {
    if (in.size() - kHeader != out.size())
      damaged(what, fmt::format("{} bytes", out.size()), fmt::format("{}", in.size() - kHeader));
    std::memcpy(out.data(), in.data() + kHeader, out.size());
    return;
  }
  if (h.codec() > 4)
    damaged(what, "blosclz, lz4, snappy, zlib or zstd inside blosc",
            fmt::format("codec {}", h.codec()));
  const std::size_t blocks = (out.size() - 1) / h.block_size + 1;
  if (blocks > (in.size() - kHeader) / 4)
    damaged(what, fmt::format("{} blocks", blocks), fmt::format("{} bytes", in.size()));
  std::vector<std::byte> buffer(std::min<std::size_t>(h.block_size, out.size()));
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t first = b * h.block_size;
    const std::size_t n = std::min<std::size_t>(h.block_size, out.size() - first);
    const bool partial = n != h.block_size;
    const bool shuffled = h.byte_shuffle() ? h.type_size > 1 : h.bit_shuffle();
    const auto block = shuffled ? std::span<std::byte>(buffer).first(n) : out.subspan(first, n);
    // Small blocks and the last one are a single stream, as are those of wide elements.
    const bool split =
        !h.never_split() && !partial && h.type_size <= 16 && h.block_size / h.type_size >= 128;
    const std::size_t streams = split ? h.type_size : 1;
    std::size_t at = read_u32(in.data() + kHeader + 4 * b);
    for (std::size_t s = 0; s < streams; ++s) {
      const auto piece = block.subspan(s * (n / streams), n / streams);
      if (at > in.size() || in.size() - at < 4)
        damaged(what, fmt::format("block {}", b), "its place is beyond the end");
      const std::size_t length = read_u32(in.data() + at);
      at += 4;
      if (length > in.size() - at)
        damaged(what, fmt::format("block {} of {} bytes", b, length),
                fmt::format("{} bytes", in.size() - at));
      const auto encoded = in.subspan(at, length);
      if (length == piece.size())
        std::memcpy(piece.data(), encoded.data(), length);
      else if (!decode_stream(h.codec(), encoded, piece))
        damaged(what, fmt::format("block {} in blosc's codec {}", b, h.codec()), "damaged data");
      at += length;
    }
    if (!shuffled) continue;
    if (h.byte_shuffle())
      unshuffle_bytes(block, out.subspan(first, n), h.type_size);
    else
      unshuffle_bits(block, out.subspan(first, n), h.type_size);
  }
}

}  // namespace xylem::checkpoint::internal
