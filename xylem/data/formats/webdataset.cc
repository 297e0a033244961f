#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/internal/input_stream.h"

// WebDataset: a tar archive in which consecutive files of one name up to its first dot make a
// sample; what follows the dot names the field. Archives may be ustar, GNU or PAX.

namespace xylem::data::internal {
namespace {

constexpr std::uint64_t kUnit = 512;
constexpr std::uint64_t kMaxHeaderData = std::uint64_t{1} << 20;  // long names, PAX records

std::uint64_t padded(std::uint64_t n) { return (n + kUnit - 1) / kUnit * kUnit; }

std::string_view text_field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view s = header.substr(at, size);
  return s.substr(0, std::min(s.find('\0'), s.size()));
}

// Octal digits, or base 256 where the top bit is set. Nothing if malformed.
std::optional<std::uint64_t> number_field(std::string_view s) {
  if ((static_cast<unsigned char>(s[0]) & 0x80) != 0) {
    std::uint64_t v = static_cast<unsigned char>(s[0]) & 0x7f;
    for (const char c : s.substr(1)) {
      if (v >> 56 != 0) return std::nullopt;
      v = v << 8 | static_cast<unsigned char>(c);
    }
    return v;
  }
  std::uint64_t v = 0;
  std::size_t i = 0;
  while (i < s.size() && s[i] == ' ') ++i;
  for (; i < s.size() && s[i] >= '0' && s[i] <= '7'; ++i) {
    if (v >> 60 != 0) return std::nullopt;
    v = v * 8 + static_cast<std::uint64_t>(s[i] - '0');
  }
  if (i < s.size() && s[i] != ' ' && s[i] != '\0') return std::nullopt;
  return v;
}

struct Member {
  std::uint64_t begin = 0;  // of the first header that belongs to it
  std::uint64_t size = 0;
  std::string key, field;
};

// Walks over members. The stream stands at the data of the member that `next` gave, and the caller
// may consume it.
class TarStream {
 public:
  explicit TarStream(InputStream in) : in_(std::move(in)) {}

  // The next regular file that belongs to a sample.
  bool next(Member& m) {
    finish_member();
    std::string long_name;
    std::optional<std::uint64_t> long_size;
    std::uint64_t begin = in_.position();
    while (true) {
      const std::uint64_t at = in_.position();
      const std::string_view h = in_.peek(kUnit);
      if (h.empty()) return false;
      if (h.size() < kUnit) in_.damage(at, at + h.size(), "a tar header is cut");
      const std::string header(h.substr(0, kUnit));
      if (header.find_first_not_of('\0') == header.npos) {
        ended_ = true;
        return false;
      }
      check_sum(header, at);
      const auto size = number_field(std::string_view(header).substr(124, 12));
      if (!size) in_.damage(at, at + kUnit, "the size in a tar header is malformed");
      const char type = header[156];
      if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {
        if (*size > kMaxHeaderData)
          in_.damage(at, at + kUnit, fmt::format("a tar header of {} bytes is too large", *size));
        in_.consume(kUnit);
        const std::string_view data = in_.peek(padded(*size));
        if (data.size() < *size) in_.damage(at, at + kUnit + data.size(), "a tar header is cut");
        const std::string text(data.substr(0, *size));
        in_.consume(std::min<std::uint64_t>(padded(*size), data.size()));
        if (type == 'L') long_name = text.substr(0, std::min(text.find('\0'), text.size()));
        if (type == 'x') parse_pax(text, at, long_name, long_size);
        continue;
      }
      std::string name(text_field(header, 0, 100));
      if (header.compare(257, 6, std::string("ustar\0", 6)) == 0) {
        const std::string_view prefix = text_field(header, 345, 155);
        if (!prefix.empty()) name = fmt::format("{}/{}", prefix, name);
      }
      if (!long_name.empty()) name = long_name;
      std::uint64_t data_size = long_size.value_or(*size);
      // Links and folders have no data, whatever their size says.
      if (type >= '1' && type <= '6') data_size = 0;
      if (data_size > in_.remaining() - std::min(in_.remaining(), kUnit))
        in_.damage(at, at + in_.remaining(),
                   fmt::format("the file {} says {} bytes, {} are left", name, data_size,
                               in_.remaining() - kUnit));
      in_.consume(kUnit);
      left_ = data_size;
      padding_ = padded(data_size) - data_size;
      const bool regular = type == '0' || type == '\0' || type == '7';
      if (regular && split(name, m)) {
        m.begin = begin;
        m.size = data_size;
        return true;
      }
      finish_member();
      begin = in_.position();
      long_name.clear();
      long_size.reset();
    }
  }

  std::string data(const Member& m, const ReadOptions& options) {
    const std::uint64_t at = in_.position();
    check_limit(in_.source().name(), m.begin, at + m.size, m.size, options);
    const std::string_view s = in_.peek(m.size);
    if (s.size() < m.size)
      in_.damage(
          at, at + s.size(),
          fmt::format("{}.{} needs {} bytes, {} are left", m.key, m.field, m.size, s.size()));
    std::string out(s.substr(0, m.size));
    in_.consume(m.size);
    left_ = 0;
    return out;
  }
  // Whether the two empty blocks (at least one of them) were seen.
  bool ended() const { return ended_; }
  InputStream& in() { return in_; }

 private:
  void finish_member() {
    const std::uint64_t at = in_.position();
    const std::uint64_t want = left_;
    if (in_.skip(left_) < want) in_.damage(at, in_.position(), "a file in the archive is cut");
    in_.skip(padding_);  // the last file's padding may be missing
    left_ = padding_ = 0;
  }

  void check_sum(const std::string& header, std::uint64_t at) {
    const auto stored = number_field(std::string_view(header).substr(148, 8));
    std::int64_t plain = 0, with_sign = 0;
    for (std::size_t i = 0; i < kUnit; ++i) {
      const char c = i >= 148 && i < 156 ? ' ' : header[i];
      plain += static_cast<unsigned char>(c);
      with_sign += static_cast<signed char>(c);  // as some old archivers summed
    }
    if (!stored || (static_cast<std::int64_t>(*stored) != plain &&
                    static_cast<std::int64_t>(*stored) != with_sign))
      in_.damage(at, at + kUnit, "a tar header does not match its checksum");
  }

  // Records "<length> <key>=<value>\n".
  void parse_pax(std::string_view text, std::uint64_t at, std::string& name,
                 std::optional<std::uint64_t>& size) {
    while (!text.empty() && text[0] != '\0') {
      std::uint64_t n = 0;
      std::size_t i = 0;
      while (i < text.size() && i < 8 && text[i] >= '0' && text[i] <= '9')
        n = n * 10 + static_cast<std::uint64_t>(text[i++] - '0');
      if (i == 0 || i == text.size() || text[i] != ' ' || n > text.size() || n < i + 3)
        in_.damage(at, at + kUnit, "a PAX record is malformed");
      const std::string_view record = text.substr(i + 1, n - i - 2);
      text.remove_prefix(n);
      const std::size_t equals = record.find('=');
      if (equals == record.npos) in_.damage(at, at + kUnit, "a PAX record is malformed");
      const std::string_view value = record.substr(equals + 1);
      if (record.substr(0, equals) == "path") name = value;
      if (record.substr(0, equals) == "size") {
        std::uint64_t v = 0;
        for (const char c : value) {
          if (c < '0' || c > '9' || v > UINT64_MAX / 20)
            in_.damage(at, at + kUnit, "a PAX size is malformed");
          v = v * 10 + static_cast<std::uint64_t>(c - '0');
        }
        size = v;
      }
    }
  }

  // Key and field of a name; false for files that belong to no sample.
  static bool split(const std::string& name, Member& m) {
    // Names that begin with a part in double underscores describe the archive.
    const std::string_view first = std::string_view(name).substr(0, name.find('/'));
    if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return false;
    const std::size_t slash = name.rfind('/');
    const std::size_t base = slash == name.npos ? 0 : slash + 1;
    const std::string_view file = std::string_view(name).substr(base);
    const std::size_t dot = file.find('.');
    // Where nothing is left of the dot, the folder is the key, as long as it has no dot itself.
    if (dot == file.npos || (dot == 0 && (base == 0 || name.find('.') != base))) return false;
    m.key = name.substr(0, base + dot);
    m.field = file.substr(dot + 1);
    for (char& c : m.field)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return true;
  }

  InputStream in_;
  std::uint64_t left_ = 0, padding_ = 0;
  bool ended_ = false;
};

class WebDatasetReader;

class WebDatasetCursor final : public RecordCursor {
 public:
  WebDatasetCursor(SourcePtr file, Wrapping wrapping, ReadOptions options, std::uint64_t at)
      : tar_(InputStream(std::move(file), wrapping, at)), options_(std::move(options)) {}

  bool next(Record& out) override { return step(&out); }
  std::uint64_t skip(std::uint64_t n) override {
    for (std::uint64_t i = 0; i < n; ++i)
      if (!step(nullptr)) return i;
    return n;
  }
  // Where the sample that was read last begins.
  std::uint64_t sample_begin() const { return sample_begin_; }
  std::uint64_t position() const { return pending_ ? pending_->begin : end_; }
  bool ended() const { return tar_.ended(); }

 private:
  bool wanted(const std::string& field) const {
    return options_.columns.empty() || std::find(options_.columns.begin(), options_.columns.end(),
                                                 field) != options_.columns.end();
  }
  bool step(Record* out) {
    if (!pending_) {
      Member m;
      if (!tar_.next(m)) {
        end_ = tar_.in().position();
        return false;
      }
      pending_ = std::move(m);
    }
    const std::string key = pending_->key;
    sample_begin_ = pending_->begin;
    std::uint64_t total = 0;
    std::vector<std::string> fields;
    if (out != nullptr) {
      out->bytes.clear();
      out->fields.clear();
      if (wanted("__key__")) out->fields.emplace_back("__key__", key);
    }
    while (pending_ && pending_->key == key) {
      const Member m = std::move(*pending_);
      pending_.reset();
      if (std::find(fields.begin(), fields.end(), m.field) != fields.end())
        tar_.in().damage(m.begin, m.begin + kUnit,
                         fmt::format("the sample {} has two fields \"{}\"", key, m.field));
      if (fields.size() >= 100000)
        tar_.in().damage(m.begin, m.begin + kUnit,
                         fmt::format("the sample {} has too many fields", key));
      fields.push_back(m.field);
      total += m.size;
      if (out != nullptr && wanted(m.field)) {
        check_limit(tar_.in().source().name(), sample_begin_, m.begin + m.size, total, options_);
        out->fields.emplace_back(m.field, Bytes{tar_.data(m, options_)});
      }
      Member following;
      if (tar_.next(following))
        pending_ = std::move(following);
      else
        end_ = tar_.in().position();
    }
    return true;
  }

  TarStream tar_;
  ReadOptions options_;
  std::optional<Member> pending_;
  std::uint64_t sample_begin_ = 0, end_ = 0;
};

class WebDatasetReader final : public RecordReader {
 public:
  WebDatasetReader(SourcePtr file, const ReadOptions& options)
      : file_(std::move(file)), wrapping_(detect_wrapping(*file_, false)), options_(options) {}
  std::string_view format() const override { return "webdataset"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override { return index().size(); }
  Record read(std::uint64_t i) const override {
    const std::vector<std::uint64_t>& x = index();
    check_index(file_->name(), i, x.size());
    const bool plain = wrapping_ == Wrapping::kNone;
    WebDatasetCursor cursor(file_, wrapping_, options_, plain ? x[i] : 0);
    Record r;
    if (!plain) cursor.skip(i);
    cursor.next(r);
    return r;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    auto cursor = std::make_unique<WebDatasetCursor>(file_, wrapping_, options_, 0);
    if (const std::uint64_t n = cursor->skip(begin); n < begin)
      check_index(file_->name(), begin, n + 1);
    return cursor;
  }
  void verify(const DamageSink& sink) const override {
    try {
      WebDatasetCursor cursor(file_, wrapping_, options_, 0);
      Record r;
      while (cursor.next(r)) {
      }
      if (!cursor.ended() && file_->size() > 0)
        throw DamageError(file_->name(), file_->size() - 1, file_->size(),
                          "the archive does not end with an empty block; it may be cut");
    } catch (const DamageError& e) {
      sink(e);
    }
  }
  Facts info() const override {
    return {{"compression", Value(std::string(wrapping_name(wrapping_)))},
            {"random_access", Value(wrapping_ == Wrapping::kNone)}};
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    return {file_->name(), i};
  }

 private:
  const std::vector<std::uint64_t>& index() const {
    const std::lock_guard lock(mutex_);
    if (index_) return *index_;
    std::vector<std::uint64_t> begins;
    WebDatasetCursor cursor(file_, wrapping_, options_, 0);
    while (cursor.skip(1) == 1) begins.push_back(cursor.sample_begin());
    index_ = std::move(begins);
    return *index_;
  }

  SourcePtr file_;
  Wrapping wrapping_;
  ReadOptions options_;
  mutable std::mutex mutex_;
  mutable std::optional<std::vector<std::uint64_t>> index_;
};

// ---- writing

class WebDatasetWriter final : public RecordWriter {
 public:
  explicit WebDatasetWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}
  bool structured() const override { return true; }
  void write(const Record& r) override {
    std::string key = fmt::format("{:09}", count_);
    if (const Value* k = find_field(r.fields, "__key__")) {
      const auto* text = k->get_if<std::string>();
      const std::size_t slash = text == nullptr ? 0 : text->rfind('/');
      if (text == nullptr || text->empty() ||
          text->find('.', slash == text->npos ? 0 : slash) != text->npos)
        throw_user_error({"write webdataset: __key__", "text without a dot in its last part",
                          to_json(*k), "Replace the dots; what follows one names a field"});
      key = *text;
    }
    ++count_;
    for (const auto& [name, value] : r.fields) {
      if (name == "__key__") continue;
      if (const auto* b = value.get_if<Bytes>())
        add(key + "." + name, b->data);
      else if (const auto* s = value.get_if<std::string>())
        add(key + "." + name, *s);
      else
        add(key + "." + name, to_json(value));
    }
  }
  void close() override {
    sink_->write(std::string(2 * kUnit, '\0'));
    sink_->commit();
  }

 private:
  void add(const std::string& name, std::string_view data) {
    if (name.size() > 100) {
      // GNU's entry for long names comes before the file's own.
      put_header("././@LongLink", name.size() + 1, 'L');
      put_data(name + '\0');
    }
    put_header(name, data.size(), '0');
    put_data(data);
  }
  void put_header(std::string_view name, std::uint64_t size, char type) {
    std::string h(kUnit, '\0');
    const auto put = [&](std::size_t at, std::string_view s) { h.replace(at, s.size(), s); };
    put(0, name.substr(0, 100));
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    if (size < (std::uint64_t{1} << 33)) {
      put(124, fmt::format("{:011o}", size));
    } else {
      h[124] = static_cast<char>(0x80);
      for (int i = 0; i < 8; ++i)
        h[static_cast<std::size_t>(135 - i)] = static_cast<char>(size >> (8 * i));
    }
    put(136, "00000000000");
    put(148, "        ");
    h[156] = type;
    put(257, std::string_view("ustar  ", 8));  // GNU's magic, since names are GNU's
    std::uint64_t sum = 0;
    for (const char c : h) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum));
    h[154] = '\0';
    h[155] = ' ';
    sink_->write(h);
  }
  void put_data(std::string_view data) {
    sink_->write(data);
    sink_->write(std::string(static_cast<std::size_t>(padded(data.size()) - data.size()), '\0'));
  }

  std::unique_ptr<ByteSink> sink_;
  std::uint64_t count_ = 0;
};

}  // namespace

ReaderPtr make_webdataset_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<WebDatasetReader>(std::move(file), options);
}
std::unique_ptr<RecordWriter> make_webdataset_writer(std::unique_ptr<ByteSink> sink,
                                                     std::string_view options) {
  OptionsText("webdataset", options).finish();
  return std::make_unique<WebDatasetWriter>(std::move(sink));
}

}  // namespace xylem::data::internal
