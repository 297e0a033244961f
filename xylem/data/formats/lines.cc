#include <fmt/format.h>

#include <cstring>

#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/framed.h"

// Plain text and JSON Lines: a record a line. A line ends with LF or CR LF, the last one perhaps
// with the file.

namespace xylem::data::internal {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Size of the line at the stream's position with its end; nothing at the end of the stream.
std::optional<std::uint64_t> line_size(InputStream& in, const ReadOptions& options) {
  std::size_t searched = 0;
  while (true) {
    const std::string_view there = in.peek(searched + 1);
    if (there.size() == searched) {
      if (searched == 0) return std::nullopt;
      return searched;
    }
    if (const void* end = std::memchr(there.data() + searched, '\n', there.size() - searched))
      return static_cast<const char*>(end) - there.data() + 1;
    searched = there.size();
    check_limit(in.source().name(), in.position(), in.position() + searched, searched, options);
  }
}

std::string_view without_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view s) { return s.find_first_not_of(" \t\r\n") == s.npos; }

class TextFramer final : public Framer {
 public:
  explicit TextFramer(const ReadOptions& options) : options_(options) {}
  std::string_view format() const override { return "text"; }
  bool structured() const override { return false; }
  std::optional<std::uint64_t> frame(InputStream& in) const override {
    return line_size(in, options_);
  }
  void decode(std::string_view unit, std::uint64_t, const InputStream&,
              Record& out) const override {
    out.bytes.assign(without_end(unit));
    out.fields.clear();
  }

 private:
  ReadOptions options_;
};

class JsonLinesFramer final : public Framer {
 public:
  explicit JsonLinesFramer(const ReadOptions& options) : options_(options) {}
  std::string_view format() const override { return "jsonl"; }
  bool structured() const override { return true; }
  void begin(InputStream& in) override {
    if (in.peek(3).starts_with(kByteOrderMark)) in.consume(3);
  }
  std::optional<std::uint64_t> frame(InputStream& in) const override {
    while (const auto size = line_size(in, options_)) {
      if (!is_blank(in.peek(*size).substr(0, *size))) return size;
      in.consume(*size);
    }
    return std::nullopt;
  }
  void decode(std::string_view unit, std::uint64_t offset, const InputStream& in,
              Record& out) const override {
    out.bytes.clear();
    Value value;
    try {
      value = parse_json(unit, "line");
    } catch (const UserError& e) {
      in.damage(offset, offset + unit.size(),
                fmt::format("the line is not one JSON value: {}", e.message()));
    }
    if (auto* fields = std::get_if<Fields>(&value.v)) {
      out.fields = std::move(*fields);
    } else {
      out.fields.clear();
      out.fields.emplace_back("value", std::move(value));
    }
  }

 private:
  ReadOptions options_;
};

class TextWriter final : public RecordWriter {
 public:
  explicit TextWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
  bool structured() const override { return false; }
  void write(const Record& r) override {
    if (r.bytes.find('\n') != std::string::npos || r.bytes.ends_with('\r'))
      throw_user_error({"write text", "records without line ends",
                        fmt::format("record {} holds one", count_),
                        "Write another format, such as tfrecord or jsonl"});
    sink_->write(r.bytes);
    sink_->write("\n");
    ++count_;
  }
  void close() override { sink_->commit(); }

 private:
  std::unique_ptr<ByteSink> sink_;
  std::uint64_t count_ = 0;
};

class JsonLinesWriter final : public RecordWriter {
 public:
  explicit JsonLinesWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
  bool structured() const override { return true; }
  void write(const Record& r) override {
    line_.clear();
    append_json(line_, Value(r.fields));
    line_ += '\n';
    sink_->write(line_);
  }
  void close() override { sink_->commit(); }

 private:
  std::unique_ptr<ByteSink> sink_;
  std::string line_;
};

}  // namespace

std::unique_ptr<Framer> make_text_framer(const ReadOptions& options) {
  return std::make_unique<TextFramer>(options);
}
std::unique_ptr<Framer> make_jsonl_framer(const ReadOptions& options) {
  return std::make_unique<JsonLinesFramer>(options);
}
std::unique_ptr<RecordWriter> make_text_writer(std::unique_ptr<ByteSink> sink,
                                               std::string_view options) {
  OptionsText("text", options).finish();
  return std::make_unique<TextWriter>(std::move(sink));
}
std::unique_ptr<RecordWriter> make_jsonl_writer(std::unique_ptr<ByteSink> sink,
                                                std::string_view options) {
  OptionsText("jsonl", options).finish();
  return std::make_unique<JsonLinesWriter>(std::move(sink));
}

}  // namespace xylem::data::internal
