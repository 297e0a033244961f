#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xylem/ir/graph.h"

namespace xylem::transform {

// What is looked for, as bits.
enum CheckKind : unsigned { kUserCheck = 1, kNanCheck = 2, kIndexCheck = 4, kDivisionCheck = 8 };

// One place of a program that can fail.
struct CheckEntry {
  CheckKind kind = kUserCheck;
  std::int64_t code = 0;  // of a user's check: its number in the front's list
  std::string_view op;    // of others: the op's name
  Dims shape;             // of an index check: the array's
  SourceLoc where;
  std::vector<ir::Type> payload;  // values that the message shows; index and axis of index checks
};

// The program with errors as values: the first check that failed is entry `code` - 1, 0 for none,
// and its payload slots hold its values.
//   params: g.params… -> results: code i32[], payload of all entries…, g.results…
// Loops carry the error, branches return it. A custom rule or remat that holds a check is replaced
// by its primal function.
struct Checkified {
  ir::GraphPtr graph;
  std::vector<CheckEntry> entries;
};
Checkified checkify(const ir::Graph& g, unsigned kinds);

}  // namespace xylem::transform
