#include "xylem/data/formats/internal/riegeli.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "xylem/base/thread_pool.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/chunked_reader.h"

namespace xylem::data::internal {
namespace {

constexpr std::uint64_t kWindow = std::uint64_t{1} << 20;
constexpr std::uint64_t kMerged = std::uint64_t{4} << 20;
constexpr std::uint64_t kGap = std::uint64_t{32} << 10;

bool holds_records(std::uint8_t type) { return type == 'r' || type == 't'; }

void check_type(std::string_view file, std::uint64_t begin, const ChunkHeader& h) {
  if (holds_records(h.type) || h.num_records == 0) return;
  throw DamageError(
      file, begin, chunk_data_end(begin, h.data_size),
      fmt::format("a chunk of the unknown type {:#04x} holds {} records", h.type, h.num_records));
}

void check_end(const ByteSource& file, std::uint64_t begin, std::uint64_t end,
               std::uint64_t limit) {
  if (end > limit)
    throw DamageError(
        file.name(), begin, limit,
        fmt::format("the chunk ends at {}, behind the end of the data at {}", end, limit));
}

}  // namespace

// ---- cursor

ChunkCursor::ChunkCursor(SourcePtr file, ReadOptions options, std::uint64_t begin,
                         std::uint64_t end)
    : file_(std::move(file)), options_(std::move(options)), at_(begin), end_(end) {}

bool ChunkCursor::advance() {
  while (at_ < end_) {
    const std::uint64_t begin = at_;
    resume_.reset();
    ChunkHeader header;
    try {
      // A window serves several small chunks; a large one reads the rest by itself.
      if (window_.empty() || begin < window_begin_ ||
          begin + 4096 > window_begin_ + window_.size()) {
        window_begin_ = begin;
        window_ = file_->read(begin, std::min(kWindow, end_ - begin));
      }
      header =
          read_chunk_header(*file_, begin, std::string_view(window_).substr(begin - window_begin_));
    } catch (const DamageError&) {
      failed_ = true;
      throw;
    }
    const std::uint64_t end = chunk_end(begin, header.data_size, header.num_records);
    resume_ = end;
    try {
      check_end(*file_, begin, end, end_);
      check_type(file_->name(), begin, header);
      at_ = end;
      if (!holds_records(header.type)) continue;
      const Chunk chunk = read_chunk(*file_, begin, options_,
                                     std::string_view(window_).substr(begin - window_begin_));
      records_ = decode_chunk(file_->name(), chunk, options_);
      next_ = 0;
      if (!accept(chunk, records_)) {
        records_ = {};
        at_ = end_;
        return false;
      }
      if (!records_.ends.empty()) return true;
    } catch (const DamageError&) {
      failed_ = true;
      at_ = begin;
      throw;
    }
  }
  return false;
}

bool ChunkCursor::next(Record& out) {
  if (failed_) return false;
  if (next_ == records_.ends.size() && !advance()) return false;
  out.bytes.assign(records_[next_++]);
  out.fields.clear();
  return true;
}

bool ChunkCursor::recover() {
  if (!failed_) return true;
  records_ = {};
  next_ = 0;
  if (!resume_ || *resume_ > end_) resume_ = recover_chunk(*file_, at_);
  if (!resume_ || *resume_ >= end_ || *resume_ <= at_) return false;
  at_ = *resume_;
  failed_ = false;
  return true;
}

std::uint64_t ChunkCursor::skip(std::uint64_t n) {
  std::uint64_t left = n;
  while (left > 0 && !failed_) {
    if (next_ < records_.ends.size()) {
      const std::uint64_t step = std::min<std::uint64_t>(left, records_.ends.size() - next_);
      next_ += static_cast<std::size_t>(step);
      left -= step;
      continue;
    }
    if (at_ >= end_) break;
    // Whole chunks are passed over by their headers.
    const ChunkHeader h = read_chunk_header(*file_, at_);
    check_type(file_->name(), at_, h);
    const std::uint64_t end = chunk_end(at_, h.data_size, h.num_records);
    check_end(*file_, at_, end, end_);
    if (!holds_records(h.type) || h.num_records <= left) {
      left -= holds_records(h.type) ? h.num_records : 0;
      at_ = end;
    } else if (!advance()) {
      break;
    }
  }
  return n - left;
}

// ---- random access

std::size_t ChunkIndex::chunk_of(std::uint64_t i) const {
  return static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), i) - first.begin() -
                                  1);
}

std::shared_ptr<const ChunkRecords> ChunkedReader::load(std::size_t c,
                                                        std::string_view bytes) const {
  const ChunkIndex& x = index();
  const Chunk chunk = read_chunk(*file_, x.begins[c], options_, bytes);
  auto records = std::make_shared<ChunkRecords>(decode_chunk(file_->name(), chunk, options_));
  if (records->ends.size() != x.first[c + 1] - x.first[c])
    throw DamageError(file_->name(), chunk.begin, chunk.end,
                      fmt::format("the chunk holds {} records, the index says {}",
                                  records->ends.size(), x.first[c + 1] - x.first[c]));
  return records;
}

Record ChunkedReader::read(std::uint64_t i) const {
  const ChunkIndex& x = index();
  check_index(file_->name(), i, x.count());
  const std::size_t c = x.chunk_of(i);
  const bool alone = x.first[c + 1] - x.first[c] == 1;
  if (!alone) {
    const std::lock_guard lock(cache_mutex_);
    if (cached_ && cached_chunk_ == c) return {std::string((*cached_)[i - x.first[c]]), {}};
  }
  const auto records = load(c);
  if (!alone) {
    const std::lock_guard lock(cache_mutex_);
    cached_ = records;
    cached_chunk_ = c;
  }
  return {std::string((*records)[i - x.first[c]]), {}};
}

std::vector<Record> ChunkedReader::read_batch(std::span<const std::uint64_t> indices) const {
  const ChunkIndex& x = index();
  struct Wanted {
    std::size_t chunk;
    std::size_t place;  // in indices
  };
  std::vector<Wanted> wanted(indices.size());
  for (std::size_t k = 0; k < indices.size(); ++k) {
    check_index(file_->name(), indices[k], x.count());
    wanted[k] = {x.chunk_of(indices[k]), k};
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const Wanted& a, const Wanted& b) { return a.chunk < b.chunk; });
  // Ranges of `wanted` whose chunks lie close together are read at once.
  std::vector<std::size_t> reads;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (k > 0) {
      const std::uint64_t gap_begin = x.begins[wanted[k - 1].chunk + 1];
      const std::uint64_t begin = x.begins[wanted[reads.back()].chunk];
      const std::uint64_t here = x.begins[wanted[k].chunk];
      const std::uint64_t end = x.begins[wanted[k].chunk + 1];
      if (wanted[k].chunk == wanted[k - 1].chunk ||
          (here <= gap_begin + kGap && end - begin <= kMerged))
        continue;
    }
    reads.push_back(k);
  }
  reads.push_back(wanted.size());
  std::vector<Record> out(indices.size());
  const auto serve = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t r = from; r < to; ++r) {
      const std::size_t first = reads[static_cast<std::size_t>(r)];
      const std::size_t last = reads[static_cast<std::size_t>(r) + 1];
      const std::uint64_t begin = x.begins[wanted[first].chunk];
      const std::uint64_t end = x.begins[wanted[last - 1].chunk + 1];
      // A single chunk may be larger than what is merged; it then reads its own rest.
      const std::string bytes = file_->read(begin, std::min(end - begin, kMerged));
      std::shared_ptr<const ChunkRecords> records;
      for (std::size_t k = first; k < last; ++k) {
        const std::size_t c = wanted[k].chunk;
        if (k == first || c != wanted[k - 1].chunk)
          records = load(c, std::string_view(bytes).substr(
                                std::min<std::uint64_t>(x.begins[c] - begin, bytes.size())));
        out[wanted[k].place].bytes.assign((*records)[indices[wanted[k].place] - x.first[c]]);
      }
    }
  };
  const std::int64_t n = std::ssize(reads) - 1;
  ThreadPool::global().parallel_for(n, std::max<std::int64_t>(1, n / 64), serve);
  return out;
}

// ---- Riegeli

bool has_riegeli_signature(const ByteSource& file) {
  try {
    const ChunkHeader h = read_chunk_header(file, 0);
    return h.type == 's' && h.data_size == 0 && h.num_records == 0;
  } catch (const DamageError&) {
    return false;
  }
}

void verify_chunks(const ByteSource& file, const ReadOptions& options, const DamageSink& sink) {
  std::uint64_t at = 0;
  while (at < file.size()) {
    std::optional<std::uint64_t> next;
    try {
      const ChunkHeader h = read_chunk_header(file, at);
      const std::uint64_t end = chunk_end(at, h.data_size, h.num_records);
      next = end;
      check_end(file, at, end, file.size());
      check_type(file.name(), at, h);
      if (at == 0 && (h.type != 's' || h.data_size != 0 || h.num_records != 0))
        throw DamageError(file.name(), 0, 64, "the file does not begin with the signature");
      const Chunk chunk = read_chunk(file, at, options);
      if (h.type == 'r' || h.type == 't' || h.type == 'm')
        decode_chunk(file.name(), chunk, options);
      if (h.type == 'p' && chunk.data.find_first_not_of('\0') != std::string::npos)
        throw DamageError(file.name(), at, end, "a padding chunk is not zero");
      // Room behind the data, so that each record has a position: zeros, and block headers.
      const std::uint64_t data_end = chunk_data_end(at, h.data_size);
      for (std::uint64_t gap = data_end; gap < end;) {
        const std::uint64_t n = std::min({end - gap, kBlock - gap % kBlock, kWindow});
        const std::string bytes = file.read(gap, n);
        const std::size_t skip = gap % kBlock == 0 ? kBlockHeader : 0;
        if (bytes.find_first_not_of('\0', skip) != std::string::npos)
          throw DamageError(file.name(), gap, gap + n, "the room behind the chunk is not zero");
        gap += n;
      }
    } catch (const DamageError& e) {
      sink(e);
      if (!next || *next > file.size()) next = recover_chunk(file, at);
      if (!next || *next <= at) return;
    }
    at = *next;
  }
}

namespace {

class RiegeliReader final : public ChunkedReader {
 public:
  RiegeliReader(SourcePtr file, const ReadOptions& options)
      : ChunkedReader(std::move(file), options) {
    if (file_->size() > 0 && !has_riegeli_signature(*file_)) signature_error_ = true;
  }
  std::string_view format() const override { return "riegeli"; }

  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    check_signature();
    auto cursor = std::make_unique<ChunkCursor>(file_, options_, 0, file_->size());
    if (cursor->skip(begin) < begin) check_index(file_->name(), begin, count() + 1);
    return cursor;
  }
  void verify(const DamageSink& sink) const override { verify_chunks(*file_, options_, sink); }

  Facts info() const override {
    std::map<std::string, std::uint64_t> codecs;
    std::uint64_t chunks = 0, decoded = 0, transposed = 0;
    const ChunkIndex& x = index();
    for (std::size_t c = 0; c + 1 < x.begins.size(); ++c) {
      const Chunk chunk = read_chunk(*file_, x.begins[c], options_);
      ++chunks;
      decoded += chunk.header.decoded_size;
      transposed += chunk.header.type == 't';
      const char type = chunk.data.empty() ? 0 : chunk.data[0];
      ++codecs[type == 'z' ? "zstd" : type == 'b' ? "brotli" : type == 's' ? "snappy" : "none"];
    }
    std::string names;
    for (const auto& [name, n] : codecs) names += (names.empty() ? "" : ", ") + name;
    return {{"chunks", Value(static_cast<std::int64_t>(chunks))},
            {"transposed_chunks", Value(static_cast<std::int64_t>(transposed))},
            {"codec", Value(names)},
            {"decoded_bytes", Value(static_cast<std::int64_t>(decoded))}};
  }

 private:
  void check_signature() const {
    if (signature_error_)
      throw DamageError(file_->name(), 0, std::min<std::uint64_t>(64, file_->size()),
                        "the file does not begin with the Riegeli signature");
  }
  const ChunkIndex& index() const override {
    check_signature();
    const std::lock_guard lock(mutex_);
    if (index_) return *index_;
    auto x = std::make_unique<ChunkIndex>();
    std::uint64_t n = 0;
    for (std::uint64_t at = 0; at < file_->size();) {
      const ChunkHeader h = read_chunk_header(*file_, at);
      check_type(file_->name(), at, h);
      const std::uint64_t end = chunk_end(at, h.data_size, h.num_records);
      check_end(*file_, at, end, file_->size());
      if (holds_records(h.type) && h.num_records > 0) {
        x->begins.push_back(at);
        x->first.push_back(n);
        n += h.num_records;
      }
      at = end;
    }
    x->begins.push_back(file_->size());
    x->first.push_back(n);
    index_ = std::move(x);
    return *index_;
  }

  bool signature_error_ = false;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<ChunkIndex> index_;
};

}  // namespace

ReaderPtr make_riegeli_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<RiegeliReader>(std::move(file), options);
}

}  // namespace xylem::data::internal
