#include "xylem/core/lax.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/lax/precision.h"
#include "xylem/core/loops.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/gather.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/windows.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

void internal::set_precision(ir::Attrs& attrs, lax::Precision precision) {
  if (precision == lax::Precision::kDefault) return;
  ir::Attr p(ir::EnumAttr(precision == lax::Precision::kHigh ? "HIGH" : "HIGHEST"));
  attrs.set("precision_config", ir::Attr(ir::AttrList{p, p}));
}

}  // namespace xylem

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

Array cumsum(const ArrayArg& x, int axis, bool reverse) {
  return cumulative(ops::kCumsum, "cumsum", x, axis, reverse);
}
Array cumprod(const ArrayArg& x, int axis, bool reverse) {
  return cumulative(ops::kCumprod, "cumprod", x, axis, reverse);
}

Array cumlogsumexp(const ArrayArg& x, int axis, bool reverse) {
  internal::CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "cumlogsumexp", x.where);
  return associative_scan([](const Array& p, const Array& q) { return logaddexp(p, q); }, x.array,
                          {.reverse = reverse, .axis = a});
}

namespace {

Array arg_of(const ir::OpDef& def, const char* what, const ArrayArg& x, int axis, DType index) {
  int a = axis_of(axis, x.array.ndim(), what, x.where);
  if (!is_integer(index))
    throw UserError(ErrorParts{fmt::format("{}: index_dtype", what), "an integer dtype",
                               dtype_name(index), "Use i32 or i64"},
                    internal::CallSite::outermost(x.where));
  return internal::apply_one(def, std::span<const Array>(&x.array, 1),
                             Attrs{{"dimension", Attr(a)}, {"index_dtype", Attr(index)}}, x.where);
}

}  // namespace

Array argmax(const ArrayArg& x, int axis, DType index_dtype) {
  return arg_of(ops::kArgmax, "argmax", x, axis, index_dtype);
}
Array argmin(const ArrayArg& x, int axis, DType index_dtype) {
  return arg_of(ops::kArgmin, "argmin", x, axis, index_dtype);
}

Array dot_general(const ArrayArg& x, const ArrayArg& y, Dims x_contracting, Dims y_contracting,
                  Dims x_batch, Dims y_batch, const DotOptions& options) {
  Array operands[2] = {x.array, y.array};
  Attrs a{{"lhs_batching_dimensions", Attr(x_batch)},
          {"rhs_batching_dimensions", Attr(y_batch)},
          {"lhs_contracting_dimensions", Attr(x_contracting)},
          {"rhs_contracting_dimensions", Attr(y_contracting)}};
  internal::set_precision(a, options.precision);
  if (options.preferred_element_type) a.set("result_dtype", Attr(*options.preferred_element_type));
  return internal::apply_one(ops::kDotGeneral, operands, std::move(a), x.where);
}

Array batch_matmul(const ArrayArg& x, const ArrayArg& y) {
  int n = x.array.ndim();
  if (n < 2 || y.array.ndim() != n)
    throw UserError(ErrorParts{"batch_matmul", "operands of one rank of at least 2",
                               x.array.type_string() + " and " + y.array.type_string(),
                               "Use matmul, which broadcasts"},
                    internal::CallSite::outermost(x.where));
  Dims batch;
  for (int d = 0; d < n - 2; ++d) batch.push_back(d);
  return dot_general(x, y, {n - 1}, {n - 2}, batch, batch);
}

Array ragged_dot_general(const ArrayArg& lhs, const ArrayArg& rhs, const ArrayArg& group_sizes,
                         const RaggedDotDimensionNumbers& d, const DotOptions& options) {
  if (!is_integer(group_sizes.array.dtype()))
    throw UserError(ErrorParts{"ragged_dot: group_sizes", "integers",
                               group_sizes.array.type_string(), "Convert them with astype"},
                    internal::CallSite::outermost(lhs.where));
  Array operands[3] = {lhs.array, rhs.array, group_sizes.array};
  Attrs a{{"lhs_batching_dimensions", Attr(d.lhs_batch)},
          {"rhs_batching_dimensions", Attr(d.rhs_batch)},
          {"lhs_contracting_dimensions", Attr(d.lhs_contracting)},
          {"rhs_contracting_dimensions", Attr(d.rhs_contracting)},
          {"lhs_ragged_dimensions", Attr(d.lhs_ragged)},
          {"rhs_group_dimensions", Attr(d.rhs_group)}};
  internal::set_precision(a, options.precision);
  if (options.preferred_element_type) a.set("result_dtype", Attr(*options.preferred_element_type));
  return internal::apply_one(ops::kRaggedDot, operands, std::move(a), lhs.where);
}

Array ragged_dot(const ArrayArg& lhs, const ArrayArg& rhs, const ArrayArg& group_sizes,
                 const DotOptions& options) {
  return ragged_dot_general(
      lhs, rhs, group_sizes,
      {.lhs_contracting = {1}, .rhs_contracting = {1}, .lhs_ragged = {0}, .rhs_group = {0}},
      options);
}

namespace {

// lhs before rhs by the first keys that differ.
ir::GraphPtr lexicographic(std::span<const Array> operands, int num_keys) {
  ir::Builder b;
  std::vector<std::pair<ir::Expr, ir::Expr>> keys;
  for (const Array& x : operands) {
    ir::Expr l{&b, b.param(ir::Type::tensor(x.dtype()))},
        r{&b, b.param(ir::Type::tensor(x.dtype()))};
    if (static_cast<int>(keys.size()) >= num_keys) continue;
    if (is_complex(x.dtype())) {
      keys.emplace_back(ir::unary(ops::kReal, l), ir::unary(ops::kReal, r));
      keys.emplace_back(ir::unary(ops::kImag, l), ir::unary(ops::kImag, r));
      ++num_keys;
    } else {
      keys.emplace_back(l, r);
    }
  }
  auto less = [](ir::Expr x, ir::Expr y) {
    ir::Expr before = ir::compare(x, y, "LT");
    if (!is_float(x.dtype())) return before;
    ir::Expr nan = ir::binary(ops::kAnd, ir::compare(y, y, "NE"), ir::compare(x, x, "EQ"));
    return ir::binary(ops::kOr, before, nan);
  };
  ir::Expr result{&b, ir::kNoValue};
  for (auto k = keys.rbegin(); k != keys.rend(); ++k) {
    ir::Expr before = less(k->first, k->second);
    if (result.defined()) {
      ir::Expr after = less(k->second, k->first);
      result =
          ir::binary(ops::kOr, before, ir::binary(ops::kAnd, ir::unary(ops::kNot, after), result));
    } else {
      result = before;
    }
  }
  return b.finish({result.v});
}

}  // namespace

std::vector<Array> sort(std::span<const Array> operands, int axis, bool is_stable, int num_keys,
                        SourceLoc where) {
  internal::CallSite site(where);
  if (operands.empty() || num_keys < 1 || num_keys > static_cast<int>(operands.size()))
    throw UserError(ErrorParts{"sort", "at least one operand, and no more keys than operands",
                               fmt::format("{} operands, {} keys", operands.size(), num_keys),
                               "Pass the keys first"},
                    internal::CallSite::outermost(where));
  int a = axis_of(axis, operands[0].ndim(), "sort", where);
  return internal::apply(ops::kSort, operands,
                         Attrs{{"dimension", Attr(a)}, {"is_stable", Attr(is_stable)}},
                         {lexicographic(operands, num_keys)}, where);
}

std::pair<Array, Array> sort_key_val(const ArrayArg& keys, const ArrayArg& values, int axis,
                                     bool is_stable) {
  Array both[2] = {keys.array, values.array};
  std::vector<Array> r = sort(both, axis, is_stable, 1, keys.where);
  return {r[0], r[1]};
}

TopK top_k(const ArrayArg& x, std::int64_t k, int axis) {
  internal::CallSite site(x.where);
  int n = x.array.ndim(), a = axis_of(axis, n, "top_k", x.where);
  Array moved = a == n - 1 ? x.array : moveaxis(x, a, -1);
  std::vector<Array> r = internal::apply(ops::kTopK, std::span<const Array>(&moved, 1),
                                         Attrs{{"k", Attr(k)}}, {}, x.where);
  if (a == n - 1) return {r[0], r[1]};
  return {moveaxis(r[0], -1, a), moveaxis(r[1], -1, a)};
}

namespace {

TopK approximate(const char* what, const ArrayArg& x, std::int64_t k, const ApproxOptions& o,
                 bool largest) {
  internal::CallSite site(x.where);
  if (!is_float(x.array.dtype()))
    throw UserError(
        ErrorParts{what, "an operand of floats", x.array.type_string(), "Use top_k for integers"},
        internal::CallSite::outermost(x.where));
  if (!(o.recall_target > 0 && o.recall_target <= 1))
    throw UserError(ErrorParts{fmt::format("{}: recall_target", what), "a number in (0, 1]",
                               fmt::format("{}", o.recall_target), "Use 0.95"},
                    internal::CallSite::outermost(x.where));
  int a = axis_of(o.reduction_dimension, x.array.ndim(), what, x.where);
  if (largest) return top_k(x, k, a);
  // Ascending order with the index of each.
  std::int64_t n = x.array.shape()[a];
  if (k < 0 || k > n)
    throw UserError(ErrorParts{fmt::format("{}: k", what), fmt::format("at most {}", n),
                               fmt::format("{}", k), "Ask for less"},
                    internal::CallSite::outermost(x.where));
  auto [values, indices] =
      sort_key_val(x, internal::iota(DType::kI32, x.array.shape(), a, x.where), a);
  return {slice_in_dim(values, 0, k, a), slice_in_dim(indices, 0, k, a)};
}

}  // namespace

TopK approx_max_k(const ArrayArg& x, std::int64_t k, const ApproxOptions& o) {
  return approximate("approx_max_k", x, k, o, true);
}
TopK approx_min_k(const ArrayArg& x, std::int64_t k, const ApproxOptions& o) {
  return approximate("approx_min_k", x, k, o, false);
}

Array index_take(const ArrayArg& x, std::span<const Array> index, const std::vector<int>& axes) {
  internal::CallSite site(x.where);
  int n = x.array.ndim();
  if (index.size() != axes.size() || index.empty())
    throw UserError(ErrorParts{"index_take", "an array of positions for each of the axes",
                               fmt::format("{} arrays and {} axes", index.size(), axes.size()),
                               "Give as many of both"},
                    internal::CallSite::outermost(x.where));
  Dims named;
  std::vector<Array> columns;
  for (std::size_t i = 0; i < index.size(); ++i) {
    named.push_back(axis_of(axes[i], n, "index_take", x.where));
    if (index[i].ndim() != 1)
      throw UserError(
          ErrorParts{"index_take", "vectors of positions", index[i].type_string(), "Flatten them"},
          internal::CallSite::outermost(x.where));
    Array p = index[i].astype(DType::kI32, x.where);
    auto size = static_cast<int>(x.array.shape()[named[i]]);
    columns.push_back(where(less(p, 0), add(p, size), p));
  }
  GatherDims g;
  Dims sizes = x.array.shape();
  int offset = 1;
  for (int d = 0; d < n; ++d) {
    if (named.contains(d)) {
      g.collapsed_slice_dims.push_back(d);
      sizes[d] = 1;
    } else {
      g.offset_dims.push_back(offset++);
    }
  }
  g.start_index_map = named;
  g.index_vector_dim = 1;
  return internal::gather(x.array, stack(columns, 1), g, sizes, false, x.where);
}

Array broadcast(const ArrayArg& x, Dims sizes) {
  Dims where_dims;
  auto lead = static_cast<std::int64_t>(sizes.size());
  for (int d = 0; d < x.array.ndim(); ++d) {
    where_dims.push_back(lead + d);
    sizes.push_back(x.array.shape()[d]);
  }
  return internal::broadcast_in_dim(x.array, sizes, where_dims, x.where);
}

Array broadcast_to_rank(const ArrayArg& x, int rank) {
  if (rank < x.array.ndim())
    throw UserError(
        ErrorParts{"broadcast_to_rank", fmt::format("a rank of at least {}", x.array.ndim()),
                   fmt::format("{}", rank), "Squeeze axes to lower the rank"},
        internal::CallSite::outermost(x.where));
  Dims shape(static_cast<std::size_t>(rank - x.array.ndim()), 1);
  for (std::int64_t d : x.array.shape()) shape.push_back(d);
  return x.array.reshape(shape, x.where);
}

Array select_n(const ArrayArg& which, std::span<const Array> cases) {
  internal::CallSite site(which.where);
  bool two = which.array.dtype() == DType::kBool;
  if (cases.empty() || (two ? cases.size() > 2 : which.array.dtype() != DType::kI32))
    throw UserError(
        ErrorParts{"select_n", "a bool for one or two cases, or an i32 for any number",
                   fmt::format("{} for {} cases", which.array.type_string(), cases.size()),
                   "Convert `which` with astype"},
        internal::CallSite::outermost(which.where));
  for (const Array& c : cases)
    if (c.shape() != cases[0].shape() || c.dtype() != cases[0].dtype())
      throw UserError(ErrorParts{"select_n", "cases of one shape and dtype",
                                 cases[0].type_string() + " and " + c.type_string(),
                                 "Broadcast and convert them first"},
                      internal::CallSite::outermost(which.where));
  if (which.array.ndim() != 0 && which.array.shape() != cases[0].shape())
    throw UserError(ErrorParts{"select_n", "a scalar `which`, or one of the cases' shape",
                               which.array.type_string(), "Broadcast it first"},
                    internal::CallSite::outermost(which.where));
  Array r = cases[0];
  for (std::size_t i = 1; i < cases.size(); ++i) {
    Array later = two ? which.array : greater_equal(which, static_cast<int>(i));
    r = internal::select(later, cases[i], r, which.where);
  }
  return r;
}

Array shift_right_logical(const ArrayArg& x, const ArrayArg& y) {
  return internal::binary(ops::kShiftRightLogical, "shift_right_logical", x, y);
}
Array shift_right_arithmetic(const ArrayArg& x, const ArrayArg& y) {
  return internal::binary(ops::kShiftRightArithmetic, "shift_right_arithmetic", x, y);
}
Array mulhi(const ArrayArg& x, const ArrayArg& y) {
  return internal::binary(ops::kMulhi, "mulhi", x, y);
}
Array complex(const ArrayArg& re, const ArrayArg& im) {
  return internal::binary(ops::kComplex, "complex", re, im);
}

namespace {

Array reduced(const ir::OpDef& def, const char* what, const ArrayArg& x,
              const std::vector<int>& axes) {
  return internal::reduce(def, x.array, AxisArg(axes).resolve(x.array.ndim(), what, x.where),
                          x.where);
}

// Checked here, because a reduction over no axis makes no op that would refuse.
Array logical(const ir::OpDef& def, const char* what, const ArrayArg& x,
              const std::vector<int>& axes) {
  if (!is_bool(x.array.dtype()) && !is_integer(x.array.dtype()))
    throw UserError(ErrorParts{what, "an operand of bool or integers", x.array.type_string(),
                               "Compare it with a number first"},
                    x.where);
  return reduced(def, what, x, axes);
}

}  // namespace

Array reduce_sum(const ArrayArg& x, const std::vector<int>& axes) {
  return reduced(ops::kAdd, "reduce_sum", x, axes);
}
Array reduce_prod(const ArrayArg& x, const std::vector<int>& axes) {
  return reduced(ops::kMultiply, "reduce_prod", x, axes);
}
Array reduce_max(const ArrayArg& x, const std::vector<int>& axes) {
  return reduced(ops::kMaximum, "reduce_max", x, axes);
}
Array reduce_min(const ArrayArg& x, const std::vector<int>& axes) {
  return reduced(ops::kMinimum, "reduce_min", x, axes);
}
Array reduce_and(const ArrayArg& x, const std::vector<int>& axes) {
  return logical(ops::kAnd, "reduce_and", x, axes);
}
Array reduce_or(const ArrayArg& x, const std::vector<int>& axes) {
  return logical(ops::kOr, "reduce_or", x, axes);
}
Array reduce_xor(const ArrayArg& x, const std::vector<int>& axes) {
  Array zero = zeros({}, x.array.dtype());
  return xylem::lax::reduce(
      x, zero, [](const Array& a, const Array& b) { return bitwise_xor(a, b); }, axes);
}

Array pad(const ArrayArg& x, const ArrayArg& value, const std::vector<PaddingConfig>& config) {
  Dims low, high, interior;
  for (const PaddingConfig& c : config) {
    low.push_back(c.low);
    high.push_back(c.high);
    interior.push_back(c.interior);
  }
  Array operands[2] = {x.array, value.array.astype(x.array.dtype(), value.where)};
  return internal::apply_one(ops::kPad, operands,
                             Attrs{{"edge_padding_low", Attr(low)},
                                   {"edge_padding_high", Attr(high)},
                                   {"interior_padding", Attr(interior)}},
                             x.where, x.array.weak_type());
}

Array optimization_barrier(const ArrayArg& x) {
  return internal::apply_one(ops::kOptimizationBarrier, std::span<const Array>(&x.array, 1), {},
                             x.where, x.array.weak_type());
}

}  // namespace xylem::lax
