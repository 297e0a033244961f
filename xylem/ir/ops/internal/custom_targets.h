#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// Whether the interpreter gives this custom_call target a meaning.
bool is_known_target(std::string_view target);

// What custom_call's target computes. UserError for targets without a meaning here.
std::vector<HostArray> evaluate_custom_call(const EvalCall& call);

}  // namespace xylem::ir::ops
