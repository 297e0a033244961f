#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/ir/graph.h"

namespace xylem::compiler {

struct Options {
  std::string name;
  bool quick = false;  // quick tier of the code generator, fewer passes
  // Parameters whose memory a result may take over.
  std::vector<int> donated;
};

struct Analysis {
  double flops = 0;
  double bytes = 0;
  std::int64_t temporaries = 0;  // bytes of the arena
  std::int64_t code = 0;         // bytes of machine code
  double trace_ms = 0, passes_ms = 0, codegen_ms = 0;
};

// Where a result lives after a run.
struct ResultPlacement {
  int aliased_param = -1;  // the donated parameter whose memory holds it, -1: a fresh buffer
};

// A compiled program for the host CPU: steps over one statically assigned arena. Immutable; runs
// may overlap, each with an arena of its own.
class Program {
 public:
  virtual ~Program() = default;
  virtual std::span<const ir::Type> param_types() const = 0;
  virtual std::span<const ir::Type> result_types() const = 0;
  virtual std::span<const ResultPlacement> placements() const = 0;
  virtual std::int64_t arena_bytes() const = 0;
  // Runs on the calling thread and the global thread pool. `params` and `results` are 64-byte
  // aligned row-major memory of the right sizes; a result placed on a parameter receives the same
  // pointer as that parameter if the caller donates it, else other memory (the program copies the
  // parameter first where it must). `arena`: 64-byte aligned memory of arena_bytes().
  // Throws the run's error.
  virtual void run(std::span<void* const> params, std::span<void* const> results,
                   void* arena) const = 0;
  // Estimated nanoseconds of a run on one thread, for choosing inline or queued execution.
  virtual double estimate_ns() const = 0;
  virtual const Analysis& analysis() const = 0;
  // Optimised graph and steps, human-readable.
  virtual std::string text() const = 0;
};

// Compiles a graph of StableHLO, CHLO and xylem.* ops (all types static). Throws UserError for
// programs that the back end refuses (by op name), InternalError for defects.
std::shared_ptr<const Program> compile(ir::GraphPtr graph, const Options& options = {});

}  // namespace xylem::compiler
