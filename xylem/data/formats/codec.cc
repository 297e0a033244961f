#include "xylem/data/formats/internal/codec.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <fmt/format.h>
#include <lz4.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "xylem/base/error.h"

namespace xylem::data::internal {
namespace {

// Sizes up to this are allocated at once; larger ones only as far as data really arrives.
constexpr std::uint64_t kTrusted = std::uint64_t{4} << 20;

// Room for more output: doubled, up to one byte more than wanted, which shows data that is too
// long.
void grow(std::string& out, std::uint64_t size) {
  const std::uint64_t limit = size + 1;
  out.resize(static_cast<std::size_t>(
      std::min(limit, std::max<std::uint64_t>(out.size() * 2, std::min(limit, kTrusted)))));
}

bool finish(std::string& out, std::size_t have, std::uint64_t size, std::string& why) {
  out.resize(std::min<std::size_t>(have, out.size()));
  if (have == size) return true;
  why = have > size ? fmt::format("it decompresses to more than the {} bytes announced", size)
                    : fmt::format("it decompresses to {} bytes, {} were announced", have, size);
  return false;
}

bool inflate_block(std::string_view in, std::uint64_t size, Codec codec, std::string& out,
                   std::string& why) {
  z_stream z{};
  const bool gzip = codec == Codec::kGzip;
  if (inflateInit2(&z, gzip ? 15 + 32 : codec == Codec::kZlib ? 15 : -15) != Z_OK)
    throw std::bad_alloc();
  std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&z, inflateEnd);
  std::size_t have = 0, used = 0;
  out.clear();
  while (true) {
    if (have == out.size()) {
      if (have > size) return finish(out, have, size, why);
      grow(out, size);
    }
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data() + used));
    z.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size() - used, 1u << 30));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    z.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size() - have, 1u << 30));
    const std::size_t in_before = z.avail_in, out_before = z.avail_out;
    const int r = inflate(&z, Z_NO_FLUSH);
    used += in_before - z.avail_in;
    have += out_before - z.avail_out;
    if (r == Z_STREAM_END) {
      if (used == in.size()) return finish(out, have, size, why);
      if (!gzip) {
        why = fmt::format("{} bytes follow the compressed data", in.size() - used);
        return false;
      }
      // Several gzip members may follow each other.
      inflateReset(&z);
      continue;
    }
    if (r != Z_OK && !(r == Z_BUF_ERROR && z.avail_out == 0)) {
      why = z.msg != nullptr ? fmt::format("{}", z.msg)
                             : fmt::format("the compressed data end in the middle");
      return false;
    }
  }
}

bool brotli_block(std::string_view in, std::uint64_t size, std::string& out, std::string& why) {
  std::unique_ptr<BrotliDecoderState, void (*)(BrotliDecoderState*)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), BrotliDecoderDestroyInstance);
  if (!state) throw std::bad_alloc();
  std::size_t left = in.size(), have = 0;
  const auto* next = reinterpret_cast<const std::uint8_t*>(in.data());
  out.clear();
  while (true) {
    if (have == out.size()) {
      if (have > size) return finish(out, have, size, why);
      grow(out, size);
    }
    std::size_t room = out.size() - have;
    auto* to = reinterpret_cast<std::uint8_t*>(out.data() + have);
    const BrotliDecoderResult r =
        BrotliDecoderDecompressStream(state.get(), &left, &next, &room, &to, nullptr);
    have = out.size() - room;
    if (r == BROTLI_DECODER_RESULT_SUCCESS) {
      if (left > 0) {
        why = fmt::format("{} bytes follow the compressed data", left);
        return false;
      }
      return finish(out, have, size, why);
    }
    if (r == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) {
      why = "the compressed data end in the middle";
      return false;
    }
    if (r == BROTLI_DECODER_RESULT_ERROR) {
      why = fmt::format("Brotli: {}",
                        BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state.get())));
      return false;
    }
  }
}

struct ZstdContexts {
  ZSTD_DCtx* d = nullptr;
  ZSTD_CCtx* c = nullptr;
  ~ZstdContexts() {
    ZSTD_freeDCtx(d);
    ZSTD_freeCCtx(c);
  }
};
ZstdContexts& zstd_contexts() {
  thread_local ZstdContexts contexts;
  return contexts;
}
ZSTD_DCtx* zstd_decoder() {
  ZSTD_DCtx*& d = zstd_contexts().d;
  if (d == nullptr && (d = ZSTD_createDCtx()) == nullptr) throw std::bad_alloc();
  ZSTD_DCtx_reset(d, ZSTD_reset_session_and_parameters);
  return d;
}

bool zstd_block(std::string_view in, std::uint64_t size, std::string& out, std::string& why) {
  ZSTD_DCtx* d = zstd_decoder();
  if (size <= kTrusted) {
    out.resize(static_cast<std::size_t>(size));
    const std::size_t n = ZSTD_decompressDCtx(d, out.data(), out.size(), in.data(), in.size());
    if (!ZSTD_isError(n)) return finish(out, n, size, why);
    why = fmt::format("Zstandard: {}", ZSTD_getErrorName(n));
    return false;
  }
  out.clear();
  std::size_t have = 0;
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  while (true) {
    if (have == out.size()) {
      if (have > size) return finish(out, have, size, why);
      grow(out, size);
    }
    ZSTD_outBuffer to{out.data(), out.size(), have};
    const std::size_t r = ZSTD_decompressStream(d, &to, &from);
    have = to.pos;
    if (ZSTD_isError(r)) {
      why = fmt::format("Zstandard: {}", ZSTD_getErrorName(r));
      return false;
    }
    if (from.pos == from.size && (r == 0 || to.pos < to.size)) {
      if (r != 0) {
        why = "the compressed data end in the middle";
        return false;
      }
      return finish(out, have, size, why);
    }
  }
}

}  // namespace

const char* codec_name(Codec codec) {
  static constexpr const char* kNames[] = {"none",   "snappy", "gzip",    "zlib",
                                           "brotli", "zstd",   "lz4_raw", "deflate"};
  return kNames[static_cast<int>(codec)];
}

bool decompress(Codec codec, std::string_view in, std::uint64_t size, std::string& out,
                std::string& why) {
  switch (codec) {
    case Codec::kNone:
      if (in.size() != size) {
        why = fmt::format("there are {} bytes, {} were announced", in.size(), size);
        return false;
      }
      out.assign(in);
      return true;
    case Codec::kSnappy: {
      std::size_t n = 0;
      if (!snappy::GetUncompressedLength(in.data(), in.size(), &n)) {
        why = "Snappy: the length is malformed";
        return false;
      }
      if (n != size) {
        why = fmt::format("Snappy: the block says {} bytes, {} were announced", n, size);
        return false;
      }
      // Three bytes give at most 64.
      if (n > 24 * in.size() + 64) {
        why = fmt::format("Snappy: {} bytes cannot hold {}", in.size(), n);
        return false;
      }
      out.resize(n);
      if (snappy::RawUncompress(in.data(), in.size(), out.data())) return true;
      why = "Snappy: the block is malformed";
      return false;
    }
    case Codec::kLz4Raw: {
      // One byte of a length gives at most 255.
      if (size > 256 * in.size() + 64 || size > LZ4_MAX_INPUT_SIZE || in.size() > INT32_MAX) {
        why = fmt::format("LZ4: {} bytes cannot hold {}", in.size(), size);
        return false;
      }
      out.resize(static_cast<std::size_t>(size));
      const int n = LZ4_decompress_safe(in.data(), out.data(), static_cast<int>(in.size()),
                                        static_cast<int>(size));
      if (n >= 0) return finish(out, static_cast<std::size_t>(n), size, why);
      why = "LZ4: the block is malformed";
      return false;
    }
    case Codec::kGzip:
    case Codec::kZlib:
    case Codec::kDeflate: return inflate_block(in, size, codec, out, why);
    case Codec::kBrotli: return brotli_block(in, size, out, why);
    case Codec::kZstd: return zstd_block(in, size, out, why);
  }
  return false;
}

bool decompress_zstd(std::string_view in, std::uint64_t limit, std::string& out, std::string& why) {
  const unsigned long long size = ZSTD_getFrameContentSize(in.data(), in.size());
  if (size == ZSTD_CONTENTSIZE_ERROR) {
    why = "Zstandard: no frame begins here";
    return false;
  }
  if (size != ZSTD_CONTENTSIZE_UNKNOWN && size > limit) {
    why = fmt::format("{} decoded bytes are more than the limit of {}", size, limit);
    return false;
  }
  ZSTD_DCtx* d = zstd_decoder();
  if (size <= kTrusted && ZSTD_findFrameCompressedSize(in.data(), in.size()) == in.size()) {
    out.resize(size);
    const std::size_t n = ZSTD_decompressDCtx(d, out.data(), out.size(), in.data(), in.size());
    if (!ZSTD_isError(n)) return true;
    why = fmt::format("Zstandard: {}", ZSTD_getErrorName(n));
    return false;
  }
  out.clear();
  std::size_t have = 0;
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  std::size_t r = 1;
  while (from.pos < from.size || r != 0) {
    if (have == out.size()) {
      if (have > limit) {
        why = fmt::format("the decoded bytes are more than the limit of {}", limit);
        return false;
      }
      grow(out, limit);
    }
    const std::size_t before = from.pos;
    ZSTD_outBuffer to{out.data(), out.size(), have};
    r = ZSTD_decompressStream(d, &to, &from);
    if (ZSTD_isError(r)) {
      why = fmt::format("Zstandard: {}", ZSTD_getErrorName(r));
      return false;
    }
    if (r != 0 && from.pos == from.size && before == from.pos && to.pos == have) {
      why = "the compressed data end in the middle";
      return false;
    }
    have = to.pos;
  }
  if (have > limit) {
    why = fmt::format("the decoded bytes are more than the limit of {}", limit);
    return false;
  }
  out.resize(have);
  return true;
}

std::string compress(Codec codec, std::string_view in, const CompressOptions& o) {
  std::string out;
  switch (codec) {
    case Codec::kNone: return std::string(in);
    case Codec::kSnappy: snappy::Compress(in.data(), in.size(), &out); return out;
    case Codec::kLz4Raw: {
      if (in.size() > LZ4_MAX_INPUT_SIZE)
        throw_user_error({"compress with LZ4", "blocks below 2 GB",
                          fmt::format("{} bytes", in.size()), "Write smaller blocks"});
      out.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(in.size()))));
      out.resize(static_cast<std::size_t>(LZ4_compress_default(
          in.data(), out.data(), static_cast<int>(in.size()), static_cast<int>(out.size()))));
      return out;
    }
    case Codec::kGzip:
    case Codec::kZlib:
    case Codec::kDeflate: {
      z_stream z{};
      const int bits = codec == Codec::kGzip ? 31 : codec == Codec::kZlib ? 15 : -15;
      if (deflateInit2(&z, o.level.value_or(6), Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::bad_alloc();
      std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&z, deflateEnd);
      std::size_t used = 0, have = 0;
      out.resize(deflateBound(&z, static_cast<uLong>(in.size())));
      while (true) {
        if (have == out.size()) out.resize(out.size() * 2 + 64);
        z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data() + used));
        z.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size() - used, 1u << 30));
        z.next_out = reinterpret_cast<Bytef*>(out.data() + have);
        z.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size() - have, 1u << 30));
        const std::size_t in_before = z.avail_in, out_before = z.avail_out;
        const int r = deflate(&z, used + z.avail_in == in.size() ? Z_FINISH : Z_NO_FLUSH);
        used += in_before - z.avail_in;
        have += out_before - z.avail_out;
        if (r == Z_STREAM_END) break;
        XYLEM_CHECK(r == Z_OK || r == Z_BUF_ERROR, "deflate must go on");
      }
      out.resize(have);
      return out;
    }
    case Codec::kBrotli: {
      std::size_t n = BrotliEncoderMaxCompressedSize(in.size());
      if (n == 0) n = in.size() + in.size() / 2 + 1024;
      out.resize(n);
      const int ok = BrotliEncoderCompress(
          o.level.value_or(6), o.window_log.value_or(BROTLI_DEFAULT_WINDOW), BROTLI_MODE_GENERIC,
          in.size(), reinterpret_cast<const std::uint8_t*>(in.data()), &n,
          reinterpret_cast<std::uint8_t*>(out.data()));
      XYLEM_CHECK(ok, "the output has room");
      out.resize(n);
      return out;
    }
    case Codec::kZstd: {
      ZSTD_CCtx*& c = zstd_contexts().c;
      if (c == nullptr && (c = ZSTD_createCCtx()) == nullptr) throw std::bad_alloc();
      ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
      ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, o.level.value_or(3));
      if (o.window_log) ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, *o.window_log);
      out.resize(ZSTD_compressBound(in.size()));
      const std::size_t n = ZSTD_compress2(c, out.data(), out.size(), in.data(), in.size());
      if (ZSTD_isError(n))
        throw_user_error({"compress with Zstandard", "valid level and window", ZSTD_getErrorName(n),
                          "Correct the options"});
      out.resize(n);
      return out;
    }
  }
  return out;
}

}  // namespace xylem::data::internal
