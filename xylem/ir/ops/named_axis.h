#pragma once

#include "xylem/ir/op_def.h"

// Collectives over a named axis of a transformation that maps a function: {axis_name, axis_size}.
// Mapping over that axis turns them into ordinary ops; until then they cannot be evaluated, and
// they have no decomposition. n is the size of the axis.

namespace xylem::ir::ops {

// Sum, maximum and minimum over the axis: T -> T.
extern const OpDef kPsum, kPmax, kPmin;
// all_gather(x) {dimension, tiled}: the values of all positions, on a new dimension of size n, or
// one behind the other along the given one.
extern const OpDef kAllGatherAxis;
// psum_scatter(x) {dimension, tiled}: of the sum, the slice of the own position (the dimension,
// which has size n, is dropped), or the own block of the dimension.
extern const OpDef kPsumScatter;
// all_to_all(x) {split_dimension, concat_dimension, tiled}: slice i of the split dimension (size n,
// dropped) goes to position i; the slices received stand along a new dimension at
// concat_dimension; tiled: blocks of the split dimension, one behind the other.
extern const OpDef kAllToAllAxis;
// ppermute(x) {pairs}: source, target, source, target, …; T -> T.
extern const OpDef kPpermute;
// axis_index: the own position, i32[].
extern const OpDef kAxisIndex;

}  // namespace xylem::ir::ops
