#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Files and directories. Every failure is an EnvironmentError with the path, the system's text and
// advice; interrupted and short transfers are continued. Functions are thread-safe; objects are not
// unless said so.

namespace xylem {

// Throws the EnvironmentError for errno value `error`: "write /a/b: ... ; No space left on device".
[[noreturn]] void throw_file_error(std::string_view operation, const std::string& path, int error);

// ---- whole files

std::string read_file(const std::string& path);
// Replaces the file's contents; a crash may leave it half written.
void write_file(const std::string& path, std::string_view data);
// As AtomicFile: after any crash the path holds the old contents or the new.
void write_file_atomic(const std::string& path, std::string_view data);

// A file that appears under its name only when it is complete: written under a temporary name
// beside it, flushed to disk (fsync), renamed, the directory flushed. Without `commit` nothing
// remains. One writer at a time; readers see the old file or the new one. A symbolic link stays and
// its target is replaced; devices and pipes (/dev/null, /dev/stdout) are written in place.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);
  void write(std::string_view data) { write(data.data(), data.size()); }
  void write(std::span<const std::byte> data) { write(data.data(), data.size()); }
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // May be called once. After a failure the old file still stands.
  void commit();

 private:
  void flush();
  void discard() noexcept;

  std::string path_;
  std::string temporary_;
  std::string buffer_;
  int fd_ = -1;
  bool direct_ = false;  // a device or pipe: no temporary name
  std::uint64_t size_ = 0;
};

// Appends lines to a file that may exist; each call is one write.
class AppendFile {
 public:
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  void write(std::string_view data);
  void sync();

 private:
  std::string path_;
  int fd_ = -1;
};

// Reads at any place. Concurrent reads are safe.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(std::string path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `out` from `offset`; EnvironmentError if the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  std::string read(std::uint64_t offset, std::size_t size) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// A file's contents as read-only memory. If another process truncates the file, access to the lost
// part is a fatal signal: map only files that are replaced as a whole, never in place.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);

  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }
  // Shares the mapping from `offset` on; the memory must not be written.
  std::shared_ptr<std::byte> share(std::size_t offset) const;

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t size_ = 0;
};

// ---- directories and names

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
};

// Entries but "." and "..", by name.
std::vector<DirectoryEntry> list_directory(const std::string& path);
// With its parents; existing ones are no error.
void make_directories(const std::string& path);
// A new, empty directory under $TMPDIR or /tmp.
std::string make_temporary_directory(std::string_view prefix);
// File or directory with all below it; symbolic links are removed, not followed. A missing path is
// no error.
void remove_tree(const std::string& path);
// Makes the finished directory `temporary` appear as `final_path`, which must not exist: flushes
// the files and directories in it to disk, renames, flushes the parent. After any crash final_path
// is absent or complete.
void commit_directory(const std::string& temporary, const std::string& final_path);
void rename_path(const std::string& from, const std::string& to);

bool path_exists(const std::string& path);
bool is_directory(const std::string& path);
std::uint64_t file_size(const std::string& path);
void truncate_file(const std::string& path, std::uint64_t size);
// Flushes a file or directory to disk.
void sync_path(const std::string& path);

// "a" and "b" give "a/b"; an absolute second part stands alone.
std::string join_path(std::string_view a, std::string_view b);
std::string parent_path(std::string_view path);  // "." for a bare name
std::string base_name(std::string_view path);

}  // namespace xylem
