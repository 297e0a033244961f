#pragma once

#include "xylem/ir/graph.h"

namespace xylem::ir {

// What a program asks of a machine that keeps every value in memory once: an estimate from shapes
// alone, by the dimension maps of the ops.
struct Cost {
  double flops = 0;            // additions and multiplications; a fused multiply-add counts twice
  double transcendentals = 0;  // elementary functions, not part of `flops`
  double bytes = 0;            // operands read and results written

  Cost& operator+=(const Cost& other);
};

// Bodies of loops count once per step where the number of steps is an attribute (xylem.scan), and
// once otherwise; of the branches of `if` and `case` the dearest counts. Dynamic dimensions count
// as 1.
Cost cost_of(const Graph& graph, const Op& op);
Cost cost_of(const Graph& graph);

// Bytes of all constants, those in regions too.
double constant_bytes(const Graph& graph);

}  // namespace xylem::ir
