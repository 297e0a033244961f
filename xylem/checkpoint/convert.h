#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/orbax/writer.h"

namespace xylem::checkpoint {

struct ConvertOptions {
  std::string format;  // "orbax-v0", "orbax-v1", "safetensors" or "npz"
  std::string item;    // the one tree to take; empty: all (Orbax), the only one (files)
  // Into Orbax's formats, from files of names: split names at "." into a nested tree.
  bool nest = true;
  // Of safetensors files; larger checkpoints become several and an index (Hugging Face's layout).
  std::uint64_t max_file_bytes = 5'000'000'000;
  orbax::StepOptions orbax;
  // Called with leaves written and all leaves.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  // Told of what the format cannot hold: empty nodes, strings.
  std::function<void(std::string_view)> note;
};

// Writes `from` in another format to `path`, which must not exist; appears complete or not at all.
// A tree in files of tensors has the leaves' names joined with "."; its strings become metadata in
// safetensors and are left out of npz.
void convert(const FileSystem& fs, const Checkpoint& from, const std::string& path,
             const ConvertOptions& options);

struct Difference {
  std::string path;    // "item/leaf"
  std::string reason;  // "only in the first", "f32[2] and f32[3]", "max abs 0.1, max 3 ulp"
  double max_abs = 0;
  std::uint64_t max_ulp = 0;
};
struct DiffSummary {
  std::uint64_t equal = 0, different = 0, only_first = 0, only_second = 0;
};
// Compares two checkpoints leaf by leaf, by paths. Items are matched by name; where each has one
// tree only, these. Values are equal if they have the same bits. `progress`: leaves compared and
// all leaves of an item.
DiffSummary diff(const Checkpoint& a, const Checkpoint& b,
                 const std::function<void(const Difference&)>& f,
                 const std::function<void(std::uint64_t, std::uint64_t)>& progress = nullptr);

}  // namespace xylem::checkpoint
