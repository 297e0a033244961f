#pragma once

#include "xylem/ir/op_def.h"

// Ops of the xylem dialect for what differentiation and the front need. The call-like ones
// evaluate by running their first region on all operands.

namespace xylem::ir::ops {

// xylem.scan(consts, carry, xs) {length, num_consts, num_carry, reverse, unroll}
// region(consts, carry, slices of xs) -> (carry, ys); results: (carry, stacked ys).
// Step i takes slice i of xs along dimension 0 and gives slice i of ys; `reverse` runs i from
// length - 1 down to 0. `unroll` is a hint.
extern const OpDef kScan;
// xylem.call(args) {name}: region(args) -> results.
extern const OpDef kCall;
// xylem.remat(args) {policy, prevent_cse}: region(args) -> results, recomputed when differentiated.
extern const OpDef kRemat;
// xylem.custom_jvp(args) {num_consts}. Region 0 (primal): args -> outs. Region 1: args, then one
// tangent for every arg behind the first num_consts whose dtype is float or complex -> outs, then
// one tangent for every out of such a dtype.
extern const OpDef kCustomJvp;
// xylem.custom_vjp(args) {num_consts}. Region 0 (primal): args -> outs. Region 1 (forward): args ->
// outs, residuals. Region 2 (backward): residuals, one cotangent for every float or complex out ->
// one cotangent for every float or complex arg behind the first num_consts.
extern const OpDef kCustomVjp;
// xylem.checkpoint_name(x) {name}: identity that rematerialisation policies know by name.
extern const OpDef kCheckpointName;
// xylem.stop_gradient(x): identity without derivative.
extern const OpDef kStopGradient;

}  // namespace xylem::ir::ops
