#include "xylem/ir/effects.h"

#include <algorithm>

#include "xylem/ir/op_def.h"

namespace xylem::ir {

bool has_effect(const Op& op) {
  if (op.def->is(kEffect)) return true;
  return std::any_of(op.regions.begin(), op.regions.end(),
                     [](const GraphPtr& r) { return r && has_effect(*r); });
}

bool has_effect(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(),
                     [](const Op& op) { return has_effect(op); });
}

}  // namespace xylem::ir
