#pragma once

#include <string>

#include "xylem/ir/graph.h"

namespace xylem::cli {

// The module's functions as a Graphviz digraph, regions as clusters, types on the edges.
std::string to_dot(const ir::Module& module);

// A page of its own that draws the functions: collapsible regions, types on the edges, search by
// op, type and location.
std::string to_html(const ir::Module& module, const std::string& title);

}  // namespace xylem::cli
