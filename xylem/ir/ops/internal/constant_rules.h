#pragma once

#include <optional>
#include <span>
#include <vector>

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// Values of a call's operands where these are constants.
using Constants = std::span<const std::optional<HostArray>>;

// What an op demands of the values of constant operands, for ops that take sizes as operands.
using ConstantRule = void (*)(const OpCall& call, std::span<const Type> results,
                              Constants constants);

struct ConstantRuleOf {
  const OpDef* def;
  ConstantRule rule;
};
std::vector<ConstantRuleOf> dynamic_constant_rules();
ConstantRuleOf dynamic_conv_constant_rule();
ConstantRuleOf rng_constant_rule();
ConstantRuleOf collective_broadcast_constant_rule();

// Null for ops that demand nothing.
ConstantRule find_constant_rule(const OpDef& def);

// Infers the result of the op whose sizes are attributes, in place of `call`, and holds it against
// the call's result. Broken constraints of `def` are told with the call's name and the same
// number; `shape` labels a result that differs, or a size that no shape has.
void check_static_counterpart(const OpCall& call, const Type& result, const OpDef& def,
                              std::size_t operands, const Attrs& attrs, std::string_view shape);

}  // namespace xylem::ir::ops
