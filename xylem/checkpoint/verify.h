#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

// A leaf or a file below the path, and what is wrong with it.
using DefectSink = std::function<void(std::string_view where, std::string_view reason)>;

struct VerifyOptions {
  // Called with leaves done and all leaves, anew for each item.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

// Reads all of a checkpoint (of a root: of every step) and checks what can be checked: metadata,
// structure of databases, every checksum, that every chunk decodes to its size. Returns the number
// of defects. Never throws for what is wrong with the checkpoint, and never writes.
std::uint64_t verify(const FileSystem& fs, const std::string& path, const DefectSink& f,
                     const VerifyOptions& options = {});

}  // namespace xylem::checkpoint
