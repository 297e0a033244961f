#pragma once

#include <memory>
#include <string>

#include "xylem/checkpoint/item.h"
#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint::orbax {

// Whether the directory holds a tree: `_METADATA`, or arrays as older versions left them.
bool is_tree_directory(const FileSystem& fs, const std::string& directory);

struct TreeOptions {
  std::uint64_t memory_limit = std::uint64_t{256} << 20;
};

// A tree that Orbax saved: OCDBT or a directory an array, zarr 2 or 3. Opening reads no metadata
// but the manifest; see Item for what does.
std::unique_ptr<Item> open_tree(const FileSystem& fs, std::string directory,
                                const TreeOptions& options = {});

}  // namespace xylem::checkpoint::orbax
