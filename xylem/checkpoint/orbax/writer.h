#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xylem/checkpoint/leaf.h"
#include "xylem/checkpoint/storage/codec.h"
#include "xylem/checkpoint/storage/file_system.h"

// Orbax's directories, as Orbax 0.12 and TensorStore 0.1.86 read them.
namespace xylem::checkpoint::orbax {

struct WriteOptions {
  bool use_ocdbt = true;
  bool use_zarr3 = false;
  // What chunks are encoded with. The default stores them as zstd frames with a checksum.
  std::optional<Codec> codec = Codec{CodecKind::kZstd, kStoredLevel, true};
  // Arrays that no device layout splits are cut into chunks of about this size. 0: one chunk each.
  std::uint64_t chunk_bytes = std::uint64_t{64} << 20;
  std::uint64_t data_file_bytes = std::uint64_t{2} << 30;
  // Copies of chunks under way (of strided or compressed ones; others are written from where they
  // are).
  std::uint64_t memory_limit = std::uint64_t{64} << 20;
  int threads = 0;              // 0: up to four, as many as there are cores
  std::string custom = "null";  // JSON, for the item's readers
  // Of several processes that save together, each its own parts.
  int process = 0, num_processes = 1;
  // Where not empty: the step's directory saved before, on the same file system. Chunks of at least
  // `link_bytes` that are as they were there get a second name (a hard link) instead of a second
  // copy; for that each such chunk has a file of its own.
  std::string previous;
  std::uint64_t link_bytes = std::uint64_t{256} << 10;
};

// Writes a tree into a directory, which must exist. UserError for a tree that cannot be: names that
// collide once joined with ".", types that TensorStore lacks, text that is not UTF-8, no leaf at
// all. Zero-size arrays, which Orbax refuses to write, are written; Orbax reads them.
void write_tree(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                const WriteOptions& options = {});

// The same by several processes: each calls write_tree_part, then one of them finish_tree. Arrays
// with parts are written by those who have them, all else by process 0. Where an array has replicas
// and a size that they divide, each of them writes a slice.
void write_tree_part(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                     const WriteOptions& options);
void finish_tree(const FileSystem& fs, const std::string& directory, const LeafTree& tree,
                 const WriteOptions& options);

enum class Layout { kV0, kV1 };

// A named part of a step.
struct StepItem {
  enum class Kind {
    kTree,
    kJson,
    kMetrics,
    kIterator,  // the state of a Grain iterator, JSON
  };
  Kind kind = Kind::kTree;
  LeafTree tree;
  std::string json;
};

struct StepOptions : WriteOptions {
  Layout layout = Layout::kV0;
  std::string step_custom = "{}";  // JSON object, of the step
  std::optional<std::int64_t> init_ns;
};

// The name of Orbax's handler for such an item.
std::string default_handler(StepItem::Kind kind, Layout layout);

// Writes a step, all but its commit file, into `directory`, which must exist and be empty, for the
// place `final_path` where it will lie. Everything is flushed to disk but the directories' own
// names (commit_directory).
void write_step(const FileSystem& fs, const std::string& directory, const std::string& final_path,
                const std::map<std::string, StepItem>& items, const StepOptions& options = {});

// The same by several processes: each calls write_step_part, then one of them finish_step.
void write_step_part(const FileSystem& fs, const std::string& directory,
                     const std::string& final_path, const std::map<std::string, StepItem>& items,
                     const StepOptions& options);
void finish_step(const FileSystem& fs, const std::string& directory, const std::string& final_path,
                 const std::map<std::string, StepItem>& items, const StepOptions& options);

// The last file of a step, commit_success.txt. Where a step is written in place it must come after
// all else is durable.
void write_commit_file(const FileSystem& fs, const std::string& directory,
                       const std::string& final_path);

// The file in a step with size and CRC-32C of its metadata files, which Orbax does not read.
inline constexpr const char* kChecksumFile = "xylem_checksums.json";
void write_checksums(const FileSystem& fs, const std::string& step);
// Checks it, if there is one: calls f(file, reason) for each defect.
void check_checksums(const FileSystem& fs, const std::string& step,
                     const std::function<void(std::string_view, std::string_view)>& f);

}  // namespace xylem::checkpoint::orbax
