#pragma once

#include "xylem/compiler/lowering/lowering.h"

namespace xylem::compiler {

// A step that calls a function of the host.
void lower_callback(Lowering& l, const ir::Op& op);

}  // namespace xylem::compiler
