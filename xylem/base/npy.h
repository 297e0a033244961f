#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "xylem/base/host_array.h"

namespace xylem {

// NumPy's .npy format, versions 1 to 3 in, 1 and 2 out.
//
// Booleans, integers of 8 to 64 bits, f16, f32, f64 and complex are written as NumPy has them.
// Types that NumPy lacks are written as raw bytes, "|V2" for bf16 and "|V1"
// for the f8, f6, f4, i4 and i2 families; the file does not say which type they are.

// Reads an array from the bytes of a file; it has bytes of its own. `raw_type` says what raw bytes
// mean; without it two-byte ones are bf16 and others an error. Big-endian and Fortran-ordered files
// are converted. UserError, opened by `name`, for anything malformed: bytes beyond the array
// included.
HostArray parse_npy(std::span<const std::byte> bytes, std::string_view name = "npy",
                    std::optional<DType> raw_type = std::nullopt);
// Errors of the file are EnvironmentErrors.
HostArray read_npy(const std::string& path, std::optional<DType> raw_type = std::nullopt);

std::string format_npy(const HostArray& a);
// Atomic, see file.h.
void write_npy(const std::string& path, const HostArray& a);

}  // namespace xylem
