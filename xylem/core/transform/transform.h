#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xylem/ir/graph.h"

// Program transformations: functions from graphs to graphs. They know nothing of arrays or
// tracing. Rules of the ops stand in core/lax beside the user functions.
namespace xylem::transform {

// Which values carry derivatives: one flag per parameter. Only inexact values may be active.
using Mask = std::vector<bool>;

// Removes ops whose results are unused and that have no effect; regions included.
ir::GraphPtr dce(const ir::Graph& g);

// Forward mode.
//   params:  g.params…, tangents of active params…
//   results: g.results…, tangents of inexact results… (zeros instantiated)
// Throws UserError naming the op that has no rule.
ir::GraphPtr jvp(const ir::Graph& g, const Mask& active);

// Splits the derivative into a part that needs the primal values only and a linear part.
struct Linearized {
  // params: g.params… -> results: g.results…, residuals…
  ir::GraphPtr primal;
  // params: residuals…, tangents of active params… -> tangents of inexact results…
  ir::GraphPtr linear;
  int num_residuals = 0;
};
// `outputs`: which results have tangents (all inexact ones if empty); others are auxiliary.
Linearized linearize(const ir::Graph& g, const Mask& active, const Mask& outputs = {});

// Transposes a graph that is linear in its parameters from `num_residuals` on.
//   params:  residuals…, cotangents of results… -> results: cotangents of linear params…
// Throws UserError naming an op that is not linear or has no transpose rule.
ir::GraphPtr transpose(const ir::Graph& linear, int num_residuals);

// Reverse mode in one graph.
//   params:  g.params…, cotangents of inexact results (of `outputs`, if given)…
//   results: g.results…, cotangents of active params…
ir::GraphPtr vjp(const ir::Graph& g, const Mask& active, const Mask& outputs = {});

inline constexpr int kNotMapped = -1;

struct Batched {
  ir::GraphPtr graph;
  std::vector<int> out_dims;  // kNotMapped or the position of the batch dimension
};
// Vectorises g over a new dimension of `size`. in_dims: position of the batch dimension in each
// parameter (in the batched type) or kNotMapped. Named-axis collectives over `axis_name` become
// reductions.
Batched batch(const ir::Graph& g, std::span<const int> in_dims, std::int64_t size,
              const std::string& axis_name = "");
// The same with results' batch dimensions moved to where they are asked; kNotMapped asks for an
// unbatched result (UserError if it is batched).
ir::GraphPtr batch_to(const ir::Graph& g, std::span<const int> in_dims, std::int64_t size,
                      std::span<const int> out_dims, const std::string& axis_name = "");

}  // namespace xylem::transform
