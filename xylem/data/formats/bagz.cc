#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/base/thread_pool.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/codec.h"
#include "xylem/data/formats/internal/formats.h"

// Bagz (github.com/google-deepmind/bagz): records one behind the other, then for each a u64, the
// end of the record. The last of them is also where they begin. In the separate layout they are in
// the file "limits.<name>". Under ".bagz" every record that is not empty is a Zstandard frame.

namespace xylem::data::internal {
namespace {

constexpr std::uint64_t kGap = std::uint64_t{32} << 10;
constexpr std::uint64_t kMerged = std::uint64_t{4} << 20;

class BagzReader final : public RecordReader, public std::enable_shared_from_this<BagzReader> {
 public:
  BagzReader(SourcePtr file, SourcePtr limits, const ReadOptions& options)
      : file_(std::move(file)),
        limits_(limits ? std::move(limits) : file_),
        options_(options),
        zstd_(file_->name().ends_with(".bagz")) {
    const std::uint64_t size = limits_->size();
    if (size == 0) {
      if (limits_ != file_ && file_->size() > 0)
        throw DamageError(file_->name(), 0, file_->size(), "there are records without limits");
      return;
    }
    if (limits_ == file_) {
      if (size < 8) throw DamageError(file_->name(), 0, size, "the file has no whole limit");
      begin_ = limit_at(size - 8);
      if (begin_ > size - 8 || (size - begin_) % 8 != 0)
        throw DamageError(file_->name(), size - 8, size,
                          fmt::format("the last limit says that the limits begin at {}, which does "
                                      "not fit a file of {} bytes",
                                      begin_, size));
    } else if (size % 8 != 0) {
      throw DamageError(limits_->name(), size - size % 8, size, "the last limit is cut");
    }
    count_ = (size - begin_) / 8;
    records_size_ = limits_ == file_ ? begin_ : file_->size();
    if (limits_ != file_ && limit_at(size - 8) != records_size_)
      throw DamageError(limits_->name(), size - 8, size,
                        fmt::format("the last limit is {}, the records have {} bytes",
                                    limit_at(size - 8), records_size_));
  }
  std::string_view format() const override { return "bagz"; }
  bool structured() const override { return false; }
  std::uint64_t count() const override { return count_; }

  Record read(std::uint64_t i) const override {
    check_index(file_->name(), i, count_);
    const auto [begin, end] = place(i);
    check_limit(file_->name(), begin, end, end - begin, options_);
    return {decode(i, begin, file_->read(begin, end - begin)), {}};
  }

  std::vector<Record> read_batch(std::span<const std::uint64_t> indices) const override {
    struct Wanted {
      std::uint64_t index, begin, end;
      std::size_t place;
    };
    std::vector<Wanted> wanted(indices.size());
    for (std::size_t k = 0; k < indices.size(); ++k) {
      check_index(file_->name(), indices[k], count_);
      wanted[k].index = indices[k];
      wanted[k].place = k;
    }
    std::sort(wanted.begin(), wanted.end(),
              [](const Wanted& a, const Wanted& b) { return a.index < b.index; });
    std::vector<std::size_t> reads;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      Wanted& w = wanted[k];
      std::tie(w.begin, w.end) = place(w.index);
      check_limit(file_->name(), w.begin, w.end, w.end - w.begin, options_);
      if (k == 0 || w.begin > wanted[k - 1].end + kGap ||
          w.end - wanted[reads.back()].begin > kMerged)
        reads.push_back(k);
    }
    reads.push_back(wanted.size());
    std::vector<Record> out(indices.size());
    const std::int64_t n = std::ssize(reads) - 1;
    ThreadPool::global().parallel_for(
        n, std::max<std::int64_t>(1, n / 64), [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t r = from; r < to; ++r) {
            const std::size_t first = reads[static_cast<std::size_t>(r)];
            const std::size_t last = reads[static_cast<std::size_t>(r) + 1];
            const std::uint64_t begin = wanted[first].begin;
            const std::string bytes = file_->read(begin, wanted[last - 1].end - begin);
            for (std::size_t k = first; k < last; ++k) {
              const Wanted& w = wanted[k];
              out[w.place].bytes =
                  decode(w.index, w.begin,
                         std::string_view(bytes).substr(w.begin - begin, w.end - w.begin));
            }
          }
        });
    return out;
  }

  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override;
  Facts info() const override {
    return {{"codec", Value(std::string(zstd_ ? "zstd" : "none"))},
            {"limits", Value(limits_ == file_ ? std::string("tail") : limits_->name())},
            {"record_bytes", Value(static_cast<std::int64_t>(records_size_))}};
  }
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    return {file_->name(), i};
  }
  // Records [begin, begin + n) as they are stored: their limits, the first before them.
  std::vector<std::uint64_t> limits(std::uint64_t begin, std::uint64_t n) const {
    std::vector<std::uint64_t> out(n + 1, 0);
    const std::uint64_t from = begin == 0 ? 0 : begin - 1;
    const std::string bytes = limits_->read(begin_ + 8 * from, 8 * (begin + n - from));
    std::memcpy(out.data() + (begin == 0 ? 1 : 0), bytes.data(), bytes.size());
    for (std::uint64_t k = 0; k < n; ++k) check(begin + k, out[k], out[k + 1]);
    return out;
  }
  std::string decode(std::uint64_t i, std::uint64_t begin, std::string_view stored) const {
    if (!zstd_ || stored.empty()) return std::string(stored);
    std::string out, why;
    if (!decompress_zstd(stored, options_.max_record_bytes, out, why))
      throw DamageError(file_->name(), begin, begin + stored.size(),
                        fmt::format("record {}: {}", i, why));
    return out;
  }
  const ByteSource& file() const { return *file_; }

 private:
  std::uint64_t limit_at(std::uint64_t offset) const {
    const std::string bytes = limits_->read(offset, 8);
    std::uint64_t v = 0;
    std::memcpy(&v, bytes.data(), std::min<std::size_t>(8, bytes.size()));
    return v;
  }
  void check(std::uint64_t i, std::uint64_t begin, std::uint64_t end) const {
    if (begin <= end && end <= records_size_) return;
    throw DamageError(limits_->name(), begin_ + 8 * i, begin_ + 8 * i + 8,
                      fmt::format("record {} spans {}-{}, outside of the {} bytes of records", i,
                                  begin, end, records_size_));
  }
  std::pair<std::uint64_t, std::uint64_t> place(std::uint64_t i) const {
    const std::vector<std::uint64_t> x = limits(i, 1);
    return {x[0], x[1]};
  }

  SourcePtr file_, limits_;
  ReadOptions options_;
  bool zstd_;
  std::uint64_t begin_ = 0, count_ = 0, records_size_ = 0;
};

// Reads limits and records ahead, some at a time.
class BagzCursor final : public RecordCursor {
 public:
  BagzCursor(std::shared_ptr<const BagzReader> reader, std::uint64_t begin)
      : reader_(std::move(reader)), at_(begin) {
    check_index(reader_->file().name(), begin, reader_->count() + 1);
  }
  bool next(Record& out) override {
    if (at_ == reader_->count()) return false;
    const std::uint64_t i = at_++;
    if (i < first_ || i - first_ + 1 >= limits_.size()) {
      limits_.clear();
      window_.clear();
      first_ = i;
      try {
        limits_ = reader_->limits(i, std::min<std::uint64_t>(reader_->count() - i, 4096));
      } catch (const DamageError&) {
        // One at a time, so that only the bad one is reported.
        limits_ = reader_->limits(i, 1);
      }
    }
    const std::uint64_t begin = limits_[i - first_], end = limits_[i - first_ + 1];
    if (end - begin > kMerged) {
      out = reader_->read(i);
      return true;
    }
    if (window_.empty() || begin < window_begin_ || end > window_begin_ + window_.size()) {
      window_begin_ = begin;
      window_ = reader_->file().read(begin, std::max(end - begin, kMerged / 4));
    }
    out.bytes = reader_->decode(
        i, begin, std::string_view(window_).substr(begin - window_begin_, end - begin));
    out.fields.clear();
    return true;
  }
  bool recover() override { return true; }
  std::uint64_t skip(std::uint64_t n) override {
    const std::uint64_t step = std::min(n, reader_->count() - at_);
    at_ += step;
    return step;
  }

 private:
  std::shared_ptr<const BagzReader> reader_;
  std::uint64_t at_, first_ = 0, window_begin_ = 0;
  std::vector<std::uint64_t> limits_;
  std::string window_;
};

std::unique_ptr<RecordCursor> BagzReader::scan(std::uint64_t begin) const {
  return std::make_unique<BagzCursor>(shared_from_this(), begin);
}

class BagzWriter final : public RecordWriter {
 public:
  BagzWriter(std::unique_ptr<ByteSink> sink, std::unique_ptr<ByteSink> limits_sink, bool zstd,
             int level)
      : sink_(std::move(sink)), limits_sink_(std::move(limits_sink)), zstd_(zstd), level_(level) {}
  bool structured() const override { return false; }
  void write(const Record& r) override {
    if (!r.bytes.empty()) {
      if (zstd_)
        sink_->write(compress(Codec::kZstd, r.bytes, {level_, std::nullopt}));
      else
        sink_->write(r.bytes);
    }
    limits_.write(sink_->size());
  }
  void close() override {
    if (limits_sink_) {
      limits_sink_->write(limits_.str());
      limits_sink_->commit();
    } else {
      sink_->write(limits_.str());
    }
    sink_->commit();
  }

 private:
  std::unique_ptr<ByteSink> sink_, limits_sink_;
  bool zstd_;
  int level_;
  ByteWriter limits_;
};

}  // namespace

bool has_bagz_limits(const ByteSource& file) {
  if (path_exists(join_path(parent_path(file.name()), "limits." + base_name(file.name()))))
    return true;
  const std::uint64_t size = file.size();
  if (size < 8) return size == 0;
  const auto limit_at = [&](std::uint64_t at) {
    const std::string bytes = file.read(at, 8);
    return ByteReader(bytes, file.name()).read<std::uint64_t>();
  };
  const std::uint64_t begin = limit_at(size - 8);
  return begin <= size - 8 && (size - begin) % 8 == 0 && limit_at(begin) <= begin;
}

ReaderPtr make_bagz_reader(SourcePtr file, SourcePtr limits, const ReadOptions& options) {
  return std::make_shared<BagzReader>(std::move(file), std::move(limits), options);
}

std::vector<std::string> expand_bagz_shards(const std::string& spec) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= spec.size();) {
    const std::size_t comma = std::min(spec.find(',', begin), spec.size());
    const std::string one = spec.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t at = one.rfind('@');
    if (at == one.npos) {
      if (spec.find('@') == spec.npos && spec.find(',') == spec.npos) return {};
      if (!one.empty()) out.push_back(one);
      continue;
    }
    std::size_t end = at + 1;
    while (end < one.size() && (one[end] == '*' || (one[end] >= '0' && one[end] <= '9'))) ++end;
    const std::string number = one.substr(at + 1, end - at - 1);
    const std::string stem = one.substr(0, at), extension = one.substr(end);
    const auto shard = [&](int k, int n) {
      return fmt::format("{}-{:05}-of-{:05}{}", stem, k, n, extension);
    };
    int n = 0;
    if (number == "*") {
      // The folder tells how many there are.
      const std::string prefix = base_name(stem) + "-00000-of-";
      for (const DirectoryEntry& e : list_directory(parent_path(stem)))
        if (e.name.starts_with(prefix) && e.name.ends_with(extension) &&
            e.name.size() == prefix.size() + 5 + extension.size())
          n = std::atoi(e.name.c_str() + prefix.size());
      if (n == 0)
        throw_user_error({one, "shards named stem-00000-of-NNNNN", "there are none",
                          "Check the folder and the name"});
    } else {
      if (number.empty() || number.size() > 5 || number.find('*') != number.npos) return {};
      n = std::atoi(number.c_str());
    }
    for (int k = 0; k < n; ++k) out.push_back(shard(k, n));
  }
  return out;
}

std::unique_ptr<RecordWriter> make_bagz_writer(std::unique_ptr<ByteSink> sink,
                                               std::string_view options, const std::string& path) {
  OptionsText text("bagz", options);
  std::string value;
  bool zstd = path.ends_with(".bagz");
  const int level = static_cast<int>(text.take_int("zstd", 3, -131072, 22));
  const bool apart = text.take_bool("separate_limits", false);
  text.finish();
  std::unique_ptr<ByteSink> limits;
  if (apart) limits = open_file_sink(join_path(parent_path(path), "limits." + base_name(path)));
  return std::make_unique<BagzWriter>(std::move(sink), std::move(limits), zstd, level);
}

}  // namespace xylem::data::internal
