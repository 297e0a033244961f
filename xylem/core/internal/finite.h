#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "xylem/core/internal/trace.h"
#include "xylem/ir/graph.h"

namespace xylem::internal {

// Whether results are to be looked at.
bool checks_values();
// Throws FloatingPointError for a NaN or infinity that this thread asked for, in results of `what`.
void check_values(std::span<const Array> results, std::string_view what, SourceLoc where);
// What jitted calls do: if a result is bad, runs the graph again with the reference interpreter and
// names the first op that made a bad value of good ones.
void check_program(const ir::Graph& graph, std::span<const runtime::BufferPtr> args,
                   std::span<const Array> results, std::string_view name, SourceLoc where);

}  // namespace xylem::internal
