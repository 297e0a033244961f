#pragma once

#include <functional>
#include <string>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

namespace xylem::ir::testing {

// A program and its arguments.
struct ProgramCase {
  GraphPtr graph;
  std::vector<HostArray> args;
};

// A smaller case that still fails: one result, and of the ops only those without which it does not
// fail. What an op was cut off from comes in as an argument, with the value that the interpreter
// computes for it, so the values downstream stay. Asks `fails` about as often as there are ops.
ProgramCase minimise(ProgramCase c, const std::function<bool(const ProgramCase&)>& fails);

// The program as StableHLO text (natively where that cannot express it), its arguments in comments.
std::string case_text(const ProgramCase& c);

}  // namespace xylem::ir::testing
