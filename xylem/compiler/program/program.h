#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xylem/compiler/compile.h"
#include "xylem/compiler/program/kernel_cache.h"

namespace xylem::compiler {

// A step that is not a kernel: a copy, a loop over sub-programs. `operands`: addresses in the
// step's order. Thread safe.
class Action {
 public:
  virtual ~Action() = default;
  virtual void run(void* const* operands) const = 0;
  virtual std::string text() const = 0;
};

// Copies operand 0 to operand 1.
std::shared_ptr<const Action> make_copy(std::int64_t bytes);

// An address: a base of the run (see ProgramImpl::run) plus bytes.
struct Place {
  std::int32_t base = 0;
  std::int64_t offset = 0;
};

struct Step {
  int kernel = -1;                       // index into `kernels`, or
  std::shared_ptr<const Action> action;  // this
  std::uint32_t first = 0, count = 0;    // operands in `places`
  std::int64_t points = 1;               // parallel grid points of a kernel
  std::int64_t grain = 0;                // least points of a piece of work; 0: on this thread
  double ns = 0;                         // estimate on one thread
  std::string name;                      // for text()
};

// Everything that a run needs, read only. Bases: 0 the arena, 1 the constants, then parameters,
// then results.
class ProgramImpl final : public Program {
 public:
  std::span<const ir::Type> param_types() const override { return params; }
  std::span<const ir::Type> result_types() const override { return results; }
  std::span<const ResultPlacement> placements() const override { return placement; }
  std::int64_t arena_bytes() const override { return arena; }
  void run(std::span<void* const> p, std::span<void* const> r, void* memory) const override;
  double estimate_ns() const override { return ns; }
  const Analysis& analysis() const override { return info; }
  std::string text() const override;

  ir::GraphPtr graph;
  std::vector<ir::Type> params, results;
  std::vector<ResultPlacement> placement;
  std::int64_t arena = 0;
  std::shared_ptr<std::byte> constants;  // 64-byte aligned
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;
  std::vector<Step> steps;
  std::vector<Place> places;
  std::uint32_t most_operands = 0;
  double ns = 0;
  Analysis info;
};

}  // namespace xylem::compiler
