#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/named_arrays.h"

namespace xylem::checkpoint {

// All that one step holds: named groups of arrays ("params", "optimizer"), and the caller's own
// state as JSON text (an object).
struct StepContents {
  std::map<std::string, NamedArrays> items;
  std::string state = "{}";
};

// How a step lies in its directory. The manager above it decides names, commits and removal, so a
// format writes into a fresh directory that becomes visible only once all is on disk. Immutable;
// calls may be concurrent.
class StepFormat {
 public:
  virtual ~StepFormat() = default;
  virtual std::string_view name() const = 0;
  // Whether the directory holds a complete step of this format, judged without reading the arrays.
  virtual bool recognises(const std::string& directory) const = 0;
  virtual void write(const std::string& directory, std::int64_t step,
                     const StepContents& contents) const = 0;
  // The step, or only the items named. UserError or EnvironmentError that names the file if
  // something is missing, damaged or foreign.
  virtual StepContents read(const std::string& directory,
                            const std::vector<std::string>& items) const = 0;
};

// <item>.safetensors for each item, and state.json with the version of the format, the step, size
// and CRC-32C of each file, and the caller's state.
std::unique_ptr<StepFormat> make_safetensors_format();

}  // namespace xylem::checkpoint
