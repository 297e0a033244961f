#include "xylem/core/export/pytree.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace xylem::internal {
namespace {

using Kind = PyTree::Kind;

// A node with the numbers of its leaves, in JAX's order.
struct Part {
  PyTree tree;
  std::vector<std::size_t> leaf;
  std::vector<bool> is_key;
  bool absent = false;  // a static value
};

class Collector final : public TreeVisitor {
 public:
  void leaf(void*, bool empty) override {
    Part p;
    p.tree.kind = empty ? Kind::kNone : Kind::kLeaf;
    if (!empty) {
      p.leaf.push_back(next_);
      p.is_key.push_back(false);
    }
    ++next_;
    add(std::move(p));
  }
  void static_value(const TypeInfo&, const void*, std::size_t) override {
    Part p;
    p.absent = true;
    add(std::move(p));
  }
  void begin(NodeKind kind, const TypeInfo& type, std::size_t, std::size_t) override {
    open_.push_back({kind, &type, {}, {}});
  }
  void key(std::string_view k) override { open_.back().keys.emplace_back(k); }
  void key(std::int64_t k) override { open_.back().keys.push_back(std::to_string(k)); }
  void end() override {
    Frame f = std::move(open_.back());
    open_.pop_back();
    add(close(std::move(f)));
  }

  Part root;

 private:
  struct Frame {
    NodeKind kind;
    const TypeInfo* type;
    std::vector<std::string> keys;
    std::vector<Part> parts;
  };

  void add(Part p) {
    if (open_.empty())
      root = std::move(p);
    else
      open_.back().parts.push_back(std::move(p));
  }

  static Part close(Frame f) {
    Part out;
    if (f.kind == NodeKind::kOptional || f.kind == NodeKind::kVariant) {
      if (!f.parts.empty()) return std::move(f.parts[0]);
      out.tree.kind = Kind::kNone;
      return out;
    }
    if (f.kind == NodeKind::kAggregate && f.type->name.ends_with("random::Key")) {
      Part key = std::move(f.parts.at(0));
      key.is_key.assign(key.is_key.size(), true);
      return key;
    }
    bool dict = f.kind == NodeKind::kMap || f.kind == NodeKind::kAggregate;
    out.tree.kind = dict ? Kind::kDict : f.kind == NodeKind::kTuple ? Kind::kTuple : Kind::kList;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < f.parts.size(); ++i) {
      if (f.kind == NodeKind::kAggregate) f.keys.emplace_back(f.type->field_names[i]);
      if (!f.parts[i].absent) order.push_back(i);
    }
    if (dict)
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return f.keys[a] < f.keys[b]; });
    for (std::size_t i : order) {
      out.tree.children.push_back(std::move(f.parts[i].tree));
      if (dict) out.tree.keys.push_back(f.keys[i]);
      out.leaf.insert(out.leaf.end(), f.parts[i].leaf.begin(), f.parts[i].leaf.end());
      out.is_key.insert(out.is_key.end(), f.parts[i].is_key.begin(), f.parts[i].is_key.end());
    }
    return out;
  }

  std::vector<Frame> open_;
  std::size_t next_ = 0;
};

}  // namespace

std::size_t PyTree::num_leaves() const {
  if (kind == Kind::kLeaf) return 1;
  std::size_t n = 0;
  for (const PyTree& c : children) n += c.num_leaves();
  return n;
}

std::string PyTree::to_string() const {
  switch (kind) {
    case Kind::kLeaf: return "*";
    case Kind::kNone: return "None";
    default: break;
  }
  std::string inner;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i) inner += ", ";
    if (kind == Kind::kDict) inner += "'" + keys[i] + "': ";
    inner += children[i].to_string();
  }
  if (kind == Kind::kDict) return "{" + inner + "}";
  if (kind == Kind::kList) return "[" + inner + "]";
  if (kind == Kind::kCustom) return custom_name + "(" + inner + ")";
  return "(" + inner + (children.size() == 1 ? ",)" : ")");
}

bool PyTree::fits(const PyTree& other) const {
  auto row = [](Kind k) {
    return k == Kind::kTuple || k == Kind::kList || k == Kind::kCustom ? Kind::kTuple : k;
  };
  bool custom = kind == Kind::kCustom || other.kind == Kind::kCustom;
  if (children.size() != other.children.size()) return false;
  if (custom ? children.empty() != other.children.empty() : row(kind) != row(other.kind))
    return false;
  if (!custom && keys != other.keys) return false;
  for (std::size_t i = 0; i < children.size(); ++i)
    if (!children[i].fits(other.children[i])) return false;
  return true;
}

PyTreeView to_pytree(const Structure& structure) {
  Collector c;
  std::vector<char> dummies(static_cast<std::size_t>(structure.num_leaves()));
  std::vector<void*> leaves;
  for (char& d : dummies) leaves.push_back(&d);
  structure.walk(c, leaves);
  return {std::move(c.root.tree), std::move(c.root.leaf), std::move(c.root.is_key)};
}

}  // namespace xylem::internal
