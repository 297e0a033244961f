#pragma once

#include <optional>

#include "xylem/core/array.h"
#include "xylem/core/indexing.h"
#include "xylem/core/lax/indexing.h"

// Pieces of indexing that take, take_along_axis and index expressions share.
namespace xylem::internal {

// The indices as i32, or i64 where i32 would not do; negative ones count from the end.
Array normalize_indices(const Array& indices, std::int64_t size, SourceLoc where);
// What stands for elements out of range: `given`, or jnp.take's default for the dtype.
Array fill_value(DType dtype, std::optional<double> given);
// 0 <= indices < size.
Array indices_in_range(const Array& indices, std::int64_t size, SourceLoc where);
Array gather(const Array& x, const Array& indices, const lax::GatherDims& dims, const Dims& sizes,
             bool sorted, SourceLoc where);

}  // namespace xylem::internal
