#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/dims.h"
#include "xylem/base/dtype.h"
#include "xylem/base/host_array.h"

// Trees as checkpoints have them: leaves with key paths, in tree order.
namespace xylem::checkpoint {

// One step of a path: a position in a sequence, or a key of a dictionary or field of a struct.
struct PathKey {
  std::string text;
  bool index = false;
  friend bool operator==(const PathKey&, const PathKey&) = default;
};
using KeyPath = std::vector<PathKey>;

enum class LeafKind : std::uint8_t {
  kArray,   // jax.Array
  kNumpy,   // np.ndarray
  kScalar,  // a number of Python, stored as an array of rank 0
  kString,
  kNone,
  kEmptyDict,
  kEmptyList,
  kEmptyTuple,
  kEmptyStruct,
};
inline bool has_array(LeafKind k) { return k <= LeafKind::kScalar; }
inline bool is_empty_node(LeafKind k) { return k >= LeafKind::kEmptyDict; }
// Orbax's word for it: "jax.Array", "Dict". And back; nothing for others.
std::string_view value_type(LeafKind k);
std::optional<LeafKind> parse_value_type(std::string_view name);

struct LeafInfo {
  KeyPath path;
  LeafKind kind = LeafKind::kNumpy;
  std::optional<DType> dtype;  // nothing for elements that are no numbers
  std::string dtype_name;      // NumPy's and ml_dtypes' name
  Dims shape;
  std::string text;      // of strings
  std::string prng;      // a PRNG key's implementation ("threefry2x32"); the array holds its words
  std::string sharding;  // kArray: what `_sharding` holds, JSON
  Dims shard;            // shape of one device's part; empty: not split
};

// A process's part of an array that several processes save: the box from `start` on, in the array.
struct Part {
  Dims start;
  HostArray value;
  int replica = 0;  // which of Leaf::replicas copies of this box it is
};

// A leaf and its array: all of it as `value`, or `source`, or, where several processes save, this
// process's `parts`. With the last two, dtype and shape must be set.
struct Leaf : LeafInfo {
  HostArray value;
  // Reads a box, when it is written. May be called by several threads.
  std::function<HostArray(const Dims& start, const Dims& shape)> source;
  // Boxes of the shape `shard`, each at a multiple of it. Every process has the leaf, perhaps
  // without parts.
  std::vector<Part> parts;
  int replicas = 1;
};
using LeafTree = std::vector<Leaf>;

// Texts joined with ".", nothing escaped: the name of the parameter in the store.
std::string param_name(const KeyPath& path);
// "layers[0].kernel", for people; and from such a path, as tree::paths gives them.
std::string path_text(const KeyPath& path);
KeyPath parse_path_text(std::string_view text);

// Makers of leaves.
Leaf array_leaf(KeyPath path, HostArray value, LeafKind kind = LeafKind::kNumpy);
Leaf string_leaf(KeyPath path, std::string text);
Leaf empty_leaf(KeyPath path, LeafKind kind);

// The leaves in the order of a walk through their tree: subtrees together, sequences by index,
// dictionaries in order of first appearance. UserError, opened by `what`, if they are no tree: a
// path that is the beginning of another (dropped if it holds nothing), two equal paths, keys and
// positions in one node, positions with gaps.
std::vector<LeafInfo> in_tree_order(std::vector<LeafInfo> leaves, std::string_view what);

// JAX's name of a PRNG implementation in dtypes: "fry" for "threefry2x32".
std::string prng_tag(std::string_view implementation);

}  // namespace xylem::checkpoint
