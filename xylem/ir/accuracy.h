#pragma once

#include "xylem/ir/graph.h"

namespace xylem::ir {

// An op's `result_accuracy` is met or refused: UserError at the op if it asks for a tolerance below
// the bound that its definition states (`OpDef::max_ulp`). DEFAULT and HIGHEST are what is always
// computed. An absolute tolerance promises nothing for large results, so it does not count.
// Source: StableHLO's specification, result_accuracy.
void check_accuracy(const Op& op, DType result);
// All ops of a graph and its regions.
void check_accuracy(const Graph& graph);

}  // namespace xylem::ir
