#include <fmt/format.h>

#include <cstring>

#include "xylem/base/bytes.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/framed.h"

// TFRecord: u64 length, u32 masked CRC-32C of these 8 bytes, data, u32 masked CRC-32C of the data;
// all little-endian. TensorFlow, tensorflow/core/lib/io/record_writer.

namespace xylem::data::internal {
namespace {

constexpr std::uint64_t kHeader = 12, kAround = 16;

struct Head {
  std::uint64_t length;
  bool good;
};
Head read_head(const char* p) {
  Head h;
  std::uint32_t crc;
  std::memcpy(&h.length, p, 8);
  std::memcpy(&crc, p + 8, 4);
  h.good = mask_crc32c(crc32c(std::string_view(p, 8))) == crc;
  return h;
}

class TfRecordFramer final : public Framer {
 public:
  std::string_view format() const override { return "tfrecord"; }
  bool structured() const override { return false; }

  std::optional<std::uint64_t> frame(InputStream& in) const override {
    const std::string_view head = in.peek(kHeader);
    if (head.empty()) return std::nullopt;
    const std::uint64_t at = in.position();
    if (head.size() < kHeader)
      in.damage(at, at + head.size(),
                fmt::format("a record's header needs {} bytes, {} are left", kHeader, head.size()));
    const Head h = read_head(head.data());
    if (!h.good) in.damage(at, at + kHeader, "the length does not match its checksum");
    if (h.length > UINT64_MAX - kAround || h.length + kAround > in.remaining())
      in.damage(
          at, at + in.remaining(),
          fmt::format("the record says {} bytes, {} are left", h.length, in.remaining() - kHeader));
    return h.length + kAround;
  }

  void decode(std::string_view unit, std::uint64_t offset, const InputStream& in,
              Record& out) const override {
    if (unit.size() < kAround || !read_head(unit.data()).good ||
        read_head(unit.data()).length != unit.size() - kAround)
      in.damage(offset, offset + kHeader, "the length does not match its checksum");
    const std::string_view data = unit.substr(kHeader, unit.size() - kAround);
    std::uint32_t stored;
    std::memcpy(&stored, unit.data() + unit.size() - 4, 4);
    const std::uint32_t computed = mask_crc32c(crc32c(data));
    if (computed != stored)
      in.damage(offset, offset + unit.size(),
                fmt::format("the data's checksum is {:08x}, {:08x} is stored", computed, stored));
    out.bytes.assign(data);
    out.fields.clear();
  }

  bool resync(InputStream& in) const override {
    // A false match of 32 bits at one of the places is unlikely, and its data would have to match
    // as well.
    in.skip(1);
    while (true) {
      const std::string_view there = in.peek(std::size_t{64} << 10);
      if (there.size() < kAround) return false;
      std::size_t i = 0;
      for (; i + kHeader <= there.size(); ++i) {
        const Head h = read_head(there.data() + i);
        if (h.good && h.length <= in.remaining() && h.length + kAround <= in.remaining() - i) {
          in.consume(i);
          return true;
        }
      }
      in.consume(i);
    }
  }
};

class TfRecordWriter final : public RecordWriter {
 public:
  explicit TfRecordWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
  bool structured() const override { return false; }
  void write(const Record& r) override {
    ByteWriter head;
    head.write(static_cast<std::uint64_t>(r.bytes.size()));
    head.write(mask_crc32c(crc32c(head.str())));
    sink_->write(head.str());
    sink_->write(r.bytes);
    ByteWriter tail;
    tail.write(mask_crc32c(crc32c(r.bytes)));
    sink_->write(tail.str());
  }
  void close() override { sink_->commit(); }

 private:
  std::unique_ptr<ByteSink> sink_;
};

}  // namespace

std::unique_ptr<Framer> make_tfrecord_framer() { return std::make_unique<TfRecordFramer>(); }

std::unique_ptr<RecordWriter> make_tfrecord_writer(std::unique_ptr<ByteSink> sink,
                                                   std::string_view options) {
  OptionsText(std::string_view("tfrecord"), options).finish();
  return std::make_unique<TfRecordWriter>(std::move(sink));
}

}  // namespace xylem::data::internal
