#pragma once

#include "xylem/compiler/program/program.h"

namespace xylem::compiler {

// `compile` with the concrete program, for control flow that runs programs as steps.
std::shared_ptr<const ProgramImpl> compile_program(ir::GraphPtr graph, const Options& options);

}  // namespace xylem::compiler
