#include "xylem/ir/ops/internal/constant_rules.h"

#include <fmt/format.h>

#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::ops {

ConstantRule find_constant_rule(const OpDef& def) {
  static const auto* const kRules = [] {
    auto* rules = new std::unordered_map<const OpDef*, ConstantRule>;
    for (const ConstantRuleOf& r : dynamic_constant_rules()) rules->emplace(r.def, r.rule);
    for (const ConstantRuleOf& r :
         {dynamic_conv_constant_rule(), rng_constant_rule(), collective_broadcast_constant_rule()})
      rules->emplace(r.def, r.rule);
    return rules;
  }();
  auto it = kRules->find(&def);
  return it == kRules->end() ? nullptr : it->second;
}

void check_static_counterpart(const OpCall& call, const Type& result, const OpDef& def,
                              std::size_t operands, const Attrs& attrs, std::string_view shape) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < operands; ++i) types.push_back(without_quant(call.operands[i]));
  Type inferred;
  try {
    inferred = infer_types({def, types, attrs, {}, call.loc})[0];
  } catch (const ConstraintError& e) {
    std::string_view label = e.label();
    label.remove_prefix(std::min(label.size(), label.rfind('_') + 1));
    if (label.empty() || label[0] != 'c') label = shape;
    fail(call, label, "the constant operands must suit the others", e.message(),
         "Change the constants");
  }
  if (!dims_fit(inferred.dims(), result.dims()))
    fail(call, shape, "the result must have the shape that the constant operands give",
         fmt::format("they give {}, the result is {}", list(inferred.dims()), result.to_string()),
         "Correct the result's type, or the constants");
}

}  // namespace xylem::ir::ops
