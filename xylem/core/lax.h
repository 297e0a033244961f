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
Array broadcasted_iota(DType dtype, Dims shape, int dimension);
// One axis of slice, dynamic_slice and dynamic_update_slice; index_in_dim drops the axis unless it
// is to be kept.
Array slice_in_dim(const ArrayArg& x, std::int64_t start, std::int64_t limit, int axis = 0,
                   std::int64_t stride = 1);
Array index_in_dim(const ArrayArg& x, std::int64_t index, int axis = 0, bool keepdims = true);
Array dynamic_slice_in_dim(const ArrayArg& x, const ArrayArg& start, std::int64_t size,
                           int axis = 0);
Array dynamic_index_in_dim(const ArrayArg& x, const ArrayArg& index, int axis = 0,
                           bool keepdims = true);
Array dynamic_update_slice_in_dim(const ArrayArg& x, const ArrayArg& update, const ArrayArg& start,
                                  int axis);
Array dynamic_update_index_in_dim(const ArrayArg& x, const ArrayArg& update, const ArrayArg& index,
                                  int axis);
// Axes [start, stop) as one.
Array collapse(const ArrayArg& x, int start, int stop);
Array population_count(const ArrayArg& x);
Array clz(const ArrayArg& x);
Array cummax(const ArrayArg& x, int axis = 0, bool reverse = false);
Array cummin(const ArrayArg& x, int axis = 0, bool reverse = false);
// Batch axes, free axes of x, free axes of y.
Array dot_general(const ArrayArg& x, const ArrayArg& y, Dims x_contracting, Dims y_contracting,
                  Dims x_batch = {}, Dims y_batch = {});
// Values and i32 indices of the k largest along the last axis.
struct TopK {
  Array values, indices;
};
TopK top_k(const ArrayArg& x, std::int64_t k);
// Kept by the compiler as it stands: nothing is moved across it.
Array optimization_barrier(const ArrayArg& x);

}  // namespace xylem::lax
