#pragma once

#include "xylem/core/transform/rules.h"

namespace xylem::transform {

// Calls of host functions, and checks.
void register_callback_rules(RuleTable& table);

}  // namespace xylem::transform
