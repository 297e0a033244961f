#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

// The bytes of a value, wherever they lie. Reads are concurrent.
class ByteSource {
 public:
  // Held in memory.
  explicit ByteSource(std::string bytes, std::string name = "value")
      : bytes_(std::make_shared<const std::string>(std::move(bytes))),
        size_(bytes_->size()),
        name_(std::move(name)) {}
  // A range of a file. UserError if it reaches beyond the file's end.
  ByteSource(std::shared_ptr<const InputFile> file, std::uint64_t offset, std::uint64_t size);

  std::uint64_t size() const { return size_; }
  // "d/0123 bytes 10 to 20" for messages.
  std::string describe() const;
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  void read(std::uint64_t offset, std::vector<MutablePiece> pieces) const;
  std::string read_all() const;
  // A part of it.
  ByteSource part(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::shared_ptr<const std::string> bytes_;
  std::shared_ptr<const InputFile> file_;
  std::uint64_t offset_ = 0, size_ = 0;
  std::string name_;
};

// Keys and their values. Reads are thread-safe.
class KvStore {
 public:
  virtual ~KvStore() = default;
  // Where it lies, for messages.
  virtual const std::string& name() const = 0;
  virtual std::optional<ByteSource> find(std::string_view key) const = 0;
  // Calls f for the keys that begin with `prefix`, in order of bytes.
  virtual void for_each(std::string_view prefix,
                        const std::function<void(std::string_view key)>& f) const = 0;
};

// A directory: the key is the path below it.
std::unique_ptr<KvStore> open_directory_store(const FileSystem& fs, std::string directory);

// Whether a key is a path that stays below its directory: no empty part, no "." and no "..".
bool is_safe_relative_path(std::string_view path);

}  // namespace xylem::checkpoint
