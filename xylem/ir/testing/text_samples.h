#pragma once

#include <string>
#include <vector>

#include "xylem/ir/graph.h"

namespace xylem::ir::testing {

// Small verified graphs which together use every op of the op table, every kind of attribute and
// type, captures, several results and locations.
const std::vector<GraphPtr>& sample_graphs();

// Those of them that StableHLO text can express.
std::vector<GraphPtr> stablehlo_samples();

// The names of all ops of a graph, regions included.
void collect_ops(const Graph& graph, std::vector<std::string>& out);

}  // namespace xylem::ir::testing
