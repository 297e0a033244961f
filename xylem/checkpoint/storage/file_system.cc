#include "xylem/checkpoint/storage/file_system.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "xylem/base/error.h"

namespace xylem::checkpoint {
namespace {

// Calls until it is not interrupted.
template <class F>
auto retry(F&& f) {
  auto r = f();
  while (r == -EINTR) r = f();
  return r;
}

void check(std::int64_t r, std::string_view operation, const std::string& path) {
  if (r < 0) throw_file_error(operation, path, static_cast<int>(-r));
}

// Drops the first n bytes.
template <class Piece>
void advance(std::vector<Piece>& pieces, std::size_t& first, std::size_t n) {
  while (first < pieces.size() && n >= pieces[first].size) n -= pieces[first++].size;
  if (n == 0) return;
  Piece& p = pieces[first];
  using Byte = std::conditional_t<std::is_same_v<Piece, ConstPiece>, const std::byte, std::byte>;
  p.data = static_cast<Byte*>(p.data) + n;
  p.size -= n;
}

// Some file systems cannot flush directories and say so.
bool cannot_sync(int error) {
  return error == EINVAL || error == EROFS || error == ENOTSUP || error == ENOSYS;
}

}  // namespace

InputFile::InputFile(std::shared_ptr<SystemCalls> calls, std::string path)
    : calls_(std::move(calls)), path_(std::move(path)) {
  file_ = retry([&] { return calls_->open(path_, OpenMode::kRead); });
  check(file_, "open", path_);
  FileStatus s;
  int r = calls_->status(file_, s);
  if (r == 0 && s.directory) r = -EISDIR;
  if (r < 0) {
    calls_->close(file_);
    check(r, "open", path_);
  }
  size_ = s.size;
}

InputFile::~InputFile() { calls_->close(file_); }

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  read(offset, {MutablePiece{out.data(), out.size()}});
}

void InputFile::read(std::uint64_t offset, std::vector<MutablePiece> pieces) const {
  std::uint64_t wanted = 0;
  for (const MutablePiece& p : pieces) wanted += p.size;
  const std::uint64_t start = offset, end = offset + wanted;
  if (end < offset || end > size_)
    throw EnvironmentError(ErrorParts{
        fmt::format("read {}", path_),
        fmt::format("{} bytes at offset {} must exist", wanted, start),
        fmt::format("the file has {} bytes", size_), "The file is cut short: get it again"});
  std::size_t first = 0;
  advance(pieces, first, 0);
  while (offset < end) {
    const std::int64_t n = calls_->read(file_, std::span(pieces).subspan(first), offset);
    if (n == -EINTR) continue;
    check(n, "read", path_);
    if (n == 0)
      throw EnvironmentError(ErrorParts{
          fmt::format("read {}", path_),
          fmt::format("{} bytes at offset {} must exist", wanted, start),
          fmt::format("the file ends at {}", offset), "The file is cut short: get it again"});
    offset += static_cast<std::uint64_t>(n);
    advance(pieces, first, static_cast<std::size_t>(n));
  }
}

OutputFile::OutputFile(std::shared_ptr<SystemCalls> calls, std::string path, OpenMode mode)
    : calls_(std::move(calls)), path_(std::move(path)) {
  file_ = retry([&] { return calls_->open(path_, mode); });
  check(file_, "create", path_);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) calls_->close(file_);
}

void OutputFile::write(std::string_view data) { write({ConstPiece{data.data(), data.size()}}); }

void OutputFile::write(std::vector<ConstPiece> pieces) {
  XYLEM_CHECK(file_ >= 0, "write after close");
  std::uint64_t end = size_;
  for (const ConstPiece& p : pieces) end += p.size;
  std::size_t first = 0;
  advance(pieces, first, 0);
  while (size_ < end) {
    const std::int64_t n =
        calls_->write(file_, std::span(std::as_const(pieces)).subspan(first), size_);
    if (n == -EINTR) continue;
    check(n, "write", path_);
    // A device that takes nothing and says nothing has no more room.
    if (n == 0) throw_file_error("write", path_, ENOSPC);
    size_ += static_cast<std::uint64_t>(n);
    advance(pieces, first, static_cast<std::size_t>(n));
  }
}

void OutputFile::close() {
  XYLEM_CHECK(file_ >= 0, "close twice");
  const int r = retry([&] { return calls_->sync(file_); });
  if (r < 0 && !cannot_sync(-r)) check(r, "flush", path_);
  // Network file systems report a full disk here. After EINTR the descriptor is gone on Linux.
  const int c = calls_->close(std::exchange(file_, -1));
  if (c < 0 && c != -EINTR) check(c, "close", path_);
}

std::shared_ptr<const InputFile> FileSystem::open(const std::string& path) const {
  return std::make_shared<const InputFile>(calls_, path);
}

std::unique_ptr<OutputFile> FileSystem::create(const std::string& path, OpenMode mode) const {
  return std::make_unique<OutputFile>(calls_, path, mode);
}

std::string FileSystem::read_file(const std::string& path, std::uint64_t limit) const {
  const InputFile file(calls_, path);
  if (file.size() > limit)
    throw_user_error({fmt::format("read {}", path), fmt::format("at most {} bytes", limit),
                      fmt::format("{} bytes", file.size()),
                      "The file is not what its name says: name another, or remove it"});
  std::string out(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span<char>(out)));
  return out;
}

void FileSystem::write_file(const std::string& path, std::string_view data) const {
  OutputFile file(calls_, path, OpenMode::kCreate);
  file.write(data);
  file.close();
}

void FileSystem::write_file_atomic(const std::string& path, std::string_view data) const {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
  try {
    write_file(temporary, data);
    rename(temporary, path, /*replace=*/true);
  } catch (...) {
    calls_->remove_file(temporary);
    throw;
  }
  sync_directory(parent_path(path));
}

bool FileSystem::exists(const std::string& path) const {
  FileStatus s;
  return calls_->status(path, true, s) == 0;
}
bool FileSystem::is_directory(const std::string& path) const {
  FileStatus s;
  return calls_->status(path, true, s) == 0 && s.directory;
}
bool FileSystem::is_file(const std::string& path) const {
  FileStatus s;
  return calls_->status(path, true, s) == 0 && s.regular;
}
FileStatus FileSystem::status(const std::string& path) const {
  FileStatus s;
  check(calls_->status(path, true, s), "inspect", path);
  return s;
}

std::vector<DirectoryEntry> FileSystem::list(const std::string& path) const {
  std::vector<DirectoryEntry> out;
  check(retry([&] { return calls_->list(path, out); }), "list", path);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

void FileSystem::make_directories(const std::string& path, bool durable) const {
  if (path.empty() || is_directory(path)) return;
  const std::string parent = parent_path(path);
  if (parent != path && parent != ".") make_directories(parent, durable);
  const int r = retry([&] { return calls_->make_directory(path); });
  // Another process may have been quicker; otherwise a file stands where a directory is wanted.
  if (r == -EEXIST && !is_directory(path)) check(-ENOTDIR, "make directory", path);
  if (r != -EEXIST) check(r, "make directory", path);
  if (durable) sync_directory(parent);
}

void FileSystem::remove_tree(const std::string& path) const {
  FileStatus s;
  const int r = calls_->status(path, /*follow_links=*/false, s);
  if (r == -ENOENT) return;
  check(r, "inspect", path);
  int removed;
  if (s.directory) {
    for (const DirectoryEntry& e : list(path)) remove_tree(join_path(path, e.name));
    removed = retry([&] { return calls_->remove_directory(path); });
  } else {
    removed = retry([&] { return calls_->remove_file(path); });
  }
  if (removed != -ENOENT) check(removed, "remove", path);
}

void FileSystem::rename(const std::string& from, const std::string& to, bool replace) const {
  check(retry([&] { return calls_->rename(from, to, replace); }), "rename to", to);
}

void FileSystem::copy_tree(const FileSystem& source, const std::string& from, const std::string& to,
                           bool link_files,
                           const std::function<void(std::uint64_t)>& progress) const {
  if (source.is_directory(from)) {
    make_directories(to);
    for (const DirectoryEntry& e : source.list(from))
      copy_tree(source, join_path(from, e.name), join_path(to, e.name), link_files, progress);
    return;
  }
  if (link_files && source.calls_ == calls_ && link(from, to)) return;
  const InputFile in(source.calls_, from);
  OutputFile out(calls_, to, OpenMode::kCreate);
  std::string piece;
  for (std::uint64_t at = 0; at < in.size();) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(in.size() - at, 8 << 20)));
    in.read(at, std::as_writable_bytes(std::span<char>(piece)));
    out.write(piece);
    at += piece.size();
    if (progress) progress(piece.size());
  }
  out.close();
}

std::uint64_t FileSystem::bytes_below(const std::string& path) const {
  if (!is_directory(path)) return status(path).size;
  std::uint64_t n = 0;
  for (const DirectoryEntry& e : list(path)) n += bytes_below(join_path(path, e.name));
  return n;
}

bool FileSystem::link(const std::string& from, const std::string& to) const {
  return retry([&] { return calls_->link(from, to); }) >= 0;
}

void FileSystem::sync_directory(const std::string& path) const {
  const int r = retry([&] { return calls_->sync_directory(path); });
  if (r < 0 && !cannot_sync(-r)) check(r, "flush", path);
}

void FileSystem::sync_directories(const std::string& path) const {
  for (const DirectoryEntry& e : list(path))
    if (e.is_directory) sync_directories(join_path(path, e.name));
  sync_directory(path);
}

void FileSystem::commit_directory(const std::string& temporary,
                                  const std::string& final_path) const {
  sync_directories(temporary);
  rename(temporary, final_path);
  sync_directory(parent_path(final_path));
}

}  // namespace xylem::checkpoint
