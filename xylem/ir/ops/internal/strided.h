#pragma once

#include <memory>

#include "xylem/base/host_array.h"

// Movement as strided views: the array's own copy routine then does the work.

namespace xylem::ir::ops {

// The elements of `a` from a byte offset with the given shape and byte strides; shares the bytes.
HostArray strided_view(const HostArray& a, std::int64_t byte_offset, Dims dims, Dims strides);

// Writes `src` (contiguous) to the elements of `out` at byte offset + sum of index * byte stride.
void write_strided(HostArray& out, std::int64_t byte_offset, const Dims& strides,
                   const HostArray& src);

}  // namespace xylem::ir::ops
