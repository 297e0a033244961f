#include "xylem/ir/effects.h"

#include <algorithm>

#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/custom.h"

namespace xylem::ir {
namespace {

// A call says whether it has one; one without results can only be there for it.
bool calls_with_effect(const Op& op) {
  return op.results.empty() || op.attrs.flag("has_side_effect");
}

}  // namespace

bool has_effect(const Op& op) {
  if (op.def->is(kEffect) && (op.def != &ops::kCustomCall || calls_with_effect(op))) return true;
  return std::any_of(op.regions.begin(), op.regions.end(),
                     [](const GraphPtr& r) { return r && has_effect(*r); });
}

bool has_effect(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(),
                     [](const Op& op) { return has_effect(op); });
}

}  // namespace xylem::ir
