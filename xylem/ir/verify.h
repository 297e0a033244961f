#pragma once

#include <string>
#include <vector>

#include "xylem/ir/graph.h"

namespace xylem::ir {

struct Diagnostic {
  std::string message;  // four parts, label in brackets
  std::string label;    // "add_c1", or empty
  Location loc;
  std::string path;  // "main/op 12/region 0/op 3"
};

// Checks every invariant of Graph and every op's constraints, regions included; inferred types
// must equal the recorded ones. Reports all errors.
std::vector<Diagnostic> verify(const Graph& graph);
// Throws UserError with all diagnostics if there are any.
void verify_or_throw(const Graph& graph);

}  // namespace xylem::ir
