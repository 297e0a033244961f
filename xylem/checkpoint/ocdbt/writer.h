#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/ocdbt/format.h"
#include "xylem/checkpoint/storage/codec.h"
#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint::ocdbt {

// Appends values to data files under a database's directory. For one thread at a time; several may
// write to one database at once.
class DataFileWriter {
 public:
  // `target_size`: another file is begun once one is larger.
  DataFileWriter(const FileSystem& fs, std::string directory,
                 std::uint64_t target_size = std::uint64_t{2} << 30);

  Reference append(std::string_view value);
  // A stored zstd frame of the data, without a copy, and what `tail` makes of the frame's size.
  Reference append_stored(std::span<const std::byte> data,
                          const std::function<std::string(std::uint64_t)>& tail = nullptr);
  // Flushes to disk.
  void close();
  std::uint64_t bytes_written() const { return bytes_; }

 private:
  OutputFile& file();

  FileSystem fs_;
  std::string directory_;
  std::uint64_t target_size_;
  std::unique_ptr<OutputFile> out_;
  std::string path_;
  std::uint64_t bytes_ = 0;
};

struct KeyValue {
  std::string key;
  bool inlined = true;
  std::string value;    // if inlined
  Reference reference;  // otherwise
};

// Writes the nodes of a database of these keys (in any order, each once), then its manifest. The
// values' files must be closed. If `durable`, readers see the old database or the new one, after a
// crash too; otherwise only the files' contents are flushed, for a directory that is committed
// later. The database has one version, of the generation given.
void write_database(const FileSystem& fs, const std::string& directory, std::vector<KeyValue> keys,
                    const Config& config, bool durable = true, std::uint64_t generation = 1);

// Writes into `directory` a database of all keys of the databases in the directories `children`
// below it (each with a final slash), which keep their data. Later children win. UserError if one
// is damaged.
void merge_databases(const FileSystem& fs, const std::string& directory,
                     const std::vector<std::string>& children, const Config& config);

// With a random uuid, as Orbax's but smaller nodes, so that one key is found without reading all.
Config default_config();
// 32 hexadecimal digits.
std::string random_file_name();

}  // namespace xylem::checkpoint::ocdbt
