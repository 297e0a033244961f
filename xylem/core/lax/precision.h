#pragma once

#include "xylem/core/lax.h"
#include "xylem/ir/attr.h"

namespace xylem::internal {

// Sets precision_config of a product of matrices, for both operands; nothing for kDefault.
void set_precision(ir::Attrs& attrs, lax::Precision precision);

}  // namespace xylem::internal
