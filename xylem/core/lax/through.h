#pragma once

#include <span>
#include <vector>

#include "xylem/core/internal/function_ref.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/builder.h"

// Rules of an op by those of a program with its meaning.
namespace xylem::transform {

// Appends the program to a builder; operands are values of the builder. One value per result.
using Body =
    internal::FunctionRef<std::vector<ir::ValueId>(ir::Builder&, std::span<const ir::ValueId>)>;

void jvp_through(JvpCall& call, Body body);
void batch_through(BatchCall& call, Body body);

// Types of the operands without the batch dimension, and of the results they lead to.
std::vector<ir::Type> unbatched_types(const BatchCall& call);
std::vector<ir::Type> unbatched_results(const BatchCall& call);

}  // namespace xylem::transform
