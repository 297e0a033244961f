#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The structure of a tree without its leaves, as a value: what JAX calls a PyTreeDef. The templates
// of tree.h walk a C++ object and report it, node by node, to the classes here.

namespace xylem {

enum class NodeKind : std::uint8_t {
  kLeaf,
  kStatic,     // a value that is part of the structure: number, enum, string, function pointer
  kAggregate,  // a struct; children are its fields
  kList,       // std::vector, std::array
  kTuple,      // std::tuple, std::pair
  kMap,        // std::map; keys are part of the structure
  kOptional,   // no child or one
  kVariant,    // one child; the index is part of the structure
};

// How the bytes of a static value are printed.
enum class StaticFormat : std::uint8_t {
  kOpaque,
  kBool,
  kSigned,
  kUnsigned,
  kFloat,
  kString,
  kIntList,
  kPointer
};

// What a node's C++ type is. One object per type, of static storage.
struct TypeInfo {
  std::string_view name;                          // as the compiler spells it
  const std::string_view* field_names = nullptr;  // aggregates: one for each child
  StaticFormat format = StaticFormat::kOpaque;
  std::uint64_t hash = 0;  // of the name
};

// Receives a tree in depth-first order. Every node is reported by `leaf`, by `static_value`, or by
// `begin`, its children and `end`; before each child of a map comes its `key`.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  // `leaf` points to an object of the walk's leaf type L. `empty`: see is_empty_leaf in tree.h.
  virtual void leaf(void* leaf, bool empty) = 0;
  virtual void static_value(const TypeInfo&, const void* /*bytes*/, std::size_t /*size*/) {}
  // `variant_index` is 0 but for variants.
  virtual void begin(NodeKind, const TypeInfo&, std::size_t /*children*/,
                     std::size_t /*variant_index*/) {}
  virtual void key(std::string_view) {}
  virtual void key(std::int64_t) {}
  virtual void end() {}
};

// Structure of a tree: node kinds, C++ types, field names, sizes and keys of containers, static
// values bit by bit, and which leaf positions are empty. A value; copies are deep. Immutable but
// for assignment; concurrent reads are safe.
class Structure {
 public:
  // No node at all, `num_nodes()` is 0. What flatten returns has at least one node.
  Structure() = default;

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  int num_leaves() const { return nodes_.empty() ? 0 : static_cast<int>(nodes_[0].leaves); }
  // A leaf, bare or as the value of optionals and variants.
  bool is_leaf() const;
  // Whether leaf i is marked empty (an undefined handle).
  bool leaf_empty(int i) const;

  // Equal in everything, so that two objects of equal structure have the same C++ type (but for
  // the type of leaves) and differ in the values of leaves only. The key of a jit cache.
  friend bool operator==(const Structure& a, const Structure& b);
  // Equal for equal structures; stable within a process.
  std::uint64_t hash() const { return hash_; }
  // Whether leaves correspond one to one: same node kinds, sizes, field names and keys. Types,
  // static values and marks of emptiness may differ.
  bool matches(const Structure& other) const;
  // Where the two first differ, for messages: "layers[2].features: 8 against 16". Empty if equal.
  std::string describe_difference(const Structure& other) const;
  // The same for what `matches` looks at.
  std::string describe_mismatch(const Structure& other) const;

  // In the manner of PyTreeDef: "Mlp(up=Linear(kernel=*, bias=None, features=3), list=[*, *])".
  // A leaf is *, an empty leaf -.
  std::string to_string() const;
  // Path of each leaf: `layers[0].attention.query.kernel`, `table["key"]`. The root is "".
  std::vector<std::string> paths() const;

  // Children of the root that are not static: their number, the structure of one, its name or key
  // (empty in lists and tuples), its first leaf.
  int num_children() const;
  Structure child(int i) const;
  int find_child(std::string_view name) const;  // UserError that lists the names if there is none
  std::string child_name(int i) const;
  int child_first_leaf(int i) const;
  // The same with every leaf replaced by `inner`, as PyTreeDef.compose.
  Structure compose(const Structure& inner) const;

  // Dynamic structures.
  static Structure of_leaf(bool empty = false);
  static Structure list(std::span<const Structure> children);
  static Structure tuple(std::span<const Structure> children);
  // `keys` ascending and different, as in std::map; UserError otherwise.
  static Structure map(std::span<const std::string> keys, std::span<const Structure> children);
  // The same with other marks of emptiness, one for each leaf.
  Structure with_empty(std::span<const std::uint8_t> empty) const;

  // Reports this structure with the given leaves (num_leaves() pointers) to a visitor.
  void walk(TreeVisitor& v, std::span<void* const> leaves) const;

 private:
  friend class StructureBuilder;
  friend class PrefixMatcher;
  friend class DifferenceFinder;

  struct Node {
    NodeKind kind;
    bool empty = false;         // leaves
    bool integer_keys = false;  // maps
    std::uint32_t children = 0;
    std::uint32_t nodes = 1;      // of the subtree, this one included
    std::uint32_t leaves = 0;     // of the subtree
    std::uint32_t data = 0;       // statics: offset into bytes_; maps: first of keys_
    std::uint32_t data_size = 0;  // statics: number of bytes; variants: the index
    const TypeInfo* type = nullptr;
  };

  // Equal nodes, without their descendants. `exact` false ignores what `matches` ignores.
  static bool node_equal(const Structure& a, const Node& x, const Structure& b, const Node& y,
                         bool exact);
  // The node of child c of node i; which child the i-th one that is not static is.
  std::size_t child_node(std::size_t i, std::uint32_t c) const;
  std::uint32_t dynamic_child(int i) const;
  std::string_view child_label(const Node& parent, std::uint32_t c) const;
  // Text of the edge to child c: ".name", "[3]", "[\"k\"]", or nothing in optionals and variants.
  std::string edge(const Node& parent, std::uint32_t c) const;
  std::size_t print_node(std::size_t i, std::string& out) const;
  std::string print_static(const Node& n) const;
  std::string describe_node(std::size_t i) const;
  std::size_t collect_paths(std::size_t i, const std::string& path,
                            std::vector<std::string>& out) const;
  std::size_t walk_node(std::size_t i, TreeVisitor& v, std::span<void* const> leaves,
                        std::size_t& next_leaf) const;
  void append_subtree(const Structure& from, std::size_t i);
  static Structure branch(NodeKind kind, const TypeInfo& type, std::span<const Structure> children,
                          std::span<const std::string> keys = {});
  std::string_view static_bytes(const Node& n) const {
    return std::string_view(bytes_).substr(n.data, n.data_size);
  }
  void finish();  // computes the hash

  std::vector<Node> nodes_;  // depth first
  std::vector<std::string> keys_;
  std::string bytes_;
  std::uint64_t hash_ = 0;
};

// Builds the Structure of what is walked.
class StructureBuilder final : public TreeVisitor {
 public:
  void leaf(void* leaf, bool empty) override;
  void static_value(const TypeInfo& type, const void* bytes, std::size_t size) override;
  void begin(NodeKind kind, const TypeInfo& type, std::size_t children,
             std::size_t variant_index) override;
  void key(std::string_view k) override;
  void key(std::int64_t k) override;
  void end() override;
  // The structure; the builder starts anew.
  Structure take();

 private:
  Structure structure_;
  std::vector<std::uint32_t> open_;
};

// Knows the path of the leaf that is being visited.
class PathVisitor : public TreeVisitor {
 public:
  void leaf(void* leaf, bool empty) final;
  void static_value(const TypeInfo& type, const void* bytes, std::size_t size) final;
  void begin(NodeKind kind, const TypeInfo& type, std::size_t children,
             std::size_t variant_index) final;
  void key(std::string_view k) final;
  void key(std::int64_t k) final;
  void end() final;

 protected:
  // Called for each leaf; `path()` is its path.
  virtual void leaf_at_path(void* leaf, bool empty) = 0;
  std::string path() const;

 private:
  struct Frame {
    NodeKind kind;
    const TypeInfo* type;
    std::size_t next;  // index of the child to come or being visited
    std::string key;   // maps: the key as text, with brackets
  };
  void child_done();
  std::vector<Frame> frames_;
};

// The leaf of `prefix` that each leaf of `full` stands under, as an index into prefix's leaves: a
// leaf of the prefix covers a whole subtree. Prefix nodes match by kind and size; maps and structs
// by the names of their children, of which the prefix needs only those that are not static; a
// static or an absent optional in `full` needs no counterpart. Throws UserError that names the
// path where the prefix does not fit. `what` opens the message ("vmap: in_axes").
std::vector<int> match_prefix(const Structure& prefix, const Structure& full,
                              std::string_view what = "broadcast_prefix");

}  // namespace xylem
