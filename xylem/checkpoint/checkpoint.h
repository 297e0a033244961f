#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/checkpoint/item.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

// The step that a directory's name stands for: decimal digits, perhaps after a prefix and "_",
// perhaps padded with zeros. Nothing for names of temporary directories and others.
std::optional<std::int64_t> parse_step_name(std::string_view name);
// Whether Orbax would take it for unfinished.
bool is_temporary_name(std::string_view name);

struct StepEntry {
  std::int64_t step = 0;
  std::string name;  // of the directory (or, for Flax's old files, the file) below the root
};

// Finished steps below a root, ascending. A directory that lacks everything a step must have is
// left out.
std::vector<StepEntry> list_steps(const FileSystem& fs, const std::string& root);

// A checkpoint of any kind, open for reading.
struct Checkpoint {
  // "orbax-v0", "orbax-v1", "safetensors", "npz" or "flax-msgpack".
  std::string format;
  std::optional<std::int64_t> step;
  std::string directory;  // the step's; for a single file its path
  std::map<std::string, std::shared_ptr<const Item>> items;
  orbax::StepMetadata metadata;

  // The item of this name, or the only tree where the name is empty. UserError if there is none.
  const Item& item(std::string_view name = "") const;
};

struct OpenOptions {
  // Encoded and decoded chunks held at a time, for each array read.
  std::uint64_t memory_limit = std::uint64_t{256} << 20;
};

// `path`: a root (its newest step), a step, an item's folder, or a .safetensors, .npz or Flax
// msgpack file. UserError if it is none of them or unfinished.
Checkpoint open_checkpoint(const FileSystem& fs, const std::string& path,
                           const OpenOptions& options = {});

// What a path is, by what lies there.
enum class PathKind { kMissing, kFile, kTree, kStep, kRoot, kItem, kSafetensors, kUnknown };
PathKind classify_path(const FileSystem& fs, const std::string& path);

}  // namespace xylem::checkpoint
