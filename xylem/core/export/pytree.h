#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xylem/base/structure.h"

namespace xylem::internal {

// A structure as JAX has it: what jax.export serializes.
struct PyTree {
  enum class Kind : std::uint8_t { kLeaf, kNone, kTuple, kList, kDict, kCustom };
  Kind kind = Kind::kLeaf;
  std::vector<PyTree> children;
  std::vector<std::string> keys;  // of a dict, ascending
  std::string custom_name, custom_data;

  std::size_t num_leaves() const;
  // "({'a': *, 'b': *}, [*])"
  std::string to_string() const;
  // The same shape of the tree: as tuples and lists (and registered types of JAX) count what has as
  // many children.
  bool fits(const PyTree& other) const;
};

// The structure's tree and, for each of its leaves in JAX's order, the number of the leaf here. A
// struct is a dict of its fields, an undefined leaf or empty optional None; static values take no
// part. A random::Key is a leaf, as keys are in JAX.
struct PyTreeView {
  PyTree tree;
  std::vector<std::size_t> leaf;
  std::vector<bool> is_key;  // per leaf of `leaf`
};
PyTreeView to_pytree(const Structure& structure);

}  // namespace xylem::internal
