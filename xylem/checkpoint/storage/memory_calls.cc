#include "xylem/checkpoint/storage/memory_calls.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace xylem::checkpoint {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool has_child(const MemoryCalls::Nodes& nodes, const std::string& path) {
  const std::string prefix = path == "/" ? "/" : path + "/";
  auto it = nodes.upper_bound(prefix);
  return it != nodes.end() && it->first.starts_with(prefix);
}

}  // namespace

MemoryCalls::MemoryCalls() {
  auto root = std::make_shared<Node>();
  root->directory = true;
  nodes_["/"] = std::move(root);
}

std::string MemoryCalls::normal(const std::string& path) {
  std::string out;
  for (const char c : path)
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

std::shared_ptr<MemoryCalls::Node> MemoryCalls::node_of(int file) const {
  const auto it = open_.find(file);
  return it == open_.end() ? nullptr : it->second;
}

int MemoryCalls::open(const std::string& p, OpenMode mode) {
  const std::lock_guard lock(mutex_);
  const std::string path = normal(p);
  auto it = nodes_.find(path);
  if (it != nodes_.end() && it->second->directory && mode != OpenMode::kRead) return -EISDIR;
  if (mode == OpenMode::kRead) {
    if (it == nodes_.end()) return -ENOENT;
  } else if (it == nodes_.end()) {
    const auto parent = nodes_.find(parent_path(path));
    if (parent == nodes_.end()) return -ENOENT;
    if (!parent->second->directory) return -ENOTDIR;
    it = nodes_.emplace(path, std::make_shared<Node>()).first;
    it->second->modified_ns = now_ns();
  } else if (mode == OpenMode::kCreateNew) {
    return -EEXIST;
  } else {
    it->second->data.clear();
  }
  open_[next_file_] = it->second;
  return next_file_++;
}

int MemoryCalls::close(int file) {
  const std::lock_guard lock(mutex_);
  return open_.erase(file) == 1 ? 0 : -EBADF;
}

std::int64_t MemoryCalls::read(int file, std::span<const MutablePiece> pieces,
                               std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto node = node_of(file);
  if (!node) return -EBADF;
  if (node->directory) return -EISDIR;
  std::int64_t done = 0;
  for (const MutablePiece& p : pieces) {
    if (offset >= node->data.size()) break;
    const std::size_t n = std::min<std::size_t>(p.size, node->data.size() - offset);
    std::memcpy(p.data, node->data.data() + offset, n);
    done += static_cast<std::int64_t>(n);
    offset += n;
    if (n < p.size) break;
  }
  return done;
}

std::int64_t MemoryCalls::write(int file, std::span<const ConstPiece> pieces,
                                std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto node = node_of(file);
  if (!node) return -EBADF;
  std::int64_t done = 0;
  for (const ConstPiece& p : pieces) {
    if (node->data.size() < offset + p.size) node->data.resize(offset + p.size);
    if (p.size > 0) std::memcpy(node->data.data() + offset, p.data, p.size);
    offset += p.size;
    done += static_cast<std::int64_t>(p.size);
  }
  node->modified_ns = now_ns();
  return done;
}

int MemoryCalls::sync(int file) {
  const std::lock_guard lock(mutex_);
  return node_of(file) ? 0 : -EBADF;
}

int MemoryCalls::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto it = nodes_.find(normal(path));
  if (it == nodes_.end()) return -ENOENT;
  return it->second->directory ? 0 : -ENOTDIR;
}

int MemoryCalls::status(int file, FileStatus& out) {
  const std::lock_guard lock(mutex_);
  const auto node = node_of(file);
  if (!node) return -EBADF;
  out = {node->directory, !node->directory, false, node->data.size(), node->modified_ns};
  return 0;
}

int MemoryCalls::status(const std::string& path, bool, FileStatus& out) {
  const std::lock_guard lock(mutex_);
  const auto it = nodes_.find(normal(path));
  if (it == nodes_.end()) return -ENOENT;
  const Node& n = *it->second;
  out = {n.directory, !n.directory, false, n.data.size(), n.modified_ns};
  return 0;
}

int MemoryCalls::make_directory(const std::string& p) {
  const std::lock_guard lock(mutex_);
  const std::string path = normal(p);
  if (nodes_.contains(path)) return -EEXIST;
  const auto parent = nodes_.find(parent_path(path));
  if (parent == nodes_.end()) return -ENOENT;
  if (!parent->second->directory) return -ENOTDIR;
  auto node = std::make_shared<Node>();
  node->directory = true;
  node->modified_ns = now_ns();
  nodes_[path] = std::move(node);
  return 0;
}

int MemoryCalls::remove_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto it = nodes_.find(normal(path));
  if (it == nodes_.end()) return -ENOENT;
  if (it->second->directory) return -EISDIR;
  nodes_.erase(it);
  return 0;
}

int MemoryCalls::remove_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto it = nodes_.find(normal(path));
  if (it == nodes_.end()) return -ENOENT;
  if (!it->second->directory) return -ENOTDIR;
  if (has_child(nodes_, it->first)) return -ENOTEMPTY;
  nodes_.erase(it);
  return 0;
}

int MemoryCalls::rename(const std::string& f, const std::string& t, bool replace) {
  const std::lock_guard lock(mutex_);
  const std::string from = normal(f), to = normal(t);
  const auto source = nodes_.find(from);
  if (source == nodes_.end()) return -ENOENT;
  if (!nodes_.contains(parent_path(to))) return -ENOENT;
  if (from == to) return 0;
  if (to.starts_with(from + "/")) return -EINVAL;
  const auto target = nodes_.find(to);
  if (target != nodes_.end()) {
    if (!replace) return -EEXIST;
    if (target->second->directory != source->second->directory)
      return target->second->directory ? -EISDIR : -ENOTDIR;
    if (has_child(nodes_, to)) return -ENOTEMPTY;
  }
  Nodes moved;
  for (auto it = source; it != nodes_.end();) {
    if (it->first == from || it->first.starts_with(from + "/")) {
      moved[to + it->first.substr(from.size())] = it->second;
      it = nodes_.erase(it);
    } else if (it->first.compare(0, from.size(), from) > 0) {
      break;
    } else {
      ++it;
    }
  }
  for (auto& [path, node] : moved) nodes_[path] = node;
  return 0;
}

int MemoryCalls::link(const std::string& f, const std::string& t) {
  const std::lock_guard lock(mutex_);
  const std::string from = normal(f), to = normal(t);
  const auto source = nodes_.find(from);
  if (source == nodes_.end()) return -ENOENT;
  if (source->second->directory) return -EPERM;
  if (nodes_.contains(to)) return -EEXIST;
  const auto parent = nodes_.find(parent_path(to));
  if (parent == nodes_.end()) return -ENOENT;
  if (!parent->second->directory) return -ENOTDIR;
  nodes_[to] = source->second;
  return 0;
}

int MemoryCalls::list(const std::string& p, std::vector<DirectoryEntry>& out) {
  const std::lock_guard lock(mutex_);
  out.clear();
  const std::string path = normal(p);
  const auto it = nodes_.find(path);
  if (it == nodes_.end()) return -ENOENT;
  if (!it->second->directory) return -ENOTDIR;
  const std::string prefix = path == "/" ? "/" : path + "/";
  for (auto n = nodes_.upper_bound(prefix); n != nodes_.end() && n->first.starts_with(prefix);
       ++n) {
    const std::string name = n->first.substr(prefix.size());
    if (name.find('/') == std::string::npos) out.push_back({name, n->second->directory});
  }
  return 0;
}

std::shared_ptr<SystemCalls> memory_calls() { return std::make_shared<MemoryCalls>(); }

}  // namespace xylem::checkpoint
