#pragma once

#include "xylem/ir/op_def.h"

namespace xylem::ir::ops {

// rng_bit_generator(state u64[2]) {rng_algorithm, shape, result_dtype} -> (new state, bits).
// THREE_FRY equals XLA's generator bit for bit; PHILOX and DEFAULT are refused on evaluation.
extern const OpDef kRngBitGenerator;

}  // namespace xylem::ir::ops
