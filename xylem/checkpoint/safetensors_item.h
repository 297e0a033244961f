#pragma once

#include <memory>
#include <string>

#include "xylem/checkpoint/item.h"
#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

// A safetensors file as a tree of one level, in the order of the file's bytes.
std::unique_ptr<Item> open_safetensors(const FileSystem& fs, const std::string& path);
// All *.safetensors files of a directory; with *.safetensors.index.json, those and the tensors that
// it names. UserError for a name in two files, and for one in the index that is in no file.
std::unique_ptr<Item> open_safetensors_directory(const FileSystem& fs,
                                                 const std::string& directory);

}  // namespace xylem::checkpoint
