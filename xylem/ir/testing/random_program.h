#pragma once

#include <cstdint>

#include "xylem/ir/graph.h"

namespace xylem::ir::testing {

struct RandomProgramOptions {
  // Only ops whose results are defined bit for bit: no elementary functions, no sums and products
  // of floats over a dimension. Otherwise f32 and f64 programs of continuous ops, whose results
  // may be compared with a tolerance.
  bool exact = true;
  // Element types and ops whose results other implementations define alike: no sub-byte types, no
  // formats of fewer than 16 bits, no payloads.
  bool portable = false;
  int num_ops = 12;
};

// A well-typed program drawn from the seed: pointwise ops of every dtype, movement, reductions,
// products, sorting, scatters, loops and branches whose bodies are random programs too, on odd,
// empty and scalar shapes.
GraphPtr random_program(std::uint64_t seed, const RandomProgramOptions& options = {});

}  // namespace xylem::ir::testing
