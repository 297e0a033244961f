#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "xylem/data/formats/record.h"

namespace xylem::data::internal {

// How a whole file is wrapped.
enum class Wrapping { kNone, kGzip, kZlib, kZstd, kBrotli };
const char* wrapping_name(Wrapping w);
// By the first bytes, and for Brotli, which has no magic number, by the name's ".br". A zlib header
// counts only if `maybe_zlib`: its two bytes may begin any file.
Wrapping detect_wrapping(const ByteSource& source, bool maybe_zlib);

class Unwrapper;

// A source's bytes from front to back, unwrapped, through a buffer. Several gzip members or
// Zstandard frames in a row are one stream.
class InputStream {
 public:
  explicit InputStream(SourcePtr source, Wrapping wrapping = Wrapping::kNone,
                       std::uint64_t begin = 0);
  ~InputStream();
  InputStream(InputStream&&) noexcept;

  // At least `n` bytes, fewer only where the stream ends; more if they are in the buffer anyway.
  // Good until the next call.
  std::string_view peek(std::size_t n);
  // `n` at most what peek gave.
  void consume(std::size_t n) { at_ += n; }
  bool done() { return peek(1).empty(); }
  // Skips up to `n` bytes and says how many. A plain source is not read for it.
  std::uint64_t skip(std::uint64_t n);
  // Place in the unwrapped stream.
  std::uint64_t position() const { return base_ + at_; }
  bool wrapped() const { return unwrapper_ != nullptr; }
  // What is left of a plain source; unlimited for a wrapped one.
  std::uint64_t remaining() const;
  const ByteSource& source() const { return *source_; }
  // Throws DamageError for [begin, end) of the stream, as a range of the file.
  [[noreturn]] void damage(std::uint64_t begin, std::uint64_t end, std::string_view reason) const;

 private:
  bool fill();

  SourcePtr source_;
  std::unique_ptr<Unwrapper> unwrapper_;
  std::uint64_t file_at_;  // next byte of the file to read
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t base_ = 0;  // stream position of buffer_[0]
  bool ended_ = false;
};

// Compresses a stream for a writer.
class Wrapper;
class OutputStream final : public ByteSink {
 public:
  OutputStream(std::unique_ptr<ByteSink> sink, Wrapping wrapping, int level);
  ~OutputStream() override;
  void write(std::string_view data) override;
  std::uint64_t size() const override { return size_; }
  void commit() override;

 private:
  std::unique_ptr<ByteSink> sink_;
  std::unique_ptr<Wrapper> wrapper_;
  std::uint64_t size_ = 0;
};
// `sink` itself for kNone.
std::unique_ptr<ByteSink> wrap_sink(std::unique_ptr<ByteSink> sink, Wrapping wrapping,
                                    int level = -1);

}  // namespace xylem::data::internal
