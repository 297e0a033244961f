#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/data/formats/internal/input_stream.h"
#include "xylem/data/formats/record.h"

// Formats that are one record after another without an index: TFRecord, lines, JSON Lines, CSV.

namespace xylem::data::internal {

// Cuts a stream into units, one a record, and decodes them. After `begin` functions are safe from
// several threads.
class Framer {
 public:
  virtual ~Framer() = default;
  virtual std::string_view format() const = 0;
  virtual bool structured() const = 0;
  // Reads what stands before the first record.
  virtual void begin(InputStream&) {}
  // Moves to the next unit and gives its size; nothing at the end. The unit is not consumed.
  virtual std::optional<std::uint64_t> frame(InputStream& in) const = 0;
  // Decodes a unit, behind which blank lines may stand. `offset`: its place in the stream of `in`,
  // which is for messages only.
  virtual void decode(std::string_view unit, std::uint64_t offset, const InputStream& in,
                      Record& out) const = 0;
  // Looks for the next unit after one whose end is unknown.
  virtual bool resync(InputStream&) const { return false; }
};

// Offsets of units, and the end of the last one.
struct FrameIndex {
  std::vector<std::uint64_t> offsets;
  std::uint64_t count() const { return offsets.size() - 1; }
};

// The side file of `path`, and what is in it if it belongs to the file as it is now.
std::string frame_index_path(const std::string& path);
std::optional<FrameIndex> load_frame_index(const std::string& path);
void save_frame_index(const std::string& path, const FrameIndex& index);

class FramedReader final : public RecordReader, public std::enable_shared_from_this<FramedReader> {
 public:
  FramedReader(SourcePtr source, Wrapping wrapping, std::unique_ptr<Framer> framer,
               ReadOptions options);
  std::string_view format() const override { return framer_->format(); }
  bool structured() const override { return framer_->structured(); }
  std::uint64_t count() const override;
  Record read(std::uint64_t index) const override;
  std::vector<Record> read_batch(std::span<const std::uint64_t> indices) const override;
  std::unique_ptr<RecordCursor> scan(std::uint64_t begin) const override;
  Facts info() const override;
  std::pair<std::string, std::uint64_t> locate(std::uint64_t index) const override {
    return {source_->name(), index};
  }
  // Of a plain file: built by one pass at the first call.
  const FrameIndex& index() const;
  bool wrapped() const { return wrapping_ != Wrapping::kNone; }

 private:
  friend class FramedCursor;
  InputStream open(std::uint64_t at) const { return InputStream(source_, wrapping_, at); }

  SourcePtr source_;
  Wrapping wrapping_;
  std::unique_ptr<Framer> framer_;
  ReadOptions options_;
  std::uint64_t first_ = 0;  // where the first unit may begin

  mutable std::mutex mutex_;
  mutable std::optional<FrameIndex> index_;
  mutable std::optional<std::uint64_t> count_;
  // Where random reads of a wrapped file stand.
  mutable std::unique_ptr<RecordCursor> cursor_;
  mutable std::uint64_t cursor_at_ = 0;
};

std::unique_ptr<Framer> make_tfrecord_framer();
std::unique_ptr<Framer> make_text_framer(const ReadOptions& options);
std::unique_ptr<Framer> make_jsonl_framer(const ReadOptions& options);
std::unique_ptr<Framer> make_csv_framer(const ReadOptions& options, std::string_view name);

std::unique_ptr<RecordWriter> make_tfrecord_writer(std::unique_ptr<ByteSink> sink,
                                                   std::string_view options);
std::unique_ptr<RecordWriter> make_text_writer(std::unique_ptr<ByteSink> sink,
                                               std::string_view options);
std::unique_ptr<RecordWriter> make_jsonl_writer(std::unique_ptr<ByteSink> sink,
                                                std::string_view options);
std::unique_ptr<RecordWriter> make_csv_writer(std::unique_ptr<ByteSink> sink,
                                              std::string_view options, std::string_view name);

// Keeps the named fields, in that order; those that are absent are left out.
void project(Fields& fields, const std::vector<std::string>& columns);

}  // namespace xylem::data::internal
