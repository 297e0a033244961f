#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/checkpoint/item.h"
#include "xylem/checkpoint/named_arrays.h"
#include "xylem/checkpoint/storage/file_system.h"

namespace xylem::checkpoint {

// NumPy's .npz files: zip archives of .npy files, stored or deflated, also over 4 GiB.

// A tree of one level, with the arrays' names as keys. Types that no HostArray has (text, records)
// are listed with NumPy's name of them and cannot be read. UserError for malformed files.
std::unique_ptr<Item> open_npz(const FileSystem& fs, const std::string& path);

namespace internal {
// Raw deflated data of `size` bytes. UserError, opened by `name`, if it is not that.
std::string inflate_member(std::string_view deflated, std::uint64_t size, const std::string& name);
}  // namespace internal

// Stored, not deflated, in the order given. Appears complete or not at all. UserError for names
// that occur twice and types that NumPy lacks other than those which ml_dtypes adds (see npy.h).
void write_npz(const FileSystem& fs, const std::string& path, const NamedArrays& arrays);

}  // namespace xylem::checkpoint
