#pragma once

#include <span>
#include <string>

#include "xylem/data/dataset.h"
#include "xylem/data/formats/record.h"

namespace xylem::data {

// Records of a file for a pipeline. Runs of records are read together (RecordReader::read_batch).
class RecordSource {
 public:
  explicit RecordSource(ReaderPtr reader) : reader_(std::move(reader)) {}
  std::int64_t size() const { return static_cast<std::int64_t>(reader_->count()); }
  Record get(std::int64_t i) const { return reader_->read(static_cast<std::uint64_t>(i)); }
  void get_batch(std::span<const std::int64_t> indices, std::span<std::optional<Record>> out) const;

 private:
  ReaderPtr reader_;
};

// One file or folder, or several as one sequence; see open_records.
MapDataset<Record> records(const std::string& path, const ReadOptions& options = {});
MapDataset<Record> records(std::span<const std::string> paths, const ReadOptions& options = {});
// Their bytes, for formats that store bytes.
MapDataset<std::string> record_bytes(const std::string& path, const ReadOptions& options = {});

}  // namespace xylem::data
