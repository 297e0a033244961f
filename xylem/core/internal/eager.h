#pragma once

#include <span>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/ir/graph.h"
#include "xylem/runtime/client.h"

// Ops outside of any trace: programs of one op each, kept by op, attributes and operand types.
namespace xylem::internal {

// Runs an op on concrete arrays.
std::vector<Array> run_op(const ir::OpDef& def, std::span<const Array> operands,
                          const ir::Attrs& attrs, const std::vector<ir::GraphPtr>& regions,
                          SourceLoc where, std::span<const bool> weak);

// The buffer of a literal scalar or table of the program text.
runtime::BufferPtr literal_buffer(const HostArray& literal, DType dtype);

}  // namespace xylem::internal
