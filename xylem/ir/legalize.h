#pragma once

#include <functional>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {

// The same graph with every op that `which` names, in regions too, replaced by its decomposition
// (OpDef::expand), and what that brings in as well, until none is left. Throws UserError naming the
// op if it has none. A graph without such ops comes back as it is.
GraphPtr decompose(const GraphPtr& graph, const std::function<bool(const OpDef&)>& which);

// The same program in StableHLO and CHLO ops alone: every xylem.* op, in regions too, is
// decomposed. What text, artifacts and foreign plugins take. Errors as `decompose`.
GraphPtr legalize(const GraphPtr& graph);
// Every graph of the module.
Module legalize(const Module& module);

}  // namespace xylem::ir
