#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "xylem/checkpoint/ocdbt/database.h"

namespace xylem::checkpoint::ocdbt {

// A database whose manifest is lost or damaged, from the nodes in its data files: they carry magic
// numbers, lengths and checksums. Of the trees found, the one whose keys score highest, later
// written ones of equals; null if there is none that is whole and scores above 0. Nothing is
// written.
std::unique_ptr<Database> recover_database(
    const FileSystem& fs, const std::string& directory,
    const std::function<std::uint64_t(std::string_view key)>& score);

}  // namespace xylem::checkpoint::ocdbt
