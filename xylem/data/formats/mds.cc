#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/codec.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/internal/input_stream.h"

// MosaicML's MDS: index.json names shards; a shard is a u32 count, count + 1 u32 offsets, a JSON
// configuration, samples. A sample is a u32 for each column of variable size, then the columns'
// data, in the order of their names (github.com/mosaicml/streaming).

namespace xylem::data::internal {
namespace {

[[noreturn]] void bad_index(std::string_view name, std::string_view reason) {
  throw_user_error({name, "an index of MDS shards, version 2", reason,
                    "The index is damaged, or belongs to another format"});
}

const Value& member(const Fields& f, std::string_view key, std::string_view name) {
  const Value* v = find_field(f, key);
  if (v == nullptr) bad_index(name, fmt::format("\"{}\" is missing", key));
  return *v;
}
std::string text_member(const Fields& f, std::string_view key, std::string_view name) {
  const auto* s = member(f, key, name).get_if<std::string>();
  if (s == nullptr) bad_index(name, fmt::format("\"{}\" is no text", key));
  return *s;
}
std::uint64_t number_member(const Fields& f, std::string_view key, std::string_view name) {
  const auto* i = member(f, key, name).get_if<std::int64_t>();
  if (i == nullptr || *i < 0) bad_index(name, fmt::format("\"{}\" is no number", key));
  return static_cast<std::uint64_t>(*i);
}
const List& list_member(const Fields& f, std::string_view key, std::string_view name) {
  const auto* l = member(f, key, name).get_if<List>();
  if (l == nullptr) bad_index(name, fmt::format("\"{}\" is no list", key));
  return *l;
}

struct Column {
  std::string name, encoding;
  std::optional<std::uint64_t> size;  // of columns that always have the same
};

std::vector<Column> parse_columns(const Fields& f, std::string_view name) {
  const List& names = list_member(f, "column_names", name);
  const List& encodings = list_member(f, "column_encodings", name);
  const List& sizes = list_member(f, "column_sizes", name);
  if (names.size() != encodings.size() || names.size() != sizes.size())
    bad_index(name, "the lists of columns have different lengths");
  std::vector<Column> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* n = names[i].get_if<std::string>();
    const auto* e = encodings[i].get_if<std::string>();
    const auto* s = sizes[i].get_if<std::int64_t>();
    if (n == nullptr || e == nullptr || (s == nullptr && !sizes[i].is_null()) ||
        (s != nullptr && *s < 0))
      bad_index(name, "a column is malformed");
    out.push_back({*n, *e, std::nullopt});
    if (s != nullptr) out.back().size = static_cast<std::uint64_t>(*s);
  }
  return out;
}

// ---- values

struct ScalarType {
  std::string_view name;
  DType dtype;
  int code;  // in arrays of dynamic type
};
constexpr ScalarType kScalars[] = {
    {"uint8", DType::kU8, 8},   {"int8", DType::kI8, 9},      {"uint16", DType::kU16, 16},
    {"int16", DType::kI16, 17}, {"float16", DType::kF16, 18}, {"uint32", DType::kU32, 32},
    {"int32", DType::kI32, 33}, {"float32", DType::kF32, 34}, {"uint64", DType::kU64, 64},
    {"int64", DType::kI64, 65}, {"float64", DType::kF64, 66},
};

[[noreturn]] void bad_value(std::string_view column, std::string_view reason) {
  throw_user_error({fmt::format("column \"{}\"", column), "data as its encoding says", reason,
                    "The shard is damaged"});
}

Value scalar_value(DType t, std::string_view data) {
  const HostArray a = HostArray::from_bytes(t, {}, as_byte_span(data));
  if (is_float(t)) return a.at(0);
  if (t == DType::kU64) return *a.as<std::uint64_t>();
  return *a.astype(DType::kI64).as<std::int64_t>();
}

Value decode_array(const Column& c, std::string_view arguments, std::string_view data) {
  const std::size_t colon = arguments.find(':');
  std::string_view type_name = arguments.substr(0, colon);
  const ScalarType* type = nullptr;
  if (type_name.empty()) {
    if (data.empty()) bad_value(c.name, "the array is empty");
    for (const ScalarType& s : kScalars)
      if (s.code == static_cast<unsigned char>(data[0])) type = &s;
    data.remove_prefix(1);
  } else {
    for (const ScalarType& s : kScalars)
      if (s.name == type_name) type = &s;
  }
  if (type == nullptr) bad_value(c.name, "the array's type is unknown");
  Dims dims;
  if (colon != arguments.npos && colon + 1 < arguments.size()) {
    std::string_view list = arguments.substr(colon + 1);
    while (!list.empty()) {
      std::int64_t d = 0;
      const auto r = std::from_chars(list.data(), list.data() + list.size(), d);
      if (r.ec != std::errc() || d < 0) bad_value(c.name, "the array's shape is malformed");
      dims.push_back(d);
      list.remove_prefix(static_cast<std::size_t>(r.ptr - list.data()));
      if (list.starts_with(','))
        list.remove_prefix(1);
      else if (!list.empty())
        bad_value(c.name, "the array's shape is malformed");
    }
  } else {
    if (data.empty()) bad_value(c.name, "the array's shape is missing");
    const auto head = static_cast<unsigned char>(data[0]);
    const std::size_t width = std::size_t{1} << (head & 3), rank = head >> 2;
    data.remove_prefix(1);
    if (data.size() < width * rank) bad_value(c.name, "the array's shape is cut");
    for (std::size_t i = 0; i < rank; ++i) {
      std::uint64_t d = 0;
      std::memcpy(&d, data.data() + i * width, width);
      if (d > INT64_MAX) bad_value(c.name, "the array's shape is malformed");
      dims.push_back(static_cast<std::int64_t>(d));
    }
    data.remove_prefix(width * rank);
  }
  std::int64_t total = dtype_bytes(type->dtype);
  for (const std::int64_t d : dims)
    if (__builtin_mul_overflow(total, d, &total)) bad_value(c.name, "the array is too large");
  if (static_cast<std::uint64_t>(total) != data.size())
    bad_value(c.name, fmt::format("{} needs {} bytes, {} are there",
                                  shape_string(type->dtype, dims), total, data.size()));
  return HostArray::from_bytes(type->dtype, dims, as_byte_span(data));
}

// Images behind each other, with their sizes before them.
Value decode_list(const Column& c, std::string_view data, std::size_t skip) {
  if (data.size() < skip + 4) bad_value(c.name, "the list is cut");
  data.remove_prefix(skip);
  std::uint32_t n = 0;
  std::memcpy(&n, data.data(), 4);
  data.remove_prefix(4);
  if (n > data.size() / 4) bad_value(c.name, "the list is cut");
  std::string_view items = data.substr(std::size_t{4} * n);
  List out;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t size = 0;
    std::memcpy(&size, data.data() + std::size_t{4} * i, 4);
    if (size > items.size()) bad_value(c.name, "the list is cut");
    out.emplace_back(Bytes{std::string(items.substr(0, size))});
    items.remove_prefix(size);
  }
  return out;
}

Value decode_value(const Column& c, std::string_view data) {
  const std::string& e = c.encoding;
  if (e == "bytes" || e == "jpeg" || e == "png") return Bytes{std::string(data)};
  if (e == "str") {
    if (!is_utf8(data)) bad_value(c.name, "the text is not UTF-8");
    return std::string(data);
  }
  if (e == "json") return parse_json(data, fmt::format("column \"{}\"", c.name));
  for (const ScalarType& s : kScalars)
    if (e == s.name || (e == "int" && s.code == 65)) {
      if (data.size() != static_cast<std::size_t>(dtype_bytes(s.dtype)))
        bad_value(c.name, fmt::format("{} has {} bytes", e, data.size()));
      return scalar_value(s.dtype, data);
    }
  if (e == "ndarray") return decode_array(c, {}, data);
  if (e.starts_with("ndarray:")) return decode_array(c, std::string_view(e).substr(8), data);
  if (e == "str_decimal") return std::string(data);
  if (e == "str_int") {
    std::int64_t v = 0;
    const auto r = std::from_chars(data.data(), data.data() + data.size(), v);
    if (r.ec == std::errc::result_out_of_range) return std::string(data);
    if (r.ec != std::errc() || r.ptr != data.data() + data.size())
      bad_value(c.name, "the text is no integer");
    return v;
  }
  if (e == "str_float") {
    double v = 0;
    const auto r = std::from_chars(data.data(), data.data() + data.size(), v);
    if (r.ec != std::errc() || r.ptr != data.data() + data.size())
      bad_value(c.name, "the text is no number");
    return v;
  }
  if (e == "pil") {
    // Width, height and length of the mode, the mode, the pixels.
    std::uint32_t head[3];
    if (data.size() < 12) bad_value(c.name, "the image is cut");
    std::memcpy(head, data.data(), 12);
    if (head[2] > data.size() - 12) bad_value(c.name, "the image is cut");
    Fields f;
    f.emplace_back("width", std::int64_t{head[0]});
    f.emplace_back("height", std::int64_t{head[1]});
    f.emplace_back("mode", std::string(data.substr(12, head[2])));
    f.emplace_back("pixels", Bytes{std::string(data.substr(12 + head[2]))});
    return f;
  }
  if (e == "list[pil]" || e == "list[jpeg]" || e == "list[png]") return decode_list(c, data, 4);
  if (e == "jpeg_array" || e == "jpegarray") return decode_list(c, data, 0);
  if (e == "pkl")
    throw_user_error({fmt::format("column \"{}\"", c.name), "an encoding that only holds data",
                      "pkl, Python's pickle, which can run code",
                      "Leave the column out with --columns, or write it with another encoding"});
  bad_value(c.name, fmt::format("the encoding \"{}\" is unknown", e));
}

// ---- shards

// One shard's samples. Several threads may read.
class Shard {
 public:
  Shard(SourcePtr file, std::vector<Column> columns, std::uint64_t count)
      : file_(std::move(file)), columns_(std::move(columns)), count_(count) {
    const std::uint64_t size = file_->size();
    const std::string head = file_->read(0, 4);
    std::uint32_t n = 0;
    std::memcpy(&n, head.data(), head.size());
    if (head.size() < 4 || n != count_)
      throw DamageError(file_->name(), 0, std::min<std::uint64_t>(4, size),
                        fmt::format("the shard says {} samples, the index {}", n, count_));
    if (4 * (count_ + 2) > size)
      throw DamageError(file_->name(), 0, size, "the shard's offsets are cut");
  }
  // A shard that brings its columns itself.
  static std::shared_ptr<const Shard> open_alone(const SourcePtr& file) {
    const std::string head = file->read(0, 8);
    std::uint32_t n = 0, begin = 0;
    if (head.size() == 8) {
      std::memcpy(&n, head.data(), 4);
      std::memcpy(&begin, head.data() + 4, 4);
    }
    const std::uint64_t offsets_end = 4 * (std::uint64_t{n} + 2);
    if (head.size() < 8 || begin < offsets_end || begin > file->size() ||
        begin - offsets_end > (1u << 24))
      throw DamageError(file->name(), 0, std::min<std::uint64_t>(8, file->size()),
                        "the shard's count and first offset do not fit its size");
    try {
      const Value v = parse_json(file->read(offsets_end, begin - offsets_end), file->name());
      const auto* f = v.get_if<Fields>();
      if (f == nullptr) bad_index(file->name(), "the configuration is no object");
      return std::make_shared<Shard>(file, parse_columns(*f, file->name()), n);
    } catch (const DamageError&) {
      throw;
    } catch (const UserError& e) {
      throw DamageError(file->name(), offsets_end, begin, e.message());
    }
  }

  std::uint64_t count() const { return count_; }
  const std::vector<Column>& columns() const { return columns_; }

  Record read(std::uint64_t i, const ReadOptions& options) const {
    std::uint32_t range[2];
    const std::string offsets = file_->read(4 + 4 * i, 8);
    std::memcpy(range, offsets.data(), 8);
    if (range[0] < 4 * (count_ + 2) || range[0] > range[1] || range[1] > file_->size())
      throw DamageError(file_->name(), 4 + 4 * i, 12 + 4 * i,
                        fmt::format("sample {} spans {}-{}, outside of the shard's {} bytes", i,
                                    range[0], range[1], file_->size()));
    check_limit(file_->name(), range[0], range[1], range[1] - range[0], options);
    const std::string data = file_->read(range[0], range[1] - range[0]);
    Record r;
    try {
      ByteReader in(data, file_->name());
      std::vector<std::uint64_t> sizes;
      for (const Column& c : columns_) sizes.push_back(c.size ? *c.size : in.read<std::uint32_t>());
      for (std::size_t k = 0; k < columns_.size(); ++k) {
        const Column& c = columns_[k];
        const std::string_view own = in.read_string(sizes[k]);
        if (options.columns.empty() || std::find(options.columns.begin(), options.columns.end(),
                                                 c.name) != options.columns.end())
          r.fields.emplace_back(c.name, decode_value(c, own));
      }
      if (!in.done()) in.fail("columns that fill the sample", "more bytes");
    } catch (const UserError& e) {
      throw DamageError(file_->name(), range[0], range[1],
                        fmt::format("sample {}: {}", i, e.message()));
    }
    return r;
  }

 private:
  SourcePtr file_;
  std::vector<Column> columns_;
  std::uint64_t count_;
};

struct ShardEntry {
  std::string raw_path, zip_path, compression;
  std::uint64_t raw_bytes = 0, samples = 0;
  std::vector<Column> columns;
};

class MdsReader final : public RecordReader, public std::enable_shared_from_this<MdsReader> {
 public:
  MdsReader(const std::string& path, const ReadOptions& options) : name_(path), options_(options) {
    const std::string index = is_directory(path) ? join_path(path, "index.json") : path;
    const std::string folder = parent_path(index);
    if (xylem::file_size(index) > (std::uint64_t{256} << 20))
      bad_index(index, "it is larger than 256 MiB");
    const Value v = parse_json(read_file(index), index);
    const auto* f = v.get_if<Fields>();
    if (f == nullptr || number_member(*f, "version", index) != 2)
      bad_index(index, "the version is not 2");
    first_.push_back(0);
    for (const Value& s : list_member(*f, "shards", index)) {
      const auto* shard = s.get_if<Fields>();
      if (shard == nullptr || text_member(*shard, "format", index) != "mds")
        bad_index(index, "a shard is not of the format \"mds\"");
      ShardEntry e;
      e.columns = parse_columns(*shard, index);
      e.samples = number_member(*shard, "samples", index);
      const auto place = [&](const Fields& data) {
        const std::string base = text_member(data, "basename", index);
        if (base.empty() || base.find("..") != base.npos || base[0] == '/')
          bad_index(index, fmt::format("the shard \"{}\" lies outside of the folder", base));
        return join_path(folder, base);
      };
      const auto* raw = member(*shard, "raw_data", index).get_if<Fields>();
      if (raw == nullptr) bad_index(index, "\"raw_data\" is no object");
      e.raw_path = place(*raw);
      e.raw_bytes = number_member(*raw, "bytes", index);
      if (const Value* zip = find_field(*shard, "zip_data"); zip != nullptr && !zip->is_null()) {
        const auto* z = zip->get_if<Fields>();
        if (z == nullptr) bad_index(index, "\"zip_data\" is no object");
        e.zip_path = place(*z);
        e.compression = text_member(*shard, "compression", index);
      }
      if (e.samples > UINT32_MAX) bad_index(index, "a shard has too many samples");
      first_.push_back(first_.back() + e.samples);
      shards_.push_back(std::move(e));
    }
    open_.resize(shards_.size());
  }
  explicit MdsReader(SourcePtr file, const ReadOptions& options)
      : name_(file->name()), options_(options) {
    open_.push_back(Shard::open_alone(file));
    first_ = {0, open_[0]->count()};
    shards_.push_back({file->name(), {}, {}, file->size(), open_[0]->count(), open_[0]->columns()});
  }

  std::string_view format() const override { return "mds"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override { return first_.back(); }
  Record read(std::uint64_t i) const override {
    check_index(name_, i, count());
    const auto s = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) -
                                            first_.begin() - 1);
    return shard(s)->read(i - first_[s], options_);
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    return make_indexed_cursor(shared_from_this(), begin);
  }
  void verify(const DamageSink& sink) const override {
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      try {
        const auto own = shard(s);
        for (std::uint64_t i = 0; i < own->count(); ++i) {
          try {
            own->read(i, options_);
          } catch (const DamageError& e) {
            sink(e);
          }
        }
      } catch (const DamageError& e) {
        sink(e);
      }
    }
  }
  Facts info() const override {
    Facts facts{{"shards", Value(static_cast<std::int64_t>(shards_.size()))}};
    if (shards_.empty()) return facts;
    facts.emplace_back("compression",
                       shards_[0].zip_path.empty() ? std::string("none") : shards_[0].compression);
    for (const Column& c : shards_[0].columns) facts.emplace_back("column " + c.name, c.encoding);
    return facts;
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    if (i >= count()) return {name_, i};
    const auto s = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) -
                                            first_.begin() - 1);
    return {shards_[s].raw_path, i - first_[s]};
  }

 private:
  std::shared_ptr<const Shard> shard(std::size_t s) const {
    const std::lock_guard lock(mutex_);
    if (open_[s]) return open_[s];
    const ShardEntry& e = shards_[s];
    SourcePtr file;
    if (e.zip_path.empty() || path_exists(e.raw_path)) {
      file = open_file_source(e.raw_path);
      if (file->size() != e.raw_bytes)
        throw DamageError(
            e.raw_path, 0, file->size(),
            fmt::format("the shard has {} bytes, the index says {}", file->size(), e.raw_bytes));
    } else {
      file = memory_source(unpack(e), e.raw_path);
      // Unpacked shards take memory: only the last few stay.
      unpacked_.push_back(s);
      if (unpacked_.size() > 4) {
        open_[unpacked_.front()] = nullptr;
        unpacked_.pop_front();
      }
    }
    open_[s] = std::make_shared<Shard>(file, e.columns, e.samples);
    return open_[s];
  }
  std::string unpack(const ShardEntry& e) const {
    const std::string_view c = e.compression;
    const std::string_view kind = c.substr(0, c.find(':'));
    const Codec codec = kind == "zstd"     ? Codec::kZstd
                        : kind == "gz"     ? Codec::kGzip
                        : kind == "br"     ? Codec::kBrotli
                        : kind == "snappy" ? Codec::kSnappy
                                           : Codec::kNone;
    if (codec == Codec::kNone)
      throw_user_error({e.zip_path, "compression by zstd, gz, br or snappy", e.compression,
                        "Unpack the shards, or compress them in another way"});
    const std::string in = read_file(e.zip_path);
    check_limit(e.zip_path, 0, in.size(), e.raw_bytes, options_);
    std::string out, why;
    if (!decompress(codec, in, e.raw_bytes, out, why))
      throw DamageError(e.zip_path, 0, in.size(), why);
    return out;
  }

  std::string name_;
  ReadOptions options_;
  std::vector<ShardEntry> shards_;
  std::vector<std::uint64_t> first_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Shard>> open_;
  mutable std::list<std::size_t> unpacked_;
};

// ---- writing

class MdsWriter final : public RecordWriter {
 public:
  MdsWriter(const std::string& folder, std::string_view options) : folder_(folder) {
    OptionsText text("mds", options);
    limit_ = static_cast<std::uint64_t>(text.take_int("size_limit", 1 << 26, 1, UINT32_MAX));
    std::string level;
    if (text.take("zstd", level)) {
      level_ = static_cast<int>(level.empty() ? 3 : text.take_int("zstd", 3, 1, 22));
      compression_ = fmt::format("zstd:{}", *level_);
    }
    text.finish();
    if (path_exists(folder_))
      throw_user_error({fmt::format("write {}", folder_), "a folder that does not exist yet",
                        "it exists", "Remove it or choose another name"});
    temporary_ = folder_ + ".tmp";
    remove_tree(temporary_);
    make_directories(temporary_);
  }
  ~MdsWriter() override {
    if (!closed_) {
      try {
        remove_tree(temporary_);
      } catch (const Error&) {  // what cannot be removed stays
      }
    }
  }
  bool structured() const override { return true; }

  void write(const Record& r) override {
    std::vector<const std::pair<std::string, Value>*> sorted;
    for (const auto& f : r.fields) sorted.push_back(&f);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
    if (total_ == 0)
      for (const auto* f : sorted) columns_.push_back(infer(f->first, f->second));
    bool fits = sorted.size() == columns_.size();
    for (std::size_t i = 0; fits && i < sorted.size(); ++i)
      fits = sorted[i]->first == columns_[i].name;
    if (!fits)
      throw_user_error({"write mds", "the same fields in every record",
                        fmt::format("record {} has others than the first", total_),
                        "Choose common fields with --columns"});
    ByteWriter sizes;
    std::string data;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const std::string value = encode(columns_[i], sorted[i]->second);
      if (!columns_[i].size) sizes.write(static_cast<std::uint32_t>(value.size()));
      data += value;
    }
    std::string sample = sizes.take() + data;
    const std::uint64_t after = bytes_ + sample.size() + 4;
    if (!samples_.empty() && after + config().size() + 8 > limit_) flush();
    bytes_ += sample.size() + 4;
    if (bytes_ + config().size() + 8 > UINT32_MAX)
      throw_user_error({"write mds", "samples below 4 GiB",
                        fmt::format("record {} has {} bytes", total_, sample.size()),
                        "Split the record"});
    samples_.push_back(std::move(sample));
    ++total_;
  }

  void close() override {
    if (!samples_.empty()) flush();
    Fields index;
    index.emplace_back("shards", shards_);
    index.emplace_back("version", std::int64_t{2});
    write_file(join_path(temporary_, "index.json"), to_json(Value(index)));
    commit_directory(temporary_, folder_);
    closed_ = true;
  }

 private:
  Column infer(const std::string& name, const Value& v) const {
    if (v.get_if<bool>() != nullptr) return {name, "uint8", 1};
    if (v.get_if<std::int64_t>() != nullptr) return {name, "int", 8};
    if (v.get_if<std::uint64_t>() != nullptr) return {name, "uint64", 8};
    if (v.get_if<double>() != nullptr) return {name, "float64", 8};
    if (v.get_if<std::string>() != nullptr) return {name, "str", std::nullopt};
    if (v.get_if<Bytes>() != nullptr) return {name, "bytes", std::nullopt};
    if (const auto* a = v.get_if<HostArray>()) {
      for (const ScalarType& s : kScalars) {
        if (s.dtype != a->dtype()) continue;
        if (a->rank() == 0)
          return {name, std::string(s.name), static_cast<std::uint64_t>(dtype_bytes(s.dtype))};
        if (a->size() > 0) return {name, "ndarray", std::nullopt};
      }
    }
    return {name, "json", std::nullopt};
  }

  std::string encode(const Column& c, const Value& v) const {
    const auto fail = [&]() {
      throw_user_error({fmt::format("write mds: field \"{}\"", c.name),
                        fmt::format("values of the kind of the first record's ({})", c.encoding),
                        to_json(v).substr(0, 60), "Convert the records first"});
    };
    if (c.encoding == "json") return to_json(v);
    if (c.encoding == "str") {
      if (const auto* s = v.get_if<std::string>()) return *s;
      fail();
    }
    if (c.encoding == "bytes") {
      if (const auto* b = v.get_if<Bytes>()) return b->data;
      fail();
    }
    ByteWriter w;
    if (const auto* a = v.get_if<HostArray>()) {
      const HostArray data = a->to_contiguous();
      const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.nbytes());
      if (c.encoding != "ndarray") {
        if (bytes.size() != c.size || dtype_info(a->dtype()).numpy_name != c.encoding) fail();
        return std::string(bytes);
      }
      const ScalarType* type = nullptr;
      for (const ScalarType& s : kScalars)
        if (s.dtype == a->dtype()) type = &s;
      if (type == nullptr || a->rank() == 0 || a->size() == 0) fail();
      const std::int64_t largest = *std::max_element(a->dims().begin(), a->dims().end());
      const int width = largest < 256 ? 0 : largest < 65536 ? 1 : largest <= UINT32_MAX ? 2 : 3;
      w.write(static_cast<std::uint8_t>(type->code));
      w.write(static_cast<std::uint8_t>(a->rank() << 2 | width));
      for (const std::int64_t d : a->dims())
        w.write_string(
            std::string_view(reinterpret_cast<const char*>(&d), std::size_t{1} << width));
      w.write_string(bytes);
      return w.take();
    }
    if (c.encoding == "int") {
      const auto* i = v.get_if<std::int64_t>();
      if (i == nullptr) fail();
      w.write(*i);
    } else if (c.encoding == "uint8") {
      const auto* b = v.get_if<bool>();
      if (b == nullptr) fail();
      w.write(static_cast<std::uint8_t>(*b));
    } else if (c.encoding == "uint64") {
      const auto* u = v.get_if<std::uint64_t>();
      if (u == nullptr) fail();
      w.write(*u);
    } else if (c.encoding == "float64") {
      const auto* d = v.get_if<double>();
      const auto* i = v.get_if<std::int64_t>();
      if (d == nullptr && i == nullptr) fail();
      w.write(d != nullptr ? *d : static_cast<double>(*i));
    } else {
      fail();
    }
    return w.take();
  }

  Fields describe() const {
    List names, encodings, sizes;
    for (const Column& c : columns_) {
      names.emplace_back(c.name);
      encodings.emplace_back(c.encoding);
      sizes.push_back(c.size ? Value(static_cast<std::int64_t>(*c.size)) : Value());
    }
    Fields f;
    f.emplace_back("column_encodings", encodings);
    f.emplace_back("column_names", names);
    f.emplace_back("column_sizes", sizes);
    f.emplace_back("compression", compression_.empty() ? Value() : Value(compression_));
    f.emplace_back("format", "mds");
    f.emplace_back("hashes", List{});
    f.emplace_back("size_limit", static_cast<std::int64_t>(limit_));
    f.emplace_back("version", std::int64_t{2});
    return f;
  }
  std::string config() const { return to_json(Value(describe())); }

  void flush() {
    const std::string text = config();
    ByteWriter w;
    w.write(static_cast<std::uint32_t>(samples_.size()));
    std::uint64_t at = 4 * (samples_.size() + 2) + text.size();
    w.write(static_cast<std::uint32_t>(at));
    for (const std::string& s : samples_) w.write(static_cast<std::uint32_t>(at += s.size()));
    w.write_string(text);
    for (const std::string& s : samples_) w.write_string(s);
    const std::string name = fmt::format("shard.{:05}.mds", shards_.size());
    const auto file = [](const std::string& base, std::uint64_t bytes) {
      Fields f;
      f.emplace_back("basename", base);
      f.emplace_back("bytes", static_cast<std::int64_t>(bytes));
      f.emplace_back("hashes", Fields{});
      return f;
    };
    Fields entry = describe();
    entry.emplace_back("raw_data", file(name, w.size()));
    entry.emplace_back("samples", static_cast<std::int64_t>(samples_.size()));
    if (level_) {
      const std::string packed = compress(Codec::kZstd, w.str(), {*level_, std::nullopt});
      entry.emplace_back("zip_data", file(name + ".zstd", packed.size()));
      write_file(join_path(temporary_, name + ".zstd"), packed);
    } else {
      entry.emplace_back("zip_data", Value());
      write_file(join_path(temporary_, name), w.str());
    }
    shards_.emplace_back(std::move(entry));
    samples_.clear();
    bytes_ = 0;
  }

  std::string folder_, temporary_, compression_;
  std::uint64_t limit_ = 0, bytes_ = 0, total_ = 0;
  std::optional<int> level_;
  std::vector<Column> columns_;
  std::vector<std::string> samples_;
  List shards_;
  bool closed_ = false;
};

}  // namespace

ReaderPtr make_mds_reader(const std::string& path, const ReadOptions& options) {
  return std::make_shared<MdsReader>(path, options);
}
ReaderPtr make_mds_shard_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<MdsReader>(std::move(file), options);
}
std::unique_ptr<RecordWriter> make_mds_writer(const std::string& folder, std::string_view options) {
  return std::make_unique<MdsWriter>(folder, options);
}

}  // namespace xylem::data::internal
