#include "xylem/compiler/math/expand.h"

#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/compiler/math/functions.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

using math::Scope;
using math::V;
namespace ops = ir::ops;

using Unary = V (*)(V);
using Binary = V (*)(V, V);

struct Rule {
  Unary unary = nullptr;
  Binary binary = nullptr;
};

const Rule* find_rule(const ir::OpDef& def) {
  static const auto* rules = new std::unordered_map<const ir::OpDef*, Rule>{
      {&ops::kExponential, {math::exponential}},
      {&ops::kExponentialMinusOne, {math::exponential_minus_one}},
      {&ops::kLog, {math::log}},
      {&ops::kLogPlusOne, {math::log_plus_one}},
      {&ops::kLogistic, {math::logistic}},
      {&ops::kTanh, {math::tanh}},
      {&ops::kSine, {math::sine}},
      {&ops::kCosine, {math::cosine}},
      {&ops::kTan, {math::tan}},
      {&ops::kCbrt, {math::cbrt}},
      {&ops::kRsqrt, {math::rsqrt}},
      {&ops::kErf, {math::erf}},
      {&ops::kErfc, {math::erfc}},
      {&ops::kErfInv, {math::erf_inv}},
      {&ops::kAsin, {math::asin}},
      {&ops::kAcos, {math::acos}},
      {&ops::kAtan, {math::atan}},
      {&ops::kSinh, {math::sinh}},
      {&ops::kCosh, {math::cosh}},
      {&ops::kAsinh, {math::asinh}},
      {&ops::kAcosh, {math::acosh}},
      {&ops::kAtanh, {math::atanh}},
      {&ops::kPower, {nullptr, math::power}},
      {&ops::kAtan2, {nullptr, math::atan2}},
  };
  auto it = rules->find(&def);
  return it == rules->end() ? nullptr : &it->second;
}

// The dtype in which a float type computes.
DType compute_dtype(DType t) { return t == DType::kF64 ? t : DType::kF32; }

ir::ValueId expand(Scope& scope, const ir::Op& op, std::span<const ir::ValueId> operands) {
  const Rule* rule = find_rule(*op.def);
  if (!rule) return ir::kNoValue;
  const DType dtype = scope.builder().type(operands[0]).dtype();
  if (!is_float(dtype)) return ir::kNoValue;
  auto operand = [&](std::size_t i) {
    return math::convert(V(scope, operands[i]), compute_dtype(dtype));
  };
  V result = rule->unary ? rule->unary(operand(0)) : rule->binary(operand(0), operand(1));
  return math::convert(result, dtype).id();
}

}  // namespace

ir::ValueId expand_op(ir::Builder& builder, const ir::Op& op,
                      std::span<const ir::ValueId> operands) {
  Scope scope(builder);
  return expand(scope, op, operands);
}

ir::GraphPtr expand_math(const ir::Graph& body) {
  ir::Builder builder(body.name);
  Scope scope(builder);
  std::vector<ir::ValueId> map(body.values.size(), ir::kNoValue);
  auto mapped = [&](ir::ValueId v) { return map[static_cast<std::size_t>(v)]; };
  for (std::size_t i = 0; i < body.params.size(); ++i)
    map[static_cast<std::size_t>(body.params[i])] = builder.param(
        body.type(body.params[i]), i < body.param_attrs.size() ? body.param_attrs[i] : ir::Attrs());
  ir::ValueIds operands;
  for (const ir::Op& op : body.ops) {
    operands.clear();
    for (ir::ValueId v : op.operands) operands.push_back(mapped(v));
    const std::span<const ir::ValueId> ids(operands.data(), operands.size());
    builder.set_location(op.loc);
    if (ir::ValueId v = expand(scope, op, ids); v != ir::kNoValue) {
      map[static_cast<std::size_t>(op.results[0])] = v;
      continue;
    }
    std::vector<ir::GraphPtr> regions;
    for (const ir::GraphPtr& r : op.regions) regions.push_back(expand_math(*r));
    ir::ValueIds results = builder.op(*op.def, ids, op.attrs, std::move(regions));
    for (std::size_t i = 0; i < results.size(); ++i)
      map[static_cast<std::size_t>(op.results[i])] = results[i];
  }
  std::vector<ir::ValueId> results;
  for (ir::ValueId v : body.results) results.push_back(mapped(v));
  ir::GraphPtr expanded = builder.finish(std::move(results));
  if (body.attrs.empty() && body.result_attrs.empty()) return expanded;
  auto annotated = std::make_shared<ir::Graph>(*expanded);
  annotated->attrs = body.attrs;
  annotated->result_attrs = body.result_attrs;
  return annotated;
}

}  // namespace xylem::compiler
