#include "xylem/ir/ops/quantise.h"

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::ops {
namespace {

std::vector<Type> quantize_shape_rule(const OpCall& call) {
  const Type& x = call.operands[0];
  if (!x.is_tensor() || !is_float(x.dtype()))
    fail(call, "i1", "the operand must be a tensor of floats or quantised",
         "it is " + x.to_string(), "Convert it first");
  std::vector<Type> results = written_results(call);
  if (results.size() != 1 || !results[0].quant())
    fail(call, "o1", "the result must be a quantised tensor", types_text(results),
         "Give it a quantised type");
  const Type& t = results[0];
  if (!dims_fit(t.dims(), x.dims()))
    fail(call, "c1", "operand and result must have one shape",
         x.to_string() + " and " + t.to_string(), "Reshape the operand");
  if (t.dtype() != x.dtype())
    fail(call, "c2", "the result's expressed type must be the operand's",
         x.to_string() + " and " + t.to_string(), "Change the expressed type");
  return results;
}

std::vector<Type> dequantize_shape_rule(const OpCall& call) {
  const Type& x = call.operands[0];
  if (!x.is_tensor() || !x.quant())
    fail(call, "i1", "the operand must be a quantised tensor", "it is " + x.to_string(),
         "Leave the operation out");
  return {without_quant(x)};
}

// The values arrive dequantised.
std::vector<HostArray> identity_eval(const EvalCall& call) { return {call.operands[0]}; }

}  // namespace

const OpDef kUniformQuantize = {
    .name = "stablehlo.uniform_quantize",
    .traits = kPointwise,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"result_types", AttrKind::kList}},
    .shape = quantize_shape_rule,
    .eval = identity_eval,
    .labels = "uniform_quantize_i1 uniform_quantize_o1 uniform_quantize_c1 uniform_quantize_c2",
    .quant = QuantSupport::kPerAxis,
    .result_labels = "c2 c1"};
// Sees its operand as it is: the rule needs the quantisation.
const OpDef kUniformDequantize = {.name = "stablehlo.uniform_dequantize",
                                  .traits = kPointwise,
                                  .min_operands = 1,
                                  .max_operands = 1,
                                  .shape = dequantize_shape_rule,
                                  .eval = identity_eval,
                                  .labels = "uniform_dequantize_i1",
                                  .result_labels = "c2 c1"};

Family quantise_family() {
  static const OpDef* const kOps[] = {&kUniformQuantize, &kUniformDequantize};
  return kOps;
}

}  // namespace xylem::ir::ops
