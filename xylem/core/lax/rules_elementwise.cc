// Derivatives, transposes and batching of pointwise ops. Formulas are JAX's, so that values agree
// with it at edges too (ties of max, abs at 0, …).

#include <cmath>
#include <limits>

#include "xylem/core/numerics.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::binary;
using ir::compare;
using ir::convert;
using ir::Expr;
using ir::kNoValue;
using ir::like;
using ir::select;
using ir::unary;
using ir::ValueId;
namespace ops = ir::ops;

bool safe() { return numerics() == Numerics::safe; }

// --- factors that may be infinite -----------------------------------------------------------

// A product or quotient of a tangent whose other operand may be infinite or zero. Behind a select
// that did not take the value, its cotangent is zero, and so is what the transpose makes of it, not
// 0 · inf.
constexpr std::string_view kGuard = "xylem.guard";

Expr guarded(const ir::OpDef& def, Expr x, Expr y) {
  if (!safe() || is_complex(x.dtype())) return binary(def, x, y);
  return {x.b, x.b->one(def, {x.v, y.v}, ir::Attrs{{kGuard, ir::Attr(true)}})};
}
Expr times(Expr g, Expr factor) { return guarded(ops::kMultiply, g, factor); }
Expr over(Expr g, Expr divisor) { return guarded(ops::kDivide, g, divisor); }

// Whether the value comes from an op whose results may be infinite at finite operands.
bool unbounded(Expr x) {
  const ir::Op* op = x.b->graph().def(x.v);
  if (!op) return false;
  for (const ir::OpDef* def :
       {&ops::kLog, &ops::kLogPlusOne, &ops::kDivide, &ops::kRsqrt, &ops::kPower,
        &ops::kExponential, &ops::kExponentialMinusOne, &ops::kTan, &ops::kAtanh, &ops::kErfInv,
        &ops::kSinh, &ops::kCosh, &ops::kSqrt})
    if (op->def == def) return true;
  return false;
}

Expr masked(const TransposeCall& c, Expr ct, Expr r) {
  if (!c.masked || !c.op.attrs.has(kGuard)) return r;
  Expr nothing = binary(ops::kAnd, compare(ct, 0, "EQ"), compare(r, r, "NE"));
  return select(nothing, like(r, 0), r);
}

// --- forward mode ---------------------------------------------------------------------------

// y = op(x): F(tangent, x, y) is the tangent of y.
template <auto F>
void unary_jvp(JvpCall& c) {
  ValueId y = c.b.clone(c.op, c.primals)[0];
  Expr t = F({&c.b, c.tangents[0]}, {&c.b, c.primals[0]}, {&c.b, y});
  c.primal_out = {y};
  c.tangent_out = {t.v};
}

// z = op(x, y): F0 and F1 give the part of each operand's tangent.
template <auto F0, auto F1>
void binary_jvp(JvpCall& c) {
  Expr z{&c.b, c.b.clone(c.op, c.primals)[0]};
  Expr x{&c.b, c.primals[0]}, y{&c.b, c.primals[1]};
  Expr t{&c.b, kNoValue};
  if (c.tangents[0] != kNoValue) t = F0({&c.b, c.tangents[0]}, x, y, z);
  if (c.tangents[1] != kNoValue) {
    Expr u = F1({&c.b, c.tangents[1]}, x, y, z);
    t = t.defined() ? t + u : u;
  }
  c.primal_out = {z.v};
  c.tangent_out = {t.v};
}

// An op that is linear in all operands together: the op itself on the tangents.
void linear_jvp(JvpCall& c) {
  ir::ValueIds y = c.b.clone(c.op, c.primals);
  std::vector<ValueId> t(c.tangents.begin(), c.tangents.end());
  for (std::size_t i = 0; i < t.size(); ++i)
    if (t[i] == kNoValue) t[i] = ir::zeros(c.b, c.b.type(c.primals[i])).v;
  ir::ValueIds r = c.b.clone(c.op, t);
  c.primal_out.assign(y.begin(), y.end());
  c.tangent_out.assign(r.begin(), r.end());
}

Expr pass(Expr g, Expr, Expr, Expr) { return g; }
Expr pass_neg(Expr g, Expr, Expr, Expr) { return -g; }

// The share of an operand in max or min: 1 where it wins, 1/2 at ties.
Expr winner_share(Expr mine, Expr other, Expr z) {
  Expr one = like(z, 1), half = like(z, 0.5), zero = like(z, 0);
  Expr wins = select(compare(mine, z, "EQ"), one, zero);
  return select(compare(other, z, "EQ"), wins * half, wins);
}
Expr winner_lhs(Expr g, Expr x, Expr y, Expr z) { return g * winner_share(x, y, z); }
Expr winner_rhs(Expr g, Expr x, Expr y, Expr z) { return g * winner_share(y, x, z); }

Expr square(Expr x) { return unary(ops::kSquare, x); }

Expr pow_lhs(Expr g, Expr x, Expr y, Expr) {
  Expr slope = y * binary(ops::kPower, x, y - 1);
  if (safe()) slope = select(compare(y, 0, "EQ"), like(slope, 0), slope);  // x^0 is constant
  return times(g, slope);
}
Expr pow_rhs(Expr g, Expr x, Expr, Expr z) {
  Expr nonzero = select(compare(x, 0, "EQ"), like(x, 1), x);
  return times(g, unary(ops::kLog, nonzero) * z);
}

Expr abs_tangent(Expr g, Expr x, Expr y) {
  if (is_complex(x.dtype())) {
    // Re(g conj(x)) / |x|, 0 at 0.
    Expr length = select(compare(y, 0, "EQ"), like(y, 1), y);
    return (unary(ops::kReal, g) * unary(ops::kReal, x) +
            unary(ops::kImag, g) * unary(ops::kImag, x)) /
           length;
  }
  return select(compare(x, 0, "GE"), g, -g);
}

// d(x rem y) = g_x - g_y trunc(x / y)
Expr rem_rhs(Expr g, Expr x, Expr y, Expr) {
  Expr q = x / y;
  Expr toward = select(compare(q, 0, "LT"), unary(ops::kCeil, q), unary(ops::kFloor, q));
  return -g * toward;
}

void select_jvp(JvpCall& c) {
  Expr p{&c.b, c.primals[0]};
  ValueId y = c.b.clone(c.op, c.primals)[0];
  auto tangent = [&](std::size_t i) {
    return Expr{
        &c.b, c.tangents[i] != kNoValue ? c.tangents[i] : ir::zeros(c.b, c.b.type(c.primals[i])).v};
  };
  c.primal_out = {y};
  c.tangent_out = {select(p, tangent(1), tangent(2)).v};
}

// x: strictly inside; min: where min > x; max: where max < x.
void clamp_jvp(JvpCall& c) {
  Expr y{&c.b, c.b.clone(c.op, c.primals)[0]};
  Expr lo = ir::broadcast_to({&c.b, c.primals[0]}, y.dims());
  Expr x{&c.b, c.primals[1]};
  Expr hi = ir::broadcast_to({&c.b, c.primals[2]}, y.dims());
  Expr zero = like(y, 0);
  Expr t{&c.b, kNoValue};
  auto add = [&](ValueId g, Expr where) {
    if (g == kNoValue) return;
    Expr part = select(where, ir::broadcast_to({&c.b, g}, y.dims()), zero);
    t = t.defined() ? t + part : part;
  };
  add(c.tangents[1], binary(ops::kAnd, compare(x, lo, "GT"), compare(x, hi, "LT")));
  add(c.tangents[0], compare(lo, x, "GT"));
  add(c.tangents[2], compare(hi, x, "LT"));
  c.primal_out = {y.v};
  c.tangent_out = {t.v};
}

void convert_jvp(JvpCall& c) {
  ValueId y = c.b.clone(c.op, c.primals)[0];
  DType from = c.b.type(c.primals[0]).dtype(), to = c.b.type(y).dtype();
  c.primal_out = {y};
  c.tangent_out = {is_inexact(from) && is_inexact(to) ? convert({&c.b, c.tangents[0]}, to).v
                                                      : kNoValue};
}

// --- transposes -----------------------------------------------------------------------------

void add_transpose(TransposeCall& c) {
  for (std::size_t i = 0; i < 2; ++i)
    if (c.linear[i]) c.operand_ct[i] = c.cotangents[0];
}
void subtract_transpose(TransposeCall& c) {
  if (c.linear[0]) c.operand_ct[0] = c.cotangents[0];
  if (c.linear[1]) c.operand_ct[1] = (-Expr{&c.b, c.cotangents[0]}).v;
}
void multiply_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  std::size_t lin = c.linear[0] ? 0 : 1;
  XYLEM_CHECK(!c.linear[1 - lin], "a product of two linear values is not linear");
  c.operand_ct[lin] = masked(c, ct, ct * Expr{&c.b, c.operands[1 - lin]}).v;
}
void divide_transpose(TransposeCall& c) {
  XYLEM_CHECK(!c.linear[1], "a quotient is not linear in its divisor");
  Expr ct{&c.b, c.cotangents[0]};
  c.operand_ct[0] = masked(c, ct, ct / Expr{&c.b, c.operands[1]}).v;
}
void negate_transpose(TransposeCall& c) { c.operand_ct[0] = (-Expr{&c.b, c.cotangents[0]}).v; }
void select_transpose(TransposeCall& c) {
  Expr p{&c.b, c.operands[0]}, ct{&c.b, c.cotangents[0]};
  Expr zero = like(ct, 0);
  if (c.linear[1]) c.operand_ct[1] = select(p, ct, zero).v;
  if (c.linear[2]) c.operand_ct[2] = select(p, zero, ct).v;
}
void convert_transpose(TransposeCall& c) {
  c.operand_ct[0] = convert({&c.b, c.cotangents[0]}, c.types[0].dtype()).v;
}
void real_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  c.operand_ct[0] =
      is_complex(c.types[0].dtype()) ? binary(ops::kComplex, ct, like(ct, 0)).v : ct.v;
}
// imag(x + iy) = y; with grad's convention the cotangent of z is -i ct.
void imag_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  c.operand_ct[0] = binary(ops::kComplex, like(ct, 0), -ct).v;
}
void complex_transpose(TransposeCall& c) {
  Expr ct{&c.b, c.cotangents[0]};
  if (c.linear[0]) c.operand_ct[0] = unary(ops::kReal, ct).v;
  if (c.linear[1]) c.operand_ct[1] = (-unary(ops::kImag, ct)).v;
}
void identity_transpose(TransposeCall& c) {
  for (std::size_t i = 0; i < c.operand_ct.size(); ++i)
    if (c.linear[i]) c.operand_ct[i] = c.cotangents[i];
}

// --- batching -------------------------------------------------------------------------------

// All operands get the batch dimension at one place; operands without it are broadcast.
void pointwise_batch(BatchCall& c) {
  // Scalars beside full operands (select's predicate, clamp's bounds).
  int rank = 0;
  int at = kNotMapped;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    int own = c.b.type(c.operands[i]).rank() - (c.dims[i] != kNotMapped ? 1 : 0);
    if (own > rank || at == kNotMapped) {
      if (c.dims[i] != kNotMapped && own >= rank) at = c.dims[i];
    }
    rank = std::max(rank, own);
  }
  bool scalar_only = true;  // only scalar operands beside full ones are mapped
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    if (c.dims[i] != kNotMapped && c.b.type(c.operands[i]).rank() - 1 == rank) scalar_only = false;
  if (scalar_only) at = 0;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    Expr x{&c.b, c.operands[i]};
    int own = x.rank() - (c.dims[i] != kNotMapped ? 1 : 0);
    if (own < rank) {  // a scalar
      if (c.dims[i] != kNotMapped) {
        Dims shape;
        for (std::size_t k = 0; k < c.operands.size(); ++k) {
          int other = c.b.type(c.operands[k]).rank() - (c.dims[k] != kNotMapped ? 1 : 0);
          if (other != rank) continue;
          shape = c.b.type(c.operands[k]).dims();
          if (c.dims[k] != kNotMapped) shape.erase(static_cast<std::size_t>(c.dims[k]));
        }
        shape.insert(static_cast<std::size_t>(at), c.size);
        x = ir::broadcast_in_dim(x, shape, Dims{at});
      }
      operands.push_back(x.v);
      continue;
    }
    if (c.dims[i] == kNotMapped)
      x = ir::broadcast_new_dim(x, at, c.size);
    else
      x = ir::move_dim(x, c.dims[i], at);
    operands.push_back(x.v);
  }
  ir::ValueIds r = c.b.clone(c.op, operands);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), at);
}

// Any number of unrelated operands, each passed through.
void barrier_batch(BatchCall& c) {
  ir::ValueIds r = c.b.clone(c.op, c.operands);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(c.dims.begin(), c.dims.end());
}

void barrier_jvp(JvpCall& c) {
  ir::ValueIds y = c.b.clone(c.op, c.primals);
  std::vector<ValueId> live;
  for (ValueId t : c.tangents)
    if (t != kNoValue) live.push_back(t);
  ir::ValueIds r = c.b.op(*c.op.def, live);
  c.primal_out.assign(y.begin(), y.end());
  std::size_t k = 0;
  for (ValueId t : c.tangents) c.tangent_out.push_back(t == kNoValue ? kNoValue : r[k++]);
}

// bitcast_convert may change the rank at its last dimension.
void bitcast_batch(BatchCall& c) {
  Expr x = ir::move_dim({&c.b, c.operands[0]}, c.dims[0], 0);
  c.results = {c.b.clone(c.op, std::span<const ValueId>(&x.v, 1))[0]};
  c.result_dims = {0};
}

constexpr double kTwoOverSqrtPi = 1.1283791670955126;
constexpr double kSqrtPiOverTwo = 0.88622692545275801;

}  // namespace

void register_elementwise_rules(RuleTable& t) {
  for (const ir::OpDef* def : ir::op_table())
    if (def->is(ir::kPointwise)) t[*def].batch = pointwise_batch;
  t[ops::kOptimizationBarrier].batch = barrier_batch;
  t[ops::kOptimizationBarrier].jvp = barrier_jvp;
  t[ops::kOptimizationBarrier].transpose = [](TransposeCall& c) { identity_transpose(c); };
  t[ops::kBitcastConvert].batch = bitcast_batch;

  for (const ir::OpDef* def :
       {&ops::kSign, &ops::kFloor, &ops::kCeil, &ops::kRoundNearestAfz, &ops::kRoundNearestEven,
        &ops::kIsFinite, &ops::kNot, &ops::kAnd, &ops::kOr, &ops::kXor, &ops::kShiftLeft,
        &ops::kShiftRightLogical, &ops::kShiftRightArithmetic, &ops::kCompare, &ops::kPopcnt,
        &ops::kCountLeadingZeros, &ops::kBitcastConvert})
    t[*def].no_derivative = true;

  t[ops::kNegate] = {unary_jvp<[](Expr g, Expr, Expr) { return -g; }>, negate_transpose,
                     pointwise_batch};
  t[ops::kAdd].jvp = binary_jvp<pass, pass>;
  t[ops::kAdd].transpose = add_transpose;
  t[ops::kSubtract].jvp = binary_jvp<pass, pass_neg>;
  t[ops::kSubtract].transpose = subtract_transpose;
  t[ops::kMultiply].jvp =
      binary_jvp<[](Expr g, Expr, Expr y, Expr) { return unbounded(y) ? times(g, y) : g * y; },
                 [](Expr g, Expr x, Expr, Expr) { return unbounded(x) ? times(x, g) : x * g; }>;
  t[ops::kMultiply].transpose = multiply_transpose;
  t[ops::kDivide].jvp =
      binary_jvp<[](Expr g, Expr, Expr y, Expr) { return over(g, y); },
                 [](Expr g, Expr x, Expr y, Expr) { return times(-g * x, 1.0 / (y * y)); }>;
  t[ops::kDivide].transpose = divide_transpose;
  t[ops::kRemainder].jvp = binary_jvp<pass, rem_rhs>;
  t[ops::kMaximum].jvp = binary_jvp<winner_lhs, winner_rhs>;
  t[ops::kMinimum].jvp = binary_jvp<winner_lhs, winner_rhs>;
  t[ops::kPower].jvp = binary_jvp<pow_lhs, pow_rhs>;
  t[ops::kAtan2].jvp =
      binary_jvp<[](Expr g, Expr x, Expr y, Expr) { return times(g, y / (square(x) + square(y))); },
                 [](Expr g, Expr x, Expr y, Expr) {
                   return times(g, -x / (square(x) + square(y)));
                 }>;

  t[ops::kAbs].jvp = unary_jvp<abs_tangent>;
  t[ops::kExponential].jvp = unary_jvp<[](Expr g, Expr, Expr y) { return times(g, y); }>;
  t[ops::kExponentialMinusOne].jvp = unary_jvp<[](Expr g, Expr x, Expr y) {
    // y + 1 is 0 where y is -1 rounded.
    return times(g, safe() ? unary(ops::kExponential, x) : y + 1);
  }>;
  t[ops::kLog].jvp = unary_jvp<[](Expr g, Expr x, Expr) { return over(g, x); }>;
  t[ops::kLogPlusOne].jvp = unary_jvp<[](Expr g, Expr x, Expr) { return over(g, x + 1); }>;
  t[ops::kLogistic].jvp = unary_jvp<[](Expr g, Expr x, Expr y) {
    // 1 - y is 0 where y is 1 rounded; it is the logistic of -x.
    return g * (y * (safe() ? unary(ops::kLogistic, -x) : 1.0 - y));
  }>;
  t[ops::kTanh].jvp = unary_jvp<[](Expr g, Expr, Expr y) { return (g + g * y) * (1.0 - y); }>;
  t[ops::kSine].jvp = unary_jvp<[](Expr g, Expr x, Expr) { return g * unary(ops::kCosine, x); }>;
  t[ops::kCosine].jvp = unary_jvp<[](Expr g, Expr x, Expr) { return -(g * unary(ops::kSine, x)); }>;
  t[ops::kTan].jvp = unary_jvp<[](Expr g, Expr, Expr y) { return times(g, square(y) + 1); }>;
  t[ops::kSqrt].jvp = unary_jvp<[](Expr g, Expr, Expr y) { return times(g, 0.5 / y); }>;
  t[ops::kRsqrt].jvp = unary_jvp<[](Expr g, Expr x, Expr y) { return times(g, (y / x) * -0.5); }>;
  t[ops::kCbrt].jvp =
      unary_jvp<[](Expr g, Expr, Expr y) { return times(g, (1.0 / (y * y)) * (1.0 / 3.0)); }>;
  t[ops::kSquare].jvp = unary_jvp<[](Expr g, Expr x, Expr) { return g * (x * 2); }>;
  t[ops::kErf].jvp = unary_jvp<[](Expr g, Expr x, Expr) {
    return g * (unary(ops::kExponential, -square(x)) * kTwoOverSqrtPi);
  }>;
  t[ops::kErfc].jvp = unary_jvp<[](Expr g, Expr x, Expr) {
    return -(g * (unary(ops::kExponential, -square(x)) * kTwoOverSqrtPi));
  }>;
  t[ops::kErfInv].jvp = unary_jvp<[](Expr g, Expr, Expr y) {
    return times(g, unary(ops::kExponential, square(y)) * kSqrtPiOverTwo);
  }>;
  t[ops::kAsin].jvp =
      unary_jvp<[](Expr g, Expr x, Expr) { return times(g, unary(ops::kRsqrt, 1.0 - square(x))); }>;
  t[ops::kAcos].jvp = unary_jvp<[](Expr g, Expr x, Expr) {
    return -times(g, unary(ops::kRsqrt, 1.0 - square(x)));
  }>;
  t[ops::kAtan].jvp = unary_jvp<[](Expr g, Expr x, Expr) { return g / (square(x) + 1); }>;
  t[ops::kSinh].jvp =
      unary_jvp<[](Expr g, Expr x, Expr) { return times(g, unary(ops::kCosh, x)); }>;
  t[ops::kCosh].jvp =
      unary_jvp<[](Expr g, Expr x, Expr) { return times(g, unary(ops::kSinh, x)); }>;
  t[ops::kAsinh].jvp =
      unary_jvp<[](Expr g, Expr x, Expr) { return g * unary(ops::kRsqrt, square(x) + 1); }>;
  t[ops::kAcosh].jvp =
      unary_jvp<[](Expr g, Expr x, Expr) { return times(g, unary(ops::kRsqrt, square(x) - 1)); }>;
  t[ops::kAtanh].jvp =
      unary_jvp<[](Expr g, Expr x, Expr) { return times(1.0 / (x + 1), over(g, 1.0 - x)); }>;

  t[ops::kReal].jvp = linear_jvp;
  t[ops::kReal].transpose = real_transpose;
  t[ops::kImag].jvp = linear_jvp;
  t[ops::kImag].transpose = imag_transpose;
  t[ops::kComplex].jvp = linear_jvp;
  t[ops::kComplex].transpose = complex_transpose;
  t[ops::kReducePrecision].jvp = linear_jvp;
  t[ops::kReducePrecision].transpose = [](TransposeCall& c) {
    c.operand_ct[0] = c.b.clone(c.op, c.cotangents)[0];
  };
  t[ops::kConvert].jvp = convert_jvp;
  t[ops::kConvert].transpose = convert_transpose;
  t[ops::kConvert].batch = pointwise_batch;
  t[ops::kReducePrecision].batch = pointwise_batch;
  t[ops::kSelect].jvp = select_jvp;
  t[ops::kSelect].transpose = select_transpose;
  t[ops::kClamp].jvp = clamp_jvp;
  t[ops::kCheckpointName] = {linear_jvp, [](TransposeCall& c) { identity_transpose(c); },
                             pointwise_batch};
  t[ops::kNextAfter].no_derivative = true;
  t[ops::kStopGradient].no_derivative = true;
  t[ops::kStopGradient].batch = pointwise_batch;
}

}  // namespace xylem::transform
