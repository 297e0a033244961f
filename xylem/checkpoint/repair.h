#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

struct RepairOptions {
  // Where the repaired checkpoint goes, a path where nothing is; the original stays as it is.
  // Empty: in place of the original, which moves to `<path>.xylem-backup` beside it.
  std::string to;
  bool dry_run = false;  // only say what would be done
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

struct RepairAction {
  enum class Kind {
    kRebuilt,      // made anew from other parts
    kDropped,      // belonged to nothing
    kQuarantined,  // cannot be rebuilt: left out of the result, kept in the backup
  } kind;
  std::string where;   // a path below the one given, or a leaf's
  std::string detail;  // what was wrong, and what was done
};

struct RepairReport {
  std::vector<RepairAction> actions;  // none: nothing was wrong, nothing is changed
  std::vector<std::string> backups;   // paths of the originals
  bool lost() const;                  // anything is quarantined
};

// Mends what can be mended of a root of Orbax steps, a step, or a .safetensors or .npz file:
// manifests and metadata files are made anew from what they described (databases of processes,
// B+tree nodes in data files, array metadata), files that belong to nothing are dropped, leaves and
// files that are damaged beyond that are left out. The result is written beside the original,
// verified, and then takes its place, so that a crash leaves the original, there or as its backup.
// In a root what no step can be made of, and what interrupted saves left, moves to
// `<root>/xylem-quarantine`. UserError if nothing of a checkpoint can be restored, or for other
// kinds of paths.
RepairReport repair(const FileSystem& fs, const std::string& path,
                    const RepairOptions& options = {});

}  // namespace xylem::checkpoint
