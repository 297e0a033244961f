#pragma once

#include <span>

#include "xylem/ir/builder.h"
#include "xylem/ir/graph.h"

namespace xylem::compiler {

// Elementary functions as straight-line arithmetic that every emitter has: add, subtract, multiply,
// divide, sqrt, compare, select, bit operations, conversions, round_nearest_even, kernel.fma and
// kernel.ldexp, and one `if` around the range reduction of huge angles. f16, bf16 and narrower
// types compute in f32 and round once. docs/accuracy.md lists the errors.

// Rewrites every transcendental op of a kernel body, regions included. Other ops, parameters and
// results stay as they are. Linear in the size of the body.
ir::GraphPtr expand_math(const ir::Graph& body);

// Whether ops of this kind have an expansion, for some dtypes at least.
bool has_expansion(const ir::OpDef& def);

// Appends the expansion of `op` on `operands` and returns its result; kNoValue, and nothing
// appended, if the op needs none.
ir::ValueId expand_op(ir::Builder& builder, const ir::Op& op,
                      std::span<const ir::ValueId> operands);

}  // namespace xylem::compiler
