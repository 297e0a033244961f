#include "xylem/compiler/math/expand.h"

#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/compiler/math/complex.h"
#include "xylem/compiler/math/functions.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

using math::C;
using math::Scope;
using math::V;
namespace ops = ir::ops;

using Unary = V (*)(V);
using Binary = V (*)(V, V);

using ComplexUnary = C (*)(C);
using ComplexBinary = C (*)(C, C);

struct Rule {
  Unary unary = nullptr;
  Binary binary = nullptr;
  ComplexUnary complex_unary = nullptr;
  ComplexBinary complex_binary = nullptr;
};

const Rule* find_rule(const ir::OpDef& def) {
  static const auto* rules = new std::unordered_map<const ir::OpDef*, Rule>{
      {&ops::kExponential, {math::exponential, nullptr, math::complex_exponential}},
      {&ops::kExponentialMinusOne,
       {math::exponential_minus_one, nullptr, math::complex_exponential_minus_one}},
      {&ops::kLog, {math::log, nullptr, math::complex_log}},
      {&ops::kLogPlusOne, {math::log_plus_one, nullptr, math::complex_log_plus_one}},
      {&ops::kLogistic, {math::logistic, nullptr, math::complex_logistic}},
      {&ops::kTanh, {math::tanh, nullptr, math::complex_tanh}},
      {&ops::kSine, {math::sine, nullptr, math::complex_sine}},
      {&ops::kCosine, {math::cosine, nullptr, math::complex_cosine}},
      {&ops::kTan, {math::tan, nullptr, math::complex_tan}},
      {&ops::kCbrt, {math::cbrt, nullptr, math::complex_cbrt}},
      {&ops::kRsqrt, {math::rsqrt, nullptr, math::complex_rsqrt}},
      {&ops::kErf, {math::erf}},
      {&ops::kErfc, {math::erfc}},
      {&ops::kErfInv, {math::erf_inv}},
      {&ops::kAsin, {math::asin, nullptr, math::complex_asin}},
      {&ops::kAcos, {math::acos, nullptr, math::complex_acos}},
      {&ops::kAtan, {math::atan, nullptr, math::complex_atan}},
      {&ops::kSinh, {math::sinh, nullptr, math::complex_sinh}},
      {&ops::kCosh, {math::cosh, nullptr, math::complex_cosh}},
      {&ops::kAsinh, {math::asinh, nullptr, math::complex_asinh}},
      {&ops::kAcosh, {math::acosh, nullptr, math::complex_acosh}},
      {&ops::kAtanh, {math::atanh, nullptr, math::complex_atanh}},
      {&ops::kPower, {nullptr, math::power, nullptr, math::complex_power}},
      {&ops::kAtan2, {nullptr, math::atan2, nullptr, math::complex_atan2}},
      {&ops::kSqrt, {nullptr, nullptr, math::complex_sqrt}},
  };
  auto it = rules->find(&def);
  return it == rules->end() ? nullptr : &it->second;
}

// The dtype in which a float type computes.
DType compute_dtype(DType t) { return t == DType::kF64 ? t : DType::kF32; }

V expand_real(Scope& scope, const Rule& rule, std::span<const ir::ValueId> operands) {
  const DType dtype = scope.builder().type(operands[0]).dtype();
  auto operand = [&](std::size_t i) {
    return math::convert(V(scope, operands[i]), compute_dtype(dtype));
  };
  V result = rule.unary ? rule.unary(operand(0)) : rule.binary(operand(0), operand(1));
  return math::convert(result, dtype);
}

// Both complex types compute in f64.
V expand_complex(Scope& scope, const Rule& rule, std::span<const ir::ValueId> operands) {
  const DType part = real_dtype(scope.builder().type(operands[0]).dtype());
  auto operand = [&](std::size_t i) {
    V z(scope, operands[i]);
    return C{math::convert(math::real(z), DType::kF64), math::convert(math::imag(z), DType::kF64)};
  };
  C result = rule.complex_unary ? rule.complex_unary(operand(0))
                                : rule.complex_binary(operand(0), operand(1));
  return math::complex(math::convert(result.re, part), math::convert(result.im, part));
}

ir::ValueId expand(Scope& scope, const ir::Op& op, std::span<const ir::ValueId> operands) {
  const Rule* rule = find_rule(*op.def);
  if (!rule) return ir::kNoValue;
  const DType dtype = scope.builder().type(operands[0]).dtype();
  if (is_float(dtype) && (rule->unary || rule->binary))
    return expand_real(scope, *rule, operands).id();
  if (is_complex(dtype) && (rule->complex_unary || rule->complex_binary))
    return expand_complex(scope, *rule, operands).id();
  return ir::kNoValue;
}

}  // namespace

bool has_expansion(const ir::OpDef& def) { return find_rule(def) != nullptr; }

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
