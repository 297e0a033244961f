#include "xylem/checkpoint/leaf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <unordered_map>

#include "xylem/base/error.h"

namespace xylem::checkpoint {
namespace {

constexpr std::string_view kValueTypes[] = {
    "jax.Array", "np.ndarray", "scalar", "string", "None", "Dict", "List", "Tuple", "NamedTuple"};

[[noreturn]] void no_tree(std::string_view what, std::string_view expected,
                          std::string_view given) {
  throw_user_error(
      {what, expected, given, "The checkpoint's metadata is damaged: restore it from a copy"});
}

struct Node {
  std::vector<std::pair<PathKey, int>> children;
  std::unordered_map<std::string, int> by_text;
  int leaf = -1;
};

}  // namespace

std::string_view value_type(LeafKind k) { return kValueTypes[static_cast<std::size_t>(k)]; }

std::optional<LeafKind> parse_value_type(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kValueTypes); ++i)
    if (kValueTypes[i] == name) return static_cast<LeafKind>(i);
  return std::nullopt;
}

std::string param_name(const KeyPath& path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i > 0) out += '.';
    out += path[i].text;
  }
  return out;
}

std::string path_text(const KeyPath& path) {
  std::string out;
  for (const PathKey& k : path) {
    if (k.index) {
      out += fmt::format("[{}]", k.text);
    } else {
      if (!out.empty()) out += '.';
      out += k.text;
    }
  }
  return out.empty() ? "(root)" : out;
}

KeyPath parse_path_text(std::string_view text) {
  KeyPath out;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '[') {
      const std::size_t end = text.find(']', at);
      if (end == std::string_view::npos) break;
      out.push_back({std::string(text.substr(at + 1, end - at - 1)), true});
      // Keys of maps stand in brackets, too, in quotes if they are strings.
      std::string& key = out.back().text;
      if (key.size() >= 2 && (key.front() == '"' || key.front() == '\'') &&
          key.back() == key.front()) {
        key = key.substr(1, key.size() - 2);
        out.back().index = false;
      }
      at = end + 1;
    } else {
      if (text[at] == '.') ++at;
      const std::size_t end = std::min(text.find_first_of(".[", at), text.size());
      out.push_back({std::string(text.substr(at, end - at)), false});
      at = end;
    }
  }
  return out;
}

Leaf array_leaf(KeyPath path, HostArray value, LeafKind kind) {
  Leaf out;
  out.path = std::move(path);
  out.kind = kind;
  out.dtype = value.dtype();
  out.dtype_name = dtype_info(value.dtype()).numpy_name;
  out.shape = value.dims();
  out.value = std::move(value);
  return out;
}

Leaf string_leaf(KeyPath path, std::string text) {
  Leaf out;
  out.path = std::move(path);
  out.kind = LeafKind::kString;
  out.text = std::move(text);
  return out;
}

Leaf empty_leaf(KeyPath path, LeafKind kind) {
  Leaf out;
  out.path = std::move(path);
  out.kind = kind;
  return out;
}

std::vector<LeafInfo> in_tree_order(std::vector<LeafInfo> leaves, std::string_view what) {
  std::deque<Node> nodes(1);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    int at = 0;
    for (const PathKey& key : leaves[i].path) {
      Node& n = nodes[static_cast<std::size_t>(at)];
      const auto [it, added] = n.by_text.emplace(key.text, static_cast<int>(nodes.size()));
      if (added) {
        if (!n.children.empty() && n.children[0].first.index != key.index)
          no_tree(what, "keys or positions in one node",
                  fmt::format("both in the parent of {}", path_text(leaves[i].path)));
        n.children.emplace_back(key, it->second);
        at = it->second;
        nodes.emplace_back();
      } else {
        at = it->second;
      }
    }
    Node& n = nodes[static_cast<std::size_t>(at)];
    if (n.leaf >= 0)
      no_tree(what, "every path once", fmt::format("{} twice", path_text(leaves[i].path)));
    n.leaf = static_cast<int>(i);
  }
  std::vector<LeafInfo> out;
  out.reserve(leaves.size());
  std::vector<int> stack{0};
  while (!stack.empty()) {
    Node& n = nodes[static_cast<std::size_t>(stack.back())];
    stack.pop_back();
    if (n.leaf >= 0) {
      LeafInfo& leaf = leaves[static_cast<std::size_t>(n.leaf)];
      if (n.children.empty()) {
        out.push_back(std::move(leaf));
        continue;
      }
      // Saves in parts leave such placeholders.
      if (leaf.kind < LeafKind::kNone)
        no_tree(what, "leaves without children", path_text(leaf.path));
    }
    if (!n.children.empty() && n.children[0].first.index) {
      std::vector<int> by_position(n.children.size(), -1);
      for (const auto& [key, child] : n.children) {
        std::size_t position = 0;
        const char* end = key.text.data() + key.text.size();
        const auto [p, error] = std::from_chars(key.text.data(), end, position);
        if (error != std::errc() || p != end || position >= by_position.size() ||
            by_position[position] >= 0)
          no_tree(what, fmt::format("positions from 0 to {}", n.children.size() - 1),
                  fmt::format("\"{}\"", key.text));
        by_position[position] = child;
      }
      for (auto it = by_position.rbegin(); it != by_position.rend(); ++it) stack.push_back(*it);
    } else {
      for (auto it = n.children.rbegin(); it != n.children.rend(); ++it)
        stack.push_back(it->second);
    }
  }
  return out;
}

std::string prng_tag(std::string_view implementation) {
  if (implementation == "threefry2x32") return "fry";
  if (implementation == "unsafe_rbg") return "urbg";
  return std::string(implementation);
}

}  // namespace xylem::checkpoint
