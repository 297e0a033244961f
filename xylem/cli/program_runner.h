#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xylem/base/host_array.h"
#include "xylem/ir/graph.h"

namespace xylem::cli {

enum class Backend { kCpu, kInterpret };

// A function made ready to run on a back end. Not thread safe.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  // Runs the function with its checks; throws UserError when a check fails.
  virtual std::vector<HostArray> run(std::span<const HostArray> inputs) = 0;
  // Time of one more run in microseconds, checks left out where the back end has them apart.
  virtual double time_us(std::span<const HostArray> inputs) = 0;
};

// Shapes that the program leaves open are those of `inputs`. `probe_dir`: where interpreter.probe
// writes, empty: nowhere. Throws UserError "unsupported on cpu: …; use --backend interpret" for
// what only the interpreter does.
std::unique_ptr<ProgramRunner> make_runner(const ir::GraphPtr& graph, Backend backend,
                                           std::span<const HostArray> inputs,
                                           const std::string& probe_dir);

}  // namespace xylem::cli
