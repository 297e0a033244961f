#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/base/internal/tree_walk.h"
#include "xylem/base/structure.h"

// Trees: C++ objects seen as a structure with leaves of one type L, as JAX's pytrees.
//
//   leaf       an object of type L (see IsLeaf)
//   branches   aggregates and types that state their fields (reflect.h), std::vector, std::array,
//              std::tuple, std::pair, std::map with string or integer keys, std::optional,
//              std::variant (the index is static), Tree<L>
//   static     numbers, enums, std::string, std::string_view, function pointers, Dims, the narrow
//              scalars of float_types.h, empty classes, Static<T>
//
// Anything else is a compile error that says why. An undefined leaf (is_empty_leaf) is still a
// leaf position: flatten returns it among the leaves and the Structure marks it, so that the
// gradient of an integer leaf can be empty.
//
// Leaves come in order of declaration, of index, of key. Walking is compiled once for each pair
// (L, T); all else is done once, by the classes of structure.h.

namespace xylem {
namespace internal {

// std::vector<bool> has no bools to point at.
struct BoolLeaf {
  bool value;
  BoolLeaf(bool v) : value(v) {}
  operator const bool&() const { return value; }
};

template <class L>
using LeafVector = std::vector<std::conditional_t<std::is_same_v<L, bool>, BoolLeaf, L>>;

}  // namespace internal

// A tree without a C++ type of its own: a structure and its leaves. Itself a branch of trees.
template <class L>
class Tree {
 public:
  using LeafType = L;

  // The empty tuple.
  Tree() : structure_(Structure::tuple({})) {}
  // A single leaf. Implicit: a leaf is a tree.
  Tree(L leaf);
  // UserError if the number of leaves is not the structure's.
  Tree(Structure structure, std::vector<L> leaves);

  static Tree list(std::span<const Tree> children);
  static Tree list(std::initializer_list<Tree> children) { return list(as_span(children)); }
  static Tree tuple(std::span<const Tree> children);
  static Tree tuple(std::initializer_list<Tree> children) { return tuple(as_span(children)); }
  // Sorts by key; UserError if two are equal.
  static Tree map(std::vector<std::pair<std::string, Tree>> children);

  const Structure& structure() const { return structure_; }
  // A std::vector<L>; for bool a vector of what converts to bool.
  const internal::LeafVector<L>& leaves() const { return leaves_; }
  int num_leaves() const { return static_cast<int>(leaves_.size()); }
  bool is_leaf() const { return structure_.is_leaf(); }
  // The one leaf of a tree that is a leaf; UserError otherwise.
  const L& leaf() const;

  // Children that are not static, by position, and by field name or key. UserError if absent.
  int num_children() const { return structure_.num_children(); }
  Tree child(int i) const;
  Tree child(std::string_view name) const { return child(structure_.find_child(name)); }

  std::string to_string() const { return structure_.to_string(); }
  void walk(TreeVisitor& v) const;

 private:
  static std::span<const Tree> as_span(std::initializer_list<Tree> l) {
    return {l.begin(), l.size()};
  }
  template <class Make>
  static Tree gather(std::span<const Tree> children, Make&& make);

  Structure structure_;
  internal::LeafVector<L> leaves_;
};

namespace tree {

template <class L>
struct Flat {
  std::vector<L> leaves;
  Structure structure;
};

// Calls f(path, leaf) or f(leaf) for each leaf, in order. `path` is a std::string such as
// `layers[0].attention.query.kernel`, made only if f takes it.
template <class L, class T, class F>
void visit(T& t, F&& f);

// The leaves (copies), pointers to the leaves, the structure, both.
template <class L, class T>
std::vector<L> leaves(const T& t);
template <class L, class T>
std::vector<L*> leaf_pointers(T& t);
template <class L, class T>
Structure structure(const T& t);
template <class L, class T>
Flat<L> flatten(const T& t);

// The skeleton with its leaves replaced in order. UserError if their number differs.
template <class L, class T>
T unflatten(T skeleton, std::span<const L> leaves);
template <class L, class T>
T unflatten(T skeleton, std::vector<L>&& leaves);

// Path of each leaf.
template <class L, class T>
std::vector<std::string> paths(const T& t) {
  return structure<L>(t).paths();
}

// f(leaf of t, leaf of rest...) for each position, as a tree of t's type; f returns L. The rest may
// be of other types, also Trees, whose structures match (Structure::matches); UserError if not.
template <class L, class F, class T, class... Rest>
T map(F&& f, const T& t, const Rest&... rest);
// f(path, leaf) instead.
template <class L, class F, class T>
T map_with_path(F&& f, const T& t);
// The same with results of any type M, which form a Tree<M> of t's structure.
template <class L, class F, class T, class... Rest>
auto map_to(F&& f, const T& t, const Rest&... rest);
template <class L, class F, class T>
auto map_with_path_to(F&& f, const T& t);

// Between typed and dynamic trees. `from_tree` throws UserError if the structures do not match.
template <class L, class T>
Tree<L> to_tree(const T& t);
template <class L, class T>
T from_tree(T skeleton, const Tree<L>& t);

// The leaf of `prefix` above each leaf of `full`: a leaf of the prefix stands for a whole subtree
// (see match_prefix for what fits). `what` opens the message of the UserError.
template <class L>
std::vector<L> broadcast_prefix(const Tree<L>& prefix, const Structure& full,
                                std::string_view what = "broadcast_prefix");

// Leaves of a tree of `outer` structure of trees of `inner` structure, in the order of a tree of
// `inner` of trees of `outer`; as jax.tree.transpose.
template <class L>
std::vector<L> transpose(const Structure& outer, const Structure& inner,
                         const std::vector<L>& leaves);

}  // namespace tree
}  // namespace xylem

#include "xylem/base/internal/tree_inl.h"
