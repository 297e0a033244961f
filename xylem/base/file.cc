#include "xylem/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "xylem/base/error.h"

namespace xylem {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 20;
// Linux transfers at most 2 GiB - 4096 at a time.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

std::string_view advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "The disk or quota is full: free space or choose another place";
    case EACCES:
    case EPERM: return "Check the permissions of the path and its parents";
    case EROFS: return "The file system is read-only: choose another place";
    case ENOENT: return "Check the spelling; the path or one of its parents does not exist";
    case ENOTDIR: return "One of the parents is a file, not a directory";
    case EISDIR: return "The path is a directory; give a file";
    case EEXIST:
    case ENOTEMPTY: return "The path exists already: remove it or choose another name";
    case EMFILE:
    case ENFILE: return "Too many files are open: raise the limit (ulimit -n)";
    case EFBIG: return "The file would exceed the size limit (ulimit -f) or the file system's";
    case EXDEV: return "Both paths must lie on one file system";
    case EIO: return "The disk reports an error: check the system's log";
    default: return "Check the path and the state of the file system";
  }
}

int open_retry(const char* path, int flags, mode_t mode = 0666) {
  int fd;
  do fd = ::open(path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

class Fd {
 public:
  Fd(const std::string& path, int flags, std::string_view operation)
      : fd_(open_retry(path.c_str(), flags)) {
    if (fd_ < 0) throw_file_error(operation, path, errno);
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), std::min(data.size(), kMaxTransfer));
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_file_error("write", path, errno);
    }
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

void sync_fd(int fd, const std::string& path) {
  int r;
  do r = ::fsync(fd);
  while (r < 0 && errno == EINTR);
  // Some file systems cannot flush directories or special files and say so.
  if (r < 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
    throw_file_error("flush", path, errno);
}

struct stat status(const std::string& path, std::string_view operation) {
  struct stat s;
  if (::stat(path.c_str(), &s) < 0) throw_file_error(operation, path, errno);
  return s;
}

void sync_tree(const std::string& path) {
  for (const DirectoryEntry& e : list_directory(path)) {
    const std::string p = join_path(path, e.name);
    struct stat s;
    if (::lstat(p.c_str(), &s) < 0) throw_file_error("inspect", p, errno);
    if (S_ISDIR(s.st_mode))
      sync_tree(p);
    else if (S_ISREG(s.st_mode))
      sync_path(p);
  }
  sync_path(path);
}

}  // namespace

void throw_file_error(std::string_view operation, const std::string& path, int error) {
  char buffer[256];
  // The GNU function returns the text, which need not be in the buffer.
  const char* text = ::strerror_r(error, buffer, sizeof buffer);
  throw EnvironmentError(ErrorParts{fmt::format("{} {}", operation, path),
                                    "the system must carry out the operation",
                                    fmt::format("it answered \"{}\"", text), advice(error)});
}

// ---- whole files

std::string read_file(const std::string& path) {
  const Fd fd(path, O_RDONLY, "open");
  std::string data;
  struct stat s;
  if (::fstat(fd.get(), &s) == 0 && S_ISREG(s.st_mode))
    data.reserve(static_cast<std::size_t>(s.st_size) + 1);
  std::size_t have = 0;
  // The size is a hint only: files of /proc have none, and files grow.
  while (true) {
    const std::size_t room = std::max<std::size_t>(data.capacity() - have, 4096);
    data.resize(have + std::min(room, kMaxTransfer));
    const ssize_t n = ::read(fd.get(), data.data() + have, data.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read", path, errno);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  data.resize(have);
  return data;
}

void write_file(const std::string& path, std::string_view data) {
  const Fd fd(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
  write_all(fd.get(), data, path);
}

void write_file_atomic(const std::string& path, std::string_view data) {
  AtomicFile f(path);
  f.write(data);
  f.commit();
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> counter{0};
  struct stat s;
  // A link stays; what it points to is replaced.
  if (::lstat(path_.c_str(), &s) == 0 && S_ISLNK(s.st_mode)) {
    const std::unique_ptr<char, void (*)(void*)> target(::realpath(path_.c_str(), nullptr),
                                                        std::free);
    if (target) path_ = target.get();
  }
  // A file renamed over /dev/null or a pipe would take its place: those are written as they are.
  direct_ = ::stat(path_.c_str(), &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
  if (direct_) {
    temporary_ = path_;
    fd_ = open_retry(path_.c_str(), O_WRONLY);
    if (fd_ < 0) throw_file_error("open", path_, errno);
    return;
  }
  // Left-overs of a killed process with the same id are in the way: take the next number.
  do {
    temporary_ = fmt::format("{}.tmp-{}-{}", path_, ::getpid(), counter.fetch_add(1));
    fd_ = open_retry(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) throw_file_error("create", temporary_, errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  if (!direct_) ::unlink(temporary_.c_str());
}

void AtomicFile::flush() {
  write_all(fd_, buffer_, temporary_);
  buffer_.clear();
}

void AtomicFile::write(const void* data, std::size_t size) {
  XYLEM_CHECK(fd_ >= 0, "write after commit");
  const std::string_view s(static_cast<const char*>(data), size);
  if (buffer_.size() + size > kBufferSize) flush();
  if (size >= kBufferSize)
    write_all(fd_, s, temporary_);
  else
    buffer_ += s;
  size_ += size;
}

void AtomicFile::commit() {
  XYLEM_CHECK(fd_ >= 0, "commit twice");
  try {
    flush();
    if (direct_) {
      ::close(std::exchange(fd_, -1));
      return;
    }
    sync_fd(fd_, temporary_);
    const int fd = std::exchange(fd_, -1);
    // Network file systems report a full disk here.
    if (::close(fd) < 0 && errno != EINTR) {
      const int error = errno;
      ::unlink(temporary_.c_str());
      throw_file_error("close", temporary_, error);
    }
    if (::rename(temporary_.c_str(), path_.c_str()) < 0) {
      const int error = errno;
      ::unlink(temporary_.c_str());
      throw_file_error("rename to", path_, error);
    }
  } catch (...) {
    discard();
    throw;
  }
  sync_path(parent_path(path_));
}

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)), fd_(open_retry(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND)) {
  if (fd_ < 0) throw_file_error("open", path_, errno);
}

AppendFile::~AppendFile() { ::close(fd_); }

void AppendFile::write(std::string_view data) { write_all(fd_, data, path_); }
void AppendFile::sync() { sync_fd(fd_, path_); }

RandomAccessFile::RandomAccessFile(std::string path)
    : path_(std::move(path)), fd_(open_retry(path_.c_str(), O_RDONLY)) {
  if (fd_ < 0) throw_file_error("open", path_, errno);
  struct stat s;
  const int r = ::fstat(fd_, &s);
  if (r < 0 || S_ISDIR(s.st_mode)) {
    const int error = r < 0 ? errno : EISDIR;
    ::close(fd_);
    throw_file_error("open", path_, error);
  }
  size_ = static_cast<std::uint64_t>(s.st_size);
}

RandomAccessFile::~RandomAccessFile() { ::close(fd_); }

void RandomAccessFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t wanted = out.size();
  const std::uint64_t start = offset;
  while (!out.empty()) {
    const ssize_t n =
        ::pread(fd_, out.data(), std::min(out.size(), kMaxTransfer), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read", path_, errno);
    if (n == 0)
      throw EnvironmentError(ErrorParts{
          fmt::format("read {}", path_),
          fmt::format("{} bytes at offset {} must exist", wanted, start),
          fmt::format("the file ends at {}", offset), "The file is cut short: get it again"});
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

std::string RandomAccessFile::read(std::uint64_t offset, std::size_t size) const {
  // Before the allocation, which a hostile size would make huge.
  if (offset > size_ || size > size_ - offset)
    throw EnvironmentError(ErrorParts{fmt::format("read {}", path_),
                                      fmt::format("{} bytes at offset {} must exist", size, offset),
                                      fmt::format("the file has {} bytes", size_),
                                      "The file is cut short: get it again"});
  std::string s(size, '\0');
  read(offset, std::as_writable_bytes(std::span<char>(s)));
  return s;
}

MappedFile::MappedFile(const std::string& path) {
  const Fd fd(path, O_RDONLY, "open");
  struct stat s;
  if (::fstat(fd.get(), &s) < 0) throw_file_error("inspect", path, errno);
  if (S_ISDIR(s.st_mode)) throw_file_error("map", path, EISDIR);
  size_ = static_cast<std::size_t>(s.st_size);
  if (size_ == 0) {
    data_ = std::shared_ptr<std::byte>(new std::byte[1]{}, std::default_delete<std::byte[]>());
    return;
  }
  void* p = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) throw_file_error("map", path, errno);
  data_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(p),
                                     [n = size_](std::byte* q) { ::munmap(q, n); });
}

std::shared_ptr<std::byte> MappedFile::share(std::size_t offset) const {
  XYLEM_CHECK(offset <= size_, "offset beyond the mapping");
  return {data_, data_.get() + offset};
}

// ---- directories and names

std::vector<DirectoryEntry> list_directory(const std::string& path) {
  DIR* d = ::opendir(path.c_str());
  if (d == nullptr) throw_file_error("list", path, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> close(d, ::closedir);
  std::vector<DirectoryEntry> out;
  while (true) {
    errno = 0;
    const dirent* e = ::readdir(d);
    if (e == nullptr) {
      if (errno != 0) throw_file_error("list", path, errno);
      break;
    }
    DirectoryEntry entry{e->d_name, e->d_type == DT_DIR};
    if (entry.name == "." || entry.name == "..") continue;
    if (e->d_type == DT_UNKNOWN || e->d_type == DT_LNK)
      entry.is_directory = is_directory(join_path(path, entry.name));
    out.push_back(std::move(entry));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

void make_directories(const std::string& path) {
  if (path.empty() || is_directory(path)) return;
  const std::string parent = parent_path(path);
  if (parent != path && parent != ".") make_directories(parent);
  if (::mkdir(path.c_str(), 0777) < 0) {
    const int error = errno;
    // Another process may have been quicker; a trailing slash names the same directory twice.
    if (error == EEXIST && is_directory(path)) return;
    // A file stands where a directory is wanted.
    throw_file_error("make directory", path, error == EEXIST ? ENOTDIR : error);
  }
}

std::string make_temporary_directory(std::string_view prefix) {
  const char* tmp = std::getenv("TMPDIR");
  std::string path =
      join_path(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp", fmt::format("{}-XXXXXX", prefix));
  if (::mkdtemp(path.data()) == nullptr) throw_file_error("make directory", path, errno);
  return path;
}

void remove_tree(const std::string& path) {
  struct stat s;
  if (::lstat(path.c_str(), &s) < 0) {
    if (errno == ENOENT) return;
    throw_file_error("inspect", path, errno);
  }
  if (S_ISDIR(s.st_mode)) {
    for (const DirectoryEntry& e : list_directory(path)) remove_tree(join_path(path, e.name));
    if (::rmdir(path.c_str()) < 0 && errno != ENOENT) throw_file_error("remove", path, errno);
  } else if (::unlink(path.c_str()) < 0 && errno != ENOENT) {
    throw_file_error("remove", path, errno);
  }
}

void rename_path(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) < 0) throw_file_error("rename to", to, errno);
}

void commit_directory(const std::string& temporary, const std::string& final_path) {
  sync_tree(temporary);
  // Plain rename would replace an empty directory, so ask the kernel not to; file systems that
  // cannot answer EINVAL.
  constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
  long r = ::syscall(SYS_renameat2, AT_FDCWD, temporary.c_str(), AT_FDCWD, final_path.c_str(),
                     kNoReplace);
  if (r < 0 && (errno == EINVAL || errno == ENOSYS)) {
    if (path_exists(final_path)) throw_file_error("commit directory", final_path, EEXIST);
    r = ::rename(temporary.c_str(), final_path.c_str());
  }
  if (r < 0) throw_file_error("commit directory", final_path, errno);
  sync_path(parent_path(final_path));
}

bool path_exists(const std::string& path) {
  struct stat s;
  return ::stat(path.c_str(), &s) == 0;
}

bool is_directory(const std::string& path) {
  struct stat s;
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

std::uint64_t file_size(const std::string& path) {
  return static_cast<std::uint64_t>(status(path, "inspect").st_size);
}

void truncate_file(const std::string& path, std::uint64_t size) {
  int r;
  do r = ::truncate(path.c_str(), static_cast<off_t>(size));
  while (r < 0 && errno == EINTR);
  if (r < 0) throw_file_error("truncate", path, errno);
}

void sync_path(const std::string& path) {
  const Fd fd(path, O_RDONLY, "open");
  sync_fd(fd.get(), path);
}

std::string join_path(std::string_view a, std::string_view b) {
  if (a.empty() || (!b.empty() && b[0] == '/')) return std::string(b);
  if (b.empty()) return std::string(a);
  return fmt::format("{}{}{}", a, a.back() == '/' ? "" : "/", b);
}

std::string parent_path(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace xylem
