#pragma once

#include "xylem/ir/graph.h"

namespace xylem::ir {

// The same program in StableHLO and CHLO ops alone: every xylem.* op, in regions too, is replaced
// by its decomposition (OpDef::expand) until none is left. What text, artifacts and foreign plugins
// take. Throws UserError naming the op if one refuses. Graphs without such ops come back as they
// are.
GraphPtr legalize(const GraphPtr& graph);
// Every graph of the module.
Module legalize(const Module& module);

}  // namespace xylem::ir
