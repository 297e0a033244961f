#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "xylem/base/dtype.h"
#include "xylem/ir/builder.h"

// A small expression language over ir::Builder, in which the expansions of elementary functions are
// written as formulas. Everything is elementwise; nothing is contracted or reassociated.

namespace xylem::compiler::math {

// Where expressions append their ops: a builder, and the constants made so far.
class Scope {
 public:
  explicit Scope(ir::Builder& builder) : builder_(builder) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  ir::Builder& builder() { return builder_; }
  // A constant of every element equal, made once per (dtype, dims, bits). `dims` by value: the
  // graph that grows may own them.
  ir::ValueId constant(DType dtype, Dims dims, std::uint64_t bits);

 private:
  ir::Builder& builder_;
  std::map<std::tuple<DType, std::uint64_t, std::string>, ir::ValueId> constants_;
};

// A value of the graph under construction.
class V {
 public:
  V() = default;
  V(Scope& scope, ir::ValueId id) : scope_(&scope), id_(id) {}

  Scope& scope() const { return *scope_; }
  ir::ValueId id() const { return id_; }
  DType dtype() const;
  bool is_f64() const { return dtype() == DType::kF64; }
  // A constant of this value's shape and dtype (or of another dtype).
  V like(double value) const;
  V like_bits(std::uint64_t bits, DType dtype) const;

 private:
  Scope* scope_ = nullptr;
  ir::ValueId id_ = ir::kNoValue;
};

// An operand: a value, or a number that becomes a constant of the other operand's dtype. Numbers
// must be exact in that dtype where it matters: they are rounded to nearest.
class Arg {
 public:
  Arg(V v) : value_(v), kind_(kValue) {}
  Arg(double d) : real_(d), kind_(kReal) {}
  Arg(int i) : integer_(i), kind_(kInteger) {}
  Arg(std::int64_t i) : integer_(i), kind_(kInteger) {}
  Arg(std::uint64_t i) : integer_(static_cast<std::int64_t>(i)), kind_(kInteger) {}
  Arg(unsigned i) : integer_(static_cast<std::int64_t>(i)), kind_(kInteger) {}

  bool is_value() const { return kind_ == kValue; }
  V value() const { return value_; }
  // This operand with the shape and dtype of `other`.
  V resolve(V other) const;

 private:
  V value_;
  double real_ = 0;
  std::int64_t integer_ = 0;
  enum { kValue, kReal, kInteger } kind_;
};

V operator+(const Arg& a, const Arg& b);
V operator-(const Arg& a, const Arg& b);
V operator*(const Arg& a, const Arg& b);
V operator/(const Arg& a, const Arg& b);
V operator-(V a);
// Compares as IEEE 754 does (floats) or signed (integers); the result is i1.
V operator<(const Arg& a, const Arg& b);
V operator<=(const Arg& a, const Arg& b);
V operator>(const Arg& a, const Arg& b);
V operator>=(const Arg& a, const Arg& b);
V operator==(const Arg& a, const Arg& b);
V operator!=(const Arg& a, const Arg& b);
// Bitwise on integers, logical on i1.
V operator&(const Arg& a, const Arg& b);
V operator|(const Arg& a, const Arg& b);
V operator^(const Arg& a, const Arg& b);
V operator~(V a);
V shl(V a, const Arg& n);
V shr(V a, const Arg& n);  // logical
V sar(V a, const Arg& n);  // arithmetic

V select(V condition, const Arg& on_true, const Arg& on_false);
V fma(const Arg& a, const Arg& b, const Arg& c);  // a * b + c, rounded once
V abs(V a);
V sqrt(V a);
V rint(V a);  // to the nearest integer, ties to even
V floor(V a);
V ldexp(V a, V n);  // a * 2^n, n i32, rounded once
V convert(V a, DType dtype);
V bitcast(V a, DType dtype);
// Parts of a complex value, and back.
V real(V a);
V imag(V a);
V complex(V re, V im);
// The bits of a float as a signed integer of its width, and back.
V bits(V a);
V from_bits(V a);

// max(a, low) and min(a, high) against a constant; NaN stays NaN.
V at_least(V a, double low);
V at_most(V a, double high);
// |magnitude| with the sign of `sign`; the magnitude must not be negative.
V with_sign_of(V magnitude, V sign);
// c[0] + c[1] x + …, Horner's scheme with fma.
V poly(V x, std::span<const double> c);

// If `condition` holds for any element, slow(operands), else operands[1] … operands[num_results]:
// for repairs that hardly any input needs. `slow` sees nothing but its arguments, which stand for
// the operands, and returns values of the types of the results; it must itself keep the elements
// for which the condition does not hold. On scalars it is taken without asking.
std::vector<V> when_any(V condition, std::span<const V> operands, int num_results,
                        const std::function<std::vector<V>(std::span<const V>)>& slow);

}  // namespace xylem::compiler::math
