#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xylem/checkpoint/leaf.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/repair.h"

namespace xylem::checkpoint::internal {

// What can be read of a damaged tree. The leaves' sources read from the original.
struct RescuedTree {
  LeafTree tree;
  bool use_ocdbt = true, use_zarr3 = false;
  std::string custom = "null";
  std::vector<RepairAction> actions;
};
// `where` opens the paths in the actions. Nothing if there is no array and no string left.
std::optional<RescuedTree> rescue_tree(const FileSystem& fs, const std::string& directory,
                                       const std::string& where);

// Mends a .safetensors or .npz file into `to`. The actions; empty if nothing is wrong and nothing
// was written. UserError if no array can be saved.
std::vector<RepairAction> rescue_safetensors(const FileSystem& fs, const std::string& path,
                                             const std::string& to);
std::vector<RepairAction> rescue_npz(const FileSystem& fs, const std::string& path,
                                     const std::string& to);

}  // namespace xylem::checkpoint::internal
