#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "xylem/checkpoint/storage/system_calls.h"

namespace xylem::checkpoint {
namespace {

// Of one call; Linux takes at most 1024 pieces and 2 GiB.
constexpr std::size_t kMaxPieces = 512;

FileStatus convert(const struct stat& s) {
  FileStatus out;
  out.directory = S_ISDIR(s.st_mode);
  out.regular = S_ISREG(s.st_mode);
  out.symlink = S_ISLNK(s.st_mode);
  out.size = static_cast<std::uint64_t>(s.st_size);
  out.modified_ns = std::int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec;
  return out;
}

int result(int r) { return r < 0 ? -errno : r; }

// A file system without renameat2's flag, or one that cannot exclude replacement.
bool lacks_flag(int error) { return error == EINVAL || error == ENOSYS || error == ENOTSUP; }

class PosixCalls final : public SystemCalls {
 public:
  int open(const std::string& path, OpenMode mode) override {
    int flags = O_CLOEXEC;
    switch (mode) {
      case OpenMode::kRead: flags |= O_RDONLY; break;
      case OpenMode::kCreate: flags |= O_WRONLY | O_CREAT | O_TRUNC; break;
      case OpenMode::kCreateNew: flags |= O_WRONLY | O_CREAT | O_EXCL; break;
    }
    return result(::open(path.c_str(), flags, 0666));
  }
  int close(int file) override { return result(::close(file)); }

  std::int64_t read(int file, std::span<const MutablePiece> pieces, std::uint64_t offset) override {
    struct iovec v[kMaxPieces];
    const std::size_t n = std::min(pieces.size(), kMaxPieces);
    for (std::size_t i = 0; i < n; ++i) v[i] = {pieces[i].data, pieces[i].size};
    const ssize_t r = ::preadv(file, v, static_cast<int>(n), static_cast<off_t>(offset));
    return r < 0 ? -errno : r;
  }
  std::int64_t write(int file, std::span<const ConstPiece> pieces, std::uint64_t offset) override {
    struct iovec v[kMaxPieces];
    const std::size_t n = std::min(pieces.size(), kMaxPieces);
    for (std::size_t i = 0; i < n; ++i) v[i] = {const_cast<void*>(pieces[i].data), pieces[i].size};
    const ssize_t r = ::pwritev(file, v, static_cast<int>(n), static_cast<off_t>(offset));
    return r < 0 ? -errno : r;
  }
  int sync(int file) override { return result(::fdatasync(file)); }
  int sync_directory(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    const int r = result(::fsync(fd));
    ::close(fd);
    return r;
  }

  int status(int file, FileStatus& out) override {
    struct stat s;
    if (::fstat(file, &s) < 0) return -errno;
    out = convert(s);
    return 0;
  }
  int status(const std::string& path, bool follow_links, FileStatus& out) override {
    struct stat s;
    const int r = follow_links ? ::stat(path.c_str(), &s) : ::lstat(path.c_str(), &s);
    if (r < 0) return -errno;
    out = convert(s);
    return 0;
  }
  int make_directory(const std::string& path) override {
    return result(::mkdir(path.c_str(), 0777));
  }
  int remove_file(const std::string& path) override { return result(::unlink(path.c_str())); }
  int remove_directory(const std::string& path) override { return result(::rmdir(path.c_str())); }
  int rename(const std::string& from, const std::string& to, bool replace) override {
    if (replace) return result(::rename(from.c_str(), to.c_str()));
    constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
    const long r =
        ::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), kNoReplace);
    if (r >= 0) return 0;
    if (!lacks_flag(errno)) return -errno;
    struct stat s;
    if (::lstat(to.c_str(), &s) == 0) return -EEXIST;
    return result(::rename(from.c_str(), to.c_str()));
  }
  int link(const std::string& from, const std::string& to) override {
    return result(::link(from.c_str(), to.c_str()));
  }
  int list(const std::string& path, std::vector<DirectoryEntry>& out) override {
    out.clear();
    DIR* d = ::opendir(path.c_str());
    if (d == nullptr) return -errno;
    int error = 0;
    while (true) {
      errno = 0;
      const dirent* e = ::readdir(d);
      if (e == nullptr) {
        error = errno;
        break;
      }
      DirectoryEntry entry{e->d_name, e->d_type == DT_DIR};
      if (entry.name == "." || entry.name == "..") continue;
      struct stat s;
      if (e->d_type == DT_UNKNOWN || e->d_type == DT_LNK)
        entry.is_directory = ::fstatat(::dirfd(d), e->d_name, &s, 0) == 0 && S_ISDIR(s.st_mode);
      out.push_back(std::move(entry));
    }
    ::closedir(d);
    return -error;
  }
};

}  // namespace

std::shared_ptr<SystemCalls> posix_calls() {
  static const auto calls = std::make_shared<PosixCalls>();
  return calls;
}

}  // namespace xylem::checkpoint
