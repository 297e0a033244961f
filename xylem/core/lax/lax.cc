#include "xylem/core/lax.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem::lax {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

Array rsqrt(const ArrayArg& x) { return internal::unary(ops::kRsqrt, x); }

Array clamp(const ArrayArg& min, const ArrayArg& x, const ArrayArg& max) {
  DType t = x.array.dtype();
  Array operands[3] = {min.array.astype(t, x.where), x.array, max.array.astype(t, x.where)};
  return internal::apply_one(ops::kClamp, operands, {}, x.where, x.array.weak_type());
}

Array bitcast_convert_type(const ArrayArg& x, DType dtype) {
  return internal::apply_one(ops::kBitcastConvert, std::span<const Array>(&x.array, 1),
                             Attrs{{"result_dtype", Attr(dtype)}}, x.where);
}

Array reduce_precision(const ArrayArg& x, int exponent_bits, int mantissa_bits) {
  return internal::apply_one(
      ops::kReducePrecision, std::span<const Array>(&x.array, 1),
      Attrs{{"exponent_bits", Attr(exponent_bits)}, {"mantissa_bits", Attr(mantissa_bits)}},
      x.where);
}

Array iota(DType dtype, Dims shape, int dimension) {
  return internal::iota(dtype, shape, dimension);
}

Array broadcast_in_dim(const ArrayArg& x, Dims shape, Dims broadcast_dimensions) {
  return internal::broadcast_in_dim(x.array, shape, broadcast_dimensions, x.where);
}

Array slice(const ArrayArg& x, Dims start, Dims limit, Dims strides) {
  if (strides.empty()) strides.resize(start.size(), 1);
  return internal::slice(x.array, start, limit, strides, x.where);
}

namespace {

void add_starts(const char* what, const Array& x, std::initializer_list<Array> start,
                std::vector<Array>& operands, SourceLoc where) {
  if (static_cast<int>(start.size()) != x.ndim())
    throw UserError(
        ErrorParts{what, fmt::format("one start index per axis ({})", x.ndim()),
                   fmt::format("{} were given", start.size()), "Give a scalar for each axis"},
        internal::CallSite::outermost(where));
  // The op wants one integer type for all of them. Negative ones count from the end.
  int axis = 0;
  for (const Array& s : start) {
    auto n = static_cast<std::int32_t>(x.shape()[axis++]);
    const HostArray& known = s.node()->literal;
    if (known.defined()) {
      auto v = static_cast<std::int32_t>(known.at(0));
      operands.push_back(
          internal::make_literal(HostArray::scalar(v < 0 ? v + n : v), DType::kI32, false));
      continue;
    }
    Array i = s.astype(DType::kI32, where);
    operands.push_back(is_unsigned_int(s.dtype())
                           ? i
                           : xylem::where(ArrayArg(less(ArrayArg(i, where), 0), where),
                                          add(ArrayArg(i, where), n), i));
  }
}

}  // namespace

Array dynamic_slice(const ArrayArg& x, std::initializer_list<Array> start, Dims sizes) {
  std::vector<Array> operands = {x.array};
  add_starts("dynamic_slice", x.array, start, operands, x.where);
  return internal::apply_one(ops::kDynamicSlice, operands, Attrs{{"slice_sizes", Attr(sizes)}},
                             x.where, x.array.weak_type());
}

Array dynamic_update_slice(const ArrayArg& x, const ArrayArg& update,
                           std::initializer_list<Array> start) {
  std::vector<Array> operands = {x.array, update.array};
  add_starts("dynamic_update_slice", x.array, start, operands, x.where);
  return internal::apply_one(ops::kDynamicUpdateSlice, operands, {}, x.where, x.array.weak_type());
}

Array broadcasted_iota(DType dtype, Dims shape, int dimension) {
  return internal::iota(dtype, shape, dimension);
}

namespace {

int axis_of(int axis, int rank, const char* what, SourceLoc where) {
  return static_cast<int>(AxisArg(axis).resolve(rank, what, where)[0]);
}

// Operands of a dynamic op that starts at `start` on one axis and at 0 on the others.
void add_start(const Array& x, const ArrayArg& start, int axis, std::vector<Array>& operands) {
  auto n = static_cast<int>(x.shape()[axis]);
  Array i = start.array.astype(DType::kI32, start.where);
  if (!is_unsigned_int(start.array.dtype())) i = where(less(i, 0), add(i, n), i);
  for (int d = 0; d < x.ndim(); ++d) operands.push_back(d == axis ? i : zeros({}, DType::kI32));
}

Array cumulative(const ir::OpDef& def, const char* what, const ArrayArg& x, int axis,
                 bool reverse) {
  int a = axis_of(axis, x.array.ndim(), what, x.where);
  return internal::apply_one(def, std::span<const Array>(&x.array, 1),
                             Attrs{{"dimension", Attr(a)}, {"reverse", Attr(reverse)}}, x.where,
                             x.array.weak_type());
}

}  // namespace

Array slice_in_dim(const ArrayArg& x, std::int64_t start, std::int64_t limit, int axis,
                   std::int64_t stride) {
  int a = axis_of(axis, x.array.ndim(), "slice_in_dim", x.where);
  Dims lo(x.array.shape().size(), 0), hi = x.array.shape(), step(x.array.shape().size(), 1);
  std::int64_t n = hi[a];
  lo[a] = start < 0 ? start + n : start;
  hi[a] = limit < 0 ? limit + n : limit;
  step[a] = stride;
  return internal::slice(x.array, lo, hi, step, x.where);
}

Array index_in_dim(const ArrayArg& x, std::int64_t index, int axis, bool keepdims) {
  int a = axis_of(axis, x.array.ndim(), "index_in_dim", x.where);
  std::int64_t n = x.array.shape()[a];
  if (index < -n || index >= n)
    throw UserError(ErrorParts{"index_in_dim", fmt::format("an index in [-{}, {})", n, n),
                               fmt::format("{}", index), "Give an index in range"},
                    internal::CallSite::outermost(x.where));
  if (index < 0) index += n;
  Array r = slice_in_dim(x, index, index + 1, a);
  return keepdims ? r : squeeze(ArrayArg(r, x.where), a);
}

Array dynamic_slice_in_dim(const ArrayArg& x, const ArrayArg& start, std::int64_t size, int axis) {
  internal::CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "dynamic_slice_in_dim", x.where);
  std::vector<Array> operands = {x.array};
  add_start(x.array, start, a, operands);
  Dims sizes = x.array.shape();
  sizes[a] = size;
  return internal::apply_one(ops::kDynamicSlice, operands, Attrs{{"slice_sizes", Attr(sizes)}},
                             x.where, x.array.weak_type());
}

Array dynamic_index_in_dim(const ArrayArg& x, const ArrayArg& index, int axis, bool keepdims) {
  Array r = dynamic_slice_in_dim(x, index, 1, axis);
  return keepdims ? r : squeeze(ArrayArg(r, x.where), axis);
}

Array dynamic_update_slice_in_dim(const ArrayArg& x, const ArrayArg& update, const ArrayArg& start,
                                  int axis) {
  internal::CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "dynamic_update_slice_in_dim", x.where);
  std::vector<Array> operands = {x.array, update.array};
  add_start(x.array, start, a, operands);
  return internal::apply_one(ops::kDynamicUpdateSlice, operands, {}, x.where, x.array.weak_type());
}

Array dynamic_update_index_in_dim(const ArrayArg& x, const ArrayArg& update, const ArrayArg& index,
                                  int axis) {
  Array u = update.array.ndim() == x.array.ndim() ? update.array : expand_dims(update, axis);
  return dynamic_update_slice_in_dim(x, ArrayArg(u, update.where), index, axis);
}

Array collapse(const ArrayArg& x, int start, int stop) {
  int n = x.array.ndim();
  if (start < 0) start += n;
  if (stop < 0) stop += n;
  if (start < 0 || stop > n || start >= stop)
    throw UserError(ErrorParts{"collapse", fmt::format("a range of axes of {}", n),
                               fmt::format("[{}, {})", start, stop), "Give start < stop"},
                    internal::CallSite::outermost(x.where));
  Dims shape;
  std::int64_t size = 1;
  for (int d = 0; d < n; ++d) {
    if (d >= start && d < stop) size *= x.array.shape()[d];
    if (d == stop - 1) shape.push_back(size);
    if (d < start || d >= stop) shape.push_back(x.array.shape()[d]);
  }
  return x.array.reshape(shape, x.where);
}

Array population_count(const ArrayArg& x) { return internal::unary(ops::kPopcnt, x); }
Array clz(const ArrayArg& x) { return internal::unary(ops::kCountLeadingZeros, x); }
Array cummax(const ArrayArg& x, int axis, bool reverse) {
  return cumulative(ops::kCummax, "cummax", x, axis, reverse);
}
Array cummin(const ArrayArg& x, int axis, bool reverse) {
  return cumulative(ops::kCummin, "cummin", x, axis, reverse);
}

Array dot_general(const ArrayArg& x, const ArrayArg& y, Dims x_contracting, Dims y_contracting,
                  Dims x_batch, Dims y_batch) {
  Array operands[2] = {x.array, y.array};
  return internal::apply_one(ops::kDotGeneral, operands,
                             Attrs{{"lhs_batching_dimensions", Attr(x_batch)},
                                   {"rhs_batching_dimensions", Attr(y_batch)},
                                   {"lhs_contracting_dimensions", Attr(x_contracting)},
                                   {"rhs_contracting_dimensions", Attr(y_contracting)}},
                             x.where);
}

TopK top_k(const ArrayArg& x, std::int64_t k) {
  std::vector<Array> r = internal::apply(ops::kTopK, std::span<const Array>(&x.array, 1),
                                         Attrs{{"k", Attr(k)}}, {}, x.where);
  return {r[0], r[1]};
}

Array optimization_barrier(const ArrayArg& x) {
  return internal::apply_one(ops::kOptimizationBarrier, std::span<const Array>(&x.array, 1), {},
                             x.where, x.array.weak_type());
}

}  // namespace xylem::lax
