#include "xylem/checkpoint/testing/faulty_calls.h"

#include <algorithm>
#include <cerrno>
#include <functional>

namespace xylem::checkpoint {

int FaultyCalls::gate() {
  const std::int64_t n = calls_++;
  if (stop_at_ >= 0 && n >= stop_at_) return -EIO;
  if (n == fail_at_) return -error_;
  return 0;
}

int FaultyCalls::open(const std::string& path, OpenMode mode) {
  if (const int r = gate(); r < 0) return r;
  if (mode != OpenMode::kRead) ++writes_;
  return MemoryCalls::open(path, mode);
}

std::int64_t FaultyCalls::read(int file, std::span<const MutablePiece> pieces,
                               std::uint64_t offset) {
  if (const int r = gate(); r < 0) return r;
  if (!short_ || pieces.empty()) return MemoryCalls::read(file, pieces, offset);
  const MutablePiece part{pieces[0].data, std::min<std::size_t>(pieces[0].size, 7)};
  return MemoryCalls::read(file, {&part, 1}, offset);
}

std::int64_t FaultyCalls::write(int file, std::span<const ConstPiece> pieces,
                                std::uint64_t offset) {
  if (const int r = gate(); r < 0) return r;
  ++writes_;
  if (!short_ || pieces.empty()) return MemoryCalls::write(file, pieces, offset);
  const ConstPiece part{pieces[0].data, std::min<std::size_t>(pieces[0].size, 7)};
  return MemoryCalls::write(file, {&part, 1}, offset);
}

int FaultyCalls::sync(int file) {
  if (const int r = gate(); r < 0) return r;
  const std::lock_guard lock(mutex_);
  const auto node = node_of(file);
  if (!node) return -EBADF;
  contents_[node.get()] = node->data;
  return 0;
}

int FaultyCalls::sync_directory(const std::string& p) {
  if (const int r = gate(); r < 0) return r;
  const std::lock_guard lock(mutex_);
  const std::string path = normal(p);
  const auto it = nodes_.find(path);
  if (it == nodes_.end()) return -ENOENT;
  auto& names = names_[it->second.get()];
  names.clear();
  const std::string prefix = path == "/" ? "/" : path + "/";
  for (auto n = nodes_.upper_bound(prefix); n != nodes_.end() && n->first.starts_with(prefix);
       ++n) {
    const std::string name = n->first.substr(prefix.size());
    if (name.find('/') == std::string::npos) names[name] = n->second;
  }
  return 0;
}

int FaultyCalls::status(const std::string& path, bool follow_links, FileStatus& out) {
  if (stop_at_ >= 0 && calls_ >= stop_at_) return -EIO;
  return MemoryCalls::status(path, follow_links, out);
}

int FaultyCalls::make_directory(const std::string& path) {
  if (const int r = gate(); r < 0) return r;
  ++writes_;
  return MemoryCalls::make_directory(path);
}

int FaultyCalls::remove_file(const std::string& path) {
  if (const int r = gate(); r < 0) return r;
  ++writes_;
  return MemoryCalls::remove_file(path);
}

int FaultyCalls::remove_directory(const std::string& path) {
  if (const int r = gate(); r < 0) return r;
  ++writes_;
  return MemoryCalls::remove_directory(path);
}

int FaultyCalls::rename(const std::string& from, const std::string& to, bool replace) {
  if (const int r = gate(); r < 0) return r;
  if (rename_error_ != 0 && !replace) return -rename_error_;
  ++writes_;
  return MemoryCalls::rename(from, to, replace);
}

int FaultyCalls::link(const std::string& from, const std::string& to) {
  if (const int r = gate(); r < 0) return r;
  ++writes_;
  const int r = MemoryCalls::link(from, to);
  const std::lock_guard lock(mutex_);
  if (r == 0) linked_.insert(nodes_.at(normal(to)).get());
  return r;
}

int FaultyCalls::list(const std::string& path, std::vector<DirectoryEntry>& out) {
  if (const int r = gate(); r < 0) return r;
  return MemoryCalls::list(path, out);
}

std::shared_ptr<FaultyCalls> FaultyCalls::after_crash(std::mt19937& random) const {
  const std::lock_guard lock(mutex_);
  auto out = std::make_shared<FaultyCalls>();
  // The names now, directory by directory.
  std::map<const Node*, std::map<std::string, std::shared_ptr<Node>>> now;
  for (const auto& [path, node] : nodes_) {
    if (path == "/") continue;
    const std::size_t slash = path.rfind('/');
    const auto parent = nodes_.find(slash == 0 ? "/" : path.substr(0, slash));
    now[parent->second.get()][path.substr(slash + 1)] = node;
  }
  const auto root = nodes_.at("/");
  std::set<const Node*> placed;
  const std::function<void(const std::string&, const Node*)> build = [&](const std::string& path,
                                                                         const Node* directory) {
    std::map<std::string, std::shared_ptr<Node>> names;
    const auto durable = names_.find(directory);
    if (durable != names_.end()) names = durable->second;
    const auto& current = now[directory];
    // Changes since the last flush may have reached the disk, each by itself.
    for (const auto& [name, node] : current) {
      const auto it = names.find(name);
      if ((it == names.end() || it->second != node) && random() % 2 == 0) names[name] = node;
    }
    for (auto it = names.begin(); it != names.end();)
      it = !current.contains(it->first) && random() % 2 == 0 ? names.erase(it) : std::next(it);
    for (const auto& [name, node] : names) {
      // A renamed file stands under one of its names.
      if (!placed.insert(node.get()).second && !linked_.contains(node.get())) continue;
      const std::string at = (path == "/" ? "" : path) + "/" + name;
      auto copy = std::make_shared<Node>();
      copy->directory = node->directory;
      copy->modified_ns = node->modified_ns;
      out->nodes_[at] = copy;
      if (node->directory) {
        build(at, node.get());
        continue;
      }
      const auto synced = contents_.find(node.get());
      std::string data = synced == contents_.end() ? std::string() : synced->second;
      if (data != node->data) {
        const std::size_t page = random() % 2 == 0 ? 512 : 4096;
        const auto choice = random() % 4;
        if (choice == 1) data = node->data;
        if (choice >= 2) {
          if (random() % 2 == 0) data.resize(node->data.size());
          const std::size_t size = std::min(data.size(), node->data.size());
          for (std::size_t b = 0; b < size; b += page)
            if (random() % 2 == 0)
              std::copy_n(node->data.begin() + static_cast<std::ptrdiff_t>(b),
                          std::min(page, size - b), data.begin() + static_cast<std::ptrdiff_t>(b));
        }
      }
      copy->data = data;
    }
  };
  build("/", root.get());
  // What survives a crash is on disk.
  for (const auto& [path, node] : out->nodes_) {
    if (!node->directory) out->contents_[node.get()] = node->data;
    if (path == "/") continue;
    const std::size_t slash = path.rfind('/');
    out->names_[out->nodes_.at(slash == 0 ? "/" : path.substr(0, slash)).get()]
               [path.substr(slash + 1)] = node;
  }
  return out;
}

}  // namespace xylem::checkpoint
