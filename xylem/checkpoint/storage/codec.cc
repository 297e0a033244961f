#include "xylem/checkpoint/storage/codec.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem::checkpoint {
namespace {

[[noreturn]] void damaged(std::string_view what, std::string_view expected,
                          std::string_view given) {
  throw_user_error({what, expected, given,
                    "The data is damaged: restore it from a copy, or use another checkpoint"});
}

// ---- zstd

struct ZstdContexts {
  ZSTD_CCtx* c = ZSTD_createCCtx();
  ZSTD_DCtx* d = ZSTD_createDCtx();
  ~ZstdContexts() {
    ZSTD_freeCCtx(c);
    ZSTD_freeDCtx(d);
  }
};
ZstdContexts& zstd() {
  thread_local ZstdContexts contexts;
  return contexts;
}

std::string zstd_encode(std::span<const std::byte> data, const Codec& codec) {
  if (codec.level == kStoredLevel) {
    std::string out;
    out.reserve(stored_frame_size(data.size()));
    stored_frame(data, [&](std::vector<ConstPiece> pieces) {
      for (const ConstPiece& p : pieces) out.append(static_cast<const char*>(p.data), p.size);
    });
    return out;
  }
  ZSTD_CCtx* c = zstd().c;
  ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, codec.level);
  ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, codec.checksum ? 1 : 0);
  std::string out(ZSTD_compressBound(data.size()), '\0');
  const std::size_t n = ZSTD_compress2(c, out.data(), out.size(), data.data(), data.size());
  if (ZSTD_isError(n))
    throw EnvironmentError(ErrorParts{"compress with zstd", "memory for the compressor",
                                      ZSTD_getErrorName(n), "Free memory, or save uncompressed"});
  out.resize(n);
  return out;
}

void zstd_decode(std::span<const std::byte> in, std::span<std::byte> out, std::string_view what) {
  const std::size_t n = ZSTD_decompressDCtx(zstd().d, out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(n))
    damaged(what, fmt::format("zstd data of {} bytes", out.size()), ZSTD_getErrorName(n));
  if (n != out.size())
    damaged(what, fmt::format("zstd data of {} bytes", out.size()), fmt::format("{} bytes", n));
}

std::string zstd_decode_unsized(std::span<const std::byte> in, std::uint64_t limit,
                                std::string_view what) {
  std::string out;
  ZSTD_DCtx* d = zstd().d;
  ZSTD_DCtx_reset(d, ZSTD_reset_session_and_parameters);
  ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, 31);
  const unsigned long long stated = ZSTD_getFrameContentSize(in.data(), in.size());
  if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != ZSTD_CONTENTSIZE_ERROR) {
    if (stated > limit)
      damaged(what, fmt::format("at most {} bytes", limit), fmt::format("a frame of {}", stated));
    // Raw and repeated blocks expand to at most 128 KiB for four bytes each.
    if (stated / (std::uint64_t{1} << 17) > in.size())
      damaged(what, "a frame that can hold its stated size", fmt::format("{} bytes", stated));
    out.resize(static_cast<std::size_t>(stated));
    zstd_decode(in, std::as_writable_bytes(std::span<char>(out)), what);
    return out;
  }
  ZSTD_inBuffer input{in.data(), in.size(), 0};
  std::size_t r = 1;
  while (input.pos < input.size || r != 0) {
    const std::size_t have = out.size();
    if (have >= limit) damaged(what, fmt::format("at most {} bytes", limit), "more");
    out.resize(std::min<std::uint64_t>(limit, have + std::max<std::size_t>(have, 1 << 16)));
    ZSTD_outBuffer output{out.data() + have, out.size() - have, 0};
    const std::size_t before = input.pos;
    r = ZSTD_decompressStream(d, &output, &input);
    out.resize(have + output.pos);
    if (ZSTD_isError(r)) damaged(what, "zstd data", ZSTD_getErrorName(r));
    if (r == 0 && input.pos == input.size) break;
    if (output.pos == 0 && input.pos == before)
      damaged(what, "a whole zstd frame", "a part of one");
  }
  return out;
}

// ---- gzip and zlib

std::string deflate_encode(std::span<const std::byte> data, const Codec& codec) {
  z_stream s{};
  const int bits = codec.kind == CodecKind::kGzip ? 31 : 15;
  if (deflateInit2(&s, std::clamp(codec.level, 0, 9), Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw EnvironmentError(ErrorParts{"compress with zlib", "memory for the compressor",
                                      "the library gave none", "Free memory"});
  std::string out;
  std::size_t at = 0;
  int r = Z_OK;
  while (r == Z_OK) {
    const std::size_t piece = std::min<std::size_t>(data.size() - at, 1u << 30);
    s.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data() + at));
    s.avail_in = static_cast<uInt>(piece);
    char buffer[1 << 16];
    s.next_out = reinterpret_cast<Bytef*>(buffer);
    s.avail_out = sizeof buffer;
    r = deflate(&s, at + piece == data.size() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, sizeof buffer - s.avail_out);
    at += piece - s.avail_in;
    if (r == Z_BUF_ERROR) r = Z_OK;
  }
  deflateEnd(&s);
  return out;
}

// Appends to `out` up to `limit` bytes; gzip and zlib are told apart by their headers.
std::string inflate_all(std::span<const std::byte> in, std::uint64_t limit, std::string_view what) {
  z_stream s{};
  if (inflateInit2(&s, 15 + 32) != Z_OK)
    throw EnvironmentError(
        ErrorParts{what, "memory for the decompressor", "the library gave none", "Free memory"});
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&s, inflateEnd);
  std::string out;
  std::size_t at = 0;
  bool ended = false;
  while (at < in.size() || !ended) {
    // Members follow one another.
    if (ended && inflateReset(&s) != Z_OK) damaged(what, "deflated data", "another member");
    const std::size_t piece = std::min<std::size_t>(in.size() - at, 1u << 30);
    s.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data() + at));
    s.avail_in = static_cast<uInt>(piece);
    const std::size_t have = out.size();
    out.resize(std::min<std::uint64_t>(limit + 1, have + std::max<std::size_t>(have, 1 << 14)));
    const std::size_t room = std::min<std::size_t>(out.size() - have, 1u << 30);
    out.resize(have + room);
    s.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    s.avail_out = static_cast<uInt>(room);
    const int r = inflate(&s, Z_NO_FLUSH);
    out.resize(have + room - s.avail_out);
    at += piece - s.avail_in;
    if (out.size() > limit) damaged(what, fmt::format("at most {} bytes", limit), "more");
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
      damaged(what, "deflated data", s.msg != nullptr ? s.msg : "an error in it");
    ended = r == Z_STREAM_END;
    if (!ended && at == in.size() && s.avail_out != 0)
      damaged(what, "whole deflated data", "it is cut short");
  }
  return out;
}

// ---- bz2

std::string bz2_encode(std::span<const std::byte> data, const Codec& codec) {
  std::string out(data.size() + data.size() / 100 + 600, '\0');
  auto n = static_cast<unsigned>(out.size());
  if (out.size() > std::numeric_limits<unsigned>::max())
    throw_user_error({"compress with bz2", "chunks of less than 4 GiB",
                      fmt::format("{} bytes", data.size()), "Save smaller chunks, or use zstd"});
  const int r = BZ2_bzBuffToBuffCompress(
      out.data(), &n, const_cast<char*>(reinterpret_cast<const char*>(data.data())),
      static_cast<unsigned>(data.size()), std::clamp(codec.level, 1, 9), 0, 0);
  if (r != BZ_OK)
    throw EnvironmentError(ErrorParts{"compress with bz2", "memory for the compressor",
                                      fmt::format("error {}", r), "Free memory"});
  out.resize(n);
  return out;
}

std::string bz2_decode(std::span<const std::byte> in, std::uint64_t limit, std::string_view what) {
  std::string out;
  std::size_t at = 0;
  // Streams follow one another.
  while (at < in.size() || at == 0) {
    bz_stream s{};
    if (BZ2_bzDecompressInit(&s, 0, 0) != BZ_OK)
      throw EnvironmentError(
          ErrorParts{what, "memory for the decompressor", "the library gave none", "Free memory"});
    const std::unique_ptr<bz_stream, int (*)(bz_stream*)> end(&s, BZ2_bzDecompressEnd);
    int r = BZ_OK;
    while (r == BZ_OK) {
      const std::size_t piece = std::min<std::size_t>(in.size() - at, 1u << 30);
      s.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data() + at));
      s.avail_in = static_cast<unsigned>(piece);
      const std::size_t have = out.size();
      const std::size_t room =
          std::min<std::uint64_t>(limit + 1 - have, std::max<std::size_t>(have, 1 << 14));
      out.resize(have + std::min<std::size_t>(room, 1u << 30));
      s.next_out = out.data() + have;
      s.avail_out = static_cast<unsigned>(out.size() - have);
      r = BZ2_bzDecompress(&s);
      const bool full = s.avail_out == 0;
      out.resize(out.size() - s.avail_out);
      at += piece - s.avail_in;
      if (out.size() > limit) damaged(what, fmt::format("at most {} bytes", limit), "more");
      if (r == BZ_OK && at == in.size() && !full)
        damaged(what, "whole bz2 data", "it is cut short");
    }
    if (r != BZ_STREAM_END) damaged(what, "bz2 data", fmt::format("error {} of the library", r));
  }
  return out;
}

// ---- crc32c

std::span<const std::byte> strip_crc(std::span<const std::byte> in, std::string_view what) {
  if (in.size() < 4) damaged(what, "data with its CRC-32C", fmt::format("{} bytes", in.size()));
  const auto body = in.first(in.size() - 4);
  std::uint32_t stored;
  std::memcpy(&stored, in.data() + body.size(), 4);
  const std::uint32_t crc = crc32c(body);
  if (crc != stored)
    damaged(what, fmt::format("data with CRC-32C {:08x}", stored), fmt::format("{:08x}", crc));
  return body;
}

std::string decode_one(const Codec& codec, std::span<const std::byte> in, std::uint64_t limit,
                       std::string_view what) {
  switch (codec.kind) {
    case CodecKind::kZstd: return zstd_decode_unsized(in, limit, what);
    case CodecKind::kGzip:
    case CodecKind::kZlib: return inflate_all(in, limit, what);
    case CodecKind::kBz2: return bz2_decode(in, limit, what);
    case CodecKind::kBlosc: {
      const std::uint64_t size = internal::blosc_size(in, what);
      if (size > limit)
        damaged(what, fmt::format("at most {} bytes", limit), fmt::format("{} bytes", size));
      std::string out(static_cast<std::size_t>(size), '\0');
      internal::blosc_decode(in, std::as_writable_bytes(std::span<char>(out)), what);
      return out;
    }
    case CodecKind::kCrc32c: {
      const auto body = strip_crc(in, what);
      if (body.size() > limit)
        damaged(what, fmt::format("at most {} bytes", limit), fmt::format("{}", body.size()));
      return std::string(as_string_view(body));
    }
  }
  return {};
}

std::string encode_one(const Codec& codec, std::span<const std::byte> data) {
  switch (codec.kind) {
    case CodecKind::kZstd: return zstd_encode(data, codec);
    case CodecKind::kGzip:
    case CodecKind::kZlib: return deflate_encode(data, codec);
    case CodecKind::kBz2: return bz2_encode(data, codec);
    case CodecKind::kBlosc:
      throw_user_error(
          {"compress with blosc", "a codec that can be written", "blosc, read only", "Use zstd"});
    case CodecKind::kCrc32c: {
      ByteWriter w;
      w.write_bytes(data);
      w.write(crc32c(data));
      return w.take();
    }
  }
  return {};
}

// ---- stored frames

constexpr std::size_t kBlock = std::size_t{1} << 17;
constexpr std::size_t kFrameHeader = 14;
// Pieces of one call, two for each block.
constexpr std::size_t kBlocksAtOnce = 256;

struct FrameHeader {
  unsigned char bytes[kFrameHeader];
};

FrameHeader frame_header(std::uint64_t size) {
  FrameHeader h{};
  // Magic; descriptor: content size of eight bytes, a checksum, a window; a window of 128 KiB.
  constexpr unsigned char kStart[] = {0x28, 0xb5, 0x2f, 0xfd, 0xc4, 0x38};
  std::memcpy(h.bytes, kStart, 6);
  std::memcpy(h.bytes + 6, &size, 8);
  return h;
}

struct BlockHeader {
  unsigned char bytes[3];
};
// Raw blocks have type 0.
BlockHeader block_header(std::size_t size, bool last) {
  const std::uint32_t v = static_cast<std::uint32_t>(size) << 3 | (last ? 1u : 0u);
  return {{static_cast<unsigned char>(v), static_cast<unsigned char>(v >> 8),
           static_cast<unsigned char>(v >> 16)}};
}

std::uint64_t num_blocks(std::uint64_t size) { return size == 0 ? 1 : (size - 1) / kBlock + 1; }

}  // namespace

std::string encode(std::span<const Codec> codecs, std::span<const std::byte> data) {
  if (codecs.empty()) return std::string(as_string_view(data));
  std::string out = encode_one(codecs[0], data);
  for (const Codec& c : codecs.subspan(1)) out = encode_one(c, as_byte_span(out));
  return out;
}

void decode(std::span<const Codec> codecs, std::span<const std::byte> encoded,
            std::span<std::byte> out, std::string_view what) {
  std::string held;
  // What an outer codec may give: the inner ones hardly enlarge.
  const std::uint64_t limit = out.size() + out.size() / 8 + 65536;
  for (std::size_t i = codecs.size(); i-- > 1;) {
    if (codecs[i].kind == CodecKind::kCrc32c) {
      encoded = strip_crc(encoded, what);
      continue;
    }
    held = decode_one(codecs[i], encoded, limit, what);
    encoded = as_byte_span(held);
  }
  const auto copy = [&](std::span<const std::byte> body) {
    if (body.size() != out.size())
      damaged(what, fmt::format("{} bytes", out.size()), fmt::format("{} bytes", body.size()));
    if (!out.empty()) std::memcpy(out.data(), body.data(), out.size());
  };
  if (codecs.empty()) return copy(encoded);
  switch (codecs[0].kind) {
    case CodecKind::kZstd: return zstd_decode(encoded, out, what);
    case CodecKind::kCrc32c: return copy(strip_crc(encoded, what));
    case CodecKind::kBlosc: {
      const std::uint64_t size = internal::blosc_size(encoded, what);
      if (size != out.size())
        damaged(what, fmt::format("{} bytes", out.size()), fmt::format("{} bytes", size));
      return internal::blosc_decode(encoded, out, what);
    }
    case CodecKind::kGzip:
    case CodecKind::kZlib: return copy(as_byte_span(inflate_all(encoded, out.size(), what)));
    case CodecKind::kBz2: return copy(as_byte_span(bz2_decode(encoded, out.size(), what)));
  }
}

std::string decode_unsized(std::span<const Codec> codecs, std::span<const std::byte> encoded,
                           std::uint64_t limit, std::string_view what) {
  if (codecs.empty()) {
    if (encoded.size() > limit)
      damaged(what, fmt::format("at most {} bytes", limit), fmt::format("{}", encoded.size()));
    return std::string(as_string_view(encoded));
  }
  std::string out;
  for (std::size_t i = codecs.size(); i-- > 0;) {
    out = decode_one(codecs[i], encoded, limit, what);
    encoded = as_byte_span(out);
  }
  return out;
}

std::uint64_t stored_frame_size(std::uint64_t data_size) {
  return kFrameHeader + num_blocks(data_size) * 3 + data_size + 4;
}

std::uint64_t stored_frame(std::span<const std::byte> data,
                           const std::function<void(std::vector<ConstPiece>)>& f) {
  const FrameHeader header = frame_header(data.size());
  const auto check = static_cast<std::uint32_t>(hash64(data));
  const std::uint64_t blocks = num_blocks(data.size());
  std::vector<BlockHeader> headers(std::min<std::uint64_t>(blocks, kBlocksAtOnce));
  std::vector<ConstPiece> pieces{{header.bytes, kFrameHeader}};
  std::uint64_t at = 0;
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const std::size_t n = std::min<std::uint64_t>(kBlock, data.size() - at);
    BlockHeader& h = headers[b % kBlocksAtOnce];
    h = block_header(n, b + 1 == blocks);
    pieces.push_back({h.bytes, 3});
    pieces.push_back({data.data() + at, n});
    at += n;
    if (b + 1 == blocks) pieces.push_back({&check, 4});
    if (b + 1 == blocks || (b + 1) % kBlocksAtOnce == 0) {
      f(std::move(pieces));
      pieces.clear();
    }
  }
  return stored_frame_size(data.size());
}

bool read_stored_frame(std::uint64_t frame_size, std::span<std::byte> out,
                       const std::function<void(std::uint64_t, std::vector<MutablePiece>)>& read,
                       std::string_view what) {
  if (frame_size != stored_frame_size(out.size())) return false;
  FrameHeader header;
  std::uint32_t check = 0;
  const std::uint64_t blocks = num_blocks(out.size());
  std::vector<BlockHeader> headers(blocks);
  std::vector<MutablePiece> pieces{{header.bytes, kFrameHeader}};
  std::uint64_t offset = 0, begin = 0;
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const std::size_t n = std::min<std::uint64_t>(kBlock, out.size() - b * kBlock);
    pieces.push_back({headers[b].bytes, 3});
    pieces.push_back({out.data() + b * kBlock, n});
    offset += n + 3 + (b == 0 ? kFrameHeader : 0);
    if (b + 1 == blocks) pieces.push_back({&check, 4});
    if (b + 1 == blocks || (b + 1) % kBlocksAtOnce == 0) {
      read(begin, std::move(pieces));
      pieces.clear();
      begin = offset;
      if (b < kBlocksAtOnce) {
        const FrameHeader expected = frame_header(out.size());
        if (std::memcmp(header.bytes, expected.bytes, kFrameHeader) != 0) return false;
      }
    }
  }
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const std::size_t n = std::min<std::uint64_t>(kBlock, out.size() - b * kBlock);
    const BlockHeader expected = block_header(n, b + 1 == blocks);
    if (std::memcmp(headers[b].bytes, expected.bytes, 3) != 0) return false;
  }
  const auto sum = static_cast<std::uint32_t>(hash64(out));
  if (sum != check)
    damaged(what, fmt::format("contents with checksum {:08x}", check), fmt::format("{:08x}", sum));
  return true;
}

}  // namespace xylem::checkpoint
