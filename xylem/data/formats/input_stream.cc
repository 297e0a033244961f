#include "xylem/data/formats/internal/input_stream.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>

namespace xylem::data::internal {
namespace {
constexpr std::size_t kPiece = std::size_t{256} << 10;
}  // namespace

const char* wrapping_name(Wrapping w) {
  static constexpr const char* kNames[] = {"none", "gzip", "zlib", "zstd", "brotli"};
  return kNames[static_cast<int>(w)];
}

Wrapping detect_wrapping(const ByteSource& source, bool maybe_zlib) {
  const std::string head = source.read(0, 4);
  const auto byte = [&](std::size_t i) {
    return i < head.size() ? static_cast<unsigned char>(head[i]) : 0u;
  };
  if (byte(0) == 0x1f && byte(1) == 0x8b) return Wrapping::kGzip;
  if (byte(0) == 0x28 && byte(1) == 0xb5 && byte(2) == 0x2f && byte(3) == 0xfd)
    return Wrapping::kZstd;
  if ((byte(0) & 0xf0) == 0x50 && byte(1) == 0x2a && byte(2) == 0x4d && byte(3) == 0x18)
    return Wrapping::kZstd;
  if (maybe_zlib && (byte(0) & 0x8f) == 0x08 && (byte(0) * 256 + byte(1)) % 31 == 0 &&
      (byte(1) & 0x20) == 0)
    return Wrapping::kZlib;
  const std::string& name = source.name();
  if (name.ends_with(".br")) return Wrapping::kBrotli;
  for (const std::string_view end : {".gz", ".gzip", ".tgz", ".zst", ".zstd"})
    if (!head.empty() && name.ends_with(end))
      throw DamageError(name, 0, head.size(),
                        fmt::format("the name ends in {}, the contents do not begin so", end),
                        "Rename the file if it is not compressed");
  return Wrapping::kNone;
}

// Decompresses piece by piece.
class Unwrapper {
 public:
  virtual ~Unwrapper() = default;
  // Takes from `in`, appends to `out` (at most about kPiece). False with `why` if the data are bad.
  virtual bool step(std::string_view& in, std::string& out, std::string& why) = 0;
  // Whether the input may end here.
  virtual bool complete() const = 0;

  // Bytes of the file that were not yet taken, and where the current member begins.
  std::string input;
  std::size_t used = 0;
  std::uint64_t member_begin = 0;
};

namespace {

class Inflater final : public Unwrapper {
 public:
  explicit Inflater(bool gzip) {
    if (inflateInit2(&z_, gzip ? 31 : 15) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() override { inflateEnd(&z_); }
  bool step(std::string_view& in, std::string& out, std::string& why) override {
    if (complete_) {
      inflateReset(&z_);
      complete_ = false;
    }
    const std::size_t have = out.size();
    out.resize(have + kPiece);
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    z_.avail_in = static_cast<uInt>(in.size());
    z_.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    z_.avail_out = static_cast<uInt>(kPiece);
    const int r = inflate(&z_, Z_NO_FLUSH);
    in.remove_prefix(in.size() - z_.avail_in);
    out.resize(out.size() - z_.avail_out);
    complete_ = r == Z_STREAM_END;
    if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR) return true;
    why = z_.msg != nullptr ? z_.msg : "the compressed data are malformed";
    return false;
  }
  bool complete() const override { return complete_; }

 private:
  z_stream z_{};
  bool complete_ = true;
};

class ZstdUnwrapper final : public Unwrapper {
 public:
  ZstdUnwrapper() : d_(ZSTD_createDCtx()) {
    if (d_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdUnwrapper() override { ZSTD_freeDCtx(d_); }
  bool step(std::string_view& in, std::string& out, std::string& why) override {
    const std::size_t have = out.size();
    out.resize(have + kPiece);
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), have};
    const std::size_t r = ZSTD_decompressStream(d_, &to, &from);
    in.remove_prefix(from.pos);
    out.resize(to.pos);
    if (ZSTD_isError(r)) {
      why = fmt::format("Zstandard: {}", ZSTD_getErrorName(r));
      return false;
    }
    complete_ = r == 0;
    return true;
  }
  bool complete() const override { return complete_; }

 private:
  ZSTD_DCtx* d_;
  bool complete_ = true;
};

class BrotliUnwrapper final : public Unwrapper {
 public:
  BrotliUnwrapper() : d_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (d_ == nullptr) throw std::bad_alloc();
  }
  ~BrotliUnwrapper() override { BrotliDecoderDestroyInstance(d_); }
  bool step(std::string_view& in, std::string& out, std::string& why) override {
    if (complete_) {
      why = "bytes follow the Brotli stream";
      return false;
    }
    const std::size_t have = out.size();
    out.resize(have + kPiece);
    std::size_t left = in.size(), room = kPiece;
    const auto* next = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* to = reinterpret_cast<std::uint8_t*>(out.data() + have);
    const BrotliDecoderResult r =
        BrotliDecoderDecompressStream(d_, &left, &next, &room, &to, nullptr);
    in.remove_prefix(in.size() - left);
    out.resize(out.size() - room);
    if (r == BROTLI_DECODER_RESULT_ERROR) {
      why = fmt::format("Brotli: {}", BrotliDecoderErrorString(BrotliDecoderGetErrorCode(d_)));
      return false;
    }
    complete_ = r == BROTLI_DECODER_RESULT_SUCCESS;
    return true;
  }
  bool complete() const override { return complete_; }

 private:
  BrotliDecoderState* d_;
  bool complete_ = false;
};

}  // namespace

InputStream::InputStream(SourcePtr source, Wrapping wrapping, std::uint64_t begin)
    : source_(std::move(source)), file_at_(begin), base_(begin) {
  switch (wrapping) {
    case Wrapping::kNone: break;
    case Wrapping::kGzip:
    case Wrapping::kZlib:
      unwrapper_ = std::make_unique<Inflater>(wrapping == Wrapping::kGzip);
      break;
    case Wrapping::kZstd: unwrapper_ = std::make_unique<ZstdUnwrapper>(); break;
    case Wrapping::kBrotli: unwrapper_ = std::make_unique<BrotliUnwrapper>(); break;
  }
}

InputStream::~InputStream() = default;
InputStream::InputStream(InputStream&&) noexcept = default;

bool InputStream::fill() {
  if (ended_) return false;
  if (at_ > 0) {
    buffer_.erase(0, at_);
    base_ += at_;
    at_ = 0;
  }
  const std::uint64_t left = source_->size() - std::min(file_at_, source_->size());
  const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPiece));
  if (!unwrapper_) {
    if (piece == 0) {
      ended_ = true;
      return false;
    }
    const std::size_t have = buffer_.size();
    buffer_.resize(have + piece);
    source_->read(file_at_, std::as_writable_bytes(std::span<char>(buffer_.data() + have, piece)));
    file_at_ += piece;
    return true;
  }
  Unwrapper& u = *unwrapper_;
  const std::size_t before = buffer_.size();
  while (buffer_.size() == before) {
    if (u.used == u.input.size()) {
      const auto next =
          static_cast<std::size_t>(std::min<std::uint64_t>(source_->size() - file_at_, kPiece));
      u.input = source_->read(file_at_, next);
      u.used = 0;
      file_at_ += next;
    }
    std::string_view in = std::string_view(u.input).substr(u.used);
    if (in.empty() && u.complete()) {
      ended_ = true;
      return false;
    }
    const bool fresh = u.complete();
    if (fresh) u.member_begin = file_at_ - in.size();
    const std::size_t offered = in.size();
    std::string why;
    const bool good = u.step(in, buffer_, why);
    u.used = u.input.size() - in.size();
    if (!good) throw DamageError(source_->name(), u.member_begin, file_at_ - in.size() + 1, why);
    if (offered == 0 && buffer_.size() == before && !u.complete())
      throw DamageError(source_->name(), u.member_begin, source_->size(),
                        "the compressed data end in the middle");
  }
  return true;
}

std::string_view InputStream::peek(std::size_t n) {
  while (buffer_.size() - at_ < n && fill()) {
  }
  return std::string_view(buffer_).substr(at_);
}

std::uint64_t InputStream::skip(std::uint64_t n) {
  const std::uint64_t buffered = std::min<std::uint64_t>(n, buffer_.size() - at_);
  at_ += static_cast<std::size_t>(buffered);
  std::uint64_t done = buffered;
  if (done == n) return n;
  if (!unwrapper_) {
    const std::uint64_t jump = std::min(n - done, source_->size() - file_at_);
    buffer_.clear();
    at_ = 0;
    file_at_ += jump;
    base_ = file_at_;
    return done + jump;
  }
  while (done < n) {
    const std::string_view there = peek(1);
    if (there.empty()) break;
    const std::uint64_t step = std::min<std::uint64_t>(n - done, there.size());
    consume(static_cast<std::size_t>(step));
    done += step;
  }
  return done;
}

std::uint64_t InputStream::remaining() const {
  if (unwrapper_) return UINT64_MAX;
  return buffer_.size() - at_ + (source_->size() - std::min(file_at_, source_->size()));
}

void InputStream::damage(std::uint64_t begin, std::uint64_t end, std::string_view reason) const {
  if (!unwrapper_) throw DamageError(source_->name(), begin, end, reason);
  // What comes out of one place depends on all before it.
  throw DamageError(source_->name(), 0, file_at_ - (unwrapper_->input.size() - unwrapper_->used),
                    fmt::format("{} (bytes {}-{} of the decompressed data)", reason, begin,
                                end > begin ? end - 1 : begin));
}

// ---- writing

class Wrapper {
 public:
  virtual ~Wrapper() = default;
  virtual void step(std::string_view in, bool last, ByteSink& sink) = 0;
};

namespace {

class Deflater final : public Wrapper {
 public:
  Deflater(bool gzip, int level) {
    if (deflateInit2(&z_, level < 0 ? 6 : level, Z_DEFLATED, gzip ? 31 : 15, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Deflater() override { deflateEnd(&z_); }
  void step(std::string_view in, bool last, ByteSink& sink) override {
    std::string out(kPiece, '\0');
    do {
      const std::size_t n = std::min<std::size_t>(in.size(), kPiece);
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      z_.avail_in = static_cast<uInt>(n);
      in.remove_prefix(n);
      do {
        z_.next_out = reinterpret_cast<Bytef*>(out.data());
        z_.avail_out = static_cast<uInt>(out.size());
        deflate(&z_, last && in.empty() ? Z_FINISH : Z_NO_FLUSH);
        sink.write(std::string_view(out).substr(0, out.size() - z_.avail_out));
      } while (z_.avail_out == 0);
    } while (!in.empty());
  }

 private:
  z_stream z_{};
};

class ZstdWrapper final : public Wrapper {
 public:
  explicit ZstdWrapper(int level) : c_(ZSTD_createCCtx()) {
    if (c_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(c_, ZSTD_c_compressionLevel, level < 0 ? 3 : level);
    ZSTD_CCtx_setParameter(c_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdWrapper() override { ZSTD_freeCCtx(c_); }
  void step(std::string_view in, bool last, ByteSink& sink) override {
    std::string out(kPiece, '\0');
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    while (true) {
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      const std::size_t r =
          ZSTD_compressStream2(c_, &to, &from, last ? ZSTD_e_end : ZSTD_e_continue);
      sink.write(std::string_view(out).substr(0, to.pos));
      if (last ? r == 0 : from.pos == from.size) return;
    }
  }

 private:
  ZSTD_CCtx* c_;
};

class BrotliWrapper final : public Wrapper {
 public:
  explicit BrotliWrapper(int level) : c_(BrotliEncoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (c_ == nullptr) throw std::bad_alloc();
    BrotliEncoderSetParameter(c_, BROTLI_PARAM_QUALITY,
                              static_cast<std::uint32_t>(level < 0 ? 6 : level));
  }
  ~BrotliWrapper() override { BrotliEncoderDestroyInstance(c_); }
  void step(std::string_view in, bool last, ByteSink& sink) override {
    std::string out(kPiece, '\0');
    std::size_t left = in.size();
    const auto* next = reinterpret_cast<const std::uint8_t*>(in.data());
    do {
      std::size_t room = out.size();
      auto* to = reinterpret_cast<std::uint8_t*>(out.data());
      BrotliEncoderCompressStream(c_, last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS,
                                  &left, &next, &room, &to, nullptr);
      sink.write(std::string_view(out).substr(0, out.size() - room));
    } while (left > 0 || BrotliEncoderHasMoreOutput(c_) || (last && !BrotliEncoderIsFinished(c_)));
  }

 private:
  BrotliEncoderState* c_;
};

}  // namespace

OutputStream::OutputStream(std::unique_ptr<ByteSink> sink, Wrapping wrapping, int level)
    : sink_(std::move(sink)) {
  if (wrapping == Wrapping::kZstd)
    wrapper_ = std::make_unique<ZstdWrapper>(level);
  else if (wrapping == Wrapping::kBrotli)
    wrapper_ = std::make_unique<BrotliWrapper>(level);
  else
    wrapper_ = std::make_unique<Deflater>(wrapping == Wrapping::kGzip, level);
}
OutputStream::~OutputStream() = default;

void OutputStream::write(std::string_view data) {
  if (data.empty()) return;
  size_ += data.size();
  wrapper_->step(data, false, *sink_);
}

void OutputStream::commit() {
  wrapper_->step({}, true, *sink_);
  sink_->commit();
}

std::unique_ptr<ByteSink> wrap_sink(std::unique_ptr<ByteSink> sink, Wrapping wrapping, int level) {
  if (wrapping == Wrapping::kNone) return sink;
  return std::make_unique<OutputStream>(std::move(sink), wrapping, level);
}

}  // namespace xylem::data::internal
