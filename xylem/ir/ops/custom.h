#pragma once

#include <string_view>

#include "xylem/ir/op_def.h"

// Calls of things that StableHLO does not define, and tuples.

namespace xylem::ir::ops {

// custom_call(args) {call_target_name, has_side_effect, backend_config (string or dictionary),
// api_version, called_computations (list of symbols), operand_layouts, result_layouts (lists of
// i64 arrays, minor to major), output_operand_aliases (list of {output_tuple_indices,
// operand_index, operand_tuple_indices}), result_types}. Regions: the called computations, in
// order. Evaluated are StableHLO's checks (check.h), partitioning markers as the identity on one
// device, shape_assertion, ApproxTopK, and LAPACK-free helpers; other targets are errors.
extern const OpDef kCustomCall;
// composite(args) {name, composite_attributes, decomposition (symbol), version, result_types}.
// Region 0 is the decomposition, others are the composite's own. Means its decomposition.
extern const OpDef kComposite;
// tuple(args) -> one tuple. get_tuple_element(t) {index}.
extern const OpDef kTuple;
extern const OpDef kGetTupleElement;

// Whether an op is a custom_call that gives its operands back (annotations of sharding, memory and
// layout).
bool is_identity_call(const Op& op);

}  // namespace xylem::ir::ops
