#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// uniform_quantize(x) {result_types}: floats to a quantised type, or one quantised type to another.
extern const OpDef kUniformQuantize;
// uniform_dequantize(x): (stored - zero) * scale.
extern const OpDef kUniformDequantize;

}  // namespace xylem::ir::ops
