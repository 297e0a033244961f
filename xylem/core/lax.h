#pragma once

#include <initializer_list>
#include <span>

#include "xylem/core/array.h"

// Functions of jax.lax that have no twin in numpy.h. Operands must agree in dtype.
namespace xylem::lax {

Array rsqrt(const ArrayArg& x);
Array clamp(const ArrayArg& min, const ArrayArg& x, const ArrayArg& max);
Array bitcast_convert_type(const ArrayArg& x, DType dtype);
Array reduce_precision(const ArrayArg& x, int exponent_bits, int mantissa_bits);
Array iota(DType dtype, Dims shape, int dimension);
Array broadcast_in_dim(const ArrayArg& x, Dims shape, Dims broadcast_dimensions);
Array slice(const ArrayArg& x, Dims start, Dims limit, Dims strides = {});
// Start indices are scalars, one per axis. Negative ones count from the end; then they are clamped
// so that the window fits.
Array dynamic_slice(const ArrayArg& x, std::initializer_list<Array> start, Dims sizes);
Array dynamic_update_slice(const ArrayArg& x, const ArrayArg& update,
                           std::initializer_list<Array> start);
// Values and i32 indices of the k largest along the last axis.
struct TopK {
  Array values, indices;
};
TopK top_k(const ArrayArg& x, std::int64_t k);
// Kept by the compiler as it stands: nothing is moved across it.
Array optimization_barrier(const ArrayArg& x);

}  // namespace xylem::lax
