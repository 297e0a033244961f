#include "xylem/ir/ops/custom_linear.h"

#include <fmt/format.h>

#include "xylem/ir/ops/families.h"

namespace xylem::ir::ops {
namespace {

std::vector<Type> shape(const OpCall& call) {
  const Graph& region = *call.regions[0];
  auto residuals = static_cast<std::size_t>(call.attrs.i64("num_residuals"));
  std::size_t tangents = call.operands.size() - residuals;
  if (residuals > call.operands.size() || region.params.size() < residuals ||
      region.results.size() != tangents)
    call.fail("custom_linear_c1", "the region takes the residuals and cotangents and returns one "
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

}  // namespace

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
  static const OpDef* const kOps[] = {&kCustomLinear};
  return kOps;
}

}  // namespace xylem::ir::ops
