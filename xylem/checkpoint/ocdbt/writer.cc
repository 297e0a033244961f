#include "xylem/checkpoint/ocdbt/writer.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/ocdbt/database.h"

namespace xylem::checkpoint::ocdbt {
namespace {

std::string random_bytes() {
  std::string out(16, '\0');
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t n = ::getrandom(out.data() + have, out.size() - have, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error("read random bytes from", "the system", errno);
    have += static_cast<std::size_t>(n);
  }
  return out;
}

// A finished node, as an entry of the level above.
struct Child {
  std::string first_key, last_key;  // whole keys
  Reference node;
  std::size_t common = 0;  // bytes that the child's keys lack
  Statistics statistics;
};

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

class TreeWriter {
 public:
  TreeWriter(const FileSystem& fs, const std::string& directory, const Config& config)
      : config_(config), file_(fs, directory) {}

  // Leaf nodes of sorted keys.
  std::vector<Child> leaves(const std::vector<KeyValue>& keys) {
    std::vector<Child> out;
    for (std::size_t begin = 0; begin < keys.size();) {
      std::uint64_t size = 0;
      std::size_t end = begin;
      while (end < keys.size() && end - begin < kMaxEntries) {
        const KeyValue& k = keys[end];
        const std::uint64_t cost =
            16 + k.key.size() +
            (k.inlined ? k.value.size()
                       : 16 + k.reference.file.base.size() + k.reference.file.path.size());
        if (end > begin && size + cost > config_.max_decoded_node_bytes) break;
        size += cost;
        ++end;
      }
      // The root's keys are whole; whether this is the root is known when it is the only one.
      const bool whole = begin == 0 && end == keys.size();
      const std::size_t common = whole ? 0 : common_prefix(keys[begin].key, keys[end - 1].key);
      Node node;
      Child c{keys[begin].key, keys[end - 1].key, {}, common, {}};
      std::map<DataFile, std::uint32_t> files;
      for (std::size_t i = begin; i < end; ++i) {
        const KeyValue& k = keys[i];
        LeafEntry e;
        e.key = std::string_view(k.key).substr(common);
        e.inlined = k.inlined;
        if (k.inlined) {
          e.value = k.value;
        } else {
          const auto [it, added] =
              files.emplace(k.reference.file, static_cast<std::uint32_t>(files.size()));
          if (added) node.files.push_back(k.reference.file);
          e.file = it->second;
          e.offset = k.reference.offset;
          e.length = k.reference.length;
          c.statistics.num_indirect_value_bytes += e.length;
        }
        node.leaves.push_back(e);
        ++c.statistics.num_keys;
      }
      finish(node, c);
      out.push_back(std::move(c));
      begin = end;
    }
    return out;
  }

  // The level above.
  std::vector<Child> inner(const std::vector<Child>& children, std::uint8_t height) {
    std::vector<Child> out;
    for (std::size_t begin = 0; begin < children.size();) {
      std::uint64_t size = 0;
      std::size_t end = begin;
      while (end < children.size() && end - begin < kMaxEntries) {
        const Child& k = children[end];
        const std::uint64_t cost = 56 + k.first_key.size() + k.node.file.path.size();
        if (end > begin + 1 && size + cost > config_.max_decoded_node_bytes) break;
        size += cost;
        ++end;
      }
      // One child alone would be a node without a purpose: the last node takes it.
      if (children.size() - end == 1) ++end;
      const bool whole = begin == 0 && end == children.size();
      std::size_t common =
          whole ? 0 : common_prefix(children[begin].first_key, children[end - 1].last_key);
      for (std::size_t i = begin; i < end; ++i) common = std::min(common, children[i].common);
      Node node;
      node.height = height;
      Child c{children[begin].first_key, children[end - 1].last_key, {}, common, {}};
      std::map<DataFile, std::uint32_t> files;
      for (std::size_t i = begin; i < end; ++i) {
        const Child& k = children[i];
        const auto [it, added] =
            files.emplace(k.node.file, static_cast<std::uint32_t>(files.size()));
        if (added) node.files.push_back(k.node.file);
        InnerEntry e;
        e.key = std::string_view(k.first_key).substr(common);
        e.common_prefix = k.common - common;
        e.file = it->second;
        e.offset = k.node.offset;
        e.length = k.node.length;
        e.statistics = k.statistics;
        c.statistics.add(k.statistics);
        node.inner.push_back(e);
      }
      finish(node, c);
      out.push_back(std::move(c));
      begin = end;
    }
    return out;
  }

  void close() { file_.close(); }

 private:
  void finish(const Node& node, Child& c) {
    c.node = file_.append(encode_node(node, config_));
    c.statistics.num_tree_bytes += c.node.length;
  }

  const Config& config_;
  DataFileWriter file_;
};

}  // namespace

std::string random_file_name() { return to_hex(random_bytes()); }

Config default_config() {
  Config c;
  c.uuid = random_bytes();
  c.max_decoded_node_bytes = 1 << 20;
  return c;
}

DataFileWriter::DataFileWriter(const FileSystem& fs, std::string directory,
                               std::uint64_t target_size)
    : fs_(fs), directory_(std::move(directory)), target_size_(target_size) {}

OutputFile& DataFileWriter::file() {
  if (out_ && target_size_ > 0 && out_->size() >= target_size_) close();
  if (!out_) {
    path_ = "d/" + random_file_name();
    fs_.make_directories(join_path(directory_, "d"));
    out_ = fs_.create(join_path(directory_, path_), OpenMode::kCreateNew);
  }
  return *out_;
}

Reference DataFileWriter::append(std::string_view value) {
  OutputFile& f = file();
  const Reference r{{"", path_}, f.size(), value.size()};
  f.write(value);
  bytes_ += value.size();
  return r;
}

Reference DataFileWriter::append_stored(std::span<const std::byte> data,
                                        const std::function<std::string(std::uint64_t)>& tail) {
  OutputFile& f = file();
  Reference r{{"", path_}, f.size(), 0};
  r.length = stored_frame(data, [&](std::vector<ConstPiece> p) { f.write(std::move(p)); });
  if (tail) {
    const std::string end = tail(r.length);
    f.write(end);
    r.length += end.size();
  }
  bytes_ += r.length;
  return r;
}

void DataFileWriter::close() {
  if (!out_) return;
  out_->close();
  out_.reset();
}

void write_database(const FileSystem& fs, const std::string& directory, std::vector<KeyValue> keys,
                    const Config& config, bool durable, std::uint64_t generation) {
  std::sort(keys.begin(), keys.end(),
            [](const KeyValue& a, const KeyValue& b) { return a.key < b.key; });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].key.size() > kMaxPath)
      throw_user_error({fmt::format("write database {}", directory),
                        fmt::format("keys of at most {} bytes", kMaxPath),
                        fmt::format("one of {} bytes", keys[i].key.size()), "Shorten the names"});
    if (i > 0 && keys[i].key == keys[i - 1].key)
      throw_user_error({fmt::format("write database {}", directory), "every key once",
                        fmt::format("\"{}\" twice", keys[i].key), "Rename one of them"});
  }
  Manifest m;
  m.config = config;
  Version v;
  v.generation = generation;
  v.commit_time_ns =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  if (!keys.empty()) {
    TreeWriter tree(fs, directory, config);
    std::vector<Child> level = tree.leaves(keys);
    std::uint8_t height = 0;
    while (level.size() > 1) level = tree.inner(level, ++height);
    tree.close();
    v.root_height = height;
    v.root = level[0].node;
    v.statistics = level[0].statistics;
  }
  fs.make_directories(directory);
  // The data's names must be durable before a manifest that refers to them.
  m.versions = {v};
  const std::string path = join_path(directory, "manifest.ocdbt");
  if (!durable) return fs.write_file(path, encode_manifest(m));
  if (fs.is_directory(join_path(directory, "d"))) fs.sync_directory(join_path(directory, "d"));
  fs.write_file_atomic(path, encode_manifest(m));
}

void merge_databases(const FileSystem& fs, const std::string& directory,
                     const std::vector<std::string>& children, const Config& config) {
  std::map<std::string, KeyValue> keys;
  for (const std::string& child : children) {
    const Database db(fs, join_path(directory, child));
    db.for_each_value("", [&](std::string_view key, const Value& v) {
      KeyValue k;
      k.key = key;
      k.inlined = v.inlined;
      if (v.inlined)
        k.value = v.bytes;
      else
        k.reference = {{child, v.file}, v.offset, v.length};
      keys[k.key] = std::move(k);
    });
  }
  std::vector<KeyValue> all;
  all.reserve(keys.size());
  for (auto& [key, value] : keys) all.push_back(std::move(value));
  write_database(fs, directory, std::move(all), config);
}

}  // namespace xylem::checkpoint::ocdbt
