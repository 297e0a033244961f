#include "xylem/ir/ops/custom_linear.h"

#include <fmt/format.h>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/named_axis.h"

namespace xylem::ir::ops {
namespace {

std::vector<Type> shape(const OpCall& call) {
  const Graph& region = *call.regions[0];
  auto residuals = static_cast<std::size_t>(call.attrs.i64("num_residuals"));
  std::size_t tangents = call.operands.size() - residuals;
  if (residuals > call.operands.size() || region.params.size() < residuals ||
      region.results.size() != tangents)
    call.fail("custom_linear_c1",
              "the region takes the residuals and cotangents and returns one "
              "cotangent per tangent",
              fmt::format("{} residuals, {} tangents, a region of {} parameters and {} results",
                          residuals, tangents, region.params.size(), region.results.size()),
              "Return one cotangent for each differentiable argument");
  for (std::size_t i = 0; i < tangents; ++i)
    if (!(region.type(region.results[i]) == call.operands[residuals + i]))
      call.fail("custom_linear_c2", "a cotangent has the type of its argument",
                fmt::format("cotangent {} is {}, the argument {}", i,
                            region.type(region.results[i]).to_string(),
                            call.operands[residuals + i].to_string()),
                "Convert or reshape the cotangent in the backward function");
  std::vector<Type> results;
  for (std::size_t i = residuals; i < region.params.size(); ++i)
    results.push_back(region.type(region.params[i]));
  return results;
}

std::vector<HostArray> eval(const EvalCall& call) {
  throw UserError(ErrorParts{"forward-mode derivative of custom_vjp",
                             "a function with a custom_vjp rule has a reverse-mode derivative only",
                             "it was differentiated in forward mode (jvp, jacfwd, hessian)",
                             "Use reverse mode (grad, vjp, jacrev), or give a custom_jvp rule"},
                  call.op.loc.source);
}

std::vector<Type> call_shape(const OpCall& call) {
  check_region(call, "c1", 0, call.operands, nullptr);
  return call.regions[0]->result_types();
}

std::vector<Type> linear_solve_shape(const OpCall& call) {
  std::int64_t n = call.attrs.i64("num_consts");
  auto count = static_cast<std::int64_t>(call.operands.size());
  if (n < 0 || n > count)
    fail(call, "c2", fmt::format("num_consts must lie in [0, {}]", count),
         fmt::format("it is {}", n), "Count the leading operands that are not solved for");
  auto b = call.operands.subspan(static_cast<std::size_t>(n));
  std::vector<Type> types(b.begin(), b.end());
  if (call.regions.size() < 2 || call.regions.size() > 3)
    fail(call, "c3", "2 or 3 regions", fmt::format("{} regions", call.regions.size()),
         "Give solve, matvec and, for reverse mode, the solve of the transposed system");
  for (int k = 0; k < static_cast<int>(call.regions.size()); ++k)
    check_region(call, "c1", k, call.operands, &types);
  return types;
}

std::vector<HostArray> run_first(const EvalCall& call) {
  return call.regions.run(*call.op.regions[0], call.operands);
}

std::vector<ValueId> inline_first(Builder& b, const Op& op, std::span<const ValueId> operands) {
  return b.inline_graph(*op.regions[0], operands);
}

OpDef call_like(std::string_view name, int regions, std::string_view attr, ShapeRule shape_rule,
                std::string_view labels) {
  OpDef d;
  d.name = name;
  d.traits = kXylem | kControlFlow;
  d.max_operands = -1;
  d.num_regions = regions;
  d.attrs = {{attr, AttrKind::kInt}};
  d.shape = shape_rule;
  d.eval = run_first;
  d.labels = labels;
  d.expand = inline_first;
  return d;
}

}  // namespace

const OpDef kLinearSolve = call_like("xylem.linear_solve", -1, "num_consts", linear_solve_shape,
                                     "linear_solve_c1 linear_solve_c2 linear_solve_c3");
const OpDef kCustomVmap = call_like("xylem.custom_vmap", 1, "rule", call_shape, "custom_vmap_c1");

const OpDef kCustomLinear = [] {
  OpDef d;
  d.name = "xylem.custom_linear";
  d.traits = kXylem | kLinear;
  d.max_operands = -1;
  d.num_regions = 1;
  d.attrs = {{"num_residuals", AttrKind::kInt}};
  d.shape = shape;
  d.eval = eval;
  d.labels = "custom_linear_c1 custom_linear_c2";
  return d;
}();

Family custom_linear_family() {
  static const OpDef* const kOps[] = {&kCustomLinear, &kLinearSolve, &kCustomVmap,    &kPsum,
                                      &kPmax,         &kPmin,        &kAllGatherAxis, &kPsumScatter,
                                      &kAllToAllAxis, &kPpermute,    &kAxisIndex};
  return kOps;
}

}  // namespace xylem::ir::ops
