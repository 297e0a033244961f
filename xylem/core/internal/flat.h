#pragma once

#include <span>
#include <string>
#include <vector>

#include "xylem/core/internal/api.h"
#include "xylem/core/internal/refs.h"
#include "xylem/core/internal/trace.h"

namespace xylem::internal {

// Tracing of flat functions whose arguments and results may be undefined: those take no part in
// the graph and come out undefined again.
struct FlatTrace {
  ir::GraphPtr graph;  // defined arguments, then captures -> defined results
  std::vector<Array> captures;
  std::vector<AbstractValue> outputs;  // of defined results
  std::vector<bool> arg_defined, result_defined;
  // Refs from outside that it touched. Last contents of the written ones are results of the graph
  // behind the outputs.
  std::vector<RefTouch> refs;

  std::size_t num_results() const { return result_defined.size(); }
  // Defined arguments, then captures.
  std::vector<Array> call_args(std::span<const Array> args) const;
  // One flag per parameter of the graph from one per argument; captures are false.
  std::vector<bool> param_mask(const std::vector<bool>& per_arg) const;
  // Puts defined results back to their places; sets their weakness.
  std::vector<Array> expand(std::vector<Array> results) const;
};

enum class RefWrites : std::uint8_t { kRefuse, kAllow };

// UserError for writes to refs from outside, unless the caller brings them back (write_back).
FlatTrace trace_flat(TraceKind kind, std::string name, std::span<const Array> args, FlatFunction f,
                     RefWrites writes = RefWrites::kRefuse);
// The same on given types instead of the arguments' own.
FlatTrace trace_flat(TraceKind kind, std::string name, std::span<const Array> args,
                     std::span<const AbstractValue> types, FlatFunction f,
                     RefWrites writes = RefWrites::kRefuse);

// An array equal to `a` but for its weakness.
Array with_weak(const Array& a, bool weak);

}  // namespace xylem::internal
