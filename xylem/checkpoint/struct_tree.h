#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/tree.h"
#include "xylem/checkpoint/item.h"
#include "xylem/checkpoint/leaf.h"
#include "xylem/core/array.h"

// C++ structs as the trees of checkpoints, and back.
namespace xylem::checkpoint {

struct RestoreOptions {
  bool allow_missing = false;     // leaves that the checkpoint lacks stay as they are in `like`
  bool allow_unexpected = false;  // leaves of the checkpoint that the struct lacks
  bool cast = false;              // another dtype is converted
};

struct RestoreReport {
  std::vector<std::string> missing, unexpected, cast;  // paths
};

namespace internal {

// Collects a LeafTree from a walk.
class LeafTreeBuilder final : public TreeVisitor {
 public:
  // Without values only paths and empty nodes are taken.
  explicit LeafTreeBuilder(bool values) : values_(values) {}
  void leaf(void* leaf, bool empty) override;
  void static_value(const TypeInfo&, const void* bytes, std::size_t size) override;
  void begin(NodeKind kind, const TypeInfo& type, std::size_t children, std::size_t) override;
  void key(std::string_view k) override;
  void key(std::int64_t k) override;
  void end() override;
  LeafTree take() { return std::move(tree_); }
  // Paths of the defined leaves, in the order of tree::leaves; undefined ones too.
  const std::vector<KeyPath>& paths() const { return paths_; }

 private:
  struct Level {
    NodeKind kind;
    const TypeInfo* type;
    std::size_t next = 0;
    std::string key;
    bool has_key = false, is_text = true;
  };
  void enter();  // puts the key of the next child on the path
  void leave();

  bool values_;
  std::vector<Level> levels_;
  KeyPath path_;
  std::vector<bool> pushed_;
  LeafTree tree_;
  std::vector<KeyPath> paths_;
};

// The arrays for `like`, by parameter name.
std::vector<Array> restore_leaves(const std::vector<KeyPath>& paths, std::span<const Array> like,
                                  const Item& saved, const RestoreOptions& options,
                                  RestoreReport* report, std::string_view what);

template <class T>
LeafTreeBuilder walk_leaves(const T& t, bool values) {
  LeafTreeBuilder b(values);
  xylem::internal::walk_any<Array>(t, b);
  return b;
}

}  // namespace internal

// The tree of a struct: fields and map keys are keys, vectors and tuples sequences. Undefined
// leaves are left out; structs without fields become empty nodes, so that optimizer states have
// Optax's names and structure. Waits for the arrays; shares their memory where the device is the
// CPU, which is safe, since arrays never change.
template <class T>
LeafTree to_leaf_tree(const T& t) {
  return internal::walk_leaves(t, true).take();
}

// A struct like `like`, whose leaves need shape and dtype only (eval_shape), with the saved values;
// leaves are matched by parameter name (their path's parts joined with "."). UserError that opens
// with `what` and lists the first differences by path: leaves that are absent, unexpected, or
// differ in shape or dtype, as far as the options do not allow them.
template <class T>
T from_item(const T& like, const Item& saved, std::string_view what,
            const RestoreOptions& options = {}, RestoreReport* report = nullptr) {
  const internal::LeafTreeBuilder b = internal::walk_leaves(like, false);
  return tree::unflatten<Array>(like, internal::restore_leaves(b.paths(), tree::leaves<Array>(like),
                                                               saved, options, report, what));
}
template <class T>
T from_leaf_tree(const T& like, const LeafTree& saved, std::string_view what,
                 const RestoreOptions& options = {}, RestoreReport* report = nullptr) {
  return from_item(like, *make_memory_item(saved), what, options, report);
}

// ---- transformations of what is restored

struct Transform {
  // kRename: `to` with $1 .. $9 from the match. kUnstack: an array of leading size n becomes n,
  // `to` with {} for the index. kStack: arrays whose names agree but for the first group, a number,
  // become one along axis 0, in order of the number; `to` as for kRename. kDrop: left out.
  enum class Kind { kRename, kUnstack, kStack, kDrop } kind = Kind::kRename;
  std::string pattern;  // a regular expression (ECMAScript) that the whole parameter name matches
  std::string to;
};

// The item with its leaves renamed, split and stacked; values are read as they are asked for. Names
// are split into paths at ".". The item must outlive the result. UserError for a bad pattern, two
// leaves of one name, a stack with gaps or different shapes.
std::unique_ptr<Item> transform(const Item& item, const std::vector<Transform>& transforms);

}  // namespace xylem::checkpoint
