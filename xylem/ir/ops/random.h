#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// rng_bit_generator(state u64[n]) {rng_algorithm, shape, result_dtype} -> (new state, bits).
// THREE_FRY and PHILOX (state of 2 or 3 words) equal XLA's generators bit for bit; DEFAULT is
// PHILOX, as on XLA's CPU. result_dtype: integers of 8 to 64 bits.
extern const OpDef kRngBitGenerator;

// rng(a, b, shape i64[n]) {rng_distribution, result_types}: UNIFORM in [a, b), NORMAL with mean a
// and deviation b. StableHLO leaves the generator open: here the n-th op that a process evaluates
// takes the n-th stream of PHILOX.
extern const OpDef kRng;

}  // namespace xylem::ir::ops
