#pragma once

#include <string>

#include "xylem/ir/graph.h"

namespace xylem::internal {

// The name of JAX's primitive for an op, or the op's own without its dialect.
std::string primitive_name(const ir::Op& op);
// "f32[2,3]", as JAX writes types.
std::string jax_type_text(const ir::Type& t);

}  // namespace xylem::internal
