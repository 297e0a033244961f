#pragma once

#include <string>
#include <string_view>

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// The label of an attribute that is absent or of another kind ("pad_i3"); empty where StableHLO's
// specification has none.
std::string input_label(const OpDef& def, std::string_view attr);

}  // namespace xylem::ir::ops
