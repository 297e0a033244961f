#include "xylem/core/numpy/ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::internal {

using ir::Attr;
using ir::Attrs;
using ir::EnumAttr;
namespace ops = ir::ops;

Array with_dtype(const Array& a, WeakDType t, SourceLoc where) {
  Array r = a.dtype() == t.dtype ? a : a.astype(t.dtype, where);
  return with_weak(r, t.weak);
}

Dims broadcast_shapes(std::span<const Dims> shapes, const char* what, SourceLoc where) {
  Dims r;
  for (const Dims& s : shapes)
    if (s.size() > r.size()) r = s;
  for (const Dims& s : shapes) {
    std::size_t lead = r.size() - s.size();
    for (std::size_t i = 0; i < s.size(); ++i) {
      std::int64_t& d = r[lead + i];
      if (s[i] == d || s[i] == 1) continue;
      if (d == 1) {
        d = s[i];
        continue;
      }
      std::string given;
      for (const Dims& g : shapes) given += (given.empty() ? "" : " and ") + xylem::to_string(g);
      throw UserError(
          ErrorParts{what, "the shapes must broadcast: equal sizes, or 1, from the last axis on",
                     fmt::format("given shapes {}", given),
                     "Reshape one operand, or add axes with expand_dims"},
          CallSite::outermost(where));
    }
  }
  return r;
}

Array broadcast_in_dim(const Array& x, const Dims& shape, const Dims& dims, SourceLoc where) {
  return apply_one(ops::kBroadcastInDim, std::span<const Array>(&x, 1),
                   Attrs{{"broadcast_dimensions", Attr(dims)}, {"shape", Attr(shape)}}, where,
                   x.weak_type());
}

Array broadcast(const Array& a, const Dims& shape, SourceLoc where) {
  if (a.shape() == shape) return a;
  Dims dims;
  int lead = shape.ssize() - a.ndim();
  for (int i = 0; i < a.ndim(); ++i) dims.push_back(lead + i);
  return broadcast_in_dim(a, shape, dims, where);
}

Array binary(const ir::OpDef& def, const char* what, const ArrayArg& x, const ArrayArg& y,
             bool inexact) {
  SourceLoc where = x.where;
  WeakDType t = promote_types(weak_dtype(x.array), weak_dtype(y.array), CallSite::outermost(where));
  if (inexact) t = to_inexact(t);
  Dims shapes[2] = {x.array.shape(), y.array.shape()};
  Dims shape = shapes[0] == shapes[1] ? shapes[0] : broadcast_shapes(shapes, what, where);
  Array operands[2] = {broadcast(with_dtype(x.array, t, where), shape, where),
                       broadcast(with_dtype(y.array, t, where), shape, where)};
  return apply_one(def, operands, {}, where, t.weak);
}

Array unary(const ir::OpDef& def, const ArrayArg& x, bool inexact) {
  WeakDType t = weak_dtype(x.array);
  if (inexact) t = to_inexact(t);
  Array operand = with_dtype(x.array, t, x.where);
  return apply_one(def, std::span<const Array>(&operand, 1), {}, x.where, t.weak);
}

Array compare(const char* what, const ArrayArg& x, const ArrayArg& y, const char* direction) {
  SourceLoc where = x.where;
  WeakDType t = promote_types(weak_dtype(x.array), weak_dtype(y.array), CallSite::outermost(where));
  Dims shapes[2] = {x.array.shape(), y.array.shape()};
  Dims shape = broadcast_shapes(shapes, what, where);
  Array operands[2] = {broadcast(with_dtype(x.array, t, where), shape, where),
                       broadcast(with_dtype(y.array, t, where), shape, where)};
  const char* type = is_inexact(t.dtype)                            ? "FLOAT"
                     : is_unsigned_int(t.dtype) || is_bool(t.dtype) ? "UNSIGNED"
                                                                    : "SIGNED";
  return apply_one(ops::kCompare, operands,
                   Attrs{{"comparison_direction", Attr(EnumAttr(direction))},
                         {"compare_type", Attr(EnumAttr(type))}},
                   where);
}

Array select(const Array& p, const Array& x, const Array& y, SourceLoc where) {
  Array operands[3] = {p, x, y};
  return apply_one(ops::kSelect, operands, {}, where, x.weak_type() && y.weak_type());
}

Array iota(DType dtype, const Dims& shape, int dimension, SourceLoc where) {
  return apply_one(ops::kIota, {},
                   Attrs{{"iota_dimension", Attr(dimension)},
                         {"shape", Attr(shape)},
                         {"result_dtype", Attr(dtype)}},
                   where);
}

Array slice(const Array& x, const Dims& start, const Dims& limit, const Dims& strides,
            SourceLoc where) {
  return apply_one(ops::kSlice, std::span<const Array>(&x, 1),
                   Attrs{{"start_indices", Attr(start)},
                         {"limit_indices", Attr(limit)},
                         {"strides", Attr(strides)}},
                   where, x.weak_type());
}

Array constant(DType dtype, const Dims& shape, double value) {
  HostArray h(dtype, {});
  convert_elements(DType::kF64, &value, dtype, h.data(), 1);
  Array scalar = make_literal(std::move(h), dtype, false);
  return shape.empty() ? scalar : broadcast_in_dim(scalar, shape, {}, {});
}

Array reduce(const ir::OpDef& def, const Array& x, const Dims& axes, SourceLoc where) {
  if (axes.empty()) return x;
  ir::Builder b;
  ir::Expr identity = ir::reduction_identity(b, def, x.dtype());
  Array operands[2] = {x, Array()};
  std::vector<Array> init = apply_graph(*b.finish({identity.v}), {});
  operands[1] = init[0];
  bool weak[1] = {x.weak_type()};
  return apply(ops::kReduce, operands, Attrs{{"dimensions", Attr(axes)}},
               {ir::binary_region(def, x.dtype())}, where, weak)[0];
}

Array keep(const Array& reduced, const Dims& original, const Dims& axes, bool keepdims,
           SourceLoc where) {
  if (!keepdims) return reduced;
  Dims shape = original;
  for (std::int64_t a : axes) shape[a] = 1;
  return reduced.reshape(shape, where);
}

}  // namespace xylem::internal

namespace xylem {

Dims AxisArg::resolve(int rank, const char* what, SourceLoc where) const {
  Dims r;
  if (all_) {
    for (int i = 0; i < rank; ++i) r.push_back(i);
    return r;
  }
  for (int a : axes_) {
    int axis = a < 0 ? a + rank : a;
    if (axis < 0 || axis >= rank || r.contains(axis))
      throw UserError(ErrorParts{fmt::format("{}: axis", what),
                                 fmt::format("axes must be different and in [-{}, {})", rank, rank),
                                 fmt::format("given {}", a), "Give axes that the array has"},
                      internal::CallSite::outermost(where));
    r.push_back(axis);
  }
  std::sort(r.begin(), r.end());
  return r;
}

}  // namespace xylem
