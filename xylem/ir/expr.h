#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "xylem/ir/builder.h"
#include "xylem/ir/op_def.h"

namespace xylem::ir {

// A value of a builder with operators, so that rules and expansions read as formulas. Binary
// operators take equal types, or a number, which becomes a constant like the other side. Cheap to
// copy; refers to the builder.
struct Expr {
  Builder* b = nullptr;
  ValueId v = kNoValue;

  // By value: the builder moves its values when it grows.
  Type type() const { return b->type(v); }
  DType dtype() const { return b->type(v).dtype(); }
  Dims dims() const { return b->type(v).dims(); }
  int rank() const { return b->type(v).rank(); }
  bool defined() const { return v != kNoValue; }
};

Expr unary(const OpDef& def, Expr x);
Expr binary(const OpDef& def, Expr x, Expr y);
// A constant with x's type.
Expr like(Expr x, double value);

Expr operator+(Expr x, Expr y);
Expr operator-(Expr x, Expr y);
Expr operator*(Expr x, Expr y);
Expr operator/(Expr x, Expr y);
Expr operator-(Expr x);
Expr operator+(Expr x, double y);
Expr operator-(Expr x, double y);
Expr operator*(Expr x, double y);
Expr operator/(Expr x, double y);
Expr operator+(double x, Expr y);
Expr operator-(double x, Expr y);
Expr operator*(double x, Expr y);
Expr operator/(double x, Expr y);

// direction: EQ NE LT LE GT GE; the compare type follows from the dtype.
Expr compare(Expr x, Expr y, std::string_view direction);
Expr compare(Expr x, double y, std::string_view direction);
// pred: i1 of x's shape, or a scalar.
Expr select(Expr pred, Expr on_true, Expr on_false);

Expr convert(Expr x, DType dtype);
Expr reshape(Expr x, const Dims& shape);
Expr transpose(Expr x, const Dims& permutation);
Expr broadcast_in_dim(Expr x, const Dims& shape, const Dims& broadcast_dimensions);
// Adds a dimension of size n at position `at`.
Expr broadcast_new_dim(Expr x, int at, std::int64_t n);
// Scalar to shape, or x itself if it has the shape.
Expr broadcast_to(Expr x, const Dims& shape);
// Moves a dimension; the others keep their order.
Expr move_dim(Expr x, int from, int to);
Expr slice(Expr x, const Dims& start, const Dims& limit, const Dims& strides);
Expr pad(Expr x, Expr value, const Dims& low, const Dims& high, const Dims& interior);
Expr concatenate(std::span<const Expr> parts, int dimension);
Expr iota(Builder& b, DType dtype, const Dims& shape, int dimension);
Expr scalar(Builder& b, DType dtype, double value);
Expr zeros(Builder& b, Type type);
Expr dot_general(Expr x, Expr y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
                 const Dims& y_contract);

// Reduces over `axes` with a binary op, from the op's identity (add 0, multiply 1, maximum -inf or
// the least integer, minimum, and, or).
Expr reduce(const OpDef& def, Expr x, const Dims& axes);

// The region (a, b) -> def(a, b) on scalars.
GraphPtr binary_region(const OpDef& def, DType dtype);
// The identity element of a reduction by `def`, as a scalar constant.
Expr reduction_identity(Builder& b, const OpDef& def, DType dtype);

Expr reduce_sum(Expr x, const Dims& axes);

}  // namespace xylem::ir
