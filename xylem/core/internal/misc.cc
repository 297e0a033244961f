#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/internal/api.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/literal.h"
#include "xylem/core/numpy.h"
#include "xylem/core/transforms.h"

namespace xylem {
namespace internal {

SourceLoc current_call_site() { return CallSite::outermost({}); }

Array index_range(std::int64_t lower, std::int64_t n) { return arange(lower, lower + n); }

Array clamp_index(const Array& index, std::size_t n) {
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
