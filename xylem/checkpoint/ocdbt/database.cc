#include "xylem/checkpoint/ocdbt/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem::checkpoint::ocdbt {
namespace {

constexpr std::string_view kManifestName = "manifest.ocdbt";
// Decoded bytes of nodes kept, and of one node whatever the database's own configuration says.
constexpr std::uint64_t kCacheBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxNode = std::uint64_t{512} << 20;
constexpr std::size_t kMaxOpenFiles = 128;

[[noreturn]] void damaged(std::string_view name, std::string_view expected,
                          std::string_view given) {
  throw_user_error({fmt::format("read {}", name), expected, given,
                    "The database is damaged: restore it from a copy, or use another checkpoint"});
}

// A subtree: the node, the directory it is relative to, and the prefix that its keys lack.
struct Subtree {
  std::string base, path;
  std::uint64_t offset = 0, length = 0;
  int height = 0;
  std::string prefix;
};

std::string text_of(const Subtree& t) {
  return fmt::format("{}{} at {}", t.base, t.path, t.offset);
}

}  // namespace

struct Database::State {
  FileSystem fs;
  std::string directory;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const InputFile>> files;
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  std::map<Key, std::shared_ptr<const Node>> nodes;
  std::uint64_t node_bytes = 0;

  std::shared_ptr<const InputFile> open(const std::string& path) {
    {
      const std::lock_guard lock(mutex);
      if (const auto it = files.find(path); it != files.end()) return it->second;
    }
    auto file = fs.open(join_path(directory, path));
    const std::lock_guard lock(mutex);
    if (files.size() >= kMaxOpenFiles) files.clear();
    return files[path] = std::move(file);
  }

  std::string read(const std::string& path, std::uint64_t offset, std::uint64_t length,
                   std::uint64_t limit) {
    if (length > limit)
      damaged(join_path(directory, path), fmt::format("a node of at most {} bytes", limit),
              fmt::format("{}", length));
    return ByteSource(open(path), offset, length).read_all();
  }

  std::shared_ptr<const Node> node(const Subtree& t) {
    const std::string path = t.base + t.path;
    const Key key{path, t.offset, t.length};
    {
      const std::lock_guard lock(mutex);
      if (const auto it = nodes.find(key); it != nodes.end()) return it->second;
    }
    const std::string name = fmt::format("{} at {}", join_path(directory, path), t.offset);
    const std::string bytes = read(path, t.offset, t.length, kMaxNode);
    auto out = std::make_shared<Node>();
    decode_node(as_byte_span(bytes), kMaxNode, name, *out);
    if (out->height != t.height)
      damaged(name, fmt::format("a node of height {}", t.height), fmt::format("{}", out->height));
    const std::lock_guard lock(mutex);
    const std::uint64_t size = out->keys.size() + out->body.size();
    if (node_bytes + size > kCacheBytes) {
      nodes.clear();
      node_bytes = 0;
    }
    node_bytes += size;
    return nodes[key] = std::move(out);
  }

  Subtree child(const Subtree& t, const Node& n, const InnerEntry& e) const {
    const DataFile& f = n.files[e.file];
    Subtree out{t.base + f.base, f.path, e.offset, e.length, t.height - 1, t.prefix};
    out.prefix += e.key.substr(0, static_cast<std::size_t>(e.common_prefix));
    if (out.base.size() > kMaxPath || out.prefix.size() > kMaxPath)
      damaged(join_path(directory, text_of(t)), "keys and paths of at most 65535 bytes", "longer");
    return out;
  }

  Value value(const Subtree& t, const Node& n, const LeafEntry& e) const {
    if (e.inlined) return {true, e.value, {}, 0, e.value.size()};
    const DataFile& f = n.files[e.file];
    return {false, {}, t.base + f.base + f.path, e.offset, e.length};
  }
};

namespace {

std::optional<Subtree> root_of(const Manifest& m) {
  const Version& v = m.versions.back();
  if (v.root.missing()) return std::nullopt;
  return Subtree{v.root.file.base, v.root.file.path, v.root.offset,
                 v.root.length,    v.root_height,    ""};
}

// A numbered database keeps its manifests under names with 16 hexadecimal digits; the last counts.
std::string newest_numbered(const FileSystem& fs, const std::string& directory) {
  std::string best;
  for (const DirectoryEntry& e : fs.list(directory)) {
    if (e.is_directory || e.name.size() != 25 || !e.name.starts_with("manifest.")) continue;
    const std::string_view digits = std::string_view(e.name).substr(9);
    if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) continue;
    best = std::max(best, e.name);
  }
  if (best.empty())
    damaged(join_path(directory, kManifestName), "a manifest.<generation> beside it", "none");
  return best;
}

}  // namespace

Database::Database(const FileSystem& fs, std::string directory)
    : directory_(std::move(directory)), state_(std::make_shared<State>()) {
  state_->fs = fs;
  state_->directory = directory_;
  constexpr std::uint64_t kLimit = std::uint64_t{64} << 20;
  std::string path = join_path(directory_, kManifestName);
  std::string bytes = fs.read_file(path, kLimit);
  manifest_ = decode_manifest(as_byte_span(bytes), path);
  if (manifest_.config.numbered) {
    path = join_path(directory_, newest_numbered(fs, directory_));
    bytes = fs.read_file(path, kLimit);
    manifest_ = decode_manifest(as_byte_span(bytes), path);
    if (manifest_.versions.empty()) damaged(path, "at least one version", "none");
  }
}

Database::Database(std::shared_ptr<State> state, std::string directory, Manifest manifest)
    : directory_(std::move(directory)), manifest_(std::move(manifest)), state_(std::move(state)) {}

Database::~Database() = default;

std::unique_ptr<Database> Database::with_manifest(const FileSystem& fs, std::string directory,
                                                  Manifest manifest) {
  auto state = std::make_shared<State>();
  state->fs = fs;
  state->directory = directory;
  return std::unique_ptr<Database>(
      new Database(std::move(state), std::move(directory), std::move(manifest)));
}

bool Database::exists(const FileSystem& fs, const std::string& directory) {
  return fs.is_file(join_path(directory, kManifestName));
}

// The leaf entry of a key: calls f with its value.
void Database::lookup(std::string_view key, const std::function<void(const Value&)>& f) const {
  std::optional<Subtree> at = root_of(manifest_);
  while (at) {
    const std::shared_ptr<const Node> n = state_->node(*at);
    if (!key.starts_with(at->prefix)) return;
    const std::string_view rest = key.substr(at->prefix.size());
    if (n->height == 0) {
      const auto it =
          std::lower_bound(n->leaves.begin(), n->leaves.end(), rest,
                           [](const LeafEntry& e, std::string_view k) { return e.key < k; });
      if (it != n->leaves.end() && it->key == rest) f(state_->value(*at, *n, *it));
      return;
    }
    auto it = std::upper_bound(n->inner.begin(), n->inner.end(), rest,
                               [](std::string_view k, const InnerEntry& e) { return k < e.key; });
    if (it == n->inner.begin()) return;
    at = state_->child(*at, *n, *--it);
  }
}

std::optional<ByteSource> Database::find(std::string_view key) const {
  std::optional<ByteSource> out;
  lookup(key, [&](const Value& v) {
    if (v.inlined)
      out.emplace(std::string(v.bytes), std::string(key));
    else
      out.emplace(state_->open(v.file), v.offset, v.length);
  });
  return out;
}

std::optional<Value> Database::find_range(std::string_view key) const {
  std::optional<Value> out;
  lookup(key, [&](const Value& v) {
    if (!v.inlined) out = v;
  });
  return out;
}

void Database::for_each_range(
    const std::function<void(const std::string&, std::uint64_t, std::uint64_t)>& f) const {
  const auto root = root_of(manifest_);
  if (!root) return;
  std::vector<Subtree> stack{*root};
  std::set<std::pair<std::string, std::uint64_t>> seen;
  while (!stack.empty()) {
    const Subtree t = std::move(stack.back());
    stack.pop_back();
    if (!seen.insert({t.base + t.path, t.offset}).second) continue;
    f(t.base + t.path, t.offset, t.length);
    const std::shared_ptr<const Node> n = state_->node(t);
    for (const LeafEntry& e : n->leaves) {
      if (e.inlined) continue;
      const Value v = state_->value(t, *n, e);
      f(v.file, v.offset, v.length);
    }
    for (const InnerEntry& e : n->inner) stack.push_back(state_->child(t, *n, e));
  }
}

void Database::for_each_value(std::string_view prefix,
                              const std::function<void(std::string_view, const Value&)>& f) const {
  const auto root = root_of(manifest_);
  if (!root) return;
  // Depth first with a stack of its own. No node is visited twice, so the walk is bounded by the
  // data whatever a hostile tree refers to.
  std::vector<Subtree> stack{*root};
  std::set<std::pair<std::string, std::uint64_t>> seen;
  std::string key;
  while (!stack.empty()) {
    const Subtree t = std::move(stack.back());
    stack.pop_back();
    const std::size_t common = std::min(prefix.size(), t.prefix.size());
    if (t.prefix.compare(0, common, prefix, 0, common) != 0) continue;
    if (!seen.insert({t.base + t.path, t.offset}).second)
      damaged(join_path(directory_, text_of(t)), "nodes with one parent each",
              "a second reference");
    const std::shared_ptr<const Node> n = state_->node(t);
    if (n->height == 0) {
      for (const LeafEntry& e : n->leaves) {
        key = t.prefix;
        key += e.key;
        if (key.starts_with(prefix)) f(key, state_->value(t, *n, e));
      }
      continue;
    }
    for (auto e = n->inner.rbegin(); e != n->inner.rend(); ++e)
      stack.push_back(state_->child(t, *n, *e));
  }
}

void Database::for_each(std::string_view prefix,
                        const std::function<void(std::string_view)>& f) const {
  for_each_value(prefix, [&](std::string_view key, const Value&) { f(key); });
}

namespace {

// Calls f for each version, oldest first; `read` gives the bytes of a reference.
void walk_versions(const Manifest& m,
                   const std::function<std::string(const std::string&, const Reference&)>& read,
                   const std::function<void(const std::string& base, const Version&)>& f) {
  struct Item {
    std::string base;
    VersionNodeRef ref;
  };
  std::uint64_t visited = 0;
  for (const VersionNodeRef& top : m.nodes) {
    std::vector<Item> stack{{"", top}};
    // The manifest gives the height of a node's reference, one above the node's own.
    stack.back().ref.height = static_cast<std::uint8_t>(top.height - 1);
    while (!stack.empty()) {
      const Item it = std::move(stack.back());
      stack.pop_back();
      if (++visited > (1u << 20)) damaged("version tree", "at most 2^20 nodes", "more");
      const std::string bytes = read(it.base, it.ref.node);
      const std::string base = it.base + it.ref.node.file.base;
      const std::string name = fmt::format("version node {}{}", base, it.ref.node.file.path);
      const VersionNode node =
          decode_version_node(as_byte_span(bytes), m.config.version_tree_arity_log2, name);
      if (node.height != it.ref.height)
        damaged(name, fmt::format("height {}", it.ref.height), fmt::format("{}", node.height));
      for (auto c = node.children.rbegin(); c != node.children.rend(); ++c)
        stack.push_back({base, *c});
      for (const Version& v : node.versions) f(base, v);
    }
  }
  for (const Version& v : m.versions) f("", v);
}

}  // namespace

std::vector<std::uint64_t> Database::generations() const {
  std::vector<std::uint64_t> out;
  walk_versions(
      manifest_,
      [&](const std::string& base, const Reference& r) {
        return state_->read(base + r.file.base + r.file.path, r.offset, r.length, kMaxNode);
      },
      [&](const std::string&, const Version& v) { out.push_back(v.generation); });
  return out;
}

std::unique_ptr<Database> Database::at_generation(std::uint64_t generation) const {
  std::optional<Version> found;
  walk_versions(
      manifest_,
      [&](const std::string& base, const Reference& r) {
        return state_->read(base + r.file.base + r.file.path, r.offset, r.length, kMaxNode);
      },
      [&](const std::string& base, const Version& v) {
        if (v.generation != generation) return;
        found = v;
        found->root.file.base = base + v.root.file.base;
      });
  if (!found)
    throw_user_error({fmt::format("open {}", directory_),
                      fmt::format("a generation up to {}", manifest_.versions.back().generation),
                      fmt::format("{}", generation), "Ask for one that generations() lists"});
  Manifest m;
  m.config = manifest_.config;
  m.versions = {*found};
  return std::unique_ptr<Database>(new Database(state_, directory_, std::move(m)));
}

void Database::check(const std::function<void(std::string_view)>& f) const {
  const auto root = root_of(manifest_);
  if (!root) return;
  std::map<std::string, std::uint64_t> sizes;
  std::set<std::pair<std::string, std::uint64_t>> seen;
  const auto file_size = [&](const std::string& path) {
    const auto it = sizes.find(path);
    if (it != sizes.end()) return it->second;
    std::uint64_t size = 0;
    try {
      size = state_->open(path)->size();
    } catch (const Error& e) {
      f(fmt::format("{}: {}", path, e.message()));
    }
    return sizes[path] = size;
  };
  std::string last;
  bool first = true;
  const std::function<Statistics(const Subtree&)> walk = [&](const Subtree& t) {
    Statistics s;
    if (!seen.insert({t.base + t.path, t.offset}).second) {
      f(fmt::format("{}: the node has a second parent", text_of(t)));
      return s;
    }
    std::shared_ptr<const Node> n;
    try {
      n = state_->node(t);
    } catch (const Error& e) {
      f(fmt::format("{}: {}", text_of(t), e.message()));
      return s;
    }
    s.num_tree_bytes = t.length;
    for (const LeafEntry& e : n->leaves) {
      ++s.num_keys;
      const std::string key = t.prefix + std::string(e.key);
      if (!first && key <= last) f(fmt::format("{}: key {} is out of order", text_of(t), key));
      first = false;
      last = key;
      if (e.inlined) continue;
      const Value v = state_->value(t, *n, e);
      s.num_indirect_value_bytes += v.length;
      const std::uint64_t size = file_size(v.file);
      if (v.offset > size || v.length > size - v.offset)
        f(fmt::format("{}: the value of {} at {} of {} bytes lies beyond the end", v.file, key,
                      v.offset, v.length));
    }
    for (const InnerEntry& e : n->inner) {
      const Statistics below = walk(state_->child(t, *n, e));
      if (below != e.statistics)
        f(fmt::format("{}: the statistics of the subtree {}{} are wrong", text_of(t), t.prefix,
                      e.key));
      s.add(below);
    }
    return s;
  };
  const Statistics s = walk(*root);
  if (s != manifest_.versions.back().statistics)
    f(fmt::format("{}: its statistics ({} keys) differ from the tree's ({} keys)", kManifestName,
                  manifest_.versions.back().statistics.num_keys, s.num_keys));
}

}  // namespace xylem::checkpoint::ocdbt
