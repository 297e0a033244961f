#pragma once

#include <string_view>

#include "xylem/checkpoint/leaf.h"

namespace xylem::checkpoint {

// The tree in a checkpoint of flax.serialization (msgpack_serialize): maps, arrays, extension types
// 1 ndarray, 2 complex, 3 NumPy scalar, 4 tuple; arrays in pieces are put together. UserError,
// opened by `name`, for anything malformed.
LeafTree read_flax_msgpack(std::string_view bytes, std::string_view name);
// Whether the bytes look like one: a map, or an extension of its kind.
bool looks_like_msgpack(std::string_view head);

}  // namespace xylem::checkpoint
