#include <fmt/format.h>

#include <algorithm>

#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/framed.h"

// CSV (RFC 4180): fields may be quoted, quotes inside are doubled, quoted fields may hold
// delimiters and line ends. Blank lines are passed over. Values are text.

namespace xylem::data::internal {
namespace {

class CsvFramer final : public Framer {
 public:
  CsvFramer(const ReadOptions& options, char delimiter)
      : options_(options), delimiter_(delimiter) {}
  std::string_view format() const override { return "csv"; }
  bool structured() const override { return true; }

  void begin(InputStream& in) override {
    if (in.peek(3).starts_with("\xef\xbb\xbf")) in.consume(3);
    const auto size = frame(in);
    if (!size) return;
    const std::uint64_t at = in.position();
    split(in.peek(*size).substr(0, *size), at, in, columns_);
    if (options_.header) {
      in.consume(*size);
      std::vector<std::string> sorted = columns_;
      std::sort(sorted.begin(), sorted.end());
      if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
          twice != sorted.end())
        in.damage(at, at + *size, fmt::format("two columns are named \"{}\"", *twice));
    } else {
      for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i] = fmt::format("f{}", i);
    }
  }

  std::optional<std::uint64_t> frame(InputStream& in) const override {
    std::size_t i = 0;
    bool quoted = false, field_start = true, blank = true;
    while (true) {
      const std::string_view there = in.peek(i + 1);
      if (there.size() == i) {
        if (quoted)
          in.damage(in.position(), in.position() + i, "a quoted field has no closing quote");
        if (blank) {
          in.consume(i);
          return std::nullopt;
        }
        return i;
      }
      for (; i < there.size(); ++i) {
        const char c = there[i];
        if (quoted) {
          // A doubled quote closes and opens again.
          if (c == '"') quoted = false, field_start = true;
        } else if (c == '"' && field_start) {
          quoted = true, blank = false;
        } else if (c == '\n') {
          if (!blank) return i + 1;
          in.consume(i + 1);
          break;
        } else {
          field_start = c == delimiter_;
          blank = blank && c == '\r';
        }
      }
      if (i < there.size()) {  // a blank line was passed over
        i = 0;
        field_start = blank = true;
        continue;
      }
      check_limit(in.source().name(), in.position(), in.position() + i, i, options_);
    }
  }

  void decode(std::string_view unit, std::uint64_t offset, const InputStream& in,
              Record& out) const override {
    std::vector<std::string> values;
    split(unit, offset, in, values);
    if (values.size() != columns_.size())
      in.damage(offset, offset + unit.size(),
                fmt::format("the row has {} fields, there are {} columns", values.size(),
                            columns_.size()));
    out.bytes.clear();
    out.fields.clear();
    for (std::size_t i = 0; i < values.size(); ++i)
      out.fields.emplace_back(columns_[i], Value(std::move(values[i])));
  }

 private:
  void split(std::string_view s, std::uint64_t offset, const InputStream& in,
             std::vector<std::string>& out) const {
    out.clear();
    std::size_t i = 0;
    while (true) {
      std::string& field = out.emplace_back();
      if (i < s.size() && s[i] == '"') {
        for (++i;; ++i) {
          if (i >= s.size())
            in.damage(offset, offset + s.size(), "a quoted field has no closing quote");
          if (s[i] != '"') {
            field += s[i];
          } else if (i + 1 < s.size() && s[i + 1] == '"') {
            field += '"';
            ++i;
          } else {
            break;
          }
        }
        ++i;
      } else {
        const std::size_t begin = i;
        while (i < s.size() && s[i] != delimiter_ && s[i] != '\n') ++i;
        std::string_view text = s.substr(begin, i - begin);
        if ((i == s.size() || s[i] == '\n') && text.ends_with('\r')) text.remove_suffix(1);
        field = text;
      }
      if (i < s.size() && s[i] == delimiter_) {
        ++i;
        continue;
      }
      if (i + 1 < s.size() && s[i] == '\r' && s[i + 1] == '\n') ++i;
      if (i == s.size() || s[i] == '\n' || (s[i] == '\r' && i + 1 == s.size())) return;
      in.damage(offset, offset + s.size(),
                fmt::format("a closing quote is followed by text in field {}", out.size()));
    }
  }

  ReadOptions options_;
  char delimiter_;
  std::vector<std::string> columns_;
};

class CsvWriter final : public RecordWriter {
 public:
  CsvWriter(std::unique_ptr<ByteSink> sink, char delimiter)
      : sink_(std::move(sink)), delimiter_(delimiter) {}
  bool structured() const override { return true; }

  void write(const Record& r) override {
    std::string line;
    if (count_ == 0) {
      for (const auto& [name, value] : r.fields) {
        columns_.push_back(name);
        add(line, name, columns_.size() == 1);
      }
      line += '\n';
    }
    if (r.fields.size() != columns_.size())
      throw_user_error({"write csv", fmt::format("{} fields in every record", columns_.size()),
                        fmt::format("record {} has {}", count_, r.fields.size()),
                        "Name the columns to write, or write jsonl"});
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (r.fields[i].first != columns_[i])
        throw_user_error({"write csv", fmt::format("the field {} at place {}", columns_[i], i),
                          fmt::format("record {} has {}", count_, r.fields[i].first),
                          "Name the columns to write, or write jsonl"});
      const Value& v = r.fields[i].second;
      std::string text;
      if (const auto* s = v.get_if<std::string>())
        text = *s;
      else if (!v.is_null())
        append_json(text, v);
      add(line, text, i == 0);
    }
    line += '\n';
    sink_->write(line);
    ++count_;
  }
  void close() override { sink_->commit(); }

 private:
  void add(std::string& line, std::string_view text, bool first) const {
    if (!first) line += delimiter_;
    const bool plain = text.find_first_of("\"\r\n") == text.npos &&
                       text.find(delimiter_) == text.npos && !(text.empty() && first);
    if (plain) {
      line += text;
      return;
    }
    line += '"';
    for (const char c : text) {
      if (c == '"') line += '"';
      line += c;
    }
    line += '"';
  }

  std::unique_ptr<ByteSink> sink_;
  char delimiter_;
  std::vector<std::string> columns_;
  std::uint64_t count_ = 0;
};

// ".tsv", perhaps wrapped, has tabs.
char delimiter_of(std::string_view name) {
  for (const std::string_view end : {".gz", ".zst", ".br"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  return name.ends_with(".tsv") ? '\t' : ',';
}

}  // namespace

std::unique_ptr<Framer> make_csv_framer(const ReadOptions& options, std::string_view name) {
  return std::make_unique<CsvFramer>(
      options, options.delimiter != 0 ? options.delimiter : delimiter_of(name));
}

std::unique_ptr<RecordWriter> make_csv_writer(std::unique_ptr<ByteSink> sink,
                                              std::string_view options, std::string_view name) {
  OptionsText text("csv", options);
  std::string d;
  char delimiter = delimiter_of(name);
  if (text.take("delimiter", d)) {
    if (d == "tab") d = "\t";
    if (d.size() != 1 || d == "\"" || d == "\n" || d == "\r")
      throw_user_error({"csv options: delimiter", "one character, or tab", d, "Correct it"});
    delimiter = d[0];
  }
  text.finish();
  return std::make_unique<CsvWriter>(std::move(sink), delimiter);
}

}  // namespace xylem::data::internal
