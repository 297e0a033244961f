#include <algorithm>
#include <cstdint>
#include <string>

#include "xylem/base/error.h"
#include "xylem/core/internal/api.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/literal.h"
#include "xylem/core/numpy.h"
#include "xylem/core/transforms.h"

namespace xylem {
namespace internal {

SourceLoc current_call_site() { return CallSite::outermost({}); }

Array index_range(std::int64_t lower, std::int64_t upper) {
  if (lower < INT32_MIN || upper > INT32_MAX)
    throw_user_error({"fori_loop", "bounds that i32 holds",
                      "[" + std::to_string(lower) + ", " + std::to_string(upper) + ")",
                      "Count from zero and add the offset in the body, or give array bounds"},
                     current_call_site());
  return arange(lower, std::max(lower, upper));
}

void check_structures(const char* what, const Structure& expected, const Structure& given) {
  if (expected == given) return;
  throw_user_error({what, "one structure throughout: the same keys, lengths and static fields",
                    expected.describe_difference(given),
                    "Return the structure that was taken, or that the first branch returns"},
                   current_call_site());
}

Array clamp_index(const Array& index, std::size_t n) {
  if (n == 0)
    throw_user_error({"switch_", "at least one branch", "none", "Give a function per branch"},
                     current_call_site());
  if (index.ndim() != 0 || !is_integer(index.dtype()))
    throw_user_error({"switch_", "an integer scalar as the index", index.type_string(),
                      "Convert it with astype, or use cond for a bool"},
                     current_call_site());
  return clip(index, 0, static_cast<int>(n) - 1);
}

}  // namespace internal

Array literal(const HostArray& contents) {
  return internal::make_literal(contents.to_contiguous(), contents.dtype(), false);
}

void Axes::expand(std::size_t i, std::size_t count, const Structure& structure, const char* what,
                  std::vector<int>& out) const {
  auto leaves = static_cast<std::size_t>(structure.num_leaves());
  if (!per_value_) {
    out.insert(out.end(), leaves, all_);
    return;
  }
  std::size_t given = trees_.empty() ? each_.size() : trees_.size();
  if (given != count)
    throw_user_error(
        {what, "one entry for each argument or result",
         "there are " + std::to_string(given) + " entries and " + std::to_string(count) + " values",
         "Give one axis for each, or a single number for all"},
        internal::current_call_site());
  if (trees_.empty()) {
    out.insert(out.end(), leaves, each_[i]);
    return;
  }
  for (int axis : tree::broadcast_prefix(trees_[i], structure, what)) out.push_back(axis);
}

}  // namespace xylem
