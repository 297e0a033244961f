#pragma once

#include <string>
#include <vector>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"

// The rows of the rule matrix: a program over f64 for every op with derivatives, in as many
// variants as its attributes have. Pointwise ops come from the op table by themselves.
namespace xylem::transform::testing {

struct Row {
  std::string name;
  ir::GraphPtr graph;
  double lo = -2, hi = 2;  // the domain of all parameters
  bool reverse = true;     // has a reverse mode
};

std::vector<Row> rule_rows();
// The ops in the rows' programs, regions included.
std::vector<const ir::OpDef*> covered_ops(const std::vector<Row>& rows);

}  // namespace xylem::transform::testing
