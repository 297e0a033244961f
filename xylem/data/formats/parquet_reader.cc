#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/formats.h"
#include "xylem/data/formats/internal/parquet_column.h"

// Rows of Parquet files: columns' entries put together again by their levels (Dremel, Melnik et al.
// 2010).

namespace xylem::data::internal {
namespace parquet {
namespace {

// Rows of one row group, in order.
class RowGroupCursor {
 public:
  RowGroupCursor(SourcePtr file, const ReadOptions& options, const FileMetadata& metadata,
                 const std::vector<const Node*>& fields, std::size_t group)
      : options_(options), fields_(fields), num_rows_(metadata.row_groups[group].num_rows) {
    columns_.resize(metadata.leaves.size());
    for (const Node* f : fields)
      for (int k = f->first_leaf; k < f->end_leaf; ++k) {
        const auto i = static_cast<std::size_t>(k);
        columns_[i] = std::make_unique<ColumnCursor>(file, options_, *metadata.leaves[i],
                                                     metadata.row_groups[group].columns[i]);
      }
  }
  std::int64_t row() const { return row_; }
  std::int64_t num_rows() const { return num_rows_; }

  void read(Fields& out) {
    out.clear();
    used_ = 0;
    for (const Node* f : fields_) {
      out.emplace_back(f->name, read_node(*f));
      for (int k = f->first_leaf; k < f->end_leaf; ++k)
        if (column(k).rep() != 0) column(k).fail("a value belongs to no list of its row");
    }
    next_row();
  }
  void skip() {
    for (const Node* f : fields_)
      for (int k = f->first_leaf; k < f->end_leaf; ++k) {
        column(k).drop();
        while (column(k).rep() != 0) column(k).drop();
      }
    next_row();
  }

 private:
  ColumnCursor& column(int k) { return *columns_[static_cast<std::size_t>(k)]; }
  void next_row() {
    if (++row_ < num_rows_) return;
    for (const auto& c : columns_)
      if (c) c->finish();
  }
  // What values take in memory: runs and dictionaries of a few bytes must not multiply without
  // bound.
  void count_element(const Node& n, std::size_t bytes = sizeof(Value)) {
    used_ += bytes;
    if (used_ > options_.max_record_bytes)
      column(n.first_leaf)
          .fail(fmt::format("a row takes more than the limit of {} bytes",
                            options_.max_record_bytes));
  }
  // Nothing is there: each column below has one entry that says so.
  void drop_all(const Node& n) {
    for (int k = n.first_leaf; k < n.end_leaf; ++k) column(k).drop();
  }

  Value read_node(const Node& n) {
    if (n.repetition == Repetition::kRepeated) return read_repeated(n, n);
    count_element(n);
    if (n.repetition == Repetition::kOptional && column(n.first_leaf).def() < n.def) {
      drop_all(n);
      return {};
    }
    return read_content(n);
  }

  // Items of a repeated node; of each, `item`: the node itself or its only child.
  Value read_repeated(const Node& n, const Node& item) {
    List list;
    if (column(n.first_leaf).def() < n.def) {
      drop_all(n);
      return list;
    }
    do {
      count_element(n);
      list.push_back(&item == &n ? read_content(n) : read_node(item));
    } while (column(n.first_leaf).rep() == n.rep);
    return list;
  }

  Value read_content(const Node& n) {
    if (n.is_leaf()) {
      ColumnCursor& c = column(n.first_leaf);
      Value v = c.take();
      if (v.is_null()) c.fail("a value that must be there is not");
      if (const auto* s = v.get_if<std::string>()) count_element(n, s->size());
      if (const auto* b = v.get_if<Bytes>()) count_element(n, b->data.size());
      return v;
    }
    const bool one_repeated =
        n.children.size() == 1 && n.children[0].repetition == Repetition::kRepeated;
    if (n.meaning == Meaning::kList && one_repeated) {
      const Node& middle = n.children[0];
      // Older writers repeat the element itself.
      const bool wrapped = !middle.is_leaf() && middle.children.size() == 1 &&
                           middle.children[0].repetition != Repetition::kRepeated &&
                           middle.name != "array" && middle.name != n.name + "_tuple";
      return read_repeated(middle, wrapped ? middle.children[0] : middle);
    }
    if (n.meaning == Meaning::kMap && one_repeated && !n.children[0].is_leaf() &&
        n.children[0].children.size() <= 2) {
      Value v = read_repeated(n.children[0], n.children[0]);
      // Pairs, as keys may be anything.
      for (Value& entry : std::get<List>(v.v)) {
        List pair;
        for (auto& [name, value] : std::get<Fields>(entry.v)) pair.push_back(std::move(value));
        if (pair.size() == 1) pair.emplace_back();
        entry = std::move(pair);
      }
      return v;
    }
    Fields fields;
    for (const Node& child : n.children) fields.emplace_back(child.name, read_node(child));
    return fields;
  }

  const ReadOptions& options_;
  const std::vector<const Node*>& fields_;
  std::vector<std::unique_ptr<ColumnCursor>> columns_;
  std::int64_t num_rows_, row_ = 0;
  std::uint64_t used_ = 0;
};

std::string number_text(const Node& leaf, const std::string& stored) {
  Physical p;
  const std::size_t n = *leaf.type == Type::kBoolean                               ? 1
                        : *leaf.type == Type::kInt32 || *leaf.type == Type::kFloat ? 4
                                                                                   : 8;
  if (*leaf.type == Type::kByteArray || *leaf.type == Type::kFixed || *leaf.type == Type::kInt96) {
    p.bytes = stored;
    if (*leaf.type == Type::kInt96) return "";
  } else {
    if (stored.size() != n) return "";
    std::memcpy(&p.bits, stored.data(), n);
  }
  std::string text = to_json(convert_value(leaf, p));
  return text.size() > 40 ? text.substr(0, 40) + "…" : text;
}

class ParquetReader final : public RecordReader,
                            public std::enable_shared_from_this<ParquetReader> {
 public:
  ParquetReader(SourcePtr file, const ReadOptions& options)
      : file_(std::move(file)), options_(options), metadata_(read_metadata(*file_, options)) {
    if (options_.columns.empty()) {
      for (const Node& n : metadata_->root.children) fields_.push_back(&n);
    } else {
      for (const std::string& name : options_.columns) {
        const auto& all = metadata_->root.children;
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const Node& n) { return n.name == name; });
        if (found == all.end())
          throw_user_error({fmt::format("read {}", file_->name()), "a column of the file",
                            fmt::format("\"{}\"", name), "`xylem data info` lists the columns"});
        fields_.push_back(&*found);
      }
    }
    first_.push_back(0);
    for (const RowGroup& g : metadata_->row_groups)
      first_.push_back(first_.back() + static_cast<std::uint64_t>(g.num_rows));
  }
  std::string_view format() const override { return "parquet"; }
  bool structured() const override { return true; }
  std::uint64_t count() const override { return first_.back(); }

  Record read(std::uint64_t i) const override {
    return std::move(read_batch(std::span<const std::uint64_t>(&i, 1))[0]);
  }
  // Rows of a group are read in order, from where the last call stopped if that is before them.
  std::vector<Record> read_batch(std::span<const std::uint64_t> indices) const override {
    std::vector<std::size_t> order(indices.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      order[k] = k;
      check_index(file_->name(), indices[k], count());
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return indices[a] < indices[b]; });
    std::vector<Record> out(indices.size());
    const std::lock_guard lock(mutex_);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::uint64_t i = indices[order[k]];
      if (k > 0 && i == indices[order[k - 1]]) {
        out[order[k]] = out[order[k - 1]];
        continue;
      }
      const std::size_t g = group_of(i);
      const auto row = static_cast<std::int64_t>(i - first_[g]);
      try {
        if (!cached_ || cached_group_ != g || cached_->row() > row) {
          cached_ = open_group(g);
          cached_group_ = g;
        }
        while (cached_->row() < row) cached_->skip();
        cached_->read(out[order[k]].fields);
      } catch (...) {
        cached_.reset();
        throw;
      }
    }
    return out;
  }
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override;

  Facts info() const override {
    std::map<std::string, int> codecs;
    std::int64_t packed = 0, plain = 0;
    for (const RowGroup& g : metadata_->row_groups)
      for (const ColumnChunk& c : g.columns) {
        ++codecs[codec_name(c.codec)];
        packed += c.compressed_size;
        plain += c.uncompressed_size;
      }
    std::string names;
    for (const auto& [name, n] : codecs) names += (names.empty() ? "" : ", ") + name;
    Facts facts{{"row_groups", Value(static_cast<std::int64_t>(metadata_->row_groups.size()))},
                {"codec", Value(names)},
                {"compressed_bytes", Value(packed)},
                {"decoded_bytes", Value(plain)},
                {"created_by", Value(metadata_->created_by)}};
    for (const Node& n : metadata_->root.children)
      facts.emplace_back("column " + n.name, Value(describe(n) + statistics_text(n)));
    return facts;
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    return {file_->name(), i};
  }

  std::unique_ptr<RowGroupCursor> open_group(std::size_t g) const {
    return std::make_unique<RowGroupCursor>(file_, options_, *metadata_, fields_, g);
  }
  std::size_t group_of(std::uint64_t i) const {
    return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) -
                                    first_.begin() - 1);
  }
  std::uint64_t first_row(std::size_t g) const { return first_[g]; }
  std::size_t num_groups() const { return metadata_->row_groups.size(); }

 private:
  // Bounds of the first row group, where it gives them.
  std::string statistics_text(const Node& n) const {
    if (!n.is_leaf() || metadata_->row_groups.empty()) return "";
    const Statistics& s =
        metadata_->row_groups[0].columns[static_cast<std::size_t>(n.first_leaf)].statistics;
    std::string text;
    if (s.min && s.max)
      text = fmt::format(", {} to {}", number_text(n, *s.min), number_text(n, *s.max));
    if (s.nulls) text += fmt::format(", {} null", *s.nulls);
    return text.empty() || metadata_->row_groups.size() == 1 ? text : text + " in row group 0";
  }

  SourcePtr file_;
  ReadOptions options_;
  std::unique_ptr<const FileMetadata> metadata_;
  std::vector<const Node*> fields_;
  std::vector<std::uint64_t> first_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<RowGroupCursor> cached_;
  mutable std::size_t cached_group_ = 0;
};

class ParquetCursor final : public RecordCursor {
 public:
  ParquetCursor(std::shared_ptr<const ParquetReader> reader, std::uint64_t begin)
      : reader_(std::move(reader)) {
    check_index(reader_->locate(0).first, begin, reader_->count() + 1);
    skip(begin);
  }
  bool next(Record& out) override {
    if (!settle()) return false;
    out.bytes.clear();
    rows_->read(out.fields);
    return true;
  }
  // Rows of a damaged group are lost; others are not.
  bool recover() override {
    rows_.reset();
    ++group_;
    return true;
  }
  std::uint64_t skip(std::uint64_t n) override {
    std::uint64_t left = n;
    while (left > 0 && group_ < reader_->num_groups()) {
      const std::uint64_t rows = reader_->first_row(group_ + 1) - reader_->first_row(group_);
      if (!rows_ && left >= rows) {
        left -= rows;
        ++group_;
        continue;
      }
      if (!settle()) break;
      rows_->skip();
      --left;
    }
    return n - left;
  }

 private:
  bool settle() {
    while (true) {
      if (rows_ && rows_->row() < rows_->num_rows()) return true;
      if (rows_) {
        rows_.reset();
        ++group_;
      }
      if (group_ >= reader_->num_groups()) return false;
      rows_ = reader_->open_group(group_);
    }
  }
  std::shared_ptr<const ParquetReader> reader_;
  std::size_t group_ = 0;
  std::unique_ptr<RowGroupCursor> rows_;
};

std::unique_ptr<RecordCursor> ParquetReader::scan(std::uint64_t begin) const {
  return std::make_unique<ParquetCursor>(shared_from_this(), begin);
}

}  // namespace
}  // namespace parquet

ReaderPtr make_parquet_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<parquet::ParquetReader>(std::move(file), options);
}

}  // namespace xylem::data::internal
