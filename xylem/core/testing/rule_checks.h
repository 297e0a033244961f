#pragma once

#include <random>
#include <span>
#include <string>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/core/transform/transform.h"
#include "xylem/ir/graph.h"

// Checks of derivatives and batching by the interpreter, as GoogleTest expectations. Programs over
// f64.
namespace xylem::transform::testing {

using Arrays = std::vector<HostArray>;

HostArray random_array(const ir::Type& t, double lo, double hi, std::mt19937_64& rng);
Arrays random_args(const ir::Graph& g, double lo, double hi, std::mt19937_64& rng);
void expect_near(const Arrays& a, const Arrays& b, double tolerance, const std::string& what);

// Forward mode against central differences.
void check_forward(const ir::Graph& g, const Mask& active, const Arrays& x, std::mt19937_64& rng,
                   const std::string& what);
// Reverse mode against forward mode: <ct, J t> = <J^T ct, t>.
void check_reverse(const ir::Graph& g, const Mask& active, const Arrays& x, std::mt19937_64& rng,
                   const std::string& what);
// The batched program against a loop over three examples, with the batch dimension of parameter i
// at dims[i].
void check_batch(const ir::Graph& g, const Arrays& base, std::span<const int> dims, double lo,
                 double hi, std::mt19937_64& rng, const std::string& what);

}  // namespace xylem::transform::testing
