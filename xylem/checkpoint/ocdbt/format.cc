#include "xylem/checkpoint/ocdbt/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/storage/codec.h"
#include "xylem/checkpoint/storage/kv_store.h"

namespace xylem::checkpoint::ocdbt {
namespace {

constexpr std::uint32_t kManifestMagic = 0x0cdb3a2a, kNodeMagic = 0x0cdb20de,
                        kVersionMagic = 0x0cdb1234;
// Of a manifest, which holds at most 2^16 versions, and of a version node.
constexpr std::uint64_t kMaxManifest = std::uint64_t{64} << 20;

[[noreturn]] void damaged(std::string_view name, std::string_view expected,
                          std::string_view given) {
  throw_user_error({fmt::format("read {}", name), expected, given,
                    "The database is damaged: restore it from a copy, or use another checkpoint"});
}

// Checks the envelope and returns the body; `held` keeps it if it was compressed.
std::span<const std::byte> open_envelope(std::span<const std::byte> b, std::uint32_t magic,
                                         std::uint64_t limit, std::string_view name,
                                         std::string& held) {
  if (b.size() < 18) damaged(name, "an object of at least 18 bytes", fmt::format("{}", b.size()));
  std::uint32_t found = 0;
  for (int i = 0; i < 4; ++i)
    found = found << 8 | static_cast<std::uint32_t>(b[static_cast<std::size_t>(i)]);
  if (found != magic)
    damaged(name, fmt::format("the magic number {:08x}", magic), fmt::format("{:08x}", found));
  std::uint64_t length;
  std::memcpy(&length, b.data() + 4, 8);
  if (length != b.size())
    damaged(name, fmt::format("{} bytes, as it states", length), fmt::format("{}", b.size()));
  std::uint32_t crc;
  std::memcpy(&crc, b.data() + b.size() - 4, 4);
  const std::uint32_t sum = crc32c(b.first(b.size() - 4));
  if (sum != crc)
    damaged(name, fmt::format("bytes with CRC-32C {:08x}", crc), fmt::format("{:08x}", sum));
  ByteReader r(b.subspan(12, b.size() - 16), name);
  const std::uint64_t version = r.read_varint();
  if (version != 0) damaged(name, "format version 0", fmt::format("{}", version));
  const std::uint64_t compression = r.read_varint();
  const auto body = r.read_bytes(r.remaining());
  if (compression == 0) {
    if (body.size() > limit)
      damaged(name, fmt::format("at most {} bytes", limit), fmt::format("{}", body.size()));
    return body;
  }
  if (compression != 1)
    damaged(name, "compression none or zstd", fmt::format("method {}", compression));
  const Codec zstd{};
  held = decode_unsized({&zstd, 1}, body, limit, name);
  return as_byte_span(held);
}

std::string seal(std::uint32_t magic, std::string body, bool compressed, int level) {
  if (compressed) {
    const Codec zstd{CodecKind::kZstd, level, false};
    body = encode({&zstd, 1}, as_byte_span(body));
  }
  ByteWriter w;
  for (int shift = 24; shift >= 0; shift -= 8) w.write(static_cast<std::uint8_t>(magic >> shift));
  w.write(static_cast<std::uint64_t>(12 + 2 + body.size() + 4));
  w.write_varint(0);
  w.write_varint(compressed ? 1 : 0);
  w.write_string(body);
  w.write(crc32c(w.str()));
  return w.take();
}

// A count that the rest of the data can hold at `bytes` for each.
std::uint64_t read_count(ByteReader& r, std::uint64_t bytes, std::uint64_t limit,
                         std::string_view what) {
  const std::uint64_t n = r.read_varint();
  if (n > limit || n > r.remaining() / bytes)
    r.fail(
        fmt::format("at most {} {}", std::min<std::uint64_t>(limit, r.remaining() / bytes), what),
        fmt::format("{}", n));
  return n;
}

std::vector<std::uint64_t> read_varints(ByteReader& r, std::uint64_t n) {
  std::vector<std::uint64_t> out(static_cast<std::size_t>(n));
  for (auto& v : out) v = r.read_varint();
  return out;
}

// Directories below the database, with a final slash each; or nothing.
bool is_safe_base(std::string_view base) {
  return base.empty() ||
         (base.ends_with('/') && is_safe_relative_path(base.substr(0, base.size() - 1)));
}

std::vector<DataFile> read_files(ByteReader& r) {
  const std::uint64_t n = read_count(r, 2, kMaxEntries, "data files");
  if (n == 0) return {};
  std::vector<std::uint64_t> prefix = read_varints(r, n - 1);
  prefix.insert(prefix.begin(), 0);
  const std::vector<std::uint64_t> suffix = read_varints(r, n), base = read_varints(r, n);
  std::vector<DataFile> out(static_cast<std::size_t>(n));
  std::string path;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (prefix[i] > path.size())
      r.fail("a prefix of the path before", fmt::format("{}", prefix[i]));
    path.resize(static_cast<std::size_t>(prefix[i]));
    if (suffix[i] > kMaxPath || path.size() + suffix[i] > kMaxPath)
      r.fail(fmt::format("a path of at most {} bytes", kMaxPath), fmt::format("{}", suffix[i]));
    path += r.read_string(suffix[i]);
    // Prefixes let a short table stand for long paths.
    total += path.size();
    if (total > (std::uint64_t{1} << 28)) r.fail("paths of 256 MiB in all", "more");
    if (base[i] > path.size()) r.fail("a base within the path", fmt::format("{}", base[i]));
    out[i] = {path.substr(0, static_cast<std::size_t>(base[i])),
              path.substr(static_cast<std::size_t>(base[i]))};
    const bool none = out[i].base.empty() && out[i].path.empty();
    if (!none && (!is_safe_base(out[i].base) || !is_safe_relative_path(out[i].path)))
      r.fail("data files inside the database's directory", fmt::format("\"{}\"", path));
  }
  return out;
}

// Tables are sorted and hold each file once.
class FileTable {
 public:
  void add(const DataFile& f) { index_[f] = 0; }
  void write(ByteWriter& w) {
    std::uint64_t i = 0;
    for (auto& [file, index] : index_) index = i++;
    w.write_varint(index_.size());
    if (index_.empty()) return;
    std::vector<std::string> paths;
    std::vector<std::size_t> prefix, base;
    for (const auto& [file, index] : index_) {
      const std::string path = file.base + file.path;
      std::size_t shared = 0;
      if (!paths.empty()) {
        const std::string& last = paths.back();
        shared = static_cast<std::size_t>(
            std::mismatch(path.begin(), path.end(), last.begin(), last.end()).first - path.begin());
        if (last.compare(0, base.back(), file.base) != 0)
          shared = std::min({shared, base.back(), file.base.size()});
      }
      paths.push_back(path);
      prefix.push_back(shared);
      base.push_back(file.base.size());
    }
    for (std::size_t k = 1; k < paths.size(); ++k) w.write_varint(prefix[k]);
    for (std::size_t k = 0; k < paths.size(); ++k) w.write_varint(paths[k].size() - prefix[k]);
    for (std::size_t k = 0; k < paths.size(); ++k) w.write_varint(base[k]);
    for (std::size_t k = 0; k < paths.size(); ++k)
      w.write_string(std::string_view(paths[k]).substr(prefix[k]));
  }
  std::uint64_t operator[](const DataFile& f) const { return index_.at(f); }

 private:
  std::map<DataFile, std::uint64_t> index_;
};

std::vector<Reference> read_references(ByteReader& r, std::uint64_t n,
                                       const std::vector<DataFile>& files) {
  const auto file = read_varints(r, n), offset = read_varints(r, n), length = read_varints(r, n);
  std::vector<Reference> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (file[i] >= files.size())
      r.fail(fmt::format("one of {} data files", files.size()), fmt::format("{}", file[i]));
    out[i] = {files[static_cast<std::size_t>(file[i])], offset[i], length[i]};
    if (!out[i].missing() && offset[i] + length[i] < offset[i])
      r.fail("an offset and a length", fmt::format("{} and {}", offset[i], length[i]));
    if (!out[i].missing() && out[i].file.path.empty()) r.fail("a file's path", "an empty one");
  }
  return out;
}

std::vector<Version> read_versions(ByteReader& r, const std::vector<DataFile>& files,
                                   std::uint8_t arity_log2) {
  const std::uint64_t n = read_count(r, 16, std::uint64_t{1} << arity_log2, "versions in one list");
  std::vector<Version> out(static_cast<std::size_t>(n));
  std::uint64_t last = 0;
  for (Version& v : out) {
    v.generation = r.read_varint();
    if (v.generation <= last) r.fail("generations that increase", fmt::format("{}", v.generation));
    last = v.generation;
  }
  for (Version& v : out) v.root_height = r.read<std::uint8_t>();
  const auto roots = read_references(r, n, files);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].root = roots[i];
  for (Version& v : out) v.statistics.num_keys = r.read_varint();
  for (Version& v : out) v.statistics.num_tree_bytes = r.read_varint();
  for (Version& v : out) v.statistics.num_indirect_value_bytes = r.read_varint();
  for (Version& v : out) v.commit_time_ns = r.read<std::uint64_t>();
  return out;
}

std::vector<VersionNodeRef> read_version_nodes(ByteReader& r, const std::vector<DataFile>& files,
                                               bool with_height) {
  const std::uint64_t n = read_count(r, 12, 1 << 16, "version nodes");
  std::vector<VersionNodeRef> out(static_cast<std::size_t>(n));
  std::uint64_t last = 0;
  for (VersionNodeRef& v : out) {
    v.generation = r.read_varint();
    if (v.generation <= last) r.fail("generations that increase", fmt::format("{}", v.generation));
    last = v.generation;
  }
  const auto nodes = read_references(r, n, files);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].node = nodes[i];
  for (VersionNodeRef& v : out) v.num_generations = r.read_varint();
  for (VersionNodeRef& v : out) v.commit_time_ns = r.read<std::uint64_t>();
  if (with_height) {
    int above = 256;
    for (VersionNodeRef& v : out) {
      v.height = r.read<std::uint8_t>();
      if (v.height >= above || v.height == 0)
        r.fail("heights that decrease to 1", fmt::format("{}", v.height));
      above = v.height;
    }
  }
  return out;
}

void require_done(const ByteReader& r) {
  if (!r.done()) r.fail("the end", fmt::format("{} more bytes", r.remaining()));
}

}  // namespace

void Statistics::add(const Statistics& o) {
  num_keys += o.num_keys;
  num_tree_bytes += o.num_tree_bytes;
  num_indirect_value_bytes += o.num_indirect_value_bytes;
}

Manifest decode_manifest(std::span<const std::byte> bytes, std::string_view name) {
  std::string held;
  ByteReader r(open_envelope(bytes, kManifestMagic, kMaxManifest, name, held), name);
  Manifest m;
  m.config.uuid = r.read_string(16);
  const auto kind = r.read<std::uint8_t>();
  if (kind > 1) r.fail("a manifest of kind 0 or 1", fmt::format("{}", kind));
  m.config.numbered = kind == 1;
  m.config.max_inline_value_bytes = r.read_varint();
  if (m.config.max_inline_value_bytes > kMaxInlineValue)
    r.fail(fmt::format("max_inline_value_bytes of at most {}", kMaxInlineValue),
           fmt::format("{}", m.config.max_inline_value_bytes));
  m.config.max_decoded_node_bytes = r.read_varint();
  m.config.version_tree_arity_log2 = r.read<std::uint8_t>();
  if (m.config.version_tree_arity_log2 < 1 || m.config.version_tree_arity_log2 > 16)
    r.fail("version_tree_arity_log2 from 1 to 16",
           fmt::format("{}", m.config.version_tree_arity_log2));
  const std::uint64_t compression = r.read_varint();
  if (compression > 1) r.fail("compression none or zstd", fmt::format("method {}", compression));
  m.config.compressed = compression == 1;
  if (m.config.compressed) m.config.level = r.read<std::int32_t>();
  if (m.config.numbered) {
    require_done(r);
    return m;
  }
  const std::vector<DataFile> files = read_files(r);
  m.versions = read_versions(r, files, m.config.version_tree_arity_log2);
  if (m.versions.empty()) r.fail("at least one version", "none");
  m.nodes = read_version_nodes(r, files, true);
  if (!m.nodes.empty() && m.nodes.back().generation >= m.versions.front().generation)
    r.fail("version nodes older than the versions", fmt::format("{}", m.nodes.back().generation));
  require_done(r);
  return m;
}

VersionNode decode_version_node(std::span<const std::byte> bytes, std::uint8_t arity_log2,
                                std::string_view name) {
  std::string held;
  ByteReader r(open_envelope(bytes, kVersionMagic, kMaxManifest, name, held), name);
  const auto arity = r.read<std::uint8_t>();
  if (arity != arity_log2)
    r.fail(fmt::format("version_tree_arity_log2 {}", arity_log2), fmt::format("{}", arity));
  VersionNode out;
  out.height = r.read<std::uint8_t>();
  const std::vector<DataFile> files = read_files(r);
  if (out.height == 0)
    out.versions = read_versions(r, files, arity);
  else
    out.children = read_version_nodes(r, files, false);
  for (VersionNodeRef& c : out.children) c.height = static_cast<std::uint8_t>(out.height - 1);
  require_done(r);
  return out;
}

void decode_node(std::span<const std::byte> bytes, std::uint64_t limit, std::string_view name,
                 Node& out) {
  std::string held;
  const auto body = open_envelope(bytes, kNodeMagic, limit, name, held);
  out.body = held.empty() ? std::string(as_string_view(body)) : std::move(held);
  ByteReader r(out.body, name);
  out.height = r.read<std::uint8_t>();
  out.files = read_files(r);
  const std::uint64_t n = read_count(r, 3, kMaxEntries, "entries");
  if (n == 0) r.fail("at least one entry", "none");
  std::vector<std::uint64_t> prefix = read_varints(r, n - 1);
  prefix.insert(prefix.begin(), 0);
  const auto suffix = read_varints(r, n);
  std::vector<std::uint64_t> common;
  if (out.height > 0) common = read_varints(r, n);

  std::uint64_t total = 0, previous = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (prefix[i] > previous) r.fail("a prefix of the key before", fmt::format("{}", prefix[i]));
    if (suffix[i] > kMaxPath) r.fail("a key of at most 65535 bytes", fmt::format("{}", suffix[i]));
    previous = prefix[i] + suffix[i];
    if (previous > kMaxPath) r.fail("a key of at most 65535 bytes", fmt::format("{}", previous));
    total += previous;
  }
  // Prefixes let few bytes stand for long keys.
  if (total > limit)
    r.fail(fmt::format("keys of at most {} bytes in all", limit), fmt::format("{}", total));
  out.keys.reserve(static_cast<std::size_t>(total));
  std::vector<std::string_view> keys(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t begin = out.keys.size();
    if (i > 0) out.keys.append(keys[i - 1].substr(0, static_cast<std::size_t>(prefix[i])));
    out.keys.append(r.read_string(suffix[i]));
    keys[i] = std::string_view(out.keys).substr(begin);
    if (i > 0 && keys[i] <= keys[i - 1]) r.fail("keys that increase", fmt::format("key {}", i));
  }

  const auto file_index = [&](std::uint64_t f) {
    if (f >= out.files.size())
      r.fail(fmt::format("one of {} data files", out.files.size()), fmt::format("{}", f));
    return static_cast<std::uint32_t>(f);
  };
  const auto check_range = [&](std::uint64_t offset, std::uint64_t length) {
    if (offset + length < offset)
      r.fail("an offset and a length", fmt::format("{} and {}", offset, length));
  };
  if (out.height == 0) {
    out.leaves.resize(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < n; ++i) out.leaves[i].key = keys[i];
    for (LeafEntry& e : out.leaves) e.length = r.read_varint();
    for (LeafEntry& e : out.leaves) {
      const auto kind = r.read<std::uint8_t>();
      if (kind > 1) r.fail("a value of kind 0 or 1", fmt::format("{}", kind));
      e.inlined = kind == 0;
      if (e.inlined && e.length > kMaxInlineValue)
        r.fail("an inline value of at most 1 MiB", fmt::format("{}", e.length));
    }
    for (LeafEntry& e : out.leaves)
      if (!e.inlined) e.file = file_index(r.read_varint());
    for (LeafEntry& e : out.leaves)
      if (!e.inlined) check_range(e.offset = r.read_varint(), e.length);
    for (LeafEntry& e : out.leaves)
      if (e.inlined) e.value = r.read_string(e.length);
  } else {
    out.inner.resize(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < n; ++i) {
      out.inner[i].key = keys[i];
      out.inner[i].common_prefix = common[i];
      if (common[i] > keys[i].size())
        r.fail("a prefix within the key", fmt::format("{}", common[i]));
    }
    for (InnerEntry& e : out.inner) e.file = file_index(r.read_varint());
    for (InnerEntry& e : out.inner) e.offset = r.read_varint();
    for (InnerEntry& e : out.inner) check_range(e.offset, e.length = r.read_varint());
    for (InnerEntry& e : out.inner) e.statistics.num_keys = r.read_varint();
    for (InnerEntry& e : out.inner) e.statistics.num_tree_bytes = r.read_varint();
    for (InnerEntry& e : out.inner) e.statistics.num_indirect_value_bytes = r.read_varint();
  }
  require_done(r);
}

std::string encode_manifest(const Manifest& m) {
  const Config& c = m.config;
  ByteWriter w;
  w.write_string(c.uuid);
  w.write(std::uint8_t{0});
  w.write_varint(c.max_inline_value_bytes);
  w.write_varint(c.max_decoded_node_bytes);
  w.write(c.version_tree_arity_log2);
  w.write_varint(c.compressed ? 1 : 0);
  if (c.compressed) w.write(c.level);
  FileTable files;
  for (const Version& v : m.versions) files.add(v.root.file);
  files.write(w);
  w.write_varint(m.versions.size());
  for (const Version& v : m.versions) w.write_varint(v.generation);
  for (const Version& v : m.versions) w.write(v.root_height);
  for (const Version& v : m.versions) w.write_varint(files[v.root.file]);
  for (const Version& v : m.versions) w.write_varint(v.root.offset);
  for (const Version& v : m.versions) w.write_varint(v.root.length);
  for (const Version& v : m.versions) w.write_varint(v.statistics.num_keys);
  for (const Version& v : m.versions) w.write_varint(v.statistics.num_tree_bytes);
  for (const Version& v : m.versions) w.write_varint(v.statistics.num_indirect_value_bytes);
  for (const Version& v : m.versions) w.write(v.commit_time_ns);
  w.write_varint(0);
  return seal(kManifestMagic, w.take(), c.compressed, c.level);
}

std::string encode_node(const Node& node, const Config& config) {
  FileTable files;
  for (const LeafEntry& e : node.leaves)
    if (!e.inlined) files.add(node.files[e.file]);
  for (const InnerEntry& e : node.inner) files.add(node.files[e.file]);
  ByteWriter w;
  w.write(node.height);
  files.write(w);
  std::vector<std::uint64_t> index(node.files.size());
  for (const LeafEntry& e : node.leaves)
    if (!e.inlined) index[e.file] = files[node.files[e.file]];
  for (const InnerEntry& e : node.inner) index[e.file] = files[node.files[e.file]];

  std::vector<std::string_view> keys;
  for (const LeafEntry& e : node.leaves) keys.push_back(e.key);
  for (const InnerEntry& e : node.inner) keys.push_back(e.key);
  std::vector<std::size_t> prefix(keys.size());
  for (std::size_t i = 1; i < keys.size(); ++i)
    prefix[i] = static_cast<std::size_t>(
        std::mismatch(keys[i].begin(), keys[i].end(), keys[i - 1].begin(), keys[i - 1].end())
            .first -
        keys[i].begin());
  w.write_varint(keys.size());
  for (std::size_t i = 1; i < keys.size(); ++i) w.write_varint(prefix[i]);
  for (std::size_t i = 0; i < keys.size(); ++i) w.write_varint(keys[i].size() - prefix[i]);
  for (const InnerEntry& e : node.inner) w.write_varint(e.common_prefix);
  for (std::size_t i = 0; i < keys.size(); ++i) w.write_string(keys[i].substr(prefix[i]));

  for (const LeafEntry& e : node.leaves) w.write_varint(e.inlined ? e.value.size() : e.length);
  for (const LeafEntry& e : node.leaves) w.write(static_cast<std::uint8_t>(e.inlined ? 0 : 1));
  for (const LeafEntry& e : node.leaves)
    if (!e.inlined) w.write_varint(index[e.file]);
  for (const LeafEntry& e : node.leaves)
    if (!e.inlined) w.write_varint(e.offset);
  for (const LeafEntry& e : node.leaves)
    if (e.inlined) w.write_string(e.value);
  for (const InnerEntry& e : node.inner) w.write_varint(index[e.file]);
  for (const InnerEntry& e : node.inner) w.write_varint(e.offset);
  for (const InnerEntry& e : node.inner) w.write_varint(e.length);
  for (const InnerEntry& e : node.inner) w.write_varint(e.statistics.num_keys);
  for (const InnerEntry& e : node.inner) w.write_varint(e.statistics.num_tree_bytes);
  for (const InnerEntry& e : node.inner) w.write_varint(e.statistics.num_indirect_value_bytes);
  return seal(kNodeMagic, w.take(), config.compressed, config.level);
}

}  // namespace xylem::checkpoint::ocdbt
