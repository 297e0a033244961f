#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Compressed blocks whose decoded size is known.

namespace xylem::data::internal {

// kDeflate: without a header, as in zip files.
enum class Codec { kNone, kSnappy, kGzip, kZlib, kBrotli, kZstd, kLz4Raw, kDeflate };
const char* codec_name(Codec codec);

// Decodes `in`, which must give exactly `size` bytes; replaces `out`. False with the reason in
// `why` otherwise. Memory grows with what is really decoded, never beyond `size`.
bool decompress(Codec codec, std::string_view in, std::uint64_t size, std::string& out,
                std::string& why);

// One Zstandard frame, or several, whose decoded size is not known beforehand; at most `limit`.
bool decompress_zstd(std::string_view in, std::uint64_t limit, std::string& out, std::string& why);

struct CompressOptions {
  std::optional<int> level;       // the codec's default: gzip 6, brotli 6, zstd 3
  std::optional<int> window_log;  // brotli, zstd
};
std::string compress(Codec codec, std::string_view in, const CompressOptions& options = {});

}  // namespace xylem::data::internal
