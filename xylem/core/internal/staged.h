#pragma once

#include <string>
#include <vector>

#include "xylem/core/aot.h"
#include "xylem/core/internal/flat.h"
#include "xylem/ir/graph.h"

namespace xylem::internal {

class Staged {
 public:
  std::string name;
  Structure structure;               // of the tuple of arguments
  std::vector<AbstractValue> types;  // of defined arguments
  FlatTrace traced;
};

// The graph with captured arrays as constants. UserError if one of them is traced.
ir::GraphPtr closed_graph(const Staged& s);
// StableHLO and CHLO alone, as a module whose entry is "main".
ir::Module stablehlo_module(const std::string& name, const ir::GraphPtr& graph);

const std::string& name_of(const JitCache& cache);

}  // namespace xylem::internal
