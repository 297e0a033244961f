#pragma once

#include <span>

#include "xylem/ir/graph.h"

namespace xylem::ir {

// Whether a value of the graph, regions included, has a size that is not known, or an op computes
// sizes.
bool has_dynamic_shapes(const Graph& graph);

// The program for arguments of these types: every shape that follows from them is static, sizes and
// what is computed from them alone are constants, ops that take sizes as values have them as
// constant operands, and shape_assertion calls that hold are gone. Sizes that depend on the
// contents of arrays stay dynamic. Calls and composites of open
// shapes give way to their bodies.
//
// `params` are the types of the arguments: static, and instances of the parameters' types. Throws
// UserError where a constraint is broken by these shapes.
GraphPtr refine(const GraphPtr& graph, std::span<const Type> params);

}  // namespace xylem::ir
