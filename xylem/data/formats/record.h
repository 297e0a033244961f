#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/data/formats/source.h"
#include "xylem/data/formats/value.h"

namespace xylem::data {

// Bytes that do not hold what the format demands: [begin, end) of the file at fault. The message
// says the same in words, the range as "bytes A-B", both ends included.
class DamageError : public UserError {
 public:
  DamageError(std::string_view file, std::uint64_t begin, std::uint64_t end,
              std::string_view reason, std::string_view advice = {});
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  const std::string& reason() const { return reason_; }
  const std::string& file() const { return file_; }

 private:
  std::uint64_t begin_, end_;
  std::string reason_, file_;
};

// One record: `bytes` of formats that store bytes, `fields` of those that store named values.
struct Record {
  std::string bytes;
  Fields fields;
  bool operator==(const Record&) const = default;
};

// Walks over records in file order. One thread at a time.
class RecordCursor {
 public:
  virtual ~RecordCursor() = default;
  // Takes the next record; false at the end. DamageError at damage, after which only `recover` may
  // be called.
  virtual bool next(Record& out) = 0;
  // Moves behind the damage that `next` reported; false if the rest cannot be found.
  virtual bool recover() { return false; }
  // Passes over up to `n` records, mostly without decoding them; gives how many there were.
  virtual std::uint64_t skip(std::uint64_t n);
};

// A fact of a file, for people: ("codec", "zstd").
using Facts = std::vector<std::pair<std::string, Value>>;
using DamageSink = std::function<void(const DamageError&)>;

// Records of a file, or of several, in a fixed order. All functions are safe from several threads.
// Errors: DamageError for what is wrong with the file's contents, EnvironmentError for what the
// system could not do, UserError for indices outside [0, count).
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  virtual std::string_view format() const = 0;
  // Whether records have fields rather than bytes.
  virtual bool structured() const = 0;
  // Number of records. Formats without an index are read once, at the first call.
  virtual std::uint64_t count() const = 0;
  // Costs a scan from the start where the format (or a whole-file compression) allows no more.
  virtual Record read(std::uint64_t index) const = 0;
  // Records in the order of `indices`, which may repeat. Reads are sorted and merged, and decoding
  // uses the process's threads.
  virtual std::vector<Record> read_batch(std::span<const std::uint64_t> indices) const;
  // Walks from record `begin` on; `begin` may be count().
  virtual std::unique_ptr<RecordCursor> scan(std::uint64_t begin = 0) const = 0;
  // Holds every checksum and every length; calls `sink` once a damaged range.
  virtual void verify(const DamageSink& sink) const;
  virtual Facts info() const { return {}; }
  // Where record `index` lies: (file, its number there).
  virtual std::pair<std::string, std::uint64_t> locate(std::uint64_t index) const = 0;
};
using ReaderPtr = std::shared_ptr<const RecordReader>;

struct ReadOptions {
  std::string format;                                         // told by the file if empty
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;  // larger records, blocks: DamageError
  std::vector<std::string> columns;                           // structured formats; all if empty
  bool header = true;          // csv: the first line names the columns
  char delimiter = 0;          // csv; 0: tab for .tsv, else a comma
  std::string split;           // tfds: "train[:10%]+test"; all splits if empty
  bool decode_images = false;  // images as u8[height, width, channels]
};

// Opens one file or folder. See docs/record-formats.md for the formats and how they are told apart.
ReaderPtr open_records(const std::string& path, const ReadOptions& options = {});
// The same for bytes that are in hand; formats of folders are refused.
ReaderPtr open_records(SourcePtr source, const ReadOptions& options = {});
// Several files as one sequence of records: indices run over all, in order. Files are opened when
// they are needed; all must be of one kind (bytes or fields).
ReaderPtr open_records(std::span<const std::string> paths, const ReadOptions& options = {});

// Name of the format of a file or folder; empty if it cannot be told.
std::string detect_format(const std::string& path);

struct WriteOptions {
  std::string format;   // told by the path's extension if empty
  std::string options;  // the format's own, "group_size:4,zstd:3"; see docs/record-formats.md
};

// Takes records in order. Nothing appears under its path before `close`; without it nothing stays.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  virtual bool structured() const = 0;
  virtual void write(const Record& record) = 0;
  void write_bytes(std::string_view bytes) { write(Record{std::string(bytes), {}}); }
  virtual void close() = 0;
};

std::unique_ptr<RecordWriter> create_records(const std::string& path,
                                             const WriteOptions& options = {});

// Writes the side file with the records' offsets that readers of formats without an index take
// instead of a scan, as long as size and modification time of `path` stay. Gives the side file's
// path; empty if the format has an index of its own or none is possible (compressed files).
std::string write_index(const std::string& path, const ReadOptions& options = {});

// The formats' names, in the order of the documentation.
std::vector<std::string_view> record_formats();

}  // namespace xylem::data
