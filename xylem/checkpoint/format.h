#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/leaf.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

// All that one step holds: named trees ("params", "optimizer"), the caller's own state as JSON text
// (an object), and metrics (an object, or nothing).
struct StepContents {
  std::map<std::string, LeafTree> items;
  std::string state = "{}";
  std::string metrics;
};

// How a step lies in its directory. The manager above it decides names, commits and removal, so a
// format writes into a fresh directory that becomes visible only once all is on disk. Immutable;
// calls may be concurrent.
class StepFormat {
 public:
  virtual ~StepFormat() = default;
  virtual std::string_view name() const = 0;
  // Whether the directory is a step of this format, by the names of its files.
  virtual bool recognises(const FileSystem& fs, const std::string& directory) const = 0;
  // UserError or EnvironmentError unless the step can be restored, judged without reading arrays.
  virtual void check(const FileSystem& fs, const std::string& directory) const = 0;
  // Files are flushed to disk, directories not yet. `final_path`: where the step will lie.
  virtual void write(const FileSystem& fs, const std::string& directory,
                     const std::string& final_path, std::int64_t step,
                     const StepContents& contents) const = 0;
  // Where several processes save one step: which of them this is. Each calls write(), then the
  // first finish(). False if the format is for one process only.
  virtual bool set_process(int /*process*/, int /*num_processes*/) { return false; }
  virtual void finish(const FileSystem&, const std::string& /*directory*/,
                      const std::string& /*final_path*/, const StepContents&) const {}
  // The mark of a finished step, if the format has one. Comes after all else is on disk.
  virtual void mark(const FileSystem&, const std::string& /*directory*/,
                    const std::string& /*final_path*/) const {}
  // The step, or only the items named. UserError or EnvironmentError that names the file if
  // something is missing, damaged or foreign.
  virtual StepContents read(const FileSystem& fs, const std::string& directory,
                            const std::vector<std::string>& items) const = 0;
};

// Orbax's layout. The state is the JSON item "state". With `deduplicate`, chunks that are as they
// were in the step before share its files (hard links, see WriteOptions::previous): a step costs
// what has changed, and removing either one leaves the other whole.
std::unique_ptr<StepFormat> make_orbax_format(orbax::StepOptions options = {},
                                              bool deduplicate = false);

// <item>.safetensors for each item, and state.json with the version of the format, the step, size
// and CRC-32C of each file, and the caller's state. On the system's files only.
std::unique_ptr<StepFormat> make_safetensors_format();

}  // namespace xylem::checkpoint
