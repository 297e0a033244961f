#pragma once

#include <span>
#include <vector>

#include "xylem/core/transform/transform.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/graph.h"

// The pieces that transformations and the rules of ops with regions share.
namespace xylem::transform {

// Appends g in forward mode. tangents[i] is kNoValue for zero. Sets results' primals and tangents
// (kNoValue for zero or not inexact).
void jvp_into(ir::Builder& b, const ir::Graph& g, std::span<const ir::ValueId> primals,
              std::span<const ir::ValueId> tangents, std::vector<ir::ValueId>& primal_out,
              std::vector<ir::ValueId>& tangent_out);

// Forward mode as a graph whose tangent results are those that are not known to be zero, plus the
// ones that `force` asks for.
//   params:  g.params…, tangents of `in`… -> results: g.results…, tangents of `out`…
struct JvpGraph {
  ir::GraphPtr graph;
  Mask out;
};
JvpGraph jvp_graph(const ir::Graph& g, const Mask& in, const Mask& force = {});

// Splits g by what is known.
//   known:   known params… -> known results…, residuals…
//   unknown: residuals…, unknown params… -> unknown results…
struct Partial {
  ir::GraphPtr known;
  ir::GraphPtr unknown;
  Mask result_known;
  int num_residuals = 0;
};
// `force_unknown[i]` demands that result i be unknown.
Partial partial_eval(const ir::Graph& g, const Mask& known, const Mask& force_unknown = {});

// Appends the transpose of g to b. values[i]: id in b of parameter i where linear[i] is false.
// cotangents: one per result, kNoValue for zero. Returns one per parameter, kNoValue for zero or
// not linear.
std::vector<ir::ValueId> backward_pass(ir::Builder& b, const ir::Graph& g, const Mask& linear,
                                       std::span<const ir::ValueId> values,
                                       std::span<const ir::ValueId> cotangents);

// Appends g vectorised. dims[i] as in batch(). Sets the results and their batch dimensions.
void batch_into(ir::Builder& b, const ir::Graph& g, std::span<const ir::ValueId> args,
                std::span<const int> dims, std::int64_t size, const std::string& axis_name,
                std::vector<ir::ValueId>& results, std::vector<int>& result_dims);

// Vectorises a region: parameters with in[i] have the batch dimension at 0; results with
// out[i] get it at 0 (broadcast where unbatched), the others must be unbatched.
struct BatchedRegion {
  ir::GraphPtr graph;
  Mask out;
};
BatchedRegion batch_region(const ir::Graph& g, const Mask& in, std::int64_t size,
                           const std::string& axis_name, const Mask& force = {});

// The value with its batch dimension at 0, broadcast if it has none.
ir::ValueId batch_to_front(ir::Builder& b, ir::ValueId v, int dim, std::int64_t size);

// Parameters in another order: new parameter i is old parameter order[i].
ir::GraphPtr reorder_params(const ir::Graph& g, std::span<const int> order);

bool all_of(const Mask& m);
bool any_of(const Mask& m);

}  // namespace xylem::transform
