#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// xylem.foreign: an op of a dialect that we do not know, carried so that it can be printed again.
// `op` is its name ("test.thing"), `result_types` the types it was written with, `properties` and
// `attributes` its inherent and discardable attributes. It has any operands and regions, and no
// meaning: evaluation throws UserError.
extern const OpDef kForeign;

}  // namespace xylem::ir::ops
