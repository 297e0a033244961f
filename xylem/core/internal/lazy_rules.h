#pragma once

#include <span>
#include <vector>

#include "xylem/core/symbolic_zeros.h"
#include "xylem/ir/graph.h"

namespace xylem::internal {

// An attribute that names a rule and keeps it alive.
ir::Attr keep_lazy_rule(LazyJvpRule rule);

// The rule for these arguments and non-zero tangents, as a graph: arguments, tangents of the
// `moving` ones -> results, tangents of those with `out`.
struct LazyGraph {
  ir::GraphPtr graph;
  std::vector<bool> out;
};
LazyGraph apply_lazy_rule(const HostArray& handle, std::span<const ir::Type> args,
                          const std::vector<bool>& moving, std::span<const ir::Type> results,
                          SourceLoc where);

// custom_jvp of api.h whose rule is asked anew for each set of zero tangents, if `lazy` names one.
std::vector<Array> custom_jvp_with(std::span<const Array> args, FlatFunction primal,
                                   FlatFunction rule, const ir::Attr* lazy, SourceLoc where);

}  // namespace xylem::internal
