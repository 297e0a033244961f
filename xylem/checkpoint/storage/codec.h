#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/storage/system_calls.h"

// Codecs from bytes to bytes, as zarr names them.
namespace xylem::checkpoint {

enum class CodecKind : std::uint8_t { kZstd, kGzip, kZlib, kBz2, kBlosc, kCrc32c };

// Level of kZstd at which nothing is compressed: a frame of raw blocks with a checksum (XXH64) of
// the contents. Any zstd decoder reads it, and verifies it; writing costs a checksum and no copy.
inline constexpr int kStoredLevel = -1000;

struct Codec {
  CodecKind kind = CodecKind::kZstd;
  int level = 1;
  bool checksum = true;  // zstd: a checksum of the contents in the frame
};

// Encodes through all codecs, first to last. UserError for blosc, which is read only.
std::string encode(std::span<const Codec> codecs, std::span<const std::byte> data);

// Decodes what the codecs made of exactly out.size() bytes. UserError, opened by `what`, if that is
// not what it is: damaged, too long, too short, a checksum that differs.
void decode(std::span<const Codec> codecs, std::span<const std::byte> encoded,
            std::span<std::byte> out, std::string_view what);
// The same without knowledge of the size, which may be `limit` at most.
std::string decode_unsized(std::span<const Codec> codecs, std::span<const std::byte> encoded,
                           std::uint64_t limit, std::string_view what);

// ---- stored zstd frames in pieces

// A stored frame of `data` without a copy of it: calls f with pieces that point into `data`, or
// into memory that lives until this returns. Returns the frame's size.
std::uint64_t stored_frame(std::span<const std::byte> data,
                           const std::function<void(std::vector<ConstPiece>)>& f);
std::uint64_t stored_frame_size(std::uint64_t data_size);

// Reads a frame of `frame_size` bytes straight into `out` where it is one that stored_frame wrote:
// `read` fills pieces from an offset within the frame. False, and `out` undefined, if it is not;
// UserError if the checksum differs.
bool read_stored_frame(std::uint64_t frame_size, std::span<std::byte> out,
                       const std::function<void(std::uint64_t, std::vector<MutablePiece>)>& read,
                       std::string_view what);

namespace internal {
// Blosc 1: headers, splits, byte and bit shuffle; inner codecs blosclz, lz4, snappy, zlib, zstd.
std::uint64_t blosc_size(std::span<const std::byte> encoded, std::string_view what);
void blosc_decode(std::span<const std::byte> encoded, std::span<std::byte> out,
                  std::string_view what);
bool lz4_decode(std::span<const std::byte> in, std::span<std::byte> out);
bool blosclz_decode(std::span<const std::byte> in, std::span<std::byte> out);
}  // namespace internal

}  // namespace xylem::checkpoint
