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
  // A select that may not have taken the value stands between it and the result.
  bool masked = false;
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

// Splits an op that has known and unknown operands into a part that runs on the known ones and a
// part that needs the others. Only ops with regions need such a rule: others are unknown as a
// whole.
struct PartialCall {
  const ir::Op& op;
  const std::vector<bool>& known;         // per operand
  std::span<const ir::ValueId> operands;  // known ones: id in kb; others kNoValue
  std::span<const ir::Type> types;        // per operand
  ir::Builder& kb;                        // known part
  ir::Builder& ub;                        // unknown part

  // The id in ub of operand i: the unknown value, or the known one passed on as residual.
  virtual ir::ValueId unknown_operand(std::size_t i) = 0;
  // Passes a value of kb to ub; returns its id there.
  virtual ir::ValueId residual(ir::ValueId known_value) = 0;

  // Out, one per result: the id in kb of a known result, or the id in ub of an unknown one.
  std::vector<ir::ValueId> known_results;
  std::vector<ir::ValueId> unknown_results;

 protected:
  PartialCall(const ir::Op& o, const std::vector<bool>& k, std::span<const ir::ValueId> operand_ids,
              std::span<const ir::Type> t, ir::Builder& known_b, ir::Builder& unknown_b)
      : op(o), known(k), operands(operand_ids), types(t), kb(known_b), ub(unknown_b) {}
  ~PartialCall() = default;
};
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

// The table while it is filled.
class RuleTable {
 public:
  RuleTable();
  OpRules& operator[](const ir::OpDef& def) { return rules_[static_cast<std::size_t>(def.id())]; }

 private:
  std::vector<OpRules> rules_;
};

// One registration per file of core/lax.
void register_elementwise_rules(RuleTable& table);
void register_movement_rules(RuleTable& table);
void register_indexing_rules(RuleTable& table);
void register_contraction_rules(RuleTable& table);
void register_convolution_rules(RuleTable& table);
void register_reduction_rules(RuleTable& table);
void register_window_rules(RuleTable& table);
void register_sort_rules(RuleTable& table);
void register_scan_rules(RuleTable& table);
void register_branch_rules(RuleTable& table);
void register_call_rules(RuleTable& table);
void register_named_axis_rules(RuleTable& table);
void register_custom_rules(RuleTable& table);
// Last: it gives what is left its default rules.
void register_linalg_rules(RuleTable& table);

}  // namespace xylem::transform
