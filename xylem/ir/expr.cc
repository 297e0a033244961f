#include "xylem/ir/expr.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "xylem/base/dtype_cast.h"
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir {

Expr unary(const OpDef& def, Expr x) { return {x.b, x.b->one(def, {x.v})}; }
Expr binary(const OpDef& def, Expr x, Expr y) { return {x.b, x.b->one(def, {x.v, y.v})}; }
Expr like(Expr x, double value) { return {x.b, x.b->splat_like(x.v, value)}; }

Expr operator+(Expr x, Expr y) { return binary(ops::kAdd, x, y); }
Expr operator-(Expr x, Expr y) { return binary(ops::kSubtract, x, y); }
Expr operator*(Expr x, Expr y) { return binary(ops::kMultiply, x, y); }
Expr operator/(Expr x, Expr y) { return binary(ops::kDivide, x, y); }
Expr operator-(Expr x) { return unary(ops::kNegate, x); }
Expr operator+(Expr x, double y) { return x + like(x, y); }
Expr operator-(Expr x, double y) { return x - like(x, y); }
Expr operator*(Expr x, double y) { return x * like(x, y); }
Expr operator/(Expr x, double y) { return x / like(x, y); }
Expr operator+(double x, Expr y) { return like(y, x) + y; }
Expr operator-(double x, Expr y) { return like(y, x) - y; }
Expr operator*(double x, Expr y) { return like(y, x) * y; }
Expr operator/(double x, Expr y) { return like(y, x) / y; }

Expr compare(Expr x, Expr y, std::string_view direction) {
  DType t = x.dtype();
  std::string_view type = is_float(t) || is_complex(t)       ? "FLOAT"
                          : is_unsigned_int(t) || is_bool(t) ? "UNSIGNED"
                                                             : "SIGNED";
  return {x.b, x.b->one(ops::kCompare, {x.v, y.v},
                        Attrs{{"comparison_direction", Attr(EnumAttr(direction))},
                              {"compare_type", Attr(EnumAttr(type))}})};
}
Expr compare(Expr x, double y, std::string_view direction) {
  return compare(x, like(x, y), direction);
}
Expr select(Expr pred, Expr on_true, Expr on_false) {
  return {pred.b, pred.b->one(ops::kSelect, {pred.v, on_true.v, on_false.v})};
}

Expr convert(Expr x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return {x.b, x.b->one(ops::kConvert, {x.v}, Attrs{{"result_dtype", Attr(dtype)}})};
}

Expr reshape(Expr x, const Dims& shape) {
  if (x.dims() == shape) return x;
  return {x.b, x.b->one(ops::kReshape, {x.v}, Attrs{{"shape", Attr(shape)}})};
}

Expr transpose(Expr x, const Dims& permutation) {
  bool identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<std::int64_t>(i);
  if (identity) return x;
  return {x.b, x.b->one(ops::kTranspose, {x.v}, Attrs{{"permutation", Attr(permutation)}})};
}

Expr broadcast_in_dim(Expr x, const Dims& shape, const Dims& broadcast_dimensions) {
  if (x.dims() == shape) return x;
  return {x.b, x.b->one(ops::kBroadcastInDim, {x.v},
                        Attrs{{"broadcast_dimensions", Attr(broadcast_dimensions)},
                              {"shape", Attr(shape)}})};
}

Expr broadcast_new_dim(Expr x, int at, std::int64_t n) {
  Dims shape = x.dims(), where;
  for (int i = 0; i < x.rank(); ++i) where.push_back(i < at ? i : i + 1);
  shape.insert(static_cast<std::size_t>(at), n);
  return {x.b, x.b->one(ops::kBroadcastInDim, {x.v},
                        Attrs{{"broadcast_dimensions", Attr(where)}, {"shape", Attr(shape)}})};
}

Expr broadcast_to(Expr x, const Dims& shape) {
  if (x.dims() == shape) return x;
  Dims where;
  int lead = static_cast<int>(shape.size()) - x.rank();
  for (int i = 0; i < x.rank(); ++i) where.push_back(lead + i);
  return broadcast_in_dim(x, shape, where);
}

Expr move_dim(Expr x, int from, int to) {
  if (from == to) return x;
  Dims perm;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) perm.push_back(i);
  perm.insert(static_cast<std::size_t>(to), from);
  return transpose(x, perm);
}

Expr slice(Expr x, const Dims& start, const Dims& limit, const Dims& strides) {
  return {x.b, x.b->one(ops::kSlice, {x.v},
                        Attrs{{"start_indices", Attr(start)},
                              {"limit_indices", Attr(limit)},
                              {"strides", Attr(strides)}})};
}

Expr pad(Expr x, Expr value, const Dims& low, const Dims& high, const Dims& interior) {
  return {x.b, x.b->one(ops::kPad, {x.v, value.v},
                        Attrs{{"edge_padding_low", Attr(low)},
                              {"edge_padding_high", Attr(high)},
                              {"interior_padding", Attr(interior)}})};
}

Expr concatenate(std::span<const Expr> parts, int dimension) {
  std::vector<ValueId> ids;
  for (const Expr& e : parts) ids.push_back(e.v);
  Builder* b = parts[0].b;
  return {b, b->one(ops::kConcatenate, ids, Attrs{{"dimension", Attr(dimension)}})};
}

Expr iota(Builder& b, DType dtype, const Dims& shape, int dimension) {
  return {&b, b.one(ops::kIota, {},
                    Attrs{{"iota_dimension", Attr(dimension)},
                          {"shape", Attr(shape)},
                          {"result_dtype", Attr(dtype)}})};
}

Expr scalar(Builder& b, DType dtype, double value) { return {&b, b.splat(dtype, {}, value)}; }

Expr zeros(Builder& b, Type type) { return {&b, b.splat(type.dtype(), type.dims(), 0)}; }

Expr dot_general(Expr x, Expr y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
                 const Dims& y_contract) {
  return {x.b, x.b->one(ops::kDotGeneral, {x.v, y.v},
                        Attrs{{"lhs_batching_dimensions", Attr(x_batch)},
                              {"rhs_batching_dimensions", Attr(y_batch)},
                              {"lhs_contracting_dimensions", Attr(x_contract)},
                              {"rhs_contracting_dimensions", Attr(y_contract)}})};
}

GraphPtr binary_region(const OpDef& def, DType dtype) {
  Builder b;
  ValueId x = b.param(Type::tensor(dtype));
  ValueId y = b.param(Type::tensor(dtype));
  ValueId r = b.one(def, {x, y});
  return b.finish({r});
}

Expr reduction_identity(Builder& b, const OpDef& def, DType dtype) {
  if (&def == &ops::kAdd || &def == &ops::kOr || &def == &ops::kXor) return scalar(b, dtype, 0);
  if (&def == &ops::kMultiply) return scalar(b, dtype, 1);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (&def == &ops::kAnd) {
    if (is_bool(dtype)) return scalar(b, dtype, 1);
    Expr zero = scalar(b, dtype, 0);
    return unary(ops::kNot, zero);
  }
  // Conversion saturates infinities to the ends of integers (and of finite-only floats).
  if (&def == &ops::kMaximum) return scalar(b, dtype, is_bool(dtype) ? 0 : -kInf);
  if (&def == &ops::kMinimum) return scalar(b, dtype, kInf);
  throw_user_error({"reduce", "the op must have an identity element",
                    fmt::format("the op is {}", def.name), "Give the initial value explicitly"});
}

Expr reduce(const OpDef& def, Expr x, const Dims& axes) {
  if (axes.empty()) return x;
  Expr init = reduction_identity(*x.b, def, x.dtype());
  return {x.b, x.b->one(ops::kReduce, {x.v, init.v}, Attrs{{"dimensions", Attr(axes)}},
                        {binary_region(def, x.dtype())})};
}

Expr reduce_sum(Expr x, const Dims& axes) { return reduce(ops::kAdd, x, axes); }

}  // namespace xylem::ir
