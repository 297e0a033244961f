#pragma once

#include <span>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

namespace xylem::ir {

// Evaluates a graph with the reference evaluations of the op table: slow, obvious, the reference
// for compiled code. Values are freed after their last use. Arguments must have the types of the
// parameters (UserError otherwise). Thread safe.
std::vector<HostArray> evaluate(const Graph& graph, std::span<const HostArray> args);

}  // namespace xylem::ir
