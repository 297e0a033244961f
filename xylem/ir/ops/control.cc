#include "xylem/ir/ops/control.h"

#include <fmt/format.h>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

// while ------------------------------------------------------------------------------------------

std::vector<Type> while_shape_rule(const OpCall& call) {
  auto carried =
      call.operands.first(call.operands.size() - static_cast<std::size_t>(num_captures(call)));
  std::vector<Type> results(carried.begin(), carried.end());
  std::vector<Type> predicate{Type::tensor(DType::kBool)};
  check_region(call, "c1", 0, call.operands, &predicate);
  check_region(call, "c2", 1, call.operands, &results);
  return results;
}

std::vector<HostArray> while_eval(const EvalCall& call) {
  std::size_t carried = call.result_types.size();
  std::vector<HostArray> values(call.operands.begin(), call.operands.end());
  while (*call.regions.run(*call.op.regions[0], values)[0].as<bool>()) {
    std::vector<HostArray> next = call.regions.run(*call.op.regions[1], values);
    for (std::size_t i = 0; i < carried; ++i) values[i] = next[i].to_contiguous();
  }
  values.resize(carried);
  return values;
}

// if and case ------------------------------------------------------------------------------------

// All regions take the operands behind the first and return the same types.
std::vector<Type> branches_rule(const OpCall& call, std::string_view params_label,
                                std::string_view results_label) {
  auto captures = call.operands.subspan(1);
  if (call.attrs.has("num_captures") && num_captures(call) != static_cast<int>(captures.size()))
    fail(call, "captures", "every operand behind the first is a capture",
         fmt::format("num_captures is {}, {} operands follow", num_captures(call), captures.size()),
         "Set num_captures to that number or leave it out");
  check_region(call, params_label, 0, captures, nullptr);
  std::vector<Type> results = call.regions[0]->result_types();
  for (std::size_t i = 1; i < call.regions.size(); ++i) {
    check_region(call, params_label, static_cast<int>(i), captures, nullptr);
    check_region(call, results_label, static_cast<int>(i), captures, &results);
  }
  return results;
}

std::vector<Type> if_shape_rule(const OpCall& call) {
  if (tensor_operand(call, 0, kElBool).rank() != 0)
    fail(call, "i1", "the predicate must be a scalar", "it is " + call.operands[0].to_string(),
         "Reduce it, or use select for an elementwise choice");
  return branches_rule(call, "c1", "c2");
}

std::vector<HostArray> if_eval(const EvalCall& call) {
  bool yes = *call.operands[0].as<bool>();
  return call.regions.run(*call.op.regions[yes ? 0 : 1], call.operands.subspan(1));
}

std::vector<Type> case_shape_rule(const OpCall& call) {
  const Type& index = tensor_operand(call, 0, kElSigned);
  if (index.dtype() != DType::kI32 || index.rank() != 0)
    fail(call, "i1", "the index must be an i32 scalar", "it is " + index.to_string(),
         "Convert it to i32");
  if (call.regions.empty())
    fail(call, "c1", "at least one branch is needed", "there is none", "Give a region per branch");
  return branches_rule(call, "c2", "c3");
}

std::vector<HostArray> case_eval(const EvalCall& call) {
  std::int64_t i = integer_scalar(call.operands[0]);
  auto n = static_cast<std::int64_t>(call.op.regions.size());
  if (i < 0 || i >= n) i = n - 1;
  return call.regions.run(*call.op.regions[static_cast<std::size_t>(i)], call.operands.subspan(1));
}

// after_all --------------------------------------------------------------------------------------

std::vector<Type> after_all_shape_rule(const OpCall& call) {
  for (const Type& t : call.operands)
    if (!t.is_token())
      fail(call, "i1", "operands must be tokens", "one is " + t.to_string(),
           "Pass tokens of effects only");
  return {Type::token()};
}

std::vector<HostArray> after_all_eval(const EvalCall&) {
  return {HostArray::zeros(DType::kBool, {0})};  // a token has no value; any array stands for it
}

constexpr AttrDef kNumCaptures = {"num_captures", AttrKind::kInt, false};

}  // namespace

const OpDef kWhile = {.name = "stablehlo.while",
                      .traits = kControlFlow,
                      .max_operands = -1,
                      .num_regions = 2,
                      .attrs = {kNumCaptures},
                      .shape = while_shape_rule,
                      .eval = while_eval,
                      .labels = "while_c1 while_c2 while_captures",
                      .quant = QuantSupport::kPerAxis,
                      .result_labels = "c3"};
const OpDef kIf = {.name = "stablehlo.if",
                   .traits = kControlFlow,
                   .min_operands = 1,
                   .max_operands = -1,
                   .num_regions = 2,
                   .attrs = {kNumCaptures},
                   .shape = if_shape_rule,
                   .eval = if_eval,
                   .labels = "if_i1 if_c1 if_c2 if_captures",
                   .quant = QuantSupport::kPerAxis,
                   .result_labels = "c3"};
const OpDef kCase = {.name = "stablehlo.case",
                     .traits = kControlFlow,
                     .min_operands = 1,
                     .max_operands = -1,
                     .num_regions = -1,
                     .attrs = {kNumCaptures},
                     .shape = case_shape_rule,
                     .eval = case_eval,
                     .labels = "case_i1 case_c1 case_c2 case_c3 case_captures",
                     .quant = QuantSupport::kPerAxis,
                     .result_labels = "c4"};
const OpDef kAfterAll = {.name = "stablehlo.after_all",
                         .max_operands = -1,
                         .shape = after_all_shape_rule,
                         .eval = after_all_eval,
                         .labels = "after_all_i1",
                         .result_labels = "o1"};

Family control_family() {
  static const OpDef* const kOps[] = {&kWhile, &kIf, &kCase, &kMap, &kAfterAll};
  return kOps;
}

}  // namespace xylem::ir::ops
