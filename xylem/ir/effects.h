#pragma once

#include "xylem/ir/graph.h"

namespace xylem::ir {

// Whether an op, or one in its regions, reads or writes state: it keeps its order, runs as often as
// it is reached, and is never removed, merged or made twice. A custom_call does if has_side_effect says
// so or it has no results, as in XLA.
bool has_effect(const Op& op);
bool has_effect(const Graph& graph);

}  // namespace xylem::ir
