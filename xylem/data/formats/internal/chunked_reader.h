#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "xylem/data/formats/internal/riegeli.h"

namespace xylem::data::internal {

// Where the chunks with records begin, and how many records stand before each.
struct ChunkIndex {
  std::vector<std::uint64_t> begins;  // one more than chunks: the end of the last
  std::vector<std::uint64_t> first;   // one more than chunks: the number of records
  std::uint64_t count() const { return first.back(); }
  // Chunk that holds record i.
  std::size_t chunk_of(std::uint64_t i) const;
};

// Random access to records in chunks.
class ChunkedReader : public RecordReader {
 public:
  ChunkedReader(SourcePtr file, ReadOptions options)
      : file_(std::move(file)), options_(std::move(options)) {}
  bool structured() const override { return false; }
  std::uint64_t count() const override { return index().count(); }
  Record read(std::uint64_t i) const override;
  std::vector<Record> read_batch(std::span<const std::uint64_t> indices) const override;
  std::pair<std::string, std::uint64_t> locate(std::uint64_t i) const override {
    return {file_->name(), i};
  }

 protected:
  virtual const ChunkIndex& index() const = 0;
  std::shared_ptr<const ChunkRecords> load(std::size_t chunk, std::string_view bytes = {}) const;

  SourcePtr file_;
  ReadOptions options_;

 private:
  // The chunk decoded last: sequential reads of large groups decode each once.
  mutable std::mutex cache_mutex_;
  mutable std::shared_ptr<const ChunkRecords> cached_;
  mutable std::size_t cached_chunk_ = 0;
};

}  // namespace xylem::data::internal
