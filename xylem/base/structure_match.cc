#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/base/structure.h"
#include "xylem/base/tree.h"

namespace xylem {
namespace {

void join_path(std::string& path, std::string_view edge) {
  if (path.empty() && !edge.empty() && edge[0] == '.') edge.remove_prefix(1);
  path += edge;
}

}  // namespace

// Finds the first node in which two structures differ.
class DifferenceFinder {
 public:
  DifferenceFinder(const Structure& a, const Structure& b, bool exact)
      : a_(a), b_(b), exact_(exact) {}

  std::string find(std::size_t i, std::size_t j, const std::string& path) const {
    const auto& x = a_.nodes_[i];
    const auto& y = b_.nodes_[j];
    if (!Structure::node_equal(a_, x, b_, y, exact_)) {
      std::string left = a_.describe_node(i);
      std::string right = b_.describe_node(j);
      if (left == right) {  // they differ in type only
        left = x.type->name;
        right = y.type->name;
      }
      return fmt::format("{}: {} against {}", path.empty() ? "the root" : path, left, right);
    }
    ++i, ++j;
    for (std::uint32_t c = 0; c < x.children; ++c) {
      std::string p = path;
      join_path(p, a_.edge(x, c));
      if (std::string d = find(i, j, p); !d.empty()) return d;
      i += a_.nodes_[i].nodes;
      j += b_.nodes_[j].nodes;
    }
    return {};
  }

 private:
  const Structure& a_;
  const Structure& b_;
  bool exact_;
};

std::string Structure::describe_mismatch(const Structure& other) const {
  if (nodes_.empty() || other.nodes_.empty()) return describe_difference(other);
  return DifferenceFinder(*this, other, false).find(0, 0, "");
}

std::string Structure::describe_difference(const Structure& other) const {
  if (nodes_.empty() || other.nodes_.empty())
    return nodes_.size() == other.nodes_.size() ? "" : "one of the structures has no node";
  return DifferenceFinder(*this, other, true).find(0, 0, "");
}

// ---- prefixes

class PrefixMatcher {
 public:
  PrefixMatcher(const Structure& prefix, const Structure& full, std::string_view what)
      : p_(prefix), f_(full), what_(what), out_(static_cast<std::size_t>(full.num_leaves())) {}

  std::vector<int> run() {
    if (!f_.nodes_.empty() && !p_.nodes_.empty()) match(0, 0, 0, 0, "");
    return std::move(out_);
  }

 private:
  using Node = Structure::Node;

  [[noreturn]] void fail(const std::string& path, std::size_t i, std::size_t j,
                         const std::string& detail) const {
    throw_user_error({what_, "the tree must be a prefix of the full structure",
                      fmt::format("at {} the prefix has {}, the full structure has {}{}",
                                  path.empty() ? "the root" : path, p_.describe_node(i),
                                  f_.describe_node(j), detail),
                      "Give one value for a whole subtree, or a tree of its shape"});
  }

  static bool named(const Node& n) {
    return n.kind == NodeKind::kAggregate || n.kind == NodeKind::kMap;
  }
  static bool positional(const Node& n) {
    return n.kind == NodeKind::kList || n.kind == NodeKind::kTuple;
  }
  static bool transparent(const Node& n) {
    return n.kind == NodeKind::kOptional || n.kind == NodeKind::kVariant;
  }

  // Nodes i of the prefix and j of the full structure, whose first leaves are leaf_i and leaf_j.
  void match(std::size_t i, int leaf_i, std::size_t j, int leaf_j, const std::string& path) {
    const Node& x = p_.nodes_[i];
    const Node& y = f_.nodes_[j];
    if (y.leaves == 0) return;
    if (x.kind == NodeKind::kLeaf) {
      for (std::uint32_t k = 0; k < y.leaves; ++k)
        out_[static_cast<std::size_t>(leaf_j) + k] = leaf_i;
      return;
    }
    if (transparent(x) && x.children == 1) return match(i + 1, leaf_i, j, leaf_j, path);
    if (transparent(y)) return match(i, leaf_i, j + 1, leaf_j, path);
    if (named(x) && named(y)) return match_named(i, leaf_i, j, leaf_j, path);
    if (positional(x) && positional(y)) return match_positional(i, leaf_i, j, leaf_j, path);
    fail(path, i, j, "");
  }

  void match_named(std::size_t i, int leaf_i, std::size_t j, int leaf_j, const std::string& path) {
    const Node& x = p_.nodes_[i];
    const Node& y = f_.nodes_[j];
    int leaf_c = leaf_j;
    std::size_t child = j + 1;
    for (std::uint32_t c = 0; c < y.children; ++c) {
      const Node& z = f_.nodes_[child];
      if (z.leaves > 0) {
        const std::string_view label = f_.child_label(y, c);
        int leaf_d = leaf_i;
        std::size_t other = i + 1;
        std::uint32_t d = 0;
        for (; d < x.children && p_.child_label(x, d) != label; ++d) {
          leaf_d += static_cast<int>(p_.nodes_[other].leaves);
          other += p_.nodes_[other].nodes;
        }
        if (d == x.children)
          fail(path, i, j, fmt::format("; \"{}\" is missing in the prefix", label));
        std::string p = path;
        join_path(p, f_.edge(y, c));
        match(other, leaf_d, child, leaf_c, p);
      }
      leaf_c += static_cast<int>(z.leaves);
      child += z.nodes;
    }
    std::size_t other = i + 1;
    for (std::uint32_t d = 0; d < x.children; other += p_.nodes_[other].nodes, ++d) {
      if (p_.nodes_[other].leaves == 0) continue;
      const std::string_view label = p_.child_label(x, d);
      bool known = false;
      for (std::uint32_t c = 0; c < y.children; ++c) known = known || f_.child_label(y, c) == label;
      if (!known) fail(path, i, j, fmt::format("; it has no \"{}\"", label));
    }
  }

  void match_positional(std::size_t i, int leaf_i, std::size_t j, int leaf_j,
                        const std::string& path) {
    const Node& x = p_.nodes_[i];
    const Node& y = f_.nodes_[j];
    std::uint32_t with_leaves = 0;
    std::size_t child = j + 1;
    for (std::uint32_t c = 0; c < y.children; child += f_.nodes_[child].nodes, ++c)
      with_leaves += f_.nodes_[child].leaves > 0;
    const bool all = x.children == y.children;
    if (!all && x.children != with_leaves) fail(path, i, j, "");
    child = j + 1;
    std::size_t other = i + 1;
    for (std::uint32_t c = 0; c < y.children; ++c) {
      const Node& z = f_.nodes_[child];
      if (all || z.leaves > 0) {
        std::string p = path;
        join_path(p, f_.edge(y, c));
        match(other, leaf_i, child, leaf_j, p);
        leaf_i += static_cast<int>(p_.nodes_[other].leaves);
        other += p_.nodes_[other].nodes;
      }
      leaf_j += static_cast<int>(z.leaves);
      child += z.nodes;
    }
  }

  const Structure& p_;
  const Structure& f_;
  std::string_view what_;
  std::vector<int> out_;
};

std::vector<int> match_prefix(const Structure& prefix, const Structure& full,
                              std::string_view what) {
  return PrefixMatcher(prefix, full, what).run();
}

namespace internal {

void throw_leaf_count(const Structure& s, std::size_t given) {
  throw_user_error({"tree", fmt::format("the structure has {} leaves", s.num_leaves()),
                    fmt::format("{} leaves are given for {}", given, s.to_string()),
                    "Give one leaf for each position"});
}

void throw_no_match(std::string_view what, const Structure& a, const Structure& b) {
  throw_user_error({what, "the trees must have the same structure",
                    fmt::format("they differ: {}", a.describe_mismatch(b)),
                    "Pass trees of one type, or a Tree made by tree::map_to of it"});
}

void throw_not_leaf(const Structure& s) {
  throw_user_error({"Tree::leaf", "the tree must be a single leaf",
                    fmt::format("it is {}", s.to_string()), "Take a child first"});
}

}  // namespace internal
}  // namespace xylem
