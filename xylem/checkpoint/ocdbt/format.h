#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The three objects of an OCDBT database as bytes: manifest, B+tree node, version tree node
// (TensorStore, kvstore/ocdbt/format). All are checked in every respect when read: UserError.
namespace xylem::checkpoint::ocdbt {

// Total bytes of a path; of a key.
inline constexpr std::uint64_t kMaxPath = 65535;
inline constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxInlineValue = std::uint64_t{1} << 20;
// Offset and length of the root of an empty tree.
inline constexpr std::uint64_t kMissing = ~std::uint64_t{0};

// A data file: `base` is the directory of the database that it belongs to, with a final slash,
// relative to the one that refers to it; `path` is relative to base.
struct DataFile {
  std::string base, path;
  friend bool operator==(const DataFile&, const DataFile&) = default;
  friend auto operator<=>(const DataFile&, const DataFile&) = default;
};

// A range of a data file.
struct Reference {
  DataFile file;
  std::uint64_t offset = kMissing, length = kMissing;
  bool missing() const { return offset == kMissing && length == kMissing; }
};

// Of a subtree.
struct Statistics {
  std::uint64_t num_keys = 0, num_tree_bytes = 0, num_indirect_value_bytes = 0;
  void add(const Statistics& o);
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

struct Config {
  std::string uuid;  // 16 bytes
  bool numbered = false;
  std::uint64_t max_inline_value_bytes = 1024;
  std::uint64_t max_decoded_node_bytes = 100'000'000;
  std::uint8_t version_tree_arity_log2 = 4;
  bool compressed = true;  // nodes, with zstd
  std::int32_t level = 0;
};

struct Version {
  std::uint64_t generation = 1;
  std::uint8_t root_height = 0;
  Reference root;
  Statistics statistics;
  std::uint64_t commit_time_ns = 0;
};

struct VersionNodeRef {
  std::uint64_t generation = 0;  // the latest in it
  Reference node;
  std::uint64_t num_generations = 0;
  std::uint64_t commit_time_ns = 0;
  std::uint8_t height = 0;
};

struct Manifest {
  Config config;
  std::vector<Version> versions;  // the newest last; at least one
  std::vector<VersionNodeRef> nodes;
};

struct LeafEntry {
  std::string_view key;  // relative to the node's prefix
  bool inlined = true;
  std::string_view value;  // if inlined
  std::uint32_t file = 0;  // into Node::files
  std::uint64_t offset = 0, length = 0;
};

struct InnerEntry {
  std::string_view key;
  std::uint64_t common_prefix = 0;  // of all keys below, as a part of `key`
  std::uint32_t file = 0;
  std::uint64_t offset = 0, length = 0;
  Statistics statistics;
};

// Owns the bytes that its entries point into.
struct Node {
  std::uint8_t height = 0;
  std::vector<DataFile> files;
  std::vector<LeafEntry> leaves;  // height 0
  std::vector<InnerEntry> inner;  // otherwise
  std::string keys, body;         // storage of the views

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  Node(Node&&) = delete;
};

// `limit`: of the decoded body.
Manifest decode_manifest(std::span<const std::byte> bytes, std::string_view name);
void decode_node(std::span<const std::byte> bytes, std::uint64_t limit, std::string_view name,
                 Node& out);
struct VersionNode {
  std::uint8_t height = 0;
  std::vector<Version> versions;         // height 0
  std::vector<VersionNodeRef> children;  // otherwise
};
VersionNode decode_version_node(std::span<const std::byte> bytes, std::uint8_t arity_log2,
                                std::string_view name);

std::string encode_manifest(const Manifest& m);
// Entries as they stand in `node`, sorted.
std::string encode_node(const Node& node, const Config& config);

}  // namespace xylem::checkpoint::ocdbt
