#pragma once

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

// Artifacts in which Shardy's ops stand beside VHLO's. Their types are MLIR's own, so values that
// cross from one dialect to the other pass through a cast.

namespace xylem::ir::bytecode {

// "builtin.unrealized_conversion_cast": of the writer only, not in the op table.
extern const OpDef kTypeCast;

inline bool is_shardy(const OpDef& def) { return def.name.starts_with("sdy."); }

// A value that has MLIR's own type in the file.
bool is_builtin_typed(const Type& t);

// Whether the graph's own ops, not those of its regions, need casts.
bool needs_casts(const Graph& g);
// The graph with casts around Shardy's ops; `body` says that it is the region of one, whose first
// `own` parameters and whose results have MLIR's types.
Graph with_casts(const Graph& g, bool body, std::size_t own);

}  // namespace xylem::ir::bytecode
