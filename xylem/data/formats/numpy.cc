#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "xylem/base/bytes.h"
#include "xylem/base/npy.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/internal/npy_array.h"
#include "xylem/data/formats/internal/zip.h"

// .npy and .npz files. A record of an .npy file is a[i]. A record of an .npz file is row i of every
// array where all have equally many rows, else one whole array.

namespace xylem::data::internal {
namespace {

class IndexedCursor final : public RecordCursor {
 public:
  IndexedCursor(std::shared_ptr<const RecordReader> reader, std::uint64_t begin)
      : reader_(std::move(reader)), at_(begin) {
    check_index(reader_->locate(0).first, begin, reader_->count() + 1);
  }
  bool next(Record& out) override {
    if (at_ == reader_->count()) return false;
    out = reader_->read(at_++);
    return true;
  }
  bool recover() override { return true; }
  std::uint64_t skip(std::uint64_t n) override {
    const std::uint64_t step = std::min(n, reader_->count() - at_);
    at_ += step;
    return step;
  }

 private:
  std::shared_ptr<const RecordReader> reader_;
  std::uint64_t at_;
};

// Bytes of Fortran order, put into C order.
std::string to_c_order(const NpyHeader& h, std::string_view data) {
  std::string out(data.size(), '\0');
  const std::size_t rank = h.dims.size();
  std::vector<std::uint64_t> stride(rank, h.type.size);
  for (std::size_t i = 1; i < rank; ++i)
    stride[i] = stride[i - 1] * static_cast<std::uint64_t>(h.dims[i - 1]);
  std::vector<std::int64_t> at(rank, 0);
  std::uint64_t from = 0;
  for (std::size_t to = 0; to + h.type.size <= out.size() && h.type.size > 0; to += h.type.size) {
    std::memcpy(out.data() + to, data.data() + from, h.type.size);
    for (std::size_t i = rank; i-- > 0;) {
      from += stride[i];
      if (++at[i] < h.dims[i]) break;
      from -= stride[i] * static_cast<std::uint64_t>(h.dims[i]);
      at[i] = 0;
    }
  }
  return out;
}

class NpyReader final : public RecordReader, public std::enable_shared_from_this<NpyReader> {
 public:
  NpyReader(SourcePtr file, const ReadOptions& options)
      : file_(std::move(file)), options_(options) {
    const std::uint64_t most = std::uint64_t{1} << 20;
    const std::string head = file_->read(0, most);
    try {
      header_ = parse_npy_header(head, "the .npy header");
    } catch (const UserError& e) {
      throw DamageError(file_->name(), 0, std::min<std::uint64_t>(head.size(), 128), e.message());
    }
    const std::uint64_t begin = header_.data_begin;
    const std::uint64_t total = header_.elements(0) * header_.type.size;
    if (total != file_->size() - begin)
      throw DamageError(file_->name(), begin, file_->size(),
                        fmt::format("{} needs {} bytes, the file has {}", npy_type_text(header_),
                                    total, file_->size() - begin));
    row_bytes_ = header_.dims.empty() ? total : header_.elements(1) * header_.type.size;
    check_limit(file_->name(), begin, file_->size(), header_.fortran ? total : row_bytes_,
                options_);
    row_dims_ = header_.dims;
    if (!row_dims_.empty()) row_dims_.erase(row_dims_.begin());
  }
  std::string_view format() const override { return "npy"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override {
    return header_.dims.empty() ? 1 : static_cast<std::uint64_t>(header_.dims[0]);
  }
  Record read(std::uint64_t i) const override {
    check_index(file_->name(), i, count());
    Record r;
    r.fields.emplace_back("data", row(i));
    return r;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    return make_indexed_cursor(shared_from_this(), begin);
  }
  void verify(const DamageSink&) const override {}  // opening checks all there is
  Facts info() const override {
    return {{"array", Value(npy_type_text(header_))}, {"fortran_order", Value(header_.fortran)}};
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    return {file_->name(), i};
  }

 private:
  Value row(std::uint64_t i) const {
    if (!header_.fortran)
      return npy_value(header_.type, row_dims_,
                       file_->read(header_.data_begin + i * row_bytes_, row_bytes_), file_->name());
    const std::lock_guard lock(mutex_);
    if (whole_.empty())
      whole_ = to_c_order(header_, file_->read(header_.data_begin, file_->size()));
    return npy_value(header_.type, row_dims_,
                     std::string_view(whole_).substr(i * row_bytes_, row_bytes_), file_->name());
  }

  SourcePtr file_;
  ReadOptions options_;
  NpyHeader header_;
  std::vector<std::int64_t> row_dims_;
  std::uint64_t row_bytes_ = 0;
  mutable std::mutex mutex_;
  mutable std::string whole_;
};

// A whole array of an .npz file, and its rows.
struct NpzArray {
  std::string name;
  std::optional<NpyHeader> header;  // nothing: a member that is no array
  std::string data;                 // in C order

  Value value() const {
    if (!header) return Bytes{data};
    return npy_value(header->type, header->dims, data, name);
  }
  Value row(std::uint64_t i) const {
    const std::uint64_t n = header->elements(1) * header->type.size;
    return npy_value(header->type, {header->dims.begin() + 1, header->dims.end()},
                     std::string_view(data).substr(i * n, n), name);
  }
};

class NpzReader final : public RecordReader, public std::enable_shared_from_this<NpzReader> {
 public:
  NpzReader(SourcePtr file, const ReadOptions& options)
      : file_(std::move(file)), options_(options), members_(read_zip_directory(*file_)) {
    if (options_.columns.empty()) return;
    std::vector<ZipMember> kept;
    for (const std::string& c : options_.columns)
      for (const ZipMember& m : members_)
        if (array_name(m) == c) kept.push_back(m);
    members_ = std::move(kept);
  }
  std::string_view format() const override { return "npz"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override {
    load();
    return rows_ ? *rows_ : arrays_.size();
  }
  Record read(std::uint64_t i) const override {
    check_index(file_->name(), i, count());
    Record r;
    if (rows_) {
      for (const NpzArray& a : arrays_) r.fields.emplace_back(a.name, a.row(i));
    } else {
      r.fields.emplace_back("name", arrays_[i].name);
      r.fields.emplace_back("data", arrays_[i].value());
    }
    return r;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    return make_indexed_cursor(shared_from_this(), begin);
  }
  void verify(const DamageSink& sink) const override {
    for (const ZipMember& m : members_) {
      try {
        array_of(m);
      } catch (const DamageError& e) {
        sink(e);
      }
    }
  }
  Facts info() const override {
    load();
    Facts facts;
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      facts.emplace_back(
          arrays_[i].name,
          Value((arrays_[i].header ? npy_type_text(*arrays_[i].header) : std::string("no array")) +
                (members_[i].method == 8 ? ", deflated" : ", stored")));
    return facts;
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    return {file_->name(), i};
  }

 private:
  static std::string array_name(const ZipMember& m) {
    return m.name.ends_with(".npy") ? m.name.substr(0, m.name.size() - 4) : m.name;
  }
  NpzArray array_of(const ZipMember& m) const {
    NpzArray a;
    a.name = array_name(m);
    a.data = read_zip_member(*file_, m, options_);
    if (!m.name.ends_with(".npy")) return a;
    const auto fail = [&](std::string_view reason) {
      throw DamageError(file_->name(), m.header_begin, m.header_begin + 30 + m.compressed_size,
                        reason);
    };
    try {
      a.header = parse_npy_header(a.data, m.name);
    } catch (const UserError& e) {
      fail(e.message());
    }
    a.data.erase(0, a.header->data_begin);
    if (a.data.size() != a.header->elements(0) * a.header->type.size)
      fail(fmt::format("{}: {} needs {} bytes, the member has {}", m.name, npy_type_text(*a.header),
                       a.header->elements(0) * a.header->type.size, a.data.size()));
    if (a.header->fortran) a.data = to_c_order(*a.header, a.data);
    return a;
  }
  void load() const {
    const std::lock_guard lock(mutex_);
    if (loaded_) return;
    std::vector<NpzArray> arrays;
    bool rows = !members_.empty();
    for (const ZipMember& m : members_) {
      arrays.push_back(array_of(m));
      const auto& h = arrays.back().header;
      rows = rows && h && !h->dims.empty() && h->dims[0] == arrays.front().header->dims[0];
    }
    arrays_ = std::move(arrays);
    if (rows) rows_ = static_cast<std::uint64_t>(arrays_.front().header->dims[0]);
    loaded_ = true;
  }

  SourcePtr file_;
  ReadOptions options_;
  std::vector<ZipMember> members_;
  mutable std::mutex mutex_;
  mutable bool loaded_ = false;
  mutable std::vector<NpzArray> arrays_;
  mutable std::optional<std::uint64_t> rows_;
};

// ---- writing

// A value as an array: numbers become 0-d arrays, lists of them arrays of one dimension more.
HostArray to_array(const Value& v, std::string_view field) {
  const auto fail = [&]() {
    throw_user_error({fmt::format("write field \"{}\"", field),
                      "a number, an array, or lists of equal shape", to_json(v).substr(0, 60),
                      "Leave the field out, or write jsonl"});
  };
  if (const auto* a = v.get_if<HostArray>()) return *a;
  if (const auto* b = v.get_if<bool>()) return HostArray::scalar(*b);
  if (const auto* i = v.get_if<std::int64_t>()) return HostArray::scalar(*i);
  if (const auto* u = v.get_if<std::uint64_t>()) return HostArray::scalar(*u);
  if (const auto* d = v.get_if<double>()) return HostArray::scalar(*d);
  const auto* list = v.get_if<List>();
  if (list == nullptr || list->empty()) fail();
  std::vector<HostArray> rows;
  for (const Value& item : *list) rows.push_back(to_array(item, field));
  Dims dims{static_cast<std::int64_t>(rows.size())};
  for (const std::int64_t d : rows[0].dims()) dims.push_back(d);
  HostArray out(rows[0].dtype(), dims);
  std::size_t at = 0;
  for (const HostArray& row : rows) {
    if (row.dtype() != rows[0].dtype() || row.dims() != rows[0].dims()) fail();
    const HostArray c = row.to_contiguous();
    if (c.nbytes() > 0) std::memcpy(out.data() + at, c.data(), c.nbytes());
    at += c.nbytes();
  }
  return out;
}

// Rows of one field, joined when all are there.
struct Column {
  std::string name;
  DType dtype;
  Dims dims;
  std::string bytes;
  std::int64_t rows = 0;

  void add(const Value& v) {
    const HostArray a = to_array(v, name).to_contiguous();
    if (rows == 0) {
      dtype = a.dtype();
      dims = a.dims();
    } else if (a.dtype() != dtype || a.dims() != dims) {
      throw_user_error({fmt::format("write field \"{}\"", name),
                        fmt::format("{} as in the first record", shape_string(dtype, dims)),
                        fmt::format("{} in record {}", a.type_string(), rows),
                        "Pad or convert the records first"});
    }
    bytes.append(reinterpret_cast<const char*>(a.data()), a.nbytes());
    ++rows;
  }
  HostArray array() const {
    Dims all{rows};
    for (const std::int64_t d : dims) all.push_back(d);
    return HostArray::from_bytes(dtype, all, as_byte_span(bytes));
  }
};

class NumpyWriter final : public RecordWriter {
 public:
  NumpyWriter(std::unique_ptr<ByteSink> sink, bool zip, bool deflate)
      : sink_(std::move(sink)), zip_(zip), deflate_(deflate) {}
  bool structured() const override { return true; }
  void write(const Record& r) override {
    if (count_ == 0)
      for (const auto& [name, value] : r.fields) columns_.push_back({name, DType::kF32, {}, {}, 0});
    if (!zip_ && columns_.size() != 1)
      throw_user_error({"write npy", "records of one field",
                        fmt::format("record {} has {}", count_, columns_.size()),
                        "Choose one with --columns, or write npz"});
    if (r.fields.size() != columns_.size()) mismatch(r);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (r.fields[i].first != columns_[i].name) mismatch(r);
      columns_[i].add(r.fields[i].second);
    }
    ++count_;
  }
  void close() override {
    if (!zip_) {
      sink_->write(
          format_npy(columns_.empty() ? HostArray::zeros(DType::kF64, {0}) : columns_[0].array()));
    } else {
      ZipWriter zip(*sink_);
      for (const Column& c : columns_) zip.add(c.name + ".npy", format_npy(c.array()), deflate_);
      zip.finish();
    }
    sink_->commit();
  }

 private:
  [[noreturn]] void mismatch(const Record& r) const {
    throw_user_error(
        {zip_ ? "write npz" : "write npy", "the same fields in every record",
         fmt::format("record {} has others than the first ({} fields)", count_, r.fields.size()),
         "Choose common fields with --columns, or write jsonl"});
  }
  std::unique_ptr<ByteSink> sink_;
  bool zip_, deflate_;
  std::vector<Column> columns_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<RecordCursor> make_indexed_cursor(std::shared_ptr<const RecordReader> reader,
                                                  std::uint64_t begin) {
  return std::make_unique<IndexedCursor>(std::move(reader), begin);
}

ReaderPtr make_npy_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<NpyReader>(std::move(file), options);
}
ReaderPtr make_npz_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<NpzReader>(std::move(file), options);
}
std::unique_ptr<RecordWriter> make_npy_writer(std::unique_ptr<ByteSink> sink,
                                              std::string_view options) {
  OptionsText("npy", options).finish();
  return std::make_unique<NumpyWriter>(std::move(sink), false, false);
}
std::unique_ptr<RecordWriter> make_npz_writer(std::unique_ptr<ByteSink> sink,
                                              std::string_view options) {
  OptionsText text("npz", options);
  const bool deflate = text.take_bool("deflate", false);
  text.finish();
  return std::make_unique<NumpyWriter>(std::move(sink), true, deflate);
}

}  // namespace xylem::data::internal
