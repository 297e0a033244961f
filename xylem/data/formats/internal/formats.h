#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

// `limits` is the file of the separate layout, else null.
// Whether the file ends as a Bagz file does, or has its limits beside it.
bool has_bagz_limits(const ByteSource& file);
ReaderPtr make_bagz_reader(SourcePtr file, SourcePtr limits, const ReadOptions& options);
// Files that a sharded name ("name@4.bagz", "name@*.bagz", several separated by commas) stands for;
// empty if it is none.
std::vector<std::string> expand_bagz_shards(const std::string& spec);
// `path` names the file of limits when they are to be apart.
std::unique_ptr<RecordWriter> make_bagz_writer(std::unique_ptr<ByteSink> sink,
                                               std::string_view options, const std::string& path);

ReaderPtr make_webdataset_reader(SourcePtr file, const ReadOptions& options);
std::unique_ptr<RecordWriter> make_webdataset_writer(std::unique_ptr<ByteSink> sink,
                                                     std::string_view options);

// A folder with index.json, or that file.
ReaderPtr make_mds_reader(const std::string& path, const ReadOptions& options);
// A shard by itself.
ReaderPtr make_mds_shard_reader(SourcePtr file, const ReadOptions& options);
std::unique_ptr<RecordWriter> make_mds_writer(const std::string& folder, std::string_view options);

ReaderPtr make_parquet_reader(SourcePtr file, const ReadOptions& options);
std::unique_ptr<RecordWriter> make_parquet_writer(std::unique_ptr<ByteSink> sink,
                                                  std::string_view options);

ReaderPtr make_tfds_reader(const std::string& folder, const ReadOptions& options);

bool has_images(const std::string& folder);
ReaderPtr make_image_folder_reader(const std::string& folder, const ReadOptions& options);
ReaderPtr make_image_reader(SourcePtr file, const ReadOptions& options);
std::unique_ptr<RecordWriter> make_image_writer(const std::string& folder,
                                                std::string_view options);

// A cursor that reads one record after the other by its index; damage in a record does not hide
// those behind it.
std::unique_ptr<RecordCursor> make_indexed_cursor(std::shared_ptr<const RecordReader> reader,
                                                  std::uint64_t begin);

}  // namespace xylem::data::internal
