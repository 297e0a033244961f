#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "xylem/core/array.h"

// Functions of jax.lax that have no twin in numpy.h. Operands must agree in dtype. Convolutions are
// in convolution.h, windows and general reductions in windows.h, gather and scatter in
// gather_scatter.h.
namespace xylem::lax {

// How much the products of matrices may be rounded on devices with a choice. The CPU computes every
// choice as kHighest.
enum class Precision : std::uint8_t { kDefault, kHigh, kHighest };

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
// Along one axis, from its end if `reverse`; log of the running sums of e^x.
Array cumsum(const ArrayArg& x, int axis = 0, bool reverse = false);
Array cumprod(const ArrayArg& x, int axis = 0, bool reverse = false);
Array cumlogsumexp(const ArrayArg& x, int axis = 0, bool reverse = false);
// Index of the first largest or smallest element along an axis; NaN is both.
Array argmax(const ArrayArg& x, int axis, DType index_dtype = DType::kI32);
Array argmin(const ArrayArg& x, int axis, DType index_dtype = DType::kI32);

struct DotOptions {
  Precision precision = Precision::kDefault;
  // The result's dtype, in which products are summed at least; the operands' own if absent.
  std::optional<DType> preferred_element_type = std::nullopt;
};
// Batch axes, free axes of x, free axes of y.
Array dot_general(const ArrayArg& x, const ArrayArg& y, Dims x_contracting, Dims y_contracting,
                  Dims x_batch = {}, Dims y_batch = {}, const DotOptions& options = {});
// Of the last axis and the one before, batched over equal leading axes.
Array batch_matmul(const ArrayArg& x, const ArrayArg& y);

// Which dimensions of a ragged product are what: `lhs_ragged` is a free, a contracted or a batch
// dimension of lhs, cut into groups; rhs has a dimension of groups only in the first case.
struct RaggedDotDimensionNumbers {
  Dims lhs_contracting, rhs_contracting, lhs_batch = {}, rhs_batch = {};
  Dims lhs_ragged, rhs_group = {};
};
// lhs [m, k] times rhs [g, k, n]: row i takes the matrix of the group that it is in. Rows behind
// the last group are zero. group_sizes: integers [g].
Array ragged_dot(const ArrayArg& lhs, const ArrayArg& rhs, const ArrayArg& group_sizes,
                 const DotOptions& options = {});
Array ragged_dot_general(const ArrayArg& lhs, const ArrayArg& rhs, const ArrayArg& group_sizes,
                         const RaggedDotDimensionNumbers& dimensions,
                         const DotOptions& options = {});

// Sorts the operands together along an axis by the first `num_keys` of them, in ascending order
// with NaN last; -0 equals +0.
std::vector<Array> sort(std::span<const Array> operands, int axis = -1, bool is_stable = true,
                        int num_keys = 1, SourceLoc where = SourceLoc::current());
std::pair<Array, Array> sort_key_val(const ArrayArg& keys, const ArrayArg& values, int axis = -1,
                                     bool is_stable = true);
// Values and i32 indices of the k largest along the last axis.
struct TopK {
  Array values, indices;
};
TopK top_k(const ArrayArg& x, std::int64_t k, int axis = -1);
// The k largest or smallest along an axis, of which a TPU may miss some; elsewhere exact. With
// aggregate_to_topk off a TPU gives more candidates; here it has no effect.
struct ApproxOptions {
  int reduction_dimension = -1;
  double recall_target = 0.95;
  std::int64_t reduction_input_size_override = -1;
  bool aggregate_to_topk = true;
};
TopK approx_max_k(const ArrayArg& x, std::int64_t k, const ApproxOptions& options = {});
TopK approx_min_k(const ArrayArg& x, std::int64_t k, const ApproxOptions& options = {});
// Rectangles of an array by arrays of positions: index[i] along axes[i], one slice each.
Array index_take(const ArrayArg& x, std::span<const Array> index, const std::vector<int>& axes);
// New leading axes; leading axes of size 1 up to a rank.
Array broadcast(const ArrayArg& x, Dims sizes);
Array broadcast_to_rank(const ArrayArg& x, int rank);
// which[i] chooses the case of element i: a bool of two, or an i32; an index out of range the first
// or last. `which` is a scalar or has the cases' shape.
Array select_n(const ArrayArg& which, std::span<const Array> cases);
Array shift_right_logical(const ArrayArg& x, const ArrayArg& y);
Array shift_right_arithmetic(const ArrayArg& x, const ArrayArg& y);
// The high half of the product of two integers.
Array mulhi(const ArrayArg& x, const ArrayArg& y);
Array complex(const ArrayArg& re, const ArrayArg& im);
// Sums and so on over axes, in the operand's own dtype.
Array reduce_sum(const ArrayArg& x, const std::vector<int>& axes);
Array reduce_prod(const ArrayArg& x, const std::vector<int>& axes);
Array reduce_max(const ArrayArg& x, const std::vector<int>& axes);
Array reduce_min(const ArrayArg& x, const std::vector<int>& axes);
Array reduce_and(const ArrayArg& x, const std::vector<int>& axes);
Array reduce_or(const ArrayArg& x, const std::vector<int>& axes);
Array reduce_xor(const ArrayArg& x, const std::vector<int>& axes);
// Low and high edge and interior padding of each axis; negative edges cut.
struct PaddingConfig {
  std::int64_t low = 0, high = 0, interior = 0;
};
Array pad(const ArrayArg& x, const ArrayArg& value, const std::vector<PaddingConfig>& config);
// Kept by the compiler as it stands: nothing is moved across it.
Array optimization_barrier(const ArrayArg& x);

}  // namespace xylem::lax
