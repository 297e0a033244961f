#pragma once

#include <string>
#include <string_view>

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// The label of an attribute that is absent or of another kind ("pad_i3"); empty where StableHLO's
// specification has none.
std::string input_label(const OpDef& def, std::string_view attr);

// Labels of the first operand or region that a call with `given` of them lacks, or nothing if the
// specification names none.
std::string missing_operand_label(const OpDef& def, int given);
std::string missing_region_label(const OpDef& def, int given);

}  // namespace xylem::ir::ops
