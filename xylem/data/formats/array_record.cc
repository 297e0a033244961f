#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "xylem/base/bytes.h"
#include "xylem/data/formats/internal/checks.h"
#include "xylem/data/formats/internal/chunked_reader.h"
#include "xylem/data/formats/internal/protobuf.h"

// ArrayRecord: a Riegeli file whose chunks hold equally many records, with a footer that lists them
// and a postscript in the last block that points to the footer (github.com/google/array_record).

namespace xylem::data::internal {
namespace {

constexpr std::uint64_t kMagic = 0x71930e704fdae05e;

struct FooterMetadata {
  std::uint64_t version = 0, num_chunks = 0, num_records = 0;
  std::string options;
};
std::optional<FooterMetadata> parse_metadata(std::string_view record) {
  ProtoReader outer(record);
  ProtoField f;
  std::optional<FooterMetadata> found;
  while (outer.next(f)) {
    if (f.number != 1 || f.type != 2) continue;
    FooterMetadata m;
    ProtoReader inner(f.bytes);
    ProtoField g;
    while (inner.next(g)) {
      if (g.number == 1 && g.type == 0) m.version = g.value;
      if (g.number == 2 && g.type == 0) m.num_chunks = g.value;
      if (g.number == 3 && g.type == 0) m.num_records = g.value;
      if (g.number == 4 && g.type == 2) m.options = g.bytes;
    }
    if (inner.failed()) return std::nullopt;
    found = m;
  }
  if (outer.failed()) return std::nullopt;
  return found;
}

struct FooterEntry {
  std::uint64_t offset = 0, decoded_size = 0, num_records = 0;
};
std::optional<FooterEntry> parse_entry(std::string_view record) {
  FooterEntry e;
  ProtoReader r(record);
  ProtoField f;
  while (r.next(f)) {
    if (f.type != 0) continue;
    if (f.number == 1) e.offset = f.value;
    if (f.number == 2) e.decoded_size = f.value;
    if (f.number == 3) e.num_records = f.value;
  }
  if (r.failed()) return std::nullopt;
  return e;
}

// Where the footer begins; DamageError if the file does not end in a postscript.
std::uint64_t read_postscript(const ByteSource& file, const ReadOptions& options) {
  const std::uint64_t size = file.size();
  const auto fail = [&](std::uint64_t begin, std::uint64_t end, std::string_view reason) {
    throw DamageError(file.name(), begin, end, reason,
                      "The file was not closed or is cut; its first records can still be read in "
                      "order (xylem data cat)");
  };
  if (size < 2 * kBlock || size % kBlock != 0)
    fail(size - std::min(size, kBlock), size,
         fmt::format("an ArrayRecord file has at least two whole blocks of {} bytes; this one has "
                     "{} bytes",
                     kBlock, size));
  const std::uint64_t begin = size - kBlock;
  const Chunk chunk = read_chunk(file, begin, options);
  if (chunk.header.type != 'r' || chunk.header.num_records == 0)
    fail(begin, chunk.end, "the chunk in the last block is no postscript");
  const ChunkRecords records = decode_chunk(file.name(), chunk, options);
  std::optional<std::uint64_t> offset;
  std::uint64_t magic = 0;
  ProtoReader r(records[0]);
  ProtoField f;
  while (r.next(f)) {
    if (f.number == 1 && f.type == 0) offset = f.value;
    if (f.number == 2 && f.type == 0) magic = f.value;
  }
  if (r.failed() || magic != kMagic || !offset)
    fail(begin, chunk.end, "the postscript does not hold the magic number");
  if (*offset < 64 || *offset >= begin)
    fail(begin, chunk.end,
         fmt::format("the postscript puts the footer at {}, outside of 64-{}", *offset, begin - 1));
  return *offset;
}

class ArrayRecordCursor final : public ChunkCursor {
 public:
  // The end of the data is not known: the footer is told by what it holds, and the error is thrown
  // behind the records.
  ArrayRecordCursor(SourcePtr file, const ReadOptions& options, std::uint64_t end,
                    const DamageError& tail_error)
      : ChunkCursor(std::move(file), options, 0, end), tail_error_(tail_error) {}
  // From chunk `c` on.
  ArrayRecordCursor(SourcePtr file, const ReadOptions& options,
                    std::shared_ptr<const ChunkIndex> index, std::size_t c)
      : ChunkCursor(std::move(file), options, index->begins[c], index->begins.back()),
        index_(std::move(index)),
        first_(index_->first[c]) {}
  bool next(Record& out) override {
    if (ended_) return false;
    index_.reset();
    if (ChunkCursor::next(out)) return true;
    ended_ = true;
    if (tail_error_) throw *tail_error_;
    return false;
  }
  bool recover() override { return !ended_ && ChunkCursor::recover(); }
  std::uint64_t skip(std::uint64_t n) override {
    // Without a footer, chunks must be seen to tell the footer from them.
    if (tail_error_) return RecordCursor::skip(n);
    if (!index_ || n == 0) return ChunkCursor::skip(n);
    // At the start the footer tells where to go on.
    const auto index = std::exchange(index_, nullptr);
    n = std::min(n, index->count() - first_);
    const std::uint64_t to = first_ + n;
    const std::size_t c = to == index->count() ? index->begins.size() - 1 : index->chunk_of(to);
    at_ = index->begins[c];
    ChunkCursor::skip(to - index->first[c]);
    return n;
  }

 protected:
  bool accept(const Chunk& chunk, const ChunkRecords& records) override {
    if (!tail_error_) return true;
    if (is_footer(records)) return false;
    begins_.push_back(chunk.begin);
    return true;
  }

 private:
  // A footer lists exactly the chunks seen before it.
  bool is_footer(const ChunkRecords& records) const {
    if (records.ends.size() != begins_.size() + 1) return false;
    const auto metadata = parse_metadata(records[0]);
    if (!metadata || metadata->num_chunks != begins_.size() || metadata->version == 0) return false;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const auto e = parse_entry(records[i + 1]);
      if (!e || e->offset != begins_[i]) return false;
    }
    return true;
  }
  std::optional<DamageError> tail_error_;
  std::vector<std::uint64_t> begins_;
  std::shared_ptr<const ChunkIndex> index_;  // until something is read or passed over
  std::uint64_t first_ = 0;
  bool ended_ = false;
};

class ArrayRecordReader final : public ChunkedReader,
                                public std::enable_shared_from_this<ArrayRecordReader> {
 public:
  ArrayRecordReader(SourcePtr file, const ReadOptions& options)
      : ChunkedReader(std::move(file), options) {
    try {
      load_footer();
    } catch (const DamageError& e) {
      tail_error_ = e;
    }
  }
  std::string_view format() const override { return "array_record"; }

  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override {
    if (tail_error_) {
      auto cursor =
          std::make_unique<ArrayRecordCursor>(file_, options_, file_->size(), *tail_error_);
      cursor->skip(begin);
      return cursor;
    }
    check_index(file_->name(), begin, index_.count() + 1);
    const std::size_t c =
        begin == index_.count() ? index_.begins.size() - 1 : index_.chunk_of(begin);
    auto cursor = std::make_unique<ArrayRecordCursor>(
        file_, options_, std::shared_ptr<const ChunkIndex>(shared_from_this(), &index_), c);
    cursor->skip(begin - index_.first[c]);
    return cursor;
  }

  void verify(const DamageSink& sink) const override {
    verify_chunks(*file_, options_, sink);
    if (tail_error_) {
      sink(*tail_error_);
      return;
    }
    // Each entry of the footer must be the begin of a chunk with that many records.
    for (std::size_t c = 0; c + 1 < index_.begins.size(); ++c) {
      try {
        const ChunkHeader h = read_chunk_header(*file_, index_.begins[c]);
        const std::uint64_t n = index_.first[c + 1] - index_.first[c];
        if (h.num_records != n)
          throw DamageError(
              file_->name(), index_.begins[c], chunk_data_end(index_.begins[c], h.data_size),
              fmt::format("the chunk holds {} records, the footer says {}", h.num_records, n));
      } catch (const DamageError& e) {
        sink(e);
      }
    }
  }

  Facts info() const override {
    throw_if_damaged();
    return {{"writer_options", Value(metadata_.options)},
            {"chunks", Value(static_cast<std::int64_t>(index_.begins.size() - 1))},
            {"group_size", Value(static_cast<std::int64_t>(group_size_))},
            {"decoded_bytes", Value(static_cast<std::int64_t>(decoded_bytes_))},
            {"compressed_bytes",
             Value(static_cast<std::int64_t>(index_.begins.back() - index_.begins.front()))}};
  }

 private:
  void throw_if_damaged() const {
    if (tail_error_) throw *tail_error_;
  }
  const ChunkIndex& index() const override {
    throw_if_damaged();
    return index_;
  }

  void load_footer() {
    const std::uint64_t footer = read_postscript(*file_, options_);
    const Chunk chunk = read_chunk(*file_, footer, options_);
    const auto fail = [&](std::string_view reason) {
      throw DamageError(file_->name(), footer, chunk.end, fmt::format("footer: {}", reason));
    };
    if (chunk.header.type != 'r' && chunk.header.type != 't') fail("the chunk holds no records");
    const ChunkRecords records = decode_chunk(file_->name(), chunk, options_);
    if (records.ends.empty()) fail("it is empty");
    const auto metadata = parse_metadata(records[0]);
    if (!metadata) fail("its first record is malformed");
    metadata_ = *metadata;
    if (metadata_.num_chunks != records.ends.size() - 1)
      fail(fmt::format("it says {} chunks and lists {}", metadata_.num_chunks,
                       records.ends.size() - 1));
    std::uint64_t n = 0, last = 63;
    for (std::size_t i = 1; i < records.ends.size(); ++i) {
      const auto e = parse_entry(records[i]);
      if (!e) fail(fmt::format("entry {} is malformed", i - 1));
      // A group of 0 records would make two chunks answer for one index.
      if (e->offset <= last || e->offset >= footer || e->num_records == 0 ||
          e->num_records > file_->size())
        fail(fmt::format("entry {} gives {} records at {}; offsets must grow below {}", i - 1,
                         e->num_records, e->offset, footer));
      last = e->offset;
      index_.begins.push_back(e->offset);
      index_.first.push_back(n);
      if (i == 1) group_size_ = e->num_records;
      n += e->num_records;
      decoded_bytes_ += e->decoded_size;
    }
    if (metadata_.num_records != n)
      fail(fmt::format("it says {} records, the chunks hold {}", metadata_.num_records, n));
    index_.begins.push_back(footer);
    index_.first.push_back(n);
  }

  std::optional<DamageError> tail_error_;
  FooterMetadata metadata_;
  ChunkIndex index_;
  std::uint64_t group_size_ = 0, decoded_bytes_ = 0;
};

// ---- writing

// "uncompressed", "brotli:6", "zstd:3", "snappy" of the options' text.
struct CodecChoice {
  ChunkCodec codec;
  std::string text;  // as ArrayRecord stores it
};
CodecChoice take_codec(OptionsText& text, Codec otherwise, int brotli_level) {
  CodecChoice choice;
  int given = 0;
  std::string value;
  Codec codec = otherwise;
  std::optional<int> level;
  if (text.take("uncompressed", value)) ++given, codec = Codec::kNone;
  if (text.take("brotli", value))
    ++given,
        codec = Codec::kBrotli,
        level = value.empty() ? brotli_level : static_cast<int>(text.take_int("brotli", 6, 0, 11));
  if (text.take("zstd", value))
    ++given, codec = Codec::kZstd,
             level = value.empty() ? 3 : static_cast<int>(text.take_int("zstd", 3, -131072, 22));
  if (text.take("snappy", value)) {
    ++given, codec = Codec::kSnappy;
    if (!value.empty()) text.take_int("snappy", 1, 1, 2);
  }
  if (given > 1)
    throw_user_error({"options", "one of uncompressed, brotli, zstd, snappy", "several",
                      "Keep the one that is meant"});
  choice.codec.codec = codec;
  const std::int64_t window = text.take_int("window_log", 0, 10, 31);
  switch (codec) {
    case Codec::kBrotli:
      choice.codec.options.level = level.value_or(brotli_level);
      if (window != 0) {
        if (window > 24)
          throw_user_error({"options: window_log", "10 to 24 with brotli",
                            fmt::format("{}", window), "Choose a smaller window, or zstd"});
        choice.codec.options.window_log = static_cast<int>(window);
      }
      choice.text = fmt::format("brotli:{}", *choice.codec.options.level);
      break;
    case Codec::kZstd:
      choice.codec.options.level = level.value_or(3);
      choice.codec.options.window_log = window != 0 ? static_cast<int>(window) : 20;
      choice.text = fmt::format("zstd:{},window_log:{}", *choice.codec.options.level,
                                *choice.codec.options.window_log);
      break;
    case Codec::kSnappy: choice.text = "snappy"; break;
    default: choice.text = "uncompressed";
  }
  return choice;
}

void refuse_transpose(OptionsText& text) {
  if (text.take_bool("transpose", false))
    throw_user_error({"options: transpose",
                      "transpose:false; transposed chunks are read, not "
                      "written",
                      "transpose:true", "Leave it out"});
}

class GroupWriter : public RecordWriter {
 public:
  explicit GroupWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)), chunks_(*sink_) {}
  bool structured() const override { return false; }

 protected:
  void add(std::string_view bytes) {
    pending_.values += bytes;
    pending_.ends.push_back(pending_.values.size());
  }
  std::uint64_t flush_chunk(const ChunkCodec& codec) {
    const std::uint64_t at = chunks_.write('r', encode_simple(codec, pending_),
                                           pending_.ends.size(), pending_.values.size());
    pending_ = {};
    return at;
  }
  std::unique_ptr<ByteSink> sink_;
  ChunkWriter chunks_;
  ChunkRecords pending_;
};

class ArrayRecordWriter final : public GroupWriter {
 public:
  ArrayRecordWriter(std::unique_ptr<ByteSink> sink, std::string_view options)
      : GroupWriter(std::move(sink)) {
    OptionsText text("array_record", options);
    group_size_ = static_cast<std::uint64_t>(text.take_int("group_size", 1, 1, INT32_MAX));
    refuse_transpose(text);
    pad_ = text.take_bool("pad_to_block_boundary", false);
    codec_ = take_codec(text, Codec::kZstd, 6);
    const std::int64_t parallelism = text.take_int("max_parallelism", 1, 1, INT32_MAX);
    text.take_int("saturation_delay_ms", 10, 0, INT32_MAX);
    text.take_int("transpose_bucket_size", 256, 1, INT32_MAX);
    text.finish();
    options_ = fmt::format(
        "group_size:{},transpose:false,pad_to_block_boundary:{},{},"
        "max_parallelism:{}",
        group_size_, pad_, codec_.text, parallelism);
  }
  void write(const Record& r) override {
    add(r.bytes);
    ++count_;
    if (pending_.ends.size() == group_size_) flush();
  }
  void close() override {
    if (!pending_.ends.empty()) flush();
    // Record 0 holds the totals, the others one chunk each.
    ByteWriter inner, outer;
    put_proto_varint(inner, 1, 1);
    if (!entries_.empty()) put_proto_varint(inner, 2, entries_.size());
    if (count_ > 0) put_proto_varint(inner, 3, count_);
    put_proto_bytes(inner, 4, options_);
    put_proto_bytes(outer, 1, inner.str());
    add(outer.str());
    for (const FooterEntry& e : entries_) {
      ByteWriter w;
      put_proto_varint(w, 1, e.offset);
      if (e.decoded_size != 0) put_proto_varint(w, 2, e.decoded_size);
      put_proto_varint(w, 3, e.num_records);
      add(w.str());
    }
    const std::uint64_t footer = flush_chunk(codec_.codec);
    chunks_.pad(kBlock);
    ByteWriter postscript;
    put_proto_varint(postscript, 1, footer);
    put_proto_varint(postscript, 2, kMagic);
    for (int i = 0; i < 3; ++i) add(postscript.str());
    flush_chunk({Codec::kNone, {}});
    chunks_.pad(kBlock);
    sink_->commit();
  }

 private:
  void flush() {
    FooterEntry e;
    e.decoded_size = pending_.values.size();
    e.num_records = pending_.ends.size();
    e.offset = flush_chunk(codec_.codec);
    entries_.push_back(e);
    if (pad_) chunks_.pad(kBlock);
  }

  std::uint64_t group_size_ = 1, count_ = 0;
  bool pad_ = false;
  CodecChoice codec_;
  std::string options_;
  std::vector<FooterEntry> entries_;
};

class RiegeliWriter final : public GroupWriter {
 public:
  RiegeliWriter(std::unique_ptr<ByteSink> sink, std::string_view options)
      : GroupWriter(std::move(sink)) {
    OptionsText text("riegeli", options);
    std::string value;
    text.take("default", value);
    refuse_transpose(text);
    codec_ = take_codec(text, Codec::kBrotli, 6).codec;
    chunk_size_ = static_cast<std::uint64_t>(
        text.take_int("chunk_size", codec_.codec == Codec::kNone ? 4096 : 1 << 20, 1, 1 << 30));
    padding_ = static_cast<std::uint64_t>(text.take_int("final_padding", 1, 1, 1 << 30));
    text.finish();
  }
  void write(const Record& r) override {
    add(r.bytes);
    if (pending_.values.size() + 8 * pending_.ends.size() >= chunk_size_) flush_chunk(codec_);
  }
  void close() override {
    if (!pending_.ends.empty()) flush_chunk(codec_);
    if (padding_ > 1) chunks_.pad(padding_);
    sink_->commit();
  }

 private:
  ChunkCodec codec_;
  std::uint64_t chunk_size_, padding_;
};

}  // namespace

bool has_array_record_postscript(const ByteSource& file) {
  try {
    read_postscript(file, {});
    return true;
  } catch (const DamageError&) {
    return false;
  }
}

ReaderPtr make_array_record_reader(SourcePtr file, const ReadOptions& options) {
  return std::make_shared<ArrayRecordReader>(std::move(file), options);
}
std::unique_ptr<RecordWriter> make_array_record_writer(std::unique_ptr<ByteSink> sink,
                                                       std::string_view options) {
  return std::make_unique<ArrayRecordWriter>(std::move(sink), options);
}
std::unique_ptr<RecordWriter> make_riegeli_writer(std::unique_ptr<ByteSink> sink,
                                                  std::string_view options) {
  return std::make_unique<RiegeliWriter>(std::move(sink), options);
}

}  // namespace xylem::data::internal
