// compare, select and clamp: the elementwise ops whose operands are not all of one type.

#include <bit>
#include <cmath>
#include <cstring>

#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/internal/elementwise.h"
#include "xylem/ir/ops/internal/scalar_ops.h"

namespace xylem::ir::ops {
namespace {

enum class Direction { kEq, kNe, kGe, kGt, kLe, kLt };

Direction direction_of(std::string_view s) {
  static constexpr std::string_view kNames[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  for (int i = 0; i < 6; ++i)
    if (s == kNames[i]) return static_cast<Direction>(i);
  throw_internal_error("comparison direction", s, SourceLoc::current());
}

template <class T>
bool compare(Direction d, T a, T b) {
  switch (d) {
    case Direction::kEq: return a == b;
    case Direction::kNe: return a != b;
    case Direction::kGe: return a >= b;
    case Direction::kGt: return a > b;
    case Direction::kLe: return a <= b;
    case Direction::kLt: return a < b;
  }
  return false;
}
template <class T>
bool compare(Direction d, std::complex<T> a, std::complex<T> b) {
  return (a == b) == (d == Direction::kEq);
}

// Integers in the order -NaN < -inf < … < -0 < +0 < … < +inf < +NaN.
std::int64_t total_order_key(double x) {
  auto b = std::bit_cast<std::int64_t>(x);
  return b < 0 ? b ^ INT64_MAX : b;
}

std::vector<Type> compare_shape_rule(const OpCall& call) {
  const Type& lhs = tensor_operand(call, 0);
  const Type& rhs = tensor_operand(call, 1);
  if (lhs.dtype() != rhs.dtype())
    fail(call, "c1", "operands must have one dtype", differ("operand 0", lhs, "operand 1", rhs),
         "Convert one of them");
  if (!dims_fit(lhs.dims(), rhs.dims()))
    fail(call, "c2", "operands must have one shape", differ("operand 0", lhs, "operand 1", rhs),
         "Broadcast or reshape one of them");
  std::string direction = call.attrs.str_or("comparison_direction", "");
  if (is_complex(lhs.dtype()) && direction != "EQ" && direction != "NE")
    fail(call, "i3", "complex numbers can be compared by EQ and NE",
         "the direction is " + direction, "Compare the real and imaginary parts instead");
  std::string type = call.attrs.str_or("compare_type", "");
  bool ok = type.empty() || (is_signed_int(lhs.dtype()) && type == "SIGNED") ||
            ((is_unsigned_int(lhs.dtype()) || is_bool(lhs.dtype())) && type == "UNSIGNED") ||
            (is_inexact(lhs.dtype()) && type == "FLOAT") ||
            (is_float(lhs.dtype()) && type == "TOTALORDER");
  if (!ok)
    fail(call, "c3", "compare_type must fit the dtype of the operands",
         "it is " + type + " for " + lhs.to_string(),
         "Leave it out, or use SIGNED, UNSIGNED, FLOAT or TOTALORDER (floats)");
  return {Type::tensor(DType::kBool, refine(lhs.dims(), rhs.dims()))};
}

std::vector<HostArray> compare_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  const HostArray& b = call.operands[1];
  Direction d = direction_of(call.op.attrs.str_or("comparison_direction", ""));
  HostArray out(DType::kBool, a.dims());
  if (call.op.attrs.str_or("compare_type", "") == "TOTALORDER") {
    map_binary<double>(a, b, out, [d](double x, double y) {
      return compare(d, total_order_key(x), total_order_key(y));
    });
  } else {
    with_compute_type<kElAny, false>(a.dtype(), [&](auto c) {
      using C = decltype(c);
      map_binary<C>(a, b, out, [d](C x, C y) { return compare(d, x, y); });
    });
  }
  return {std::move(out)};
}

std::vector<Type> select_shape_rule(const OpCall& call) {
  const Type& pred = tensor_operand(call, 0, kElBool);
  tensor_operand(call, 1);
  tensor_operand(call, 2);
  Type t = check_same_types(call, "c2", 1);
  if (pred.rank() != 0 && !dims_fit(pred.dims(), t.dims()))
    fail(call, "c1", "the predicate must be a scalar or have the shape of the cases",
         differ("the predicate", pred.with_dtype(t.dtype()), "case 0", t),
         "Broadcast the predicate");
  return {t};
}

std::vector<HostArray> select_eval(const EvalCall& call) {
  const HostArray& pred = call.operands[0];
  const HostArray& yes = call.operands[1];
  const HostArray& no = call.operands[2];
  if (pred.rank() == 0) return {*pred.as<bool>() ? yes : no};
  HostArray out = no.clone();
  auto bytes = static_cast<std::size_t>(dtype_bytes(out.dtype()));
  for (std::int64_t i = 0; i < out.size(); ++i) {
    auto at = static_cast<std::size_t>(i) * bytes;
    if (pred.as<bool>()[i]) std::memcpy(out.data() + at, yes.data() + at, bytes);
  }
  return {std::move(out)};
}

std::vector<Type> clamp_shape_rule(const OpCall& call) {
  const Type& lo = tensor_operand(call, 0);
  const Type& x = tensor_operand(call, 1);
  const Type& hi = tensor_operand(call, 2);
  if (lo.dtype() != x.dtype() || hi.dtype() != x.dtype())
    fail(call, "c3", "min, operand and max must have one dtype",
         types_text(call.operands) + " were given", "Convert the bounds to the operand's dtype");
  if (lo.rank() != 0 && !dims_fit(lo.dims(), x.dims()))
    fail(call, "c1", "min must be a scalar or have the operand's shape",
         differ("min", lo, "the operand", x), "Broadcast min");
  if (hi.rank() != 0 && !dims_fit(hi.dims(), x.dims()))
    fail(call, "c2", "max must be a scalar or have the operand's shape",
         differ("max", hi, "the operand", x), "Broadcast max");
  return {x};
}

std::vector<HostArray> clamp_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& x = call.operands[1];
  HostArray out(x.dtype(), x.dims());
  with_compute_type<kElAny, false>(x.dtype(), [&](auto c) {
    using C = decltype(c);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      C v[3];
      for (int k = 0; k < 3; ++k) {
        const HostArray& a = call.operands[static_cast<std::size_t>(k)];
        load(a, k != 1 && a.rank() == 0 ? 0 : i, 1, &v[k]);
      }
      C r = Minimum()(Maximum()(v[1], v[0]), v[2]);
      store(out, i, 1, &r);
    }
  });
  return {std::move(out)};
}

}  // namespace

const OpDef kCompare = {
    .name = "stablehlo.compare",
    .traits = kPointwise | kExact,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"comparison_direction", AttrKind::kEnum, true, "EQ NE GE GT LE LT"},
              {"compare_type", AttrKind::kEnum, false, "FLOAT TOTALORDER SIGNED UNSIGNED"}},
    .shape = compare_shape_rule,
    .eval = compare_eval,
    .labels = "compare_i1 compare_i2 compare_i3 compare_c1 compare_c2 compare_c3",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "o1 c2"};

const OpDef kSelect = {.name = "stablehlo.select",
                       .traits = kPointwise | kExact,
                       .min_operands = 3,
                       .max_operands = 3,
                       .shape = select_shape_rule,
                       .eval = select_eval,
                       .labels = "select_i1 select_i2 select_i3 select_c1 select_c2",
                       .quant = QuantSupport::kPerTensor,
                       .result_labels = "c2"};

const OpDef kClamp = {.name = "stablehlo.clamp",
                      .traits = kPointwise | kExact,
                      .min_operands = 3,
                      .max_operands = 3,
                      .shape = clamp_shape_rule,
                      .eval = clamp_eval,
                      .labels = "clamp_i1 clamp_i2 clamp_i3 clamp_c1 clamp_c2 clamp_c3",
                      .quant = QuantSupport::kPerTensor,
                      .result_labels = "c4"};

}  // namespace xylem::ir::ops
