#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/base/file.h"

// The few calls of the operating system that storage is made of, behind an interface, so that
// checkpoints can live in memory and tests can put a recording, failing file system below them.
namespace xylem::checkpoint {

struct FileStatus {
  bool directory = false;
  bool regular = false;
  bool symlink = false;  // only where links are not followed
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  // since the Unix epoch
};

struct ConstPiece {
  const void* data;
  std::size_t size;
};
struct MutablePiece {
  void* data;
  std::size_t size;
};

enum class OpenMode {
  kRead,
  kCreate,     // write; an existing file loses its contents
  kCreateNew,  // write; the file must not exist
};

// Every call returns a value that is not negative, or -errno; none throws. Transfers may be short.
// Thread-safe.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;

  virtual int open(const std::string& path, OpenMode mode) = 0;
  virtual int close(int file) = 0;
  virtual std::int64_t read(int file, std::span<const MutablePiece> pieces,
                            std::uint64_t offset) = 0;
  virtual std::int64_t write(int file, std::span<const ConstPiece> pieces,
                             std::uint64_t offset) = 0;
  // The file's contents and size are on disk when it returns; its name is not (sync_directory).
  virtual int sync(int file) = 0;
  virtual int sync_directory(const std::string& path) = 0;
  virtual int status(int file, FileStatus& out) = 0;
  virtual int status(const std::string& path, bool follow_links, FileStatus& out) = 0;
  virtual int make_directory(const std::string& path) = 0;
  virtual int remove_file(const std::string& path) = 0;
  virtual int remove_directory(const std::string& path) = 0;
  // Without `replace`, -EEXIST if `to` exists.
  virtual int rename(const std::string& from, const std::string& to, bool replace) = 0;
  // A second name for a file; the name must be free.
  virtual int link(const std::string& from, const std::string& to) = 0;
  // Entries but "." and "..", in any order.
  virtual int list(const std::string& path, std::vector<DirectoryEntry>& out) = 0;
};

// The operating system's.
std::shared_ptr<SystemCalls> posix_calls();
// An empty file system in memory, whose root "/" exists.
std::shared_ptr<SystemCalls> memory_calls();

}  // namespace xylem::checkpoint
