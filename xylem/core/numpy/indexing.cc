#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/lax/indexing.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/gather.h"
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

namespace {

void check_indices(const char* what, const Array& indices, SourceLoc where) {
  if (!is_integer(indices.dtype()))
    throw UserError(ErrorParts{what, "the indices must be integers", indices.type_string(),
                               "Convert them with astype"},
                    internal::CallSite::outermost(where));
}

// Indices in the range that the mode gives them.
Array placed(const Array& indices, std::int64_t n, IndexMode mode, SourceLoc where) {
  if (mode == IndexMode::kWrap) {
    Array i = internal::normalize_indices(indices.astype(DType::kI64, where), 0, where);
    return mod(at(i, where), internal::constant(i.dtype(), {}, static_cast<double>(n)));
  }
  if (mode != IndexMode::kClip) return internal::normalize_indices(indices, n, where);
  Array i = internal::normalize_indices(indices, 0, where);  // negative ones clip to 0
  return clip(at(i, where), internal::constant(i.dtype(), {}, 0),
              internal::constant(i.dtype(), {}, static_cast<double>(n - 1)));
}

}  // namespace

Array take(const ArrayArg& x, const ArrayArg& indices, std::optional<int> axis, IndexMode mode,
           std::optional<double> fill) {
  SourceLoc w = x.where;
  Array a = axis ? x.array : ravel(x);
  int ax = axis_of(axis.value_or(0), a.ndim(), "take", w);
  check_indices("take", indices.array, w);
  std::int64_t n = a.shape()[ax];
  if (n == 0 && indices.array.size() > 0)
    throw UserError(ErrorParts{"take", "an axis with elements is needed",
                               fmt::format("axis {} of {}", ax, a.type_string()),
                               "Take no elements, or from another axis"},
                    internal::CallSite::outermost(w));
  Array i = placed(indices.array, n, mode, w);
  int r = i.ndim();
  lax::GatherDims g;
  Dims sizes = a.shape();
  sizes[ax] = n == 0 ? 0 : 1;
  for (int d = 0; d < a.ndim(); ++d)
    if (d != ax) g.offset_dims.push_back(d < ax ? d : d - 1 + r);
  if (n == 0) {
    Dims shape;
    for (int d = 0; d < ax; ++d) shape.push_back(a.shape()[d]);
    for (std::int64_t d : i.shape()) shape.push_back(d);
    for (int d = ax + 1; d < a.ndim(); ++d) shape.push_back(a.shape()[d]);
    return zeros(shape, a.dtype());
  }
  g.collapsed_slice_dims = {ax};
  g.start_index_map = {ax};
  g.index_vector_dim = r;
  Array got = internal::gather(a, i, g, sizes, false, w);
  if (mode != IndexMode::kDefault && mode != IndexMode::kFill && mode != IndexMode::kDrop)
    return got;
  Dims where_dims;
  for (int d = 0; d < r; ++d) where_dims.push_back(ax + d);
  Array ok =
      internal::broadcast_in_dim(internal::indices_in_range(i, n, w), got.shape(), where_dims, w);
  return where(at(ok, w), got, internal::fill_value(a.dtype(), fill));
}

Array take_along_axis(const ArrayArg& x, const ArrayArg& indices, int axis, IndexMode mode,
                      std::optional<double> fill) {
  SourceLoc w = x.where;
  int ax = axis_of(axis, x.array.ndim(), "take_along_axis", w);
  check_indices("take_along_axis", indices.array, w);
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
  // Unlike take, negative indices count from the end before they are clipped.
  Array i =
      mode == IndexMode::kClip ? internal::normalize_indices(indices.array, n, w) : indices.array;
  i = internal::broadcast(placed(i, n, mode, w), bs, w);
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
  Array got = internal::gather(values, i.reshape(column, w), g, Dims(shape.size(), 1), false, w);
  if (mode != IndexMode::kDefault && mode != IndexMode::kFill && mode != IndexMode::kDrop)
    return got;
  return where(at(internal::indices_in_range(i, n, w), w), got,
               internal::fill_value(x.array.dtype(), fill));
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

// By bisection, one step for each bit of the length.
Array searchsorted(const ArrayArg& sorted, const ArrayArg& values, const char* side) {
  const std::string_view s = side ? side : "";
  if (s != "left" && s != "right")
    throw_user_error({"searchsorted: side", "\"left\" or \"right\"", fmt::format("\"{}\"", s),
                      "Name one of the two"},
                     sorted.where);
  return searchsorted(sorted, values, s == "right");
}

Array searchsorted(const ArrayArg& sorted, const ArrayArg& values, bool right) {
  internal::CallSite site(sorted.where);
  if (sorted.array.ndim() != 1)
    throw_user_error({"searchsorted", "a sorted vector is needed", sorted.array.type_string(),
                      "Map over the other axes with vmap"},
                     internal::CallSite::outermost(sorted.where));
  WeakDType t = promote_types(internal::weak_dtype(sorted.array),
                              internal::weak_dtype(values.array), sorted.where);
  Array a = internal::with_dtype(sorted.array, t, {}),
        v = internal::with_dtype(values.array, t, {});
  std::int64_t n = a.dim(0);
  Array lo = zeros(v.shape(), DType::kI32), hi = full(v.shape(), static_cast<int>(n));
  hi = internal::with_dtype(hi, {DType::kI32, false}, {});
  // x before y, NaN last.
  auto before = [&](const Array& x, const Array& y) {
    Array b = less(x, y);
    return is_inexact(t.dtype) ? b | (isnan(y) & logical_not(isnan(x))) : b;
  };
  for (std::int64_t step = 1; step <= n; step *= 2) {
    Array middle = right_shift(lo + hi, 1);
    Array x = take(a, middle, 0, IndexMode::kClip);
    Array after = right ? logical_not(before(v, x)) : before(x, v);
    Array open = lo < hi;
    lo = where(open & after, middle + 1, lo);
    hi = where(open & logical_not(after), middle, hi);
  }
  return lo;
}

}  // namespace xylem
