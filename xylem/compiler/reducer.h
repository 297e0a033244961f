#pragma once

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

namespace xylem::compiler {

// The op of a one-op reduction region if it is associative and has an identity (add, multiply,
// maximum, minimum, and, or, xor); null otherwise.
const ir::OpDef* known_reducer(const ir::Graph& region);

// The scalar e with e op x == x for every x: -0.0, 1, -inf or the least integer, …
HostArray reducer_identity(const ir::OpDef& op, DType dtype);

}  // namespace xylem::compiler
