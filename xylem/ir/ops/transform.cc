#include "xylem/ir/ops/transform.h"

#include <fmt/format.h>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Types = std::vector<Type>;

// Calls
// --------------------------------------------------------------------------------------------

Types call_shape_rule(const OpCall& call) {
  check_region(call, "c1", 0, call.operands, nullptr);
  return call.regions[0]->result_types();
}

std::vector<HostArray> call_eval(const EvalCall& call) {
  return call.regions.run(*call.op.regions[0], call.operands);
}

using Values = std::vector<ValueId>;

// The first region in place of the call.
Values inline_call(Builder& b, const Op& op, std::span<const ValueId> operands) {
  return b.inline_graph(*op.regions[0], operands);
}

// As JAX lowers it: a barrier keeps the recomputation from being merged with the original.
Values expand_remat(Builder& b, const Op& op, std::span<const ValueId> operands) {
  if (!op.attrs.flag("prevent_cse") || operands.empty()) return inline_call(b, op, operands);
  ValueIds kept = b.op(kOptimizationBarrier, operands);
  return b.inline_graph(*op.regions[0], kept);
}

// The types of those that have tangents: floats and complex numbers.
Types differentiable(std::span<const Type> types) {
  Types out;
  for (const Type& t : types)
    if (t.is_tensor() && is_inexact(t.dtype())) out.push_back(t);
  return out;
}

Types operator+(Types a, const Types& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Operands behind the first num_consts.
std::span<const Type> differentiated_operands(const OpCall& call) {
  std::int64_t consts = call.attrs.i64_or("num_consts", 0);
  if (consts < 0 || consts > static_cast<std::int64_t>(call.operands.size()))
    fail(call, "c2", fmt::format("num_consts must lie in [0, {}]", call.operands.size()),
         fmt::format("it is {}", consts), "Count the leading operands without tangents");
  return call.operands.subspan(static_cast<std::size_t>(consts));
}

Types custom_jvp_shape_rule(const OpCall& call) {
  Types outs = call_shape_rule(call);
  Types params(call.operands.begin(), call.operands.end());
  Types results = outs + differentiable(outs);
  check_region(call, "c3", 1, params + differentiable(differentiated_operands(call)), &results);
  return outs;
}

Types custom_vjp_shape_rule(const OpCall& call) {
  Types outs = call_shape_rule(call);
  Types cotangents = differentiable(differentiated_operands(call));
  check_region(call, "c3", 1, call.operands, nullptr);
  Types forward = call.regions[1]->result_types();
  if (forward.size() < outs.size() || !std::equal(outs.begin(), outs.end(), forward.begin()))
    fail(call, "c3", fmt::format("region 1 must return {} and then residuals", types_text(outs)),
         fmt::format("it returns {}", types_text(forward)), "Return the primal results first");
  Types residuals(forward.begin() + static_cast<std::ptrdiff_t>(outs.size()), forward.end());
  check_region(call, "c4", 2, residuals + differentiable(outs), &cotangents);
  return outs;
}

// Identities
// ---------------------------------------------------------------------------------------

Types identity_shape_rule(const OpCall& call) { return {tensor_operand(call, 0)}; }
std::vector<HostArray> identity_eval(const EvalCall& call) { return {call.operands[0]}; }
Values expand_identity(Builder&, const Op&, std::span<const ValueId> operands) {
  return {operands[0]};
}

}  // namespace

const OpDef kCall = {.name = "xylem.call",
                     .traits = kXylem | kControlFlow,
                     .max_operands = -1,
                     .num_regions = 1,
                     .attrs = {{"name", AttrKind::kString, false}},
                     .shape = call_shape_rule,
                     .eval = call_eval,
                     .labels = "call_c1",
                     .expand = inline_call};
const OpDef kRemat = {
    .name = "xylem.remat",
    .traits = kXylem | kControlFlow,
    .max_operands = -1,
    .num_regions = 1,
    .attrs = {{"policy", AttrKind::kString, false}, {"prevent_cse", AttrKind::kBool, false}},
    .shape = call_shape_rule,
    .eval = call_eval,
    .labels = "remat_c1",
    .expand = expand_remat};
const OpDef kCustomJvp = {
    .name = "xylem.custom_jvp",
    .traits = kXylem | kControlFlow,
    .max_operands = -1,
    .num_regions = 2,
    .attrs = {{"name", AttrKind::kString, false}, {"num_consts", AttrKind::kInt, false}},
    .shape = custom_jvp_shape_rule,
    .eval = call_eval,
    .labels = "custom_jvp_c1 custom_jvp_c2 custom_jvp_c3",
    .expand = inline_call};
const OpDef kCustomVjp = {
    .name = "xylem.custom_vjp",
    .traits = kXylem | kControlFlow,
    .max_operands = -1,
    .num_regions = 3,
    .attrs = {{"name", AttrKind::kString, false}, {"num_consts", AttrKind::kInt, false}},
    .shape = custom_vjp_shape_rule,
    .eval = call_eval,
    .labels = "custom_vjp_c1 custom_vjp_c2 custom_vjp_c3 custom_vjp_c4",
    .expand = inline_call};
const OpDef kCheckpointName = {.name = "xylem.checkpoint_name",
                               .traits = kXylem | kPointwise | kExact | kLinear,
                               .min_operands = 1,
                               .max_operands = 1,
                               .attrs = {{"name", AttrKind::kString}},
                               .shape = identity_shape_rule,
                               .eval = identity_eval,
                               .labels = "checkpoint_name_i1",
                               .expand = expand_identity};
const OpDef kStopGradient = {.name = "xylem.stop_gradient",
                             .traits = kXylem | kPointwise | kExact | kIdempotent,
                             .min_operands = 1,
                             .max_operands = 1,
                             .shape = identity_shape_rule,
                             .eval = identity_eval,
                             .labels = "stop_gradient_i1",
                             .expand = expand_identity};

Family transform_family() {
  static const OpDef* const kOps[] = {&kScan,      &kCall,           &kRemat,       &kCustomJvp,
                                      &kCustomVjp, &kCheckpointName, &kStopGradient};
  return kOps;
}

}  // namespace xylem::ir::ops
