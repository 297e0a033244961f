#pragma once

#include <span>
#include <string>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {

// What the specification demands of a call beyond the types that its shape rule sees: values of
// operands that are constants of the same graph (`dynamic_pad_c3`), bounds of sizes, results whose
// sizes must be known. `operands` are the call's operands as values of `graph`. Throws
// ConstraintError. Costs next to nothing for ops that none of this concerns.
void check_static(const OpCall& call, std::span<const Type> results, const Graph& graph,
                  std::span<const ValueId> operands);

// The constraint that result `index` of type `written` breaks where the op's rule gives `inferred`,
// as result_label, where the specification has a label of its own for that result or difference.
std::string result_label_at(const OpDef& def, std::size_t index, const Type& written,
                            const Type& inferred);

}  // namespace xylem::ir
