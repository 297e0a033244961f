#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xylem/ir/graph.h"

namespace xylem::internal {

// What a user's rule for vmap makes of a call: arguments, mapped ones with their axis in front, ->
// results, those with `mapped` likewise.
struct MappedGraph {
  ir::GraphPtr graph;
  std::vector<bool> mapped;
};
MappedGraph apply_vmap_rule(std::int64_t number, std::int64_t size, const std::vector<bool>& mapped,
                            std::span<const ir::Type> types);

}  // namespace xylem::internal
