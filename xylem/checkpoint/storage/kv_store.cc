#include "xylem/checkpoint/storage/kv_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem::checkpoint {
namespace {

class DirectoryStore final : public KvStore {
 public:
  DirectoryStore(FileSystem fs, std::string directory)
      : fs_(std::move(fs)), directory_(std::move(directory)) {}

  const std::string& name() const override { return directory_; }

  std::optional<ByteSource> find(std::string_view key) const override {
    if (!is_safe_relative_path(key)) return std::nullopt;
    const std::string path = join_path(directory_, key);
    if (!fs_.is_file(path)) return std::nullopt;
    auto file = fs_.open(path);
    const std::uint64_t size = file->size();
    return ByteSource(std::move(file), 0, size);
  }

  void for_each(std::string_view prefix,
                const std::function<void(std::string_view)>& f) const override {
    std::vector<std::string> keys;
    collect("", prefix, keys);
    std::sort(keys.begin(), keys.end());
    for (const std::string& k : keys) f(k);
  }

 private:
  void collect(const std::string& below, std::string_view prefix,
               std::vector<std::string>& keys) const {
    for (const DirectoryEntry& e : fs_.list(join_path(directory_, below))) {
      const std::string key = below.empty() ? e.name : below + "/" + e.name;
      const std::size_t n = std::min(key.size(), prefix.size());
      if (key.compare(0, n, prefix, 0, n) != 0) continue;
      if (e.is_directory)
        collect(key, prefix, keys);
      else if (key.size() >= prefix.size() && !key.ends_with(".__lock"))
        keys.push_back(key);
    }
  }

  FileSystem fs_;
  std::string directory_;
};

}  // namespace

bool is_safe_relative_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

ByteSource::ByteSource(std::shared_ptr<const InputFile> file, std::uint64_t offset,
                       std::uint64_t size)
    : file_(std::move(file)), offset_(offset), size_(size), name_(file_->path()) {
  if (offset > file_->size() || size > file_->size() - offset)
    throw_user_error({fmt::format("read {}", name_),
                      fmt::format("{} bytes at offset {}", size, offset),
                      fmt::format("the file has {} bytes", file_->size()),
                      "The file is cut short: restore it from a copy, or use another checkpoint"});
}

std::string ByteSource::describe() const {
  if (bytes_) return name_;
  return fmt::format("{} bytes {} to {}", name_, offset_, offset_ + size_);
}

void ByteSource::read(std::uint64_t offset, std::span<std::byte> out) const {
  read(offset, {MutablePiece{out.data(), out.size()}});
}

void ByteSource::read(std::uint64_t offset, std::vector<MutablePiece> pieces) const {
  std::uint64_t wanted = 0;
  for (const MutablePiece& p : pieces) wanted += p.size;
  if (offset > size_ || wanted > size_ - offset)
    throw_user_error({fmt::format("read {}", describe()),
                      fmt::format("{} bytes at offset {}", wanted, offset),
                      fmt::format("the value has {} bytes", size_),
                      "The data is damaged: restore it from a copy, or use another checkpoint"});
  if (file_) return file_->read(offset_ + offset, std::move(pieces));
  for (const MutablePiece& p : pieces) {
    if (p.size > 0) std::memcpy(p.data, bytes_->data() + offset_ + offset, p.size);
    offset += p.size;
  }
}

std::string ByteSource::read_all() const {
  std::string out(static_cast<std::size_t>(size_), '\0');
  read(0, std::as_writable_bytes(std::span<char>(out)));
  return out;
}

ByteSource ByteSource::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset)
    throw_user_error({fmt::format("read {}", describe()),
                      fmt::format("{} bytes at offset {}", size, offset),
                      fmt::format("the value has {} bytes", size_),
                      "The data is damaged: restore it from a copy, or use another checkpoint"});
  ByteSource out = *this;
  out.offset_ += offset;
  out.size_ = size;
  return out;
}

std::unique_ptr<KvStore> open_directory_store(const FileSystem& fs, std::string directory) {
  return std::make_unique<DirectoryStore>(fs, std::move(directory));
}

}  // namespace xylem::checkpoint
