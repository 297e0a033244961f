#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xylem/ir/builder.h"
#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

// Rule tables of the transformations, one entry per op of ir::op_table(), filled by core/lax.
namespace xylem::transform {

// Forward mode of one op. `tangents[i]` is kNoValue for a zero tangent; at least one is not.
struct JvpCall {
  ir::Builder& b;
  const ir::Op& op;
  std::span<const ir::ValueId> primals;
  std::span<const ir::ValueId> tangents;
  // Out: one per result. Tangents of results may be kNoValue (zero).
  std::vector<ir::ValueId> primal_out;
  std::vector<ir::ValueId> tangent_out;
};
using JvpRule = void (*)(JvpCall&);

// Transpose of one op that is linear in the operands whose `linear` flag is set. `cotangents[k]` is
// kNoValue where a result's cotangent is zero; at least one is not. Operands that are not linear
// have their value in `operands`; linear ones are kNoValue there, with their type in `types`.
struct TransposeCall {
  ir::Builder& b;
  const ir::Op& op;
  std::span<const ir::ValueId> operands;
  std::span<const ir::Type> types;
  std::span<const ir::Type> result_types;
  const std::vector<bool>& linear;
  std::span<const ir::ValueId> cotangents;
  // Out: one per operand, kNoValue for zero or not linear.
  std::vector<ir::ValueId> operand_ct;
};
using TransposeRule = void (*)(TransposeCall&);

// Batching of one op. `dims[i]`: position of the batch dimension in operand i, or kNotMapped; at
// least one is mapped.
struct BatchCall {
  ir::Builder& b;
  const ir::Op& op;
  std::span<const ir::ValueId> operands;
  std::span<const int> dims;
  std::int64_t size;
  const std::string& axis_name;
  // Out.
  std::vector<ir::ValueId> results;
  std::vector<int> result_dims;
};
using BatchRule = void (*)(BatchCall&);

// Splits an op with regions into a known and an unknown part (partial evaluation). `known[i]` says
// whether operand i is known. The rule appends the known part to `known_b` and the unknown part to
// `unknown_b`; residuals are values of known_b that the unknown part needs, passed on by
// `residual(v)`, which returns their id in unknown_b.
struct PartialCall;
using PartialRule = void (*)(PartialCall&);

struct OpRules {
  JvpRule jvp = nullptr;
  TransposeRule transpose = nullptr;
  BatchRule batch = nullptr;
  PartialRule partial = nullptr;
  // An op without derivative (integer results, comparisons): tangents are zero.
  bool no_derivative = false;
  // A refusal with its reason, where a rule is deliberately absent.
  const char* refuse_jvp = nullptr;
  const char* refuse_transpose = nullptr;
  const char* refuse_batch = nullptr;
};

const OpRules& rules_of(const ir::OpDef& def);

}  // namespace xylem::transform
