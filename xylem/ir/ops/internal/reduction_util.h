#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "xylem/ir/op_def.h"

// Checks that reduce, reduce_window and scatter share.

namespace xylem::ir::ops {

// Same kind of number, at least as wide.
bool is_promotable(DType from, DType to);

// The body (region 0) takes N accumulators, N elements and the captures behind operand 2N, and
// returns the accumulators, scalars of the dtypes of operands 0 … N - 1 or wider. Gives their
// dtypes; fails with label `what`.
std::vector<DType> check_reducer(const OpCall& call, std::size_t n, std::string_view what);

struct ReduceLabels {
  std::string_view count, shapes, dtypes;
};
// N inputs of one shape and N scalar init values; gives N.
std::size_t check_inputs_and_inits(const OpCall& call, const ReduceLabels& labels);

}  // namespace xylem::ir::ops
