#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/base/tree.h"
#include "xylem/core/array.h"

namespace xylem::checkpoint {

struct NamedArray {
  std::string name;
  HostArray value;
};
// What a file of tensors holds. Names are unique.
using NamedArrays = std::vector<NamedArray>;

namespace internal {
NamedArrays name_leaves(std::span<const std::string> paths, std::span<const Array> leaves);
std::vector<Array> match_leaves(std::span<const std::string> paths, std::span<const Array> like,
                                const NamedArrays& saved, std::string_view what);
}  // namespace internal

// The defined leaves of a tree under their paths (`layers[0].attention.query.kernel`), in order; a
// tree that is one leaf has the name "value". Waits for the arrays.
template <class T>
NamedArrays to_named_arrays(const T& t) {
  return internal::name_leaves(tree::paths<Array>(t), tree::leaves<Array>(t));
}

// A tree like `like`, whose leaves need shape and dtype only (eval_shape), with the saved values.
// UserError that opens with `what` and names the first leaf that is absent, differs in shape or
// dtype, or is not part of the tree.
template <class T>
T from_named_arrays(const T& like, const NamedArrays& saved, std::string_view what) {
  return tree::unflatten<Array>(
      like,
      internal::match_leaves(tree::paths<Array>(like), tree::leaves<Array>(like), saved, what));
}

}  // namespace xylem::checkpoint
