#include "xylem/data/formats/internal/framed.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <numeric>

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/internal/checks.h"

namespace xylem::data::internal {
namespace {

constexpr std::string_view kIndexMagic = "XYLEMIDX";
// Reads that lie this close are made one.
constexpr std::uint64_t kGap = std::uint64_t{64} << 10;
constexpr std::uint64_t kMerged = std::uint64_t{4} << 20;

struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t mtime = 0;  // ns
};
std::optional<FileStamp> stamp(const std::string& path) {
  struct stat s;
  if (::stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return std::nullopt;
  return FileStamp{static_cast<std::uint64_t>(s.st_size),
                   s.st_mtim.tv_sec * std::int64_t{1000000000} + s.st_mtim.tv_nsec};
}

}  // namespace

// ---- side files: magic, u32 version, u64 size, i64 mtime, u64 offsets, their differences as
// varints, u32 CRC-32C of all before it

std::string frame_index_path(const std::string& path) { return path + ".xyidx"; }

std::optional<FrameIndex> load_frame_index(const std::string& path) {
  const std::string side = frame_index_path(path);
  const auto now = stamp(path);
  if (!now || !path_exists(side)) return std::nullopt;
  try {
    const std::string data = read_file(side);
    if (data.size() < 40 || !data.starts_with(kIndexMagic)) return std::nullopt;
    ByteReader tail(std::string_view(data).substr(data.size() - 4), side);
    const std::string_view body = std::string_view(data).substr(0, data.size() - 4);
    if (tail.read<std::uint32_t>() != crc32c(body)) return std::nullopt;
    ByteReader r(body.substr(kIndexMagic.size()), side);
    if (r.read<std::uint32_t>() != 1 || r.read<std::uint64_t>() != now->size ||
        r.read<std::int64_t>() != now->mtime)
      return std::nullopt;
    const auto n = r.read<std::uint64_t>();
    if (n == 0 || n > r.remaining()) return std::nullopt;
    FrameIndex index;
    index.offsets.reserve(static_cast<std::size_t>(n));
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      at += r.read_varint();
      if (at > now->size) return std::nullopt;
      index.offsets.push_back(at);
    }
    return index;
  } catch (const Error&) {
    return std::nullopt;  // an index can always be built again
  }
}

void save_frame_index(const std::string& path, const FrameIndex& index) {
  const auto now = stamp(path);
  if (!now) throw_file_error("inspect", path, ENOENT);
  ByteWriter w;
  w.write_string(kIndexMagic);
  w.write<std::uint32_t>(1);
  w.write(now->size);
  w.write(now->mtime);
  w.write(static_cast<std::uint64_t>(index.offsets.size()));
  std::uint64_t at = 0;
  for (const std::uint64_t o : index.offsets) {
    w.write_varint(o - at);
    at = o;
  }
  w.write(crc32c(w.str()));
  write_file_atomic(frame_index_path(path), w.str());
}

void project(Fields& fields, const std::vector<std::string>& columns) {
  if (columns.empty()) return;
  Fields kept;
  for (const std::string& c : columns)
    for (auto& [name, value] : fields)
      if (name == c) kept.emplace_back(name, std::move(value));
  fields = std::move(kept);
}

// ---- the reader

class FramedCursor final : public RecordCursor {
 public:
  FramedCursor(std::shared_ptr<const FramedReader> reader, std::uint64_t at)
      : reader_(std::move(reader)), in_(reader_->open(at)) {
    // A wrapped stream is always read from its start.
    if (reader_->wrapped() && at == 0) in_.skip(reader_->first_);
  }

  bool next(Record& out) override {
    before_ = in_.position();
    const std::optional<std::uint64_t> size = reader_->framer_->frame(in_);
    if (!size) return false;
    before_ = in_.position();
    if (*size > reader_->options_.max_record_bytes) {
      in_.skip(*size);
      check_limit(in_.source().name(), before_, before_ + *size, *size, reader_->options_);
    }
    const std::string_view unit = in_.peek(static_cast<std::size_t>(*size));
    if (unit.size() < *size)
      in_.damage(before_, before_ + unit.size(),
                 fmt::format("the record needs {} bytes, {} are left", *size, unit.size()));
    in_.consume(static_cast<std::size_t>(*size));
    reader_->framer_->decode(unit.substr(0, static_cast<std::size_t>(*size)), before_, in_, out);
    project(out.fields, reader_->options_.columns);
    return true;
  }
  bool recover() override {
    if (in_.position() > before_) return true;
    return reader_->framer_->resync(in_);
  }
  std::uint64_t skip(std::uint64_t n) override {
    for (std::uint64_t i = 0; i < n; ++i)
      if (!pass()) return i;
    return n;
  }
  // Passes over a record without decoding it.
  bool pass() {
    before_ = in_.position();
    const std::optional<std::uint64_t> size = reader_->framer_->frame(in_);
    if (!size) return false;
    before_ = in_.position();
    if (in_.skip(*size) != *size)
      in_.damage(
          before_, in_.position(),
          fmt::format("the record needs {} bytes, {} are left", *size, in_.position() - before_));
    return true;
  }
  std::uint64_t unit_begin() const { return before_; }
  std::uint64_t position() const { return in_.position(); }

 private:
  std::shared_ptr<const FramedReader> reader_;
  InputStream in_;
  std::uint64_t before_ = 0;
};

FramedReader::FramedReader(SourcePtr source, Wrapping wrapping, std::unique_ptr<Framer> framer,
                           ReadOptions options)
    : source_(std::move(source)),
      wrapping_(wrapping),
      framer_(std::move(framer)),
      options_(std::move(options)) {
  InputStream in = open(0);
  framer_->begin(in);
  first_ = in.position();
}

const FrameIndex& FramedReader::index() const {
  const std::lock_guard lock(mutex_);
  if (index_) return *index_;
  index_ = load_frame_index(source_->name());
  if (index_) return *index_;
  FramedCursor cursor(shared_from_this(), first_);
  FrameIndex index;
  while (cursor.pass()) index.offsets.push_back(cursor.unit_begin());
  index.offsets.push_back(cursor.position());
  index_ = std::move(index);
  return *index_;
}

std::uint64_t FramedReader::count() const {
  if (!wrapped()) return index().count();
  const std::lock_guard lock(mutex_);
  if (count_) return *count_;
  FramedCursor cursor(shared_from_this(), 0);
  std::uint64_t n = 0;
  while (cursor.pass()) ++n;
  count_ = n;
  return n;
}

Record FramedReader::read(std::uint64_t i) const {
  if (wrapped()) {
    const std::lock_guard lock(mutex_);
    if (!cursor_ || cursor_at_ > i) {
      // The reader outlives its own cursor, which must not keep it alive.
      cursor_ = std::make_unique<FramedCursor>(
          std::shared_ptr<const FramedReader>(std::shared_ptr<const FramedReader>(), this), 0);
      cursor_at_ = 0;
    }
    auto& cursor = static_cast<FramedCursor&>(*cursor_);
    Record out;
    bool found = true;
    try {
      while (found && cursor_at_ < i) {
        found = cursor.pass();
        if (found) ++cursor_at_;
      }
      found = found && cursor.next(out);
      ++cursor_at_;
    } catch (...) {
      cursor_.reset();
      throw;
    }
    if (!found) {
      const std::uint64_t n = cursor_at_ - 1;
      cursor_.reset();
      check_index(source_->name(), i, n);
    }
    return out;
  }
  return std::move(read_batch(std::span<const std::uint64_t>(&i, 1))[0]);
}

std::vector<Record> FramedReader::read_batch(std::span<const std::uint64_t> indices) const {
  if (wrapped()) return RecordReader::read_batch(indices);
  const std::vector<std::uint64_t>& offsets = index().offsets;
  std::vector<std::size_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return indices[a] < indices[b]; });
  std::vector<Record> out(indices.size());
  const InputStream for_messages(source_);
  for (std::size_t k = 0; k < order.size();) {
    const auto place = [&](std::size_t n) {
      const std::uint64_t i = indices[order[n]];
      check_index(source_->name(), i, offsets.size() - 1);
      check_limit(source_->name(), offsets[i], offsets[i + 1], offsets[i + 1] - offsets[i],
                  options_);
      return std::pair(offsets[i], offsets[i + 1]);
    };
    const auto [begin, first_end] = place(k);
    std::uint64_t end = first_end;
    std::size_t last = k + 1;
    for (; last < order.size(); ++last) {
      const auto [b, e] = place(last);
      if (b > end + kGap || e - begin > kMerged) break;
      end = std::max(end, e);
    }
    const std::string bytes = source_->read(begin, end - begin);
    for (; k < last; ++k) {
      if (k > 0 && indices[order[k]] == indices[order[k - 1]]) {
        out[order[k]] = out[order[k - 1]];
        continue;
      }
      const auto [b, e] = place(k);
      if (e - begin > bytes.size())
        throw DamageError(source_->name(), b, e, "the file has become shorter");
      Record& record = out[order[k]];
      framer_->decode(std::string_view(bytes).substr(b - begin, e - b), b, for_messages, record);
      project(record.fields, options_.columns);
    }
  }
  return out;
}

std::unique_ptr<RecordCursor> FramedReader::scan(std::uint64_t begin) const {
  if (begin > 0 && !wrapped()) {
    const std::lock_guard lock(mutex_);
    if (index_) {
      check_index(source_->name(), begin, index_->offsets.size());
      return std::make_unique<FramedCursor>(shared_from_this(), index_->offsets[begin]);
    }
  }
  auto cursor = std::make_unique<FramedCursor>(shared_from_this(), wrapped() ? 0 : first_);
  if (const std::uint64_t n = cursor->skip(begin); n < begin)
    check_index(source_->name(), begin, n + 1);
  return cursor;
}

Facts FramedReader::info() const {
  return {{"compression", Value(std::string(wrapping_name(wrapping_)))},
          {"random_access", Value(!wrapped())},
          {"side_index", Value(load_frame_index(source_->name()).has_value())}};
}

}  // namespace xylem::data::internal
