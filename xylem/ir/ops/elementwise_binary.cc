#include "xylem/ir/ops/elementwise_binary.h"

#include <bit>
#include <cmath>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/convert.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/elementwise.h"
#include "xylem/ir/ops/internal/scalar_ops.h"

namespace xylem::ir::ops {
namespace {

struct Subtract {
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return from_bits(bits_of(a) - bits_of(b));
  }
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};

struct Divide {
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    if (b == 0) return -1;
    return b == -1 ? from_bits(0 - bits_of(a)) : a / b;
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return b ? a / b : ~0ull; }
  double operator()(double a, double b) const { return a / b; }
  template <class T>
  std::complex<T> operator()(std::complex<T> a, std::complex<T> b) const {
    return std::complex<T>(WiderComplex<T>(a) / WiderComplex<T>(b));
  }
};

struct Remainder {
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    if (b == 0) return a;
    return b == -1 ? 0 : a % b;
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return b ? a % b : a; }
  double operator()(double a, double b) const { return std::fmod(a, b); }
};

struct Power {
  static std::uint64_t raise(std::uint64_t base, std::uint64_t exponent) {
    std::uint64_t r = 1;
    for (; exponent; exponent >>= 1, base *= base)
      if (exponent & 1) r *= base;
    return r;
  }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    if (b >= 0) return from_bits(raise(bits_of(a), bits_of(b)));
    if (a == 1) return 1;
    return a == -1 ? (b % 2 ? -1 : 1) : 0;
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return raise(a, b); }
  template <class T>
  T operator()(T a, T b) const {
    return std::pow(a, b);
  }
  template <class T>
  std::complex<T> operator()(std::complex<T> a, std::complex<T> b) const {
    using C = std::complex<T>;
    if (b == C()) return C(1);
    if (a == C()) return b.real() > 0 ? C() : C(INFINITY, NAN);
    return std::pow(a, b);
  }
};

struct Atan2 {
  template <class T>
  T operator()(T a, T b) const {
    return std::atan2(a, b);
  }
  // -i log((x + iy) / sqrt(x² + y²)) with complex y, x
  template <class T>
  std::complex<T> operator()(std::complex<T> y, std::complex<T> x) const {
    const std::complex<T> i(0, 1);
    return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
  }
};

template <class T>
bool too_far(T amount, int bits) {
  return static_cast<std::uint64_t>(amount) >= static_cast<std::uint64_t>(bits);  // negative too
}

struct ShiftLeft {
  int bits = 64;
  template <class T>
  T operator()(T a, T amount) const {
    return too_far(amount, bits) ? T(0) : static_cast<T>(static_cast<std::uint64_t>(a) << amount);
  }
};
struct ShiftRightLogical {
  int bits = 64;
  template <class T>
  T operator()(T a, T amount) const {
    if (too_far(amount, bits)) return 0;
    return static_cast<T>((static_cast<std::uint64_t>(a) << (64 - bits) >> (64 - bits)) >> amount);
  }
};
struct ShiftRightArithmetic {
  int bits = 64;
  template <class T>
  T operator()(T a, T amount) const {
    // The sign is the top bit of the width, for unsigned types too.
    auto s = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << (64 - bits)) >> (64 - bits);
    return static_cast<T>(s >> (too_far(amount, bits) ? 63 : amount));
  }
};

std::vector<Type> next_after_shape_rule(const OpCall& call) {
  Type t = binary_shape_rule<kElFloat>(call)[0];
  if (dtype_bits(t.dtype()) < 16)
    fail(call, "i1", "the operands must be f16, bf16, f32 or f64", "they are " + t.to_string(),
         "Convert them to a wider float");
  return {t};
}

// Neighbours have neighbouring bits: one more away from zero, one less towards it.
std::vector<HostArray> next_after_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  DType bits_type = dtype_bits(x.dtype()) == 16   ? DType::kU16
                    : dtype_bits(x.dtype()) == 32 ? DType::kU32
                                                  : DType::kU64;
  HostArray from(bits_type, x.dims(), x.owner());
  HostArray to(bits_type, x.dims());
  std::uint64_t sign = 1ull << (dtype_bits(x.dtype()) - 1);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double a = x.at(i), b = call.operands[1].at(i);
    std::uint64_t bits;
    load(from, i, 1, &bits);
    if (a == 0)
      bits = (b < 0 ? sign : 0) + 1;
    else
      bits = (a < b) == (a > 0) ? bits + 1 : bits - 1;
    store(to, i, 1, &bits);
  }
  HostArray out(x.dtype(), x.dims(), to.owner());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double a = x.at(i), b = call.operands[1].at(i), special = a == b ? b : NAN;
    if (!(a < b) && !(a > b)) store(out, i, 1, &special);
  }
  return {std::move(out)};
}

std::vector<ValueId> expand_next_after(Builder& b, const Op&, std::span<const ValueId> operands) {
  ValueId x = operands[0], y = operands[1];
  const Type t = b.type(x);
  int bits = dtype_bits(t.dtype());
  DType integer = bits == 16 ? DType::kI16 : bits == 32 ? DType::kI32 : DType::kI64;
  auto compare = [&](ValueId p, ValueId q, const char* direction) {
    return b.one(kCompare, {p, q}, {{"comparison_direction", EnumAttr(direction)}});
  };
  auto select = [&](ValueId p, ValueId yes, ValueId no) { return b.one(kSelect, {p, yes, no}); };
  ValueId zero = b.splat_like(x, 0);
  ValueId own = b.one(kBitcastConvert, {x}, {{"result_dtype", integer}});
  ValueId one = b.splat_like(own, 1), minus = b.splat_like(own, -1);
  // Away from zero exactly if "x < y" and "x > 0" are both true or both false.
  ValueId inwards = b.one(kXor, {compare(x, y, "LT"), compare(x, zero, "GT")});
  ValueId next = b.one(kAdd, {own, select(inwards, minus, one)});
  ValueId least = b.one(kShiftLeft, {one, b.splat_like(own, bits - 1)});
  least = select(compare(y, zero, "LT"), b.one(kOr, {least, one}), one);
  next = select(compare(x, zero, "EQ"), least, next);
  next = b.one(kBitcastConvert, {next}, {{"result_dtype", t.dtype()}});
  next = select(compare(x, y, "EQ"), y, next);
  ValueId nan = b.one(kOr, {compare(x, x, "NE"), compare(y, y, "NE")});
  return {select(nan, b.splat_like(x, NAN), next)};
}

constexpr unsigned kBits = kElBool | kElInt;
constexpr unsigned kNoComplex = kElReal;

std::vector<Type> complex_shape_rule(const OpCall& call) {
  for (int i = 0; i < 2; ++i) {
    const Type& t = tensor_operand(call, i, kElFloat);
    if (t.dtype() != DType::kF32 && t.dtype() != DType::kF64)
      fail(call, i ? "i2" : "i1", "the parts must be f32 or f64",
           "operand " + std::to_string(i) + " is " + t.to_string(), "Convert it to f32 or f64");
  }
  Type t = check_same_types(call, "c1");
  return {t.with_dtype(complex_dtype(t.dtype()))};
}

template <class T>
void join_parts(const HostArray& re, const HostArray& im, HostArray& out) {
  for (std::int64_t i = 0; i < re.size(); ++i)
    out.as<std::complex<T>>()[i] = {re.as<T>()[i], im.as<T>()[i]};
}

std::vector<HostArray> complex_eval(const EvalCall& call) {
  const HostArray& re = call.operands[0];
  const HostArray& im = call.operands[1];
  HostArray out(complex_dtype(re.dtype()), re.dims());
  if (re.dtype() == DType::kF32)
    join_parts<float>(re, im, out);
  else
    join_parts<double>(re, im, out);
  return {std::move(out)};
}

OpDef binary(std::string_view name, std::uint32_t traits, ShapeRule shape, EvalRule eval,
             std::string_view labels, double max_ulp = 0) {
  QuantSupport quant = name == "stablehlo.add"       ? QuantSupport::kPerAxis
                       : name == "stablehlo.complex" ? QuantSupport::kNone
                                                     : QuantSupport::kPerTensor;
  return {.name = name,
          .traits = kPointwise | traits,
          .min_operands = 2,
          .max_operands = 2,
          .shape = shape,
          .eval = eval,
          .max_ulp = max_ulp,
          .labels = labels,
          .quant = quant,
          .result_labels = name == "stablehlo.complex" ? "c3 c2" : "c1"};
}

}  // namespace

const OpDef kAdd =
    binary("stablehlo.add", kExact | kCommutative | kAssociative | kLinear,
           binary_shape_rule<kElAny>, binary_eval<Add, kElAny>, "add_i1 add_i2 add_c1");
const OpDef kSubtract =
    binary("stablehlo.subtract", kExact | kLinear, binary_shape_rule<kElNumber>,
           binary_eval<Subtract, kElNumber>, "subtract_i1 subtract_i2 subtract_c1");
const OpDef kMultiply =
    binary("stablehlo.multiply", kExact | kCommutative | kAssociative, binary_shape_rule<kElAny>,
           binary_eval<Multiply, kElAny>, "multiply_i1 multiply_i2 multiply_c1");
const OpDef kDivide = binary("stablehlo.divide", kExact, binary_shape_rule<kElNumber>,
                             binary_eval<Divide, kElNumber>, "divide_i1 divide_i2 divide_c1");
const OpDef kRemainder =
    binary("stablehlo.remainder", kExact, binary_shape_rule<kNoComplex>,
           binary_eval<Remainder, kNoComplex>, "remainder_i1 remainder_i2 remainder_c1");
const OpDef kMaximum =
    binary("stablehlo.maximum", kExact | kCommutative | kAssociative, binary_shape_rule<kElAny>,
           binary_eval<Maximum, kElAny>, "maximum_i1 maximum_i2 maximum_c1");
const OpDef kMinimum =
    binary("stablehlo.minimum", kExact | kCommutative | kAssociative, binary_shape_rule<kElAny>,
           binary_eval<Minimum, kElAny>, "minimum_i1 minimum_i2 minimum_c1");
const OpDef kPower = binary("stablehlo.power", kTranscendental, binary_shape_rule<kElNumber>,
                            binary_eval<Power, kElNumber, true>, "power_i1 power_i2 power_c1", 2);
const OpDef kAtan2 = binary("stablehlo.atan2", kTranscendental, binary_shape_rule<kElInexact>,
                            binary_eval<Atan2, kElInexact, true>, "atan2_i1 atan2_i2 atan2_c1", 2);
const OpDef kNextAfter = [] {
  OpDef d = binary("chlo.next_after", kExact, next_after_shape_rule, next_after_eval,
                   "next_after_i1 next_after_i2 next_after_c1");
  d.expand = expand_next_after;
  return d;
}();
const OpDef kAnd =
    binary("stablehlo.and", kExact | kCommutative | kAssociative, binary_shape_rule<kBits>,
           binary_eval<And, kBits>, "and_i1 and_i2 and_c1");
const OpDef kOr = binary("stablehlo.or", kExact | kCommutative | kAssociative,
                         binary_shape_rule<kBits>, binary_eval<Or, kBits>, "or_i1 or_i2 or_c1");
const OpDef kXor =
    binary("stablehlo.xor", kExact | kCommutative | kAssociative, binary_shape_rule<kBits>,
           binary_eval<Xor, kBits>, "xor_i1 xor_i2 xor_c1");
const OpDef kShiftLeft =
    binary("stablehlo.shift_left", kExact, binary_shape_rule<kElInt>,
           binary_eval<ShiftLeft, kElInt>, "shift_left_i1 shift_left_i2 shift_left_c1");
const OpDef kShiftRightLogical =
    binary("stablehlo.shift_right_logical", kExact, binary_shape_rule<kElInt>,
           binary_eval<ShiftRightLogical, kElInt>,
           "shift_right_logical_i1 shift_right_logical_i2 shift_right_logical_c1");
const OpDef kShiftRightArithmetic =
    binary("stablehlo.shift_right_arithmetic", kExact, binary_shape_rule<kElInt>,
           binary_eval<ShiftRightArithmetic, kElInt>,
           "shift_right_arithmetic_i1 shift_right_arithmetic_i2 shift_right_arithmetic_c1");
const OpDef kComplex = binary("stablehlo.complex", kExact | kLinear, complex_shape_rule,
                              complex_eval, "complex_i1 complex_i2 complex_c1");

Family elementwise_binary_family() {
  static const OpDef* const kOps[] = {&kAdd,
                                      &kSubtract,
                                      &kMultiply,
                                      &kDivide,
                                      &kRemainder,
                                      &kMaximum,
                                      &kMinimum,
                                      &kPower,
                                      &kAtan2,
                                      &kNextAfter,
                                      &kAnd,
                                      &kOr,
                                      &kXor,
                                      &kShiftLeft,
                                      &kShiftRightLogical,
                                      &kShiftRightArithmetic,
                                      &kComplex,
                                      &kCompare,
                                      &kSelect,
                                      &kClamp};
  return kOps;
}

}  // namespace xylem::ir::ops
