#include "xylem/base/structure.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "xylem/base/error.h"

namespace xylem {
namespace {

constexpr TypeInfo kLeafType{"leaf", nullptr, StaticFormat::kOpaque, 1};
constexpr TypeInfo kListType{"list", nullptr, StaticFormat::kOpaque, 2};
constexpr TypeInfo kTupleType{"tuple", nullptr, StaticFormat::kOpaque, 3};
constexpr TypeInfo kMapType{"map", nullptr, StaticFormat::kOpaque, 4};

bool same_type(const TypeInfo* a, const TypeInfo* b) {
  if (a == b) return true;
  return a->hash == b->hash && a->name == b->name;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 32);
}

std::uint64_t hash_bytes(std::uint64_t h, std::string_view s) {
  h = mix(h, s.size());
  while (!s.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = s.size() < 8 ? s.size() : 8;
    std::memcpy(&word, s.data(), n);
    h = mix(h, word);
    s.remove_prefix(n);
  }
  return h;
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// "xylem::nn::Linear<xylem::A>" -> "Linear<xylem::A>".
std::string_view short_name(std::string_view s) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth == 0 && c == ':' && i > 0 && s[i - 1] == ':') begin = i + 1;
  }
  return s.substr(begin);
}

template <class T>
T read(std::string_view bytes) {
  T v{};
  std::memcpy(&v, bytes.data(), sizeof(T) < bytes.size() ? sizeof(T) : bytes.size());
  return v;
}

std::int64_t read_signed(std::string_view b) {
  switch (b.size()) {
    case 1: return read<std::int8_t>(b);
    case 2: return read<std::int16_t>(b);
    case 4: return read<std::int32_t>(b);
    default: return read<std::int64_t>(b);
  }
}

void join_path(std::string& path, std::string_view edge) {
  if (path.empty() && !edge.empty() && edge[0] == '.') edge.remove_prefix(1);
  path += edge;
}

}  // namespace

// ---- Structure

bool Structure::node_equal(const Structure& a, const Node& x, const Structure& b, const Node& y,
                           bool exact) {
  if (x.kind != y.kind) return false;
  // Counts under the node follow from the nodes below it.
  if (x.children != y.children) return false;
  if (x.kind == NodeKind::kVariant && x.data_size != y.data_size) return false;
  if (x.kind == NodeKind::kMap) {
    if (x.integer_keys != y.integer_keys) return false;
    for (std::uint32_t c = 0; c < x.children; ++c)
      if (a.keys_[x.data + c] != b.keys_[y.data + c]) return false;
  }
  if (x.kind == NodeKind::kAggregate && x.type->field_names != y.type->field_names) {
    for (std::uint32_t c = 0; c < x.children; ++c)
      if (x.type->field_names[c] != y.type->field_names[c]) return false;
  }
  if (!exact) return true;
  if (x.empty != y.empty || !same_type(x.type, y.type)) return false;
  return x.kind != NodeKind::kStatic || a.static_bytes(x) == b.static_bytes(y);
}

bool operator==(const Structure& a, const Structure& b) {
  if (a.hash_ != b.hash_ || a.nodes_.size() != b.nodes_.size()) return false;
  for (std::size_t i = 0; i < a.nodes_.size(); ++i)
    if (!Structure::node_equal(a, a.nodes_[i], b, b.nodes_[i], true)) return false;
  return true;
}

bool Structure::matches(const Structure& other) const {
  if (nodes_.size() != other.nodes_.size()) return false;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!node_equal(*this, nodes_[i], other, other.nodes_[i], false)) return false;
  return true;
}

void Structure::finish() {
  std::uint64_t h = 0x51ed270b9f8a6c3du;
  for (const Node& n : nodes_) {
    h = mix(h, static_cast<std::uint64_t>(n.kind) | std::uint64_t{n.empty} << 8 |
                   std::uint64_t{n.children} << 16);
    h = mix(h, n.type->hash);
    if (n.kind == NodeKind::kStatic) h = hash_bytes(h, static_bytes(n));
    if (n.kind == NodeKind::kVariant) h = mix(h, n.data_size);
    if (n.kind == NodeKind::kMap)
      for (std::uint32_t c = 0; c < n.children; ++c) h = hash_bytes(h, keys_[n.data + c]);
  }
  hash_ = h;
}

bool Structure::leaf_empty(int i) const {
  for (const Node& n : nodes_)
    if (n.kind == NodeKind::kLeaf && i-- == 0) return n.empty;
  throw_user_error({"Structure::leaf_empty", fmt::format("leaf index under {}", num_leaves()),
                    "a larger or negative index is given", "Count leaves from 0"});
}

bool Structure::is_leaf() const {
  std::size_t i = 0;
  while (i < nodes_.size() && nodes_[i].children == 1 &&
         (nodes_[i].kind == NodeKind::kOptional || nodes_[i].kind == NodeKind::kVariant))
    ++i;
  return i < nodes_.size() && nodes_[i].kind == NodeKind::kLeaf;
}

std::size_t Structure::child_node(std::size_t i, std::uint32_t c) const {
  std::size_t j = i + 1;
  for (; c > 0; --c) j += nodes_[j].nodes;
  return j;
}

std::string_view Structure::child_label(const Node& parent, std::uint32_t c) const {
  if (parent.kind == NodeKind::kAggregate) return parent.type->field_names[c];
  if (parent.kind == NodeKind::kMap) return keys_[parent.data + c];
  return {};
}

std::string Structure::edge(const Node& parent, std::uint32_t c) const {
  switch (parent.kind) {
    case NodeKind::kAggregate: return fmt::format(".{}", parent.type->field_names[c]);
    case NodeKind::kList:
    case NodeKind::kTuple: return fmt::format("[{}]", c);
    case NodeKind::kMap: {
      const std::string& k = keys_[parent.data + c];
      return fmt::format("[{}]", parent.integer_keys ? k : quoted(k));
    }
    default: return {};
  }
}

std::string Structure::print_static(const Node& n) const {
  const std::string_view b = static_bytes(n);
  switch (n.type->format) {
    case StaticFormat::kBool: return read<std::uint8_t>(b) ? "true" : "false";
    case StaticFormat::kSigned: return fmt::format("{}", read_signed(b));
    case StaticFormat::kUnsigned: return fmt::format("{}", read<std::uint64_t>(b));
    case StaticFormat::kFloat:
      return b.size() == 4 ? fmt::format("{}", read<float>(b)) : fmt::format("{}", read<double>(b));
    case StaticFormat::kString: return quoted(b);
    case StaticFormat::kIntList: {
      std::string s = "[";
      for (std::size_t i = 0; i + 8 <= b.size(); i += 8)
        s += fmt::format("{}{}", i ? "," : "", read<std::int64_t>(b.substr(i)));
      return s + "]";
    }
    case StaticFormat::kPointer: return fmt::format("{:#x}", read<std::uint64_t>(b));
    case StaticFormat::kOpaque: break;
  }
  std::string s(short_name(n.type->name));
  if (b.empty()) return s;
  s += ':';
  for (std::size_t i = 0; i < b.size() && i < 16; ++i)
    s += fmt::format("{:02x}", static_cast<unsigned char>(b[i]));
  return b.size() > 16 ? s + "..." : s;
}

std::size_t Structure::print_node(std::size_t i, std::string& out) const {
  const Node& n = nodes_[i++];
  const std::size_t before = out.size();
  const char* close = "";
  switch (n.kind) {
    case NodeKind::kLeaf: out += n.empty ? '-' : '*'; return i;
    case NodeKind::kStatic: out += print_static(n); return i;
    case NodeKind::kOptional:
      if (n.children == 0) out += "None";
      break;
    case NodeKind::kAggregate:
      out += short_name(n.type->name);
      // Spelled alike by all compilers.
      if (const auto args = out.find("Static<", before); args == before) out.resize(before + 6);
      out += '(';
      close = ")";
      break;
    case NodeKind::kVariant:
      out += fmt::format("variant{}(", n.data_size);
      close = ")";
      break;
    case NodeKind::kList:
      out += '[';
      close = "]";
      break;
    case NodeKind::kTuple:
      out += '(';
      close = n.children == 1 ? ",)" : ")";
      break;
    case NodeKind::kMap:
      out += '{';
      close = "}";
      break;
  }
  for (std::uint32_t c = 0; c < n.children; ++c) {
    if (c > 0) out += ", ";
    if (n.kind == NodeKind::kAggregate) out += fmt::format("{}=", n.type->field_names[c]);
    if (n.kind == NodeKind::kMap) {
      const std::string& k = keys_[n.data + c];
      out += n.integer_keys ? k : quoted(k);
      out += ": ";
    }
    i = print_node(i, out);
  }
  out += close;
  return i;
}

std::string Structure::to_string() const {
  std::string out;
  if (!nodes_.empty()) print_node(0, out);
  return out;
}

std::size_t Structure::collect_paths(std::size_t i, const std::string& path,
                                     std::vector<std::string>& out) const {
  const Node& n = nodes_[i];
  if (n.leaves == 0) return i + n.nodes;
  if (n.kind == NodeKind::kLeaf) {
    out.push_back(path);
    return i + 1;
  }
  ++i;
  for (std::uint32_t c = 0; c < n.children; ++c) {
    std::string p = path;
    join_path(p, edge(n, c));
    i = collect_paths(i, p, out);
  }
  return i;
}

std::vector<std::string> Structure::paths() const {
  std::vector<std::string> out;
  if (!nodes_.empty()) collect_paths(0, "", out);
  return out;
}

// ---- parts and dynamic structures

int Structure::num_children() const {
  if (nodes_.empty()) return 0;
  int n = 0;
  std::size_t j = 1;
  for (std::uint32_t c = 0; c < nodes_[0].children; ++c, j += nodes_[j].nodes)
    n += nodes_[j].kind != NodeKind::kStatic;
  return n;
}

std::uint32_t Structure::dynamic_child(int i) const {
  int left = i;
  std::size_t j = 1;
  for (std::uint32_t c = 0; !nodes_.empty() && c < nodes_[0].children; ++c, j += nodes_[j].nodes)
    if (nodes_[j].kind != NodeKind::kStatic && left-- == 0) return c;
  throw_user_error({"Structure", fmt::format("child index in [0, {})", num_children()),
                    fmt::format("index is {} in {}", i, to_string()), "Count children from 0"});
}

Structure Structure::child(int i) const {
  Structure s;
  s.append_subtree(*this, child_node(0, dynamic_child(i)));
  s.finish();
  return s;
}

std::string Structure::child_name(int i) const {
  return std::string(child_label(nodes_[0], dynamic_child(i)));
}

int Structure::find_child(std::string_view name) const {
  std::string known;
  for (int i = 0; i < num_children(); ++i) {
    const std::string n = child_name(i);
    if (n == name) return i;
    known += fmt::format("{}{}", i ? ", " : "", n);
  }
  throw_user_error({"Tree::child", fmt::format("no child is named \"{}\"", name),
                    known.empty() ? std::string("the node has no named children")
                                  : fmt::format("the names are {}", known),
                    "Use one of these names, or an index"});
}

int Structure::child_first_leaf(int i) const {
  const std::size_t node = child_node(0, dynamic_child(i));
  int leaves = 0;
  for (std::size_t j = 0; j < node; ++j) leaves += nodes_[j].kind == NodeKind::kLeaf;
  return leaves;
}

void Structure::append_subtree(const Structure& from, std::size_t i) {
  const std::size_t end = i + from.nodes_[i].nodes;
  for (; i < end; ++i) {
    Node n = from.nodes_[i];
    if (n.kind == NodeKind::kStatic) {
      const std::string_view b = from.static_bytes(n);
      n.data = static_cast<std::uint32_t>(bytes_.size());
      bytes_ += b;
    } else if (n.kind == NodeKind::kMap) {
      const auto first = from.keys_.begin() + n.data;
      n.data = static_cast<std::uint32_t>(keys_.size());
      keys_.insert(keys_.end(), first, first + n.children);
    }
    nodes_.push_back(n);
  }
}

Structure Structure::of_leaf(bool empty) {
  Structure s;
  s.nodes_.push_back(
      Node{.kind = NodeKind::kLeaf, .empty = empty, .leaves = 1, .type = &kLeafType});
  s.finish();
  return s;
}

Structure Structure::branch(NodeKind kind, const TypeInfo& type,
                            std::span<const Structure> children,
                            std::span<const std::string> keys) {
  Structure s;
  s.nodes_.push_back(
      Node{.kind = kind, .children = static_cast<std::uint32_t>(children.size()), .type = &type});
  s.keys_.assign(keys.begin(), keys.end());
  for (const Structure& c : children) {
    XYLEM_CHECK(!c.nodes_.empty(), "a child has no node");
    s.append_subtree(c, 0);
    s.nodes_[0].leaves += c.nodes_[0].leaves;
  }
  s.nodes_[0].nodes = static_cast<std::uint32_t>(s.nodes_.size());
  s.finish();
  return s;
}

Structure Structure::list(std::span<const Structure> children) {
  return branch(NodeKind::kList, kListType, children);
}

Structure Structure::tuple(std::span<const Structure> children) {
  return branch(NodeKind::kTuple, kTupleType, children);
}

Structure Structure::map(std::span<const std::string> keys, std::span<const Structure> children) {
  XYLEM_CHECK(keys.size() == children.size(), "one key for each child");
  for (std::size_t i = 1; i < keys.size(); ++i)
    if (!(keys[i - 1] < keys[i]))
      throw_user_error({"Structure::map", "keys must be ascending and different",
                        fmt::format("\"{}\" is followed by \"{}\"", keys[i - 1], keys[i]),
                        "Sort the keys and remove duplicates"});
  return branch(NodeKind::kMap, kMapType, children, keys);
}

Structure Structure::compose(const Structure& inner) const {
  XYLEM_CHECK(!inner.nodes_.empty(), "the inner structure has no node");
  Structure s;
  // Nodes are copied one by one; counts of the open ancestors are set when their subtree ends.
  struct Open {
    std::size_t at;
    std::size_t end;  // in this->nodes_
  };
  std::vector<Open> open;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& n = nodes_[i];
    if (n.kind == NodeKind::kLeaf) {
      s.append_subtree(inner, 0);
    } else {
      const std::size_t at = s.nodes_.size();
      Structure one;
      one.nodes_.push_back(n);
      one.nodes_[0].nodes = 1;
      if (n.kind == NodeKind::kStatic) {
        one.bytes_ = std::string(static_bytes(n));
        one.nodes_[0].data = 0;
      } else if (n.kind == NodeKind::kMap) {
        one.keys_.assign(keys_.begin() + n.data, keys_.begin() + n.data + n.children);
        one.nodes_[0].data = 0;
      }
      s.append_subtree(one, 0);
      s.nodes_[at].leaves = n.leaves * inner.nodes_[0].leaves;
      open.push_back({at, i + n.nodes});
    }
    while (!open.empty() && open.back().end == i + 1) {
      s.nodes_[open.back().at].nodes = static_cast<std::uint32_t>(s.nodes_.size() - open.back().at);
      open.pop_back();
    }
  }
  s.finish();
  return s;
}

Structure Structure::with_empty(std::span<const std::uint8_t> empty) const {
  XYLEM_CHECK(static_cast<int>(empty.size()) == num_leaves(), "one mark for each leaf");
  Structure s = *this;
  std::size_t leaf = 0;
  for (Node& n : s.nodes_)
    if (n.kind == NodeKind::kLeaf) n.empty = empty[leaf++] != 0;
  s.finish();
  return s;
}

std::size_t Structure::walk_node(std::size_t i, TreeVisitor& v, std::span<void* const> leaves,
                                 std::size_t& next_leaf) const {
  const Node& n = nodes_[i++];
  if (n.kind == NodeKind::kLeaf) {
    v.leaf(leaves[next_leaf++], n.empty);
    return i;
  }
  if (n.kind == NodeKind::kStatic) {
    const std::string_view b = static_bytes(n);
    v.static_value(*n.type, b.data(), b.size());
    return i;
  }
  v.begin(n.kind, *n.type, n.children, n.kind == NodeKind::kVariant ? n.data_size : 0);
  for (std::uint32_t c = 0; c < n.children; ++c) {
    if (n.kind == NodeKind::kMap) {
      const std::string& k = keys_[n.data + c];
      if (n.integer_keys)
        v.key(static_cast<std::int64_t>(std::stoll(k)));
      else
        v.key(std::string_view(k));
    }
    i = walk_node(i, v, leaves, next_leaf);
  }
  v.end();
  return i;
}

void Structure::walk(TreeVisitor& v, std::span<void* const> leaves) const {
  XYLEM_CHECK(static_cast<int>(leaves.size()) == num_leaves(), "one pointer for each leaf");
  std::size_t next = 0;
  if (!nodes_.empty()) walk_node(0, v, leaves, next);
}

// ---- StructureBuilder

void StructureBuilder::leaf(void*, bool empty) {
  structure_.nodes_.push_back(
      {.kind = NodeKind::kLeaf, .empty = empty, .leaves = 1, .type = &kLeafType});
}

void StructureBuilder::static_value(const TypeInfo& type, const void* bytes, std::size_t size) {
  structure_.nodes_.push_back({.kind = NodeKind::kStatic,
                               .data = static_cast<std::uint32_t>(structure_.bytes_.size()),
                               .data_size = static_cast<std::uint32_t>(size),
                               .type = &type});
  if (size > 0) structure_.bytes_.append(static_cast<const char*>(bytes), size);
}

void StructureBuilder::begin(NodeKind kind, const TypeInfo& type, std::size_t children,
                             std::size_t variant_index) {
  Structure& s = structure_;
  open_.push_back(static_cast<std::uint32_t>(s.nodes_.size()));
  s.nodes_.push_back({.kind = kind,
                      .children = static_cast<std::uint32_t>(children),
                      .data_size = static_cast<std::uint32_t>(variant_index),
                      .type = &type});
  if (kind == NodeKind::kMap) {
    // Keys of one map are adjacent although maps nest: their places are reserved here.
    s.nodes_.back().data = static_cast<std::uint32_t>(s.keys_.size());
    s.keys_.resize(s.keys_.size() + children);
  }
}

void StructureBuilder::key(std::string_view k) {
  Structure::Node& n = structure_.nodes_[open_.back()];
  // data_size of a map that is being built counts its keys so far.
  structure_.keys_[n.data + n.data_size++] = k;
}

void StructureBuilder::key(std::int64_t k) {
  structure_.nodes_[open_.back()].integer_keys = true;
  key(std::string_view(fmt::format("{}", k)));
}

void StructureBuilder::end() {
  Structure& s = structure_;
  const std::size_t at = open_.back();
  open_.pop_back();
  Structure::Node& n = s.nodes_[at];
  n.nodes = static_cast<std::uint32_t>(s.nodes_.size() - at);
  for (std::size_t j = at + 1; j < s.nodes_.size(); j += s.nodes_[j].nodes)
    n.leaves += s.nodes_[j].leaves;
  if (n.kind == NodeKind::kMap) n.data_size = 0;
}

Structure StructureBuilder::take() {
  structure_.finish();
  Structure s = std::move(structure_);
  structure_ = {};
  open_.clear();
  return s;
}

// ---- PathVisitor

void PathVisitor::child_done() {
  if (!frames_.empty()) ++frames_.back().next;
}

void PathVisitor::leaf(void* leaf, bool empty) {
  leaf_at_path(leaf, empty);
  child_done();
}

void PathVisitor::static_value(const TypeInfo&, const void*, std::size_t) { child_done(); }

void PathVisitor::begin(NodeKind kind, const TypeInfo& type, std::size_t, std::size_t) {
  frames_.push_back({kind, &type, 0, {}});
}

void PathVisitor::key(std::string_view k) { frames_.back().key = fmt::format("[{}]", quoted(k)); }
void PathVisitor::key(std::int64_t k) { frames_.back().key = fmt::format("[{}]", k); }

void PathVisitor::end() {
  frames_.pop_back();
  child_done();
}

std::string PathVisitor::path() const {
  std::string p;
  for (const Frame& f : frames_) {
    switch (f.kind) {
      case NodeKind::kAggregate:
        if (!p.empty()) p += '.';
        p += f.type->field_names[f.next];
        break;
      case NodeKind::kList:
      case NodeKind::kTuple: p += fmt::format("[{}]", f.next); break;
      case NodeKind::kMap: p += f.key; break;
      default: break;
    }
  }
  return p;
}

// ---- description for messages

std::string Structure::describe_node(std::size_t i) const {
  const Node& n = nodes_[i];
  switch (n.kind) {
    case NodeKind::kLeaf: return n.empty ? "an empty leaf" : "a leaf";
    case NodeKind::kStatic: return print_static(n);
    case NodeKind::kOptional: return n.children ? "a value" : "no value";
    case NodeKind::kList: return fmt::format("a list of {}", n.children);
    case NodeKind::kTuple: return fmt::format("a tuple of {}", n.children);
    case NodeKind::kVariant: return fmt::format("alternative {}", n.data_size);
    case NodeKind::kAggregate: return std::string(short_name(n.type->name));
    case NodeKind::kMap: break;
  }
  std::string s = "a map with keys ";
  for (std::uint32_t c = 0; c < n.children; ++c)
    s += fmt::format("{}{}", c ? ", " : "", keys_[n.data + c]);
  return s;
}

}  // namespace xylem
