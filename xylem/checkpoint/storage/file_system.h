#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/storage/system_calls.h"

namespace xylem::checkpoint {

// Reads at any place. Concurrent reads are safe.
class InputFile {
 public:
  InputFile(std::shared_ptr<SystemCalls> calls, std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fill the pieces from `offset` on; EnvironmentError if the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  void read(std::uint64_t offset, std::vector<MutablePiece> pieces) const;

 private:
  std::shared_ptr<SystemCalls> calls_;
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

// A file under construction, written from front to back. For one thread at a time.
class OutputFile {
 public:
  OutputFile(std::shared_ptr<SystemCalls> calls, std::string path, OpenMode mode);
  // Without close() what was written may be lost.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  void write(std::string_view data);
  void write(std::vector<ConstPiece> pieces);
  // Flushes to disk (the name is flushed with its directory) and closes.
  void close();

 private:
  std::shared_ptr<SystemCalls> calls_;
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

// Where checkpoints lie. Interrupted and short transfers are continued; failures are
// EnvironmentErrors with the path. A value; copies share the file system. Thread-safe.
class FileSystem {
 public:
  // The operating system's.
  FileSystem() : calls_(posix_calls()) {}
  explicit FileSystem(std::shared_ptr<SystemCalls> calls) : calls_(std::move(calls)) {}
  static FileSystem memory() { return FileSystem(memory_calls()); }

  std::shared_ptr<const InputFile> open(const std::string& path) const;
  std::unique_ptr<OutputFile> create(const std::string& path,
                                     OpenMode mode = OpenMode::kCreate) const;

  // The whole file. UserError if it is longer than `limit`.
  std::string read_file(const std::string& path,
                        std::uint64_t limit = std::uint64_t{1} << 32) const;
  // Written and flushed; its name is durable after sync_directory of its parent.
  void write_file(const std::string& path, std::string_view data) const;
  // Under a temporary name, flushed, renamed, the directory flushed: after a crash the old contents
  // or the new.
  void write_file_atomic(const std::string& path, std::string_view data) const;

  bool exists(const std::string& path) const;
  bool is_directory(const std::string& path) const;
  bool is_file(const std::string& path) const;
  FileStatus status(const std::string& path) const;
  // By name.
  std::vector<DirectoryEntry> list(const std::string& path) const;

  // With its parents. If `durable`, each new name is flushed into its parent, so that what is later
  // committed below cannot lose its way.
  void make_directories(const std::string& path, bool durable = false) const;
  // All below it too; a link is removed, not followed. A missing path is no error.
  void remove_tree(const std::string& path) const;
  void rename(const std::string& from, const std::string& to, bool replace = false) const;
  // The file or directory with all below it, in pieces, flushed (names are durable after
  // sync_directories of `to`). With `link`, files get second names where that is possible.
  void copy_tree(const std::string& from, const std::string& to, bool link = false) const {
    copy_tree(*this, from, to, link);
  }
  // From another file system; `progress` is told of bytes copied.
  void copy_tree(const FileSystem& source, const std::string& from, const std::string& to,
                 bool link = false,
                 const std::function<void(std::uint64_t)>& progress = nullptr) const;
  // Of the file, or of all files below.
  std::uint64_t bytes_below(const std::string& path) const;
  // Gives the file a second name. False where the file system cannot, or not this one.
  bool link(const std::string& from, const std::string& to) const;
  void sync_directory(const std::string& path) const;
  // The directory and all below it, bottom up.
  void sync_directories(const std::string& path) const;
  // Makes the finished directory `temporary` appear as `final_path`, which must not exist: flushes
  // the directories in it, bottom up, renames, flushes the parent. Its files are flushed already,
  // as OutputFile does. After any crash final_path is absent or complete.
  void commit_directory(const std::string& temporary, const std::string& final_path) const;

  const std::shared_ptr<SystemCalls>& calls() const { return calls_; }

 private:
  std::shared_ptr<SystemCalls> calls_;
};

}  // namespace xylem::checkpoint
