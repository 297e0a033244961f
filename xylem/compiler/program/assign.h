#pragma once

#include "xylem/compiler/lowering/lowering.h"
#include "xylem/compiler/program/program.h"

namespace xylem::compiler {

// Gives every buffer its place and turns lowered steps into those of the program: results are
// written where they are wanted, results take over donated parameters, in-place updates share
// memory, the rest lies in one arena where lifetimes do not overlap.
void assign_buffers(const ir::Graph& graph, const Plan& plan, const Options& options,
                    const Lowered& lowered, ProgramImpl* program);

}  // namespace xylem::compiler
