#pragma once

#include <memory>
#include <string_view>

#include "xylem/data/formats/record.h"

// Makers of readers and writers, one pair a format. Readers throw DamageError when the file is not
// what its format demands; writers write to `sink` and commit it when they are closed.

namespace xylem::data::internal {

ReaderPtr make_npy_reader(SourcePtr file, const ReadOptions& options);
ReaderPtr make_npz_reader(SourcePtr file, const ReadOptions& options);
std::unique_ptr<RecordWriter> make_npy_writer(std::unique_ptr<ByteSink> sink,
                                              std::string_view options);
std::unique_ptr<RecordWriter> make_npz_writer(std::unique_ptr<ByteSink> sink,
                                              std::string_view options);

// A cursor that reads one record after the other by its index; damage in a record does not hide
// those behind it.
std::unique_ptr<RecordCursor> make_indexed_cursor(std::shared_ptr<const RecordReader> reader,
                                                  std::uint64_t begin);

}  // namespace xylem::data::internal
