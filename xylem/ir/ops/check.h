#pragma once

#include "xylem/ir/op_def.h"

// What StableHLO's test programs say about values: the dialects check and interpreter.

namespace xylem::ir::ops {

// Checks have no results; one that does not hold ends the run with a UserError that names the first
// element which differs.
//
// check.expect_eq(got, expected): equal elements; floats by IEEE comparison.
extern const OpDef kExpectEq;
// check.expect_eq_const(got) {value}
extern const OpDef kExpectEqConst;
// check.expect_almost_eq(got, expected) {tolerance = 1e-4}: floats and complex; NaN equals NaN.
extern const OpDef kExpectAlmostEq;
// check.expect_almost_eq_const(got) {value, tolerance = 1e-4}
extern const OpDef kExpectAlmostEqConst;
// check.expect_close(got, expected) {min_ulp_difference = 0, max_ulp_difference = 1}: u64 bounds of
// the distance in representable values.
extern const OpDef kExpectClose;
// check.expect_serialized_eq(got) {probe_id, iter = 0}: equals what was probed under that id.
extern const OpDef kExpectSerializedEq;

// interpreter.run_parallel(args) {programs (rows of symbols), infeed (symbols), result_types}.
// Regions: the programs row by row, then the infeed functions. Runs programs[r][p] as process
// (r, p); operands and results are those of the processes, row by row. The n-th infeed of the grid
// takes the result of the n-th infeed function.
extern const OpDef kRunParallel;
// interpreter.probe(x) {probe_id}: x; also writes it to the probe directory.
extern const OpDef kProbe;
// interpreter.print(x) {name}: writes "name = " and the value.
extern const OpDef kPrint;

}  // namespace xylem::ir::ops
