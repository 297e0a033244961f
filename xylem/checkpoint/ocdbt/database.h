#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/ocdbt/format.h"
#include "xylem/checkpoint/storage/kv_store.h"

namespace xylem::checkpoint::ocdbt {

// Where the value of a key lies.
struct Value {
  bool inlined = true;
  std::string_view bytes;  // if inlined; valid during the call
  std::string file;        // path below the database's directory
  std::uint64_t offset = 0, length = 0;
};

// A database open for reading, at its newest version. Nodes are read as they are needed and kept.
// Thread-safe.
class Database final : public KvStore {
 public:
  // UserError or EnvironmentError if there is none or its manifest is damaged.
  Database(const FileSystem& fs, std::string directory);
  ~Database() override;

  // With the manifest given, whatever manifest.ocdbt says.
  static std::unique_ptr<Database> with_manifest(const FileSystem& fs, std::string directory,
                                                 Manifest manifest);
  static bool exists(const FileSystem& fs, const std::string& directory);

  const std::string& name() const override { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  std::uint64_t num_keys() const { return manifest_.versions.back().statistics.num_keys; }
  std::optional<ByteSource> find(std::string_view key) const override;
  // Where a value lies that is not inlined: file, offset and length.
  std::optional<Value> find_range(std::string_view key) const;
  void for_each(std::string_view prefix,
                const std::function<void(std::string_view key)>& f) const override;
  void for_each_value(std::string_view prefix,
                      const std::function<void(std::string_view key, const Value&)>& f) const;

  // The generations that the manifest and its version tree name, ascending.
  std::vector<std::uint64_t> generations() const;
  // The database as of a generation; UserError if there is none.
  std::unique_ptr<Database> at_generation(std::uint64_t generation) const;

  // Calls f for each range of the database's files that this version is made of, nodes and values.
  void for_each_range(const std::function<void(const std::string& file, std::uint64_t offset,
                                               std::uint64_t length)>& f) const;

  // Walks the whole tree of this version: checksums, order, heights, statistics, and that every
  // value lies within its file. Calls f for each defect.
  void check(const std::function<void(std::string_view defect)>& f) const;

 private:
  struct State;
  Database(std::shared_ptr<State> state, std::string directory, Manifest manifest);
  void lookup(std::string_view key, const std::function<void(const Value&)>& f) const;

  std::string directory_;
  Manifest manifest_;
  std::shared_ptr<State> state_;
};

}  // namespace xylem::checkpoint::ocdbt
