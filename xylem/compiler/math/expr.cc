#include "xylem/compiler/math/expr.h"

#include <cstring>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler::math {

namespace ops = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::ValueId;

namespace {

std::uint64_t bits_of(DType dtype, double value) {
  std::uint64_t bits = 0;
  convert_elements(DType::kF64, &value, dtype, reinterpret_cast<std::byte*>(&bits), 1);
  return bits;
}

// The two operands of a binary op, constants made like the other.
std::pair<V, V> resolve(const Arg& a, const Arg& b) {
  if (a.is_value()) return {a.value(), b.resolve(a.value())};
  return {a.resolve(b.value()), b.value()};
}

V emit(const ir::OpDef& def, std::initializer_list<V> operands, Attrs attrs = {}) {
  Scope& scope = operands.begin()->scope();
  ir::ValueIds ids;
  for (const V& v : operands) ids.push_back(v.id());
  return {scope, scope.builder().one(def, std::span<const ValueId>(ids.data(), ids.size()),
                                     std::move(attrs))};
}

V binary(const ir::OpDef& def, const Arg& a, const Arg& b) {
  auto [x, y] = resolve(a, b);
  return emit(def, {x, y});
}

V compare(std::string_view direction, const Arg& a, const Arg& b) {
  auto [x, y] = resolve(a, b);
  return emit(ops::kCompare, {x, y},
              Attrs{{"comparison_direction", Attr(ir::EnumAttr(direction))}});
}

V retype(const ir::OpDef& def, V a, DType dtype) {
  if (a.dtype() == dtype) return a;
  return emit(def, {a}, Attrs{{"result_dtype", Attr(dtype)}});
}

}  // namespace

ValueId Scope::constant(DType dtype, Dims dims, std::uint64_t bits) {
  auto [it, added] = constants_.try_emplace({dtype, bits, to_string(dims)}, ir::kNoValue);
  if (!added) return it->second;
  HostArray scalar(dtype, {});
  std::memcpy(scalar.data(), &bits, static_cast<std::size_t>(dtype_bytes(dtype)));
  ValueId id = builder_.constant(std::move(scalar));
  if (!dims.empty())
    id = builder_.one(ops::kBroadcastInDim, {id},
                      Attrs{{"broadcast_dimensions", Attr(Dims{})}, {"shape", Attr(dims)}});
  return it->second = id;
}

DType V::dtype() const { return scope_->builder().type(id_).dtype(); }

V V::like(double value) const { return like_bits(bits_of(dtype(), value), dtype()); }

V V::like_bits(std::uint64_t bits, DType dtype) const {
  return {*scope_, scope_->constant(dtype, scope_->builder().type(id_).dims(), bits)};
}

V Arg::resolve(V other) const {
  if (kind_ == kValue) return value_;
  DType dtype = other.dtype();
  if (is_float(dtype)) return other.like(kind_ == kReal ? real_ : static_cast<double>(integer_));
  XYLEM_CHECK(kind_ == kInteger, "a real number beside integers");
  const int width = 8 * dtype_bytes(dtype);
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  return other.like_bits(static_cast<std::uint64_t>(integer_) & mask, dtype);
}

V operator+(const Arg& a, const Arg& b) { return binary(ops::kAdd, a, b); }
V operator-(const Arg& a, const Arg& b) { return binary(ops::kSubtract, a, b); }
V operator*(const Arg& a, const Arg& b) { return binary(ops::kMultiply, a, b); }
V operator/(const Arg& a, const Arg& b) { return binary(ops::kDivide, a, b); }
V operator-(V a) { return emit(ops::kNegate, {a}); }
V operator<(const Arg& a, const Arg& b) { return compare("LT", a, b); }
V operator<=(const Arg& a, const Arg& b) { return compare("LE", a, b); }
V operator>(const Arg& a, const Arg& b) { return compare("GT", a, b); }
V operator>=(const Arg& a, const Arg& b) { return compare("GE", a, b); }
V operator==(const Arg& a, const Arg& b) { return compare("EQ", a, b); }
V operator!=(const Arg& a, const Arg& b) { return compare("NE", a, b); }
V operator&(const Arg& a, const Arg& b) { return binary(ops::kAnd, a, b); }
V operator|(const Arg& a, const Arg& b) { return binary(ops::kOr, a, b); }
V operator^(const Arg& a, const Arg& b) { return binary(ops::kXor, a, b); }
V operator~(V a) { return emit(ops::kNot, {a}); }
V shl(V a, const Arg& n) { return binary(ops::kShiftLeft, a, n); }
V shr(V a, const Arg& n) { return binary(ops::kShiftRightLogical, a, n); }
V sar(V a, const Arg& n) { return binary(ops::kShiftRightArithmetic, a, n); }

V select(V condition, const Arg& on_true, const Arg& on_false) {
  auto [x, y] = resolve(on_true, on_false);
  return emit(ops::kSelect, {condition, x, y});
}

V fma(const Arg& a, const Arg& b, const Arg& c) {
  V like = a.is_value() ? a.value() : b.is_value() ? b.value() : c.value();
  return emit(ops::kKernelFma, {a.resolve(like), b.resolve(like), c.resolve(like)});
}

V abs(V a) { return emit(ops::kAbs, {a}); }
V sqrt(V a) { return emit(ops::kSqrt, {a}); }
V rint(V a) { return emit(ops::kRoundNearestEven, {a}); }
V floor(V a) { return emit(ops::kFloor, {a}); }
V ldexp(V a, V n) { return emit(ops::kKernelLdexp, {a, n}); }
V convert(V a, DType dtype) { return retype(ops::kConvert, a, dtype); }
V bitcast(V a, DType dtype) { return retype(ops::kBitcastConvert, a, dtype); }
V real(V a) { return emit(ops::kReal, {a}); }
V imag(V a) { return emit(ops::kImag, {a}); }
V complex(V re, V im) { return emit(ops::kComplex, {re, im}); }
V bits(V a) { return bitcast(a, a.is_f64() ? DType::kI64 : DType::kI32); }
V from_bits(V a) { return bitcast(a, a.dtype() == DType::kI64 ? DType::kF64 : DType::kF32); }

// A compare and a select make one minimum or maximum instruction that hands on NaN.
V at_least(V a, double low) { return select(a < low, low, a); }
V at_most(V a, double high) { return select(a > high, high, a); }

V with_sign_of(V magnitude, V sign) {
  const std::int64_t mask = sign.is_f64() ? INT64_MIN : INT32_MIN;
  return from_bits(bits(magnitude) | (bits(sign) & mask));
}

V poly(V x, std::span<const double> c) {
  std::size_t i = c.size() - 1;
  V p = x.like(c[i]);
  while (i-- > 0) p = fma(p, x, c[i]);
  return p;
}

std::vector<V> when_any(V condition, std::span<const V> operands, int num_results,
                        const std::function<std::vector<V>(std::span<const V>)>& slow) {
  Scope& scope = condition.scope();
  ir::Builder& b = scope.builder();
  const Dims dims = b.type(condition.id()).dims();
  // Scalars may be elements of a reduction, whose region is applied to whole tiles and cannot
  // branch.
  if (dims.empty()) return slow(operands);
  ir::Builder either("any");
  ValueId x = either.param(ir::Type::tensor(DType::kBool));
  ValueId y = either.param(ir::Type::tensor(DType::kBool));
  ValueId both = either.one(ops::kOr, {x, y});
  Dims all;
  for (int i = 0; i < dims.ssize(); ++i) all.push_back(i);
  ValueId any = b.one(ops::kReduce, {condition.id(), scope.constant(DType::kBool, {}, 0)},
                      Attrs{{"dimensions", Attr(all)}}, {either.finish({both})});
  auto branch = [&](const auto& body) {
    ir::Builder region;
    region.set_location(b.location());
    Scope inner(region);
    std::vector<V> params;
    for (const V& v : operands) params.emplace_back(inner, region.param(b.type(v.id())));
    std::vector<ValueId> results;
    for (const V& v : body(std::span<const V>(params))) results.push_back(v.id());
    return region.finish(std::move(results));
  };
  ir::GraphPtr taken = branch(slow);
  ir::GraphPtr skipped = branch([&](std::span<const V> p) {
    return std::vector<V>(p.begin() + 1, p.begin() + 1 + num_results);
  });
  ir::ValueIds ids;
  ids.push_back(any);
  for (const V& v : operands) ids.push_back(v.id());
  ir::ValueIds results =
      b.op(ops::kIf, std::span<const ValueId>(ids.data(), ids.size()),
           Attrs{{"num_captures", Attr(static_cast<std::int64_t>(operands.size()))}},
           {std::move(taken), std::move(skipped)});
  std::vector<V> out;
  for (ValueId id : results) out.emplace_back(scope, id);
  return out;
}

}  // namespace xylem::compiler::math
