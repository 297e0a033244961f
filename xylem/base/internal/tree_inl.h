#pragma once

// Templates of tree.h.

#include <algorithm>
#include <initializer_list>

#include "xylem/base/tree.h"

namespace xylem {
namespace internal {

[[noreturn]] void throw_leaf_count(const Structure& s, std::size_t given);
[[noreturn]] void throw_no_match(std::string_view what, const Structure& a, const Structure& b);
[[noreturn]] void throw_not_leaf(const Structure& s);

template <class L>
class LeafCollector final : public TreeVisitor {
 public:
  void leaf(void* l, bool) override { leaves.push_back(static_cast<L*>(l)); }
  std::vector<L*> leaves;
};

template <class L>
class Flattener final : public TreeVisitor {
 public:
  void leaf(void* l, bool empty) override {
    leaves.push_back(*static_cast<const L*>(l));
    builder.leaf(l, empty);
  }
  void static_value(const TypeInfo& t, const void* b, std::size_t n) override {
    builder.static_value(t, b, n);
  }
  void begin(NodeKind k, const TypeInfo& t, std::size_t n, std::size_t variant) override {
    builder.begin(k, t, n, variant);
  }
  void key(std::string_view k) override { builder.key(k); }
  void key(std::int64_t k) override { builder.key(k); }
  void end() override { builder.end(); }

  std::vector<L> leaves;
  StructureBuilder builder;
};

template <class L, class F>
class PathCaller final : public PathVisitor {
 public:
  explicit PathCaller(F& f) : f_(f) {}
  void leaf_at_path(void* l, bool) override { f_(path(), *static_cast<L*>(l)); }

 private:
  F& f_;
};

// Walks t; the visitor must not write through the leaves if T is const.
template <class L, class T>
void walk_any(T& t, TreeVisitor& v) {
  walk<L>(const_cast<std::remove_const_t<T>&>(t), v);
}

template <class L, class T>
std::vector<L*> pointers(T& t) {
  LeafCollector<L> c;
  walk_any<L>(t, c);
  return std::move(c.leaves);
}

template <class L>
std::vector<std::uint8_t> empty_marks(const LeafVector<L>& leaves) {
  std::vector<std::uint8_t> marks;
  marks.reserve(leaves.size());
  for (const L& l : leaves) marks.push_back(is_empty_leaf(l));
  return marks;
}

// Pointers to the leaves of `other`, whose structure must match that of t.
template <class L, class Other>
std::vector<L*> matched_pointers(const Structure& s, const Other& other) {
  const Structure o = tree::structure<L>(other);
  if (!s.matches(o)) throw_no_match("tree::map", s, o);
  return pointers<L>(other);
}

}  // namespace internal

// ---- Tree

template <class L>
Tree<L>::Tree(L leaf) : structure_(Structure::of_leaf(is_empty_leaf(leaf))) {
  leaves_.push_back(std::move(leaf));
}

template <class L>
Tree<L>::Tree(Structure structure, std::vector<L> leaves) {
  if constexpr (std::is_same_v<L, bool>)
    for (bool b : leaves) leaves_.push_back(b);
  else
    leaves_ = std::move(leaves);
  if (static_cast<std::size_t>(structure.num_leaves()) != leaves_.size())
    internal::throw_leaf_count(structure, leaves_.size());
  structure_ = structure.with_empty(internal::empty_marks<L>(leaves_));
}

template <class L>
template <class Make>
Tree<L> Tree<L>::gather(std::span<const Tree> children, Make&& make) {
  std::vector<Structure> structures;
  Tree t;
  for (const Tree& c : children) {
    structures.push_back(c.structure_);
    t.leaves_.insert(t.leaves_.end(), c.leaves_.begin(), c.leaves_.end());
  }
  t.structure_ = make(std::span<const Structure>(structures));
  return t;
}

template <class L>
Tree<L> Tree<L>::list(std::span<const Tree> children) {
  return gather(children, [](std::span<const Structure> s) { return Structure::list(s); });
}

template <class L>
Tree<L> Tree<L>::tuple(std::span<const Tree> children) {
  return gather(children, [](std::span<const Structure> s) { return Structure::tuple(s); });
}

template <class L>
Tree<L> Tree<L>::map(std::vector<std::pair<std::string, Tree>> children) {
  std::sort(children.begin(), children.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> keys;
  std::vector<Tree> values;
  for (auto& [k, c] : children) {
    keys.push_back(std::move(k));
    values.push_back(std::move(c));
  }
  return gather(values, [&](std::span<const Structure> s) { return Structure::map(keys, s); });
}

template <class L>
const L& Tree<L>::leaf() const {
  if (!is_leaf()) internal::throw_not_leaf(structure_);
  return leaves_[0];
}

template <class L>
Tree<L> Tree<L>::child(int i) const {
  Tree t;
  t.structure_ = structure_.child(i);
  const auto first = leaves_.begin() + structure_.child_first_leaf(i);
  t.leaves_.assign(first, first + t.structure_.num_leaves());
  return t;
}

template <class L>
void Tree<L>::walk(TreeVisitor& v) const {
  std::vector<void*> pointers;
  for (const L& l : leaves_) pointers.push_back(const_cast<L*>(&l));
  structure_.walk(v, pointers);
}

// ---- functions

namespace tree {

template <class L, class T, class F>
void visit(T& t, F&& f) {
  using LeafRef = std::conditional_t<std::is_const_v<T>, const L, L>;
  if constexpr (std::is_invocable_v<F&, const std::string&, LeafRef&>) {
    auto call = [&f](const std::string& path, L& leaf) { f(path, static_cast<LeafRef&>(leaf)); };
    internal::PathCaller<L, decltype(call)> caller(call);
    internal::walk_any<L>(t, caller);
  } else {
    for (L* leaf : internal::pointers<L>(t)) f(static_cast<LeafRef&>(*leaf));
  }
}

template <class L, class T>
std::vector<L> leaves(const T& t) {
  std::vector<L> out;
  for (const L* l : internal::pointers<L>(t)) out.push_back(*l);
  return out;
}

template <class L, class T>
std::vector<L*> leaf_pointers(T& t) {
  return internal::pointers<L>(t);
}

template <class L, class T>
Structure structure(const T& t) {
  StructureBuilder b;
  internal::walk_any<L>(t, b);
  return b.take();
}

template <class L, class T>
Flat<L> flatten(const T& t) {
  internal::Flattener<L> f;
  internal::walk_any<L>(t, f);
  return {std::move(f.leaves), f.builder.take()};
}

template <class L, class T>
T unflatten(T skeleton, std::span<const L> leaves) {
  return unflatten<L>(std::move(skeleton), std::vector<L>(leaves.begin(), leaves.end()));
}

template <class L, class T>
T unflatten(T skeleton, std::vector<L>&& leaves) {
  const std::vector<L*> places = internal::pointers<L>(skeleton);
  if (places.size() != leaves.size())
    internal::throw_leaf_count(structure<L>(skeleton), leaves.size());
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(leaves[i]);
  return skeleton;
}

template <class L, class F, class T, class... Rest>
T map(F&& f, const T& t, const Rest&... rest) {
  T out = t;
  const std::vector<L*> places = internal::pointers<L>(out);
  if constexpr (sizeof...(Rest) == 0) {
    for (L* p : places) *p = f(static_cast<const L&>(*p));
  } else {
    const Structure s = structure<L>(t);
    [&](auto... others) {
      for (std::size_t i = 0; i < places.size(); ++i)
        *places[i] = f(static_cast<const L&>(*places[i]), static_cast<const L&>(*others[i])...);
    }(internal::matched_pointers<L>(s, rest)...);
  }
  return out;
}

template <class L, class F, class T>
T map_with_path(F&& f, const T& t) {
  T out = t;
  visit<L>(out,
           [&f](const std::string& path, L& leaf) { leaf = f(path, static_cast<const L&>(leaf)); });
  return out;
}

template <class L, class F, class T, class... Rest>
auto map_to(F&& f, const T& t, const Rest&... rest) {
  const Structure s = structure<L>(t);
  const std::vector<L*> first = internal::pointers<L>(t);
  auto run = [&](auto... others) {
    using M = std::decay_t<decltype(f(static_cast<const L&>(*first[0]),
                                      static_cast<const L&>(*others[0])...))>;
    std::vector<M> out;
    out.reserve(first.size());
    for (std::size_t i = 0; i < first.size(); ++i)
      out.push_back(f(static_cast<const L&>(*first[i]), static_cast<const L&>(*others[i])...));
    return Tree<M>(s, std::move(out));
  };
  return run(internal::matched_pointers<L>(s, rest)...);
}

template <class L, class F, class T>
auto map_with_path_to(F&& f, const T& t) {
  using M = std::decay_t<std::invoke_result_t<F&, const std::string&, const L&>>;
  std::vector<M> out;
  visit<L>(t, [&](const std::string& path, const L& leaf) { out.push_back(f(path, leaf)); });
  return Tree<M>(structure<L>(t), std::move(out));
}

template <class L, class T>
Tree<L> to_tree(const T& t) {
  Flat<L> f = flatten<L>(t);
  return Tree<L>(std::move(f.structure), std::move(f.leaves));
}

template <class L, class T>
T from_tree(T skeleton, const Tree<L>& t) {
  const Structure s = structure<L>(skeleton);
  if (!s.matches(t.structure())) internal::throw_no_match("tree::from_tree", s, t.structure());
  return unflatten<L>(std::move(skeleton), std::vector<L>(t.leaves().begin(), t.leaves().end()));
}

template <class L>
std::vector<L> broadcast_prefix(const Tree<L>& prefix, const Structure& full,
                                std::string_view what) {
  std::vector<L> out;
  for (int i : match_prefix(prefix.structure(), full, what))
    out.push_back(prefix.leaves()[static_cast<std::size_t>(i)]);
  return out;
}

template <class L>
std::vector<L> transpose(const Structure& outer, const Structure& inner,
                         const std::vector<L>& leaves) {
  const auto rows = static_cast<std::size_t>(outer.num_leaves());
  const auto columns = static_cast<std::size_t>(inner.num_leaves());
  if (leaves.size() != rows * columns)
    internal::throw_leaf_count(outer.compose(inner), leaves.size());
  std::vector<L> out;
  out.reserve(leaves.size());
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r) out.push_back(leaves[r * columns + c]);
  return out;
}

}  // namespace tree
}  // namespace xylem
