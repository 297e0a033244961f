#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/lax/indexing.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using ir::Attr;
using ir::Attrs;
using ir::EnumAttr;
namespace ops = ir::ops;

namespace {

ArrayArg at(const Array& a, SourceLoc where) { return {a, where}; }

int axis_of(int axis, int rank, const char* what, SourceLoc where) {
  return static_cast<int>(AxisArg(axis).resolve(rank, what, where)[0]);
}

// Negative indices count from the end.
Array wrap_negative(const Array& indices, std::int64_t n, SourceLoc where) {
  if (is_unsigned_int(indices.dtype())) return indices;
  Array shifted = add(at(indices, where), static_cast<int>(n));
  return xylem::where(at(less(at(indices, where), 0), where), shifted, indices);
}

// What jnp.take puts where the index is out of range.
Array fill_value(DType t) {
  if (is_float(t) || is_complex(t))
    return internal::constant(t, {}, std::numeric_limits<double>::quiet_NaN());
  if (is_bool(t)) return internal::constant(t, {}, 1);
  if (is_signed_int(t)) return internal::constant(t, {}, -std::numeric_limits<double>::infinity());
  return internal::constant(t, {}, std::numeric_limits<double>::infinity());
}

Array in_range(const Array& indices, std::int64_t n, SourceLoc where) {
  return logical_and(at(greater_equal(at(indices, where), 0), where),
                     less(at(indices, where), static_cast<int>(n)));
}

Array gather(const Array& x, const Array& indices, const lax::GatherDims& dims, const Dims& sizes,
             SourceLoc where) {
  Attrs a;
  dims.write(a);
  a.set("slice_sizes", Attr(sizes));
  a.set("indices_are_sorted", Attr(false));
  Array operands[2] = {x, indices};
  return internal::apply_one(ops::kGather, operands, std::move(a), where, x.weak_type());
}

// "lhs before rhs" with NaN last and -0 equal to +0 (descending: NaN first).
ir::GraphPtr comparator(std::span<const DType> dtypes, bool descending) {
  ir::Builder b;
  std::vector<ir::Expr> args;
  for (DType t : dtypes)
    for (int k = 0; k < 2; ++k) args.push_back({&b, b.param(ir::Type::tensor(t))});
  auto less = [](ir::Expr x, ir::Expr y) {
    ir::Expr before = ir::compare(x, y, "LT");
    if (!is_float(x.dtype())) return before;
    // x < y, or y is NaN and x is not.
    ir::Expr nan = ir::binary(ops::kAnd, ir::compare(y, y, "NE"), ir::compare(x, x, "EQ"));
    return ir::binary(ops::kOr, before, nan);
  };
  ir::Expr x = descending ? args[1] : args[0], y = descending ? args[0] : args[1];
  if (!is_complex(x.dtype())) return b.finish({less(x, y).v});
  // Real parts first, imaginary parts where those are equal.
  ir::Expr xr = ir::unary(ops::kReal, x), yr = ir::unary(ops::kReal, y);
  ir::Expr equal = ir::unary(ops::kNot, ir::binary(ops::kOr, less(xr, yr), less(yr, xr)));
  ir::Expr parts = less(ir::unary(ops::kImag, x), ir::unary(ops::kImag, y));
  ir::Expr before = ir::binary(ops::kOr, less(xr, yr), ir::binary(ops::kAnd, equal, parts));
  return b.finish({before.v});
}

}  // namespace

Array take(const ArrayArg& x, const ArrayArg& indices, std::optional<int> axis) {
  SourceLoc w = x.where;
  Array a = axis ? x.array : ravel(x);
  int ax = axis_of(axis.value_or(0), a.ndim(), "take", w);
  if (!is_integer(indices.array.dtype()))
    throw UserError(ErrorParts{"take", "the indices must be integers", indices.array.type_string(),
                               "Convert them with astype"},
                    internal::CallSite::outermost(w));
  std::int64_t n = a.shape()[ax];
  Array i = wrap_negative(indices.array, n, w);
  int r = i.ndim();
  lax::GatherDims g;
  Dims sizes = a.shape();
  sizes[ax] = 1;
  for (int d = 0; d < a.ndim(); ++d)
    if (d != ax) g.offset_dims.push_back(d < ax ? d : d - 1 + r);
  g.collapsed_slice_dims = {ax};
  g.start_index_map = {ax};
  g.index_vector_dim = r;
  Array got = gather(a, i, g, sizes, w);
  Dims where_dims;
  for (int d = 0; d < r; ++d) where_dims.push_back(ax + d);
  Array ok = internal::broadcast_in_dim(in_range(i, n, w), got.shape(), where_dims, w);
  return where(at(ok, w), got, fill_value(a.dtype()));
}

Array take_along_axis(const ArrayArg& x, const ArrayArg& indices, int axis) {
  SourceLoc w = x.where;
  int ax = axis_of(axis, x.array.ndim(), "take_along_axis", w);
  std::int64_t n = x.array.shape()[ax];
  Dims shape = x.array.shape(), ishape = indices.array.shape();
  if (ishape.size() != shape.size())
    throw UserError(ErrorParts{"take_along_axis", "indices must have the array's rank",
                               indices.array.type_string(), "Add axes with expand_dims"},
                    internal::CallSite::outermost(w));
  Dims a = shape, b = ishape;
  a[ax] = b[ax] = 1;
  Dims both[2] = {a, b};
  Dims common = internal::broadcast_shapes(both, "take_along_axis", w);
  Dims as = common, bs = common;
  as[ax] = n;
  bs[ax] = ishape[ax];
  Array values = internal::broadcast(x.array, as, w);
  Array i = internal::broadcast(wrap_negative(indices.array, n, w), bs, w);
  lax::GatherDims g;
  for (int d = 0; d < values.ndim(); ++d)
    if (d != ax) {
      g.operand_batching_dims.push_back(d);
      g.start_indices_batching_dims.push_back(d);
    }
  g.collapsed_slice_dims = {ax};
  g.start_index_map = {ax};
  g.index_vector_dim = values.ndim();
  Dims column = i.shape();
  column.push_back(1);
  Array got = gather(values, i.reshape(column, w), g, Dims(shape.size(), 1), w);
  return where(at(in_range(i, n, w), w), got, fill_value(x.array.dtype()));
}

Array sort(const ArrayArg& x, int axis, bool descending) {
  int ax = axis_of(axis, x.array.ndim(), "sort", x.where);
  DType t[1] = {x.array.dtype()};
  bool weak[1] = {x.array.weak_type()};
  return internal::apply(ops::kSort, std::span<const Array>(&x.array, 1),
                         Attrs{{"dimension", Attr(ax)}, {"is_stable", Attr(true)}},
                         {comparator(t, descending)}, x.where, weak)[0];
}

Array argsort(const ArrayArg& x, int axis, bool descending) {
  int ax = axis_of(axis, x.array.ndim(), "argsort", x.where);
  DType t[2] = {x.array.dtype(), DType::kI32};
  Array operands[2] = {x.array, internal::iota(DType::kI32, x.array.shape(), ax, x.where)};
  return internal::apply(ops::kSort, operands,
                         Attrs{{"dimension", Attr(ax)}, {"is_stable", Attr(true)}},
                         {comparator(t, descending)}, x.where)[1];
}

// The number of elements before each value.
Array searchsorted(const ArrayArg& sorted, const ArrayArg& values, bool right) {
  SourceLoc w = sorted.where;
  Array v = expand_dims(values, -1);
  Array before = right ? less_equal(at(sorted.array, w), v) : less(at(sorted.array, w), v);
  return sum(at(before.astype(DType::kI32, w), w), -1);
}

}  // namespace xylem
