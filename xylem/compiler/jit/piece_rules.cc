// One rule per pointwise op: how it is emitted for each dtype.

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "xylem/base/error.h"
#include "xylem/base/float_codec.h"
#include "xylem/compiler/jit/piece_complex.h"
#include "xylem/compiler/jit/piece_ops.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/ops/all.h"

namespace xylem::jit {
namespace {

namespace ops = ir::ops;
using llvm::Intrinsic::ID;
using Predicate = llvm::CmpInst::Predicate;

[[noreturn]] void refuse(const PieceCall& c) {
  unsupported(c.op, c.from, "Legalise or convert the op before it is put into a kernel");
}

Piece add(PieceOps& o, PieceCall& c) {
  Piece &x = c.in[0], &y = c.in[1];
  if (c.from == DType::kBool) return {o.b.CreateOr(x.v, y.v)};
  if (is_integer(c.from)) return {o.wrap(c.from, o.b.CreateAdd(x.v, y.v))};
  if (is_complex(c.from)) return {o.b.CreateFAdd(x.v, y.v), o.b.CreateFAdd(x.im, y.im)};
  return o.result(c.from, o.b.CreateFAdd(o.number(c.from, x), o.number(c.from, y)));
}

Piece subtract(PieceOps& o, PieceCall& c) {
  Piece &x = c.in[0], &y = c.in[1];
  if (is_integer(c.from)) return {o.wrap(c.from, o.b.CreateSub(x.v, y.v))};
  if (is_complex(c.from)) return {o.b.CreateFSub(x.v, y.v), o.b.CreateFSub(x.im, y.im)};
  return o.result(c.from, o.b.CreateFSub(o.number(c.from, x), o.number(c.from, y)));
}

// f8E8M0FNU has f32's range: products and quotients are rounded from f64, where they do not vanish.
template <class F>
Piece in_f64(PieceOps& o, PieceCall& c, F f) {
  const auto wide = [&](Piece& p) {
    Value* x = o.number(c.from, p);
    return o.b.CreateFPExt(x, o.f64_like(x));
  };
  Value* x = wide(c.in[0]);
  return o.round(c.from, o.round_to_odd(f(x, c.in.size() > 1 ? wide(c.in[1]) : x)));
}

Piece multiply(PieceOps& o, PieceCall& c) {
  Piece &x = c.in[0], &y = c.in[1];
  if (c.from == DType::kBool) return {o.b.CreateAnd(x.v, y.v)};
  if (is_integer(c.from)) return {o.wrap(c.from, o.b.CreateMul(x.v, y.v))};
  if (is_complex(c.from)) return complex_multiply(o, x, y);
  if (c.from == DType::kF8E8M0FNU)
    return in_f64(o, c, [&](Value* a, Value* d) { return o.b.CreateFMul(a, d); });
  return o.result(c.from, o.b.CreateFMul(o.number(c.from, x), o.number(c.from, y)));
}

Piece divide(PieceOps& o, PieceCall& c) {
  Piece &x = c.in[0], &y = c.in[1];
  if (is_integer(c.from)) return {o.divide_int(c.from, x.v, y.v)};
  if (is_complex(c.from)) return complex_divide(o, x, y);
  if (c.from == DType::kF8E8M0FNU)
    return in_f64(o, c, [&](Value* a, Value* d) { return o.b.CreateFDiv(a, d); });
  return o.result(c.from, o.b.CreateFDiv(o.number(c.from, x), o.number(c.from, y)));
}

Piece remainder(PieceOps& o, PieceCall& c) {
  Piece &x = c.in[0], &y = c.in[1];
  if (is_integer(c.from)) return {o.remainder_int(c.from, x.v, y.v)};
  // The C library's fmod, lane by lane: exact, which no short vector code is.
  return o.result(c.from, o.b.CreateFRem(o.number(c.from, x), o.number(c.from, y)));
}

template <bool Max>
Piece extremum(PieceOps& o, PieceCall& c) {
  Piece &x = c.in[0], &y = c.in[1];
  if (is_complex(c.from)) return complex_extremum(o, x, y, Max);
  if (is_float(c.from)) {
    Value *a = o.number(c.from, x), *d = o.number(c.from, y);
    return o.result(c.from, Max ? o.maximum(c.from, a, d) : o.minimum(c.from, a, d));
  }
  return {Max ? o.maximum(c.from, x.v, y.v) : o.minimum(c.from, x.v, y.v)};
}

// Square and multiply, one step per bit of the exponent.
Piece power(PieceOps& o, PieceCall& c) {
  if (!is_integer(c.from)) refuse(c);
  auto& b = o.b;
  Value *base = c.in[0].v, *exponent = c.in[1].v;
  llvm::Type* type = base->getType();
  llvm::Function* fn = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "power", fn);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "power.end", fn);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* step = b.CreatePHI(b.getInt32Ty(), 2);
  auto* result = b.CreatePHI(type, 2);
  auto* square = b.CreatePHI(type, 2);
  auto* left = b.CreatePHI(type, 2);
  Value* odd = b.CreateICmpNE(b.CreateAnd(left, o.int_const(left, 1)), o.int_const(left, 0));
  Value* next_result = o.select(odd, b.CreateMul(result, square), result);
  Value* next_square = b.CreateMul(square, square);
  Value* next_left = b.CreateLShr(left, o.int_const(left, 1));
  Value* next_step = b.CreateAdd(step, b.getInt32(1));
  const unsigned width = type->getScalarSizeInBits();
  b.CreateCondBr(b.CreateICmpULT(next_step, b.getInt32(width)), loop, after);
  const auto join = [&](llvm::PHINode* phi, Value* first, Value* next) {
    phi->addIncoming(first, before);
    phi->addIncoming(next, loop);
  };
  join(step, b.getInt32(0), next_step);
  join(result, o.int_const(base, 1), next_result);
  join(square, base, next_square);
  join(left, exponent, next_left);
  b.SetInsertPoint(after);
  if (!is_signed_int(c.from)) return {o.wrap(c.from, next_result)};
  const auto k = [&](std::int64_t v) { return o.int_const(base, v); };
  Value* is_odd = b.CreateICmpNE(b.CreateAnd(exponent, k(1)), k(0));
  Value* of_minus_one = o.select(is_odd, k(-1), k(1));
  Value* negative = o.select(b.CreateICmpEQ(base, k(-1)), of_minus_one, k(0));
  negative = o.select(b.CreateICmpEQ(base, k(1)), k(1), negative);
  Value* r = o.wrap(c.from, next_result);
  return {o.select(b.CreateICmpSLT(exponent, k(0)), negative, r)};
}

template <class F>
Piece bitwise(PieceCall& c, F f) {
  if (c.from != DType::kBool && !is_integer(c.from)) refuse(c);
  return {f()};
}
Piece and_(PieceOps& o, PieceCall& c) {
  return bitwise(c, [&] { return o.b.CreateAnd(c.in[0].v, c.in[1].v); });
}
Piece or_(PieceOps& o, PieceCall& c) {
  return bitwise(c, [&] { return o.b.CreateOr(c.in[0].v, c.in[1].v); });
}
Piece xor_(PieceOps& o, PieceCall& c) {
  return bitwise(c, [&] { return o.b.CreateXor(c.in[0].v, c.in[1].v); });
}
Piece not_(PieceOps& o, PieceCall& c) {
  return bitwise(c, [&] { return o.wrap(c.from, o.b.CreateNot(c.in[0].v)); });
}

enum class Shift { kLeft, kLogical, kArithmetic };

// Amounts that are negative or at least the width shift everything out.
template <Shift Kind>
Piece shift(PieceOps& o, PieceCall& c) {
  Value *x = c.in[0].v, *n = c.in[1].v;
  const int width = dtype_bits(c.from);
  Value* too_far = o.b.CreateICmpUGE(n, o.int_const(n, width));
  if (Kind == Shift::kArithmetic) {
    n = o.select(too_far, o.int_const(n, width - 1), n);
    // The sign is the top bit of the width, for unsigned types too.
    if (is_sub_byte(c.from)) {
      x = o.b.CreateShl(x, o.int_const(x, 8 - width));
      x = o.b.CreateAShr(x, o.int_const(x, 8 - width));
    }
    return {o.wrap(c.from, o.b.CreateAShr(x, n))};
  }
  n = o.select(too_far, o.int_const(n, 0), n);
  Value* r = nullptr;
  if (Kind == Shift::kLeft) {
    r = o.b.CreateShl(x, n);
  } else {
    if (is_sub_byte(c.from)) x = o.b.CreateAnd(x, o.int_const(x, (1 << width) - 1));
    r = o.b.CreateLShr(x, n);
  }
  return {o.wrap(c.from, o.select(too_far, o.int_const(r, 0), r))};
}

Piece make_complex(PieceOps&, PieceCall& c) { return {c.in[0].v, c.in[1].v}; }

struct Direction {
  Predicate ordered, is_signed, is_unsigned;
};

Direction direction(const PieceCall& c) {
  const std::string d = c.op.attrs.str_or("comparison_direction", "");
  using P = Predicate;
  if (d == "EQ") return {P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ};
  if (d == "NE") return {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE};
  if (d == "GE") return {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE};
  if (d == "GT") return {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT};
  if (d == "LE") return {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE};
  return {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT};
}

// Integers in the order of IEEE's total order.
Value* total_order_key(PieceOps& o, Value* x) {
  const unsigned width = x->getType()->getScalarSizeInBits();
  Value* u = o.b.CreateBitCast(x, o.int_like(x, width));
  Value* top = llvm::ConstantInt::get(u->getType(), llvm::APInt::getSignedMaxValue(width));
  return o.select(o.b.CreateICmpSLT(u, o.int_const(u, 0)), o.b.CreateXor(u, top), u);
}

Piece compare(PieceOps& o, PieceCall& c) {
  const Direction d = direction(c);
  Piece &x = c.in[0], &y = c.in[1];
  if (is_complex(c.from)) {
    Value* re = o.b.CreateFCmp(d.ordered, x.v, y.v);
    Value* im = o.b.CreateFCmp(d.ordered, x.im, y.im);
    return {d.ordered == Predicate::FCMP_OEQ ? o.b.CreateAnd(re, im) : o.b.CreateOr(re, im)};
  }
  if (is_float(c.from)) {
    Value *a = o.number(c.from, x), *e = o.number(c.from, y);
    if (c.op.attrs.str_or("compare_type", "") == "TOTALORDER")
      return {o.b.CreateICmp(d.is_signed, total_order_key(o, a), total_order_key(o, e))};
    return {o.b.CreateFCmp(d.ordered, a, e)};
  }
  return {o.b.CreateICmp(is_signed_int(c.from) ? d.is_signed : d.is_unsigned, x.v, y.v)};
}

Piece select(PieceOps& o, PieceCall& c) {
  Value* p = c.in[0].v;
  Piece &x = c.in[1], &y = c.in[2];
  if (is_narrow_float(c.to)) {
    if (x.f && y.f) return {nullptr, nullptr, o.select(p, x.f, y.f)};
    return {o.select(p, o.bits(c.to, x), o.bits(c.to, y))};
  }
  Piece r{o.select(p, x.v, y.v)};
  if (x.im) r.im = o.select(p, x.im, y.im);
  return r;
}

Piece clamp(PieceOps& o, PieceCall& c) {
  Piece &lo = c.in[0], &x = c.in[1], &hi = c.in[2];
  if (is_complex(c.to)) return complex_extremum(o, complex_extremum(o, x, lo, true), hi, false);
  if (is_float(c.to)) {
    Value* v = o.maximum(c.to, o.number(c.to, x), o.number(c.to, lo));
    return o.result(c.to, o.minimum(c.to, v, o.number(c.to, hi)));
  }
  return {o.minimum(c.to, o.maximum(c.to, x.v, lo.v), hi.v)};
}

Piece abs(PieceOps& o, PieceCall& c) {
  Piece& x = c.in[0];
  if (is_complex(c.from)) return {complex_abs(o, x)};
  if (is_float(c.from)) return o.result(c.from, o.fabs(o.number(c.from, x)));
  Value* negative = o.b.CreateICmpSLT(x.v, o.int_const(x.v, 0));
  return {o.wrap(c.from, o.select(negative, o.b.CreateNeg(x.v), x.v))};
}

// Rounding to integers, square roots: one intrinsic on the f32 or f64 value.
template <ID Intrinsic>
Piece float_unary(PieceOps& o, PieceCall& c) {
  if (!is_float(c.from)) refuse(c);
  return o.result(c.from, o.b.CreateUnaryIntrinsic(Intrinsic, o.number(c.from, c.in[0])));
}

Piece rsqrt(PieceOps& o, PieceCall& c) {
  if (!is_float(c.from)) refuse(c);
  Value* x = o.number(c.from, c.in[0]);
  Value* root = o.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
  return o.result(c.from, o.b.CreateFDiv(o.float_const(x, 1.0), root));
}

Piece negate(PieceOps& o, PieceCall& c) {
  Piece& x = c.in[0];
  if (is_integer(c.from)) return {o.wrap(c.from, o.b.CreateNeg(x.v))};
  if (is_complex(c.from)) return {o.b.CreateFNeg(x.v), o.b.CreateFNeg(x.im)};
  return o.result(c.from, o.b.CreateFNeg(o.number(c.from, x)));
}

Piece sign(PieceOps& o, PieceCall& c) {
  Piece& p = c.in[0];
  if (is_complex(c.from)) return complex_sign(o, p);
  if (is_float(c.from)) {
    Value* x = o.number(c.from, p);
    Value* one = o.b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, o.float_const(x, 1.0), x);
    // Zeros and NaN stay.
    Value* keep = o.b.CreateFCmpUEQ(x, o.float_const(x, 0.0));
    return o.result(c.from, o.select(keep, x, one));
  }
  Value* zero = o.int_const(p.v, 0);
  Value* negative = o.b.CreateSExt(o.b.CreateICmpSLT(p.v, zero), p.v->getType());
  Value* positive = o.b.CreateZExt(o.b.CreateICmpSGT(p.v, zero), p.v->getType());
  return {o.b.CreateOr(negative, positive)};
}

Piece is_finite(PieceOps& o, PieceCall& c) {
  Value* x = o.number(c.from, c.in[0]);
  Value* inf = llvm::ConstantFP::getInfinity(x->getType());
  return {o.b.CreateFCmpOLT(o.fabs(x), inf)};
}

Piece count_leading_zeros(PieceOps& o, PieceCall& c) {
  Value* x = c.in[0].v;
  const int width = dtype_bits(c.from);
  // The zero bits above a narrow type count too: shift them out and set the one below.
  if (is_sub_byte(c.from)) {
    x = o.b.CreateShl(x, o.int_const(x, 8 - width));
    x = o.b.CreateOr(x, o.int_const(x, 1 << (7 - width)));
  }
  Value* n = o.b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, o.b.getFalse());
  return {o.wrap(c.from, n)};
}

Piece popcnt(PieceOps& o, PieceCall& c) {
  Value* x = c.in[0].v;
  if (is_sub_byte(c.from)) x = o.b.CreateAnd(x, o.int_const(x, (1 << dtype_bits(c.from)) - 1));
  return {o.wrap(c.from, o.b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x))};
}

Piece real(PieceOps&, PieceCall& c) {
  if (!is_complex(c.from)) return c.in[0];
  return {c.in[0].v};
}

Piece imag(PieceOps& o, PieceCall& c) {
  if (is_complex(c.from)) return {c.in[0].im};
  Value* x = o.number(c.from, c.in[0]);
  return o.result(c.from, o.float_const(x, 0.0));
}

Piece square(PieceOps& o, PieceCall& c) {
  Piece& x = c.in[0];
  if (is_integer(c.from)) return {o.wrap(c.from, o.b.CreateMul(x.v, x.v))};
  if (is_complex(c.from)) {
    Value* re = o.b.CreateFMul(o.b.CreateFSub(x.v, x.im), o.b.CreateFAdd(x.v, x.im));
    // Where the sum overflows the difference is still 0.
    Value* size = o.fabs(x.v);
    Value* infinite = llvm::ConstantFP::getInfinity(size->getType());
    Value* equal =
        o.b.CreateAnd(o.b.CreateFCmpOEQ(size, o.fabs(x.im)), o.b.CreateFCmpOLT(size, infinite));
    re = o.select(equal, llvm::ConstantFP::get(size->getType(), 0.0), re);
    Value* half = o.b.CreateFMul(x.v, x.im);
    return {re, o.b.CreateFAdd(half, half)};
  }
  if (c.from == DType::kF8E8M0FNU)
    return in_f64(o, c, [&](Value* a, Value* d) { return o.b.CreateFMul(a, d); });
  Value* v = o.number(c.from, x);
  return o.result(c.from, o.b.CreateFMul(v, v));
}

Piece convert(PieceOps& o, PieceCall& c) { return o.convert(c.from, c.to, c.in[0]); }

// Rounds the mantissa to fewer bits and narrows the exponent's range.
Piece reduce_precision(PieceOps& o, PieceCall& c) {
  // Formats without infinities are rounded in f32, others in their own bits.
  const bool ieee = !is_narrow_float(c.from) || float_format(c.from).specials == Specials::kIeee;
  const bool own_bits = ieee && is_narrow_float(c.from);
  const DTypeInfo& info = dtype_info(ieee ? c.from : DType::kF32);
  Value* x = own_bits ? o.bits(c.from, c.in[0]) : o.number(c.from, c.in[0]);
  Value* u = o.b.CreateBitCast(x, o.int_like(x, static_cast<unsigned>(info.bits)));
  llvm::Type* type = u->getType();
  const auto k = [&](std::uint64_t v) { return llvm::ConstantInt::get(type, v); };
  const int m = info.mantissa_bits, e = info.exponent_bits;
  const std::int64_t to_m = c.op.attrs.i64("mantissa_bits");
  const std::int64_t to_e = c.op.attrs.i64("exponent_bits");
  const std::uint64_t sign_mask = 1ull << (e + m);
  const std::uint64_t exponent_mask = ((1ull << e) - 1) << m;
  Value* sign = o.b.CreateAnd(u, k(sign_mask));
  Value* infinity = o.b.CreateOr(sign, k(exponent_mask));
  Value* r = u;
  if (to_m < m) {
    const int drop = m - static_cast<int>(to_m);
    Value* last = o.b.CreateAnd(o.b.CreateLShr(r, k(static_cast<std::uint64_t>(drop))), k(1));
    r = o.b.CreateAdd(o.b.CreateAdd(r, k((1ull << (drop - 1)) - 1)), last);
    r = o.b.CreateAnd(r, k(~((1ull << drop) - 1)));
  }
  if (to_e < e) {
    const std::uint64_t bias = (1ull << (e - 1)) - 1;
    const std::uint64_t to_bias = (1ull << (to_e - 1)) - 1;
    Value* exponent = o.b.CreateAnd(r, k(exponent_mask));
    Value* high = o.b.CreateICmpUGT(exponent, k((bias + to_bias) << m));
    Value* low = o.b.CreateICmpULE(exponent, k((bias - to_bias) << m));
    r = o.select(low, sign, r);
    r = o.select(high, infinity, r);
  }
  Value* nan = o.b.CreateICmpUGT(o.b.CreateAnd(u, k(sign_mask - 1)), k(exponent_mask));
  r = o.select(nan, to_m > 0 ? u : infinity, r);
  if (own_bits) return {r};
  return o.result(c.from, o.b.CreateBitCast(r, x->getType()));
}

Piece fma(PieceOps& o, PieceCall& c) {
  Value* args[] = {c.in[0].v, c.in[1].v, c.in[2].v};
  return {o.intrinsic(llvm::Intrinsic::fma, args)};
}

// vscalefps and vscalefpd: exact but for the one rounding, subnormals included.
Value* scalef(PieceOps& o, Value* x, Value* n) {
  auto& b = o.b;
  const bool wide = x->getType()->getScalarType()->isDoubleTy();
  const unsigned lanes = PieceOps::lanes_of(x);
  const unsigned least = wide ? 2 : 4, most = wide ? 8 : 16;
  if (lanes > most) {
    llvm::SmallVector<int, 32> low, high, all;
    for (unsigned i = 0; i < lanes; ++i) {
      (i < lanes / 2 ? low : high).push_back(static_cast<int>(i));
      all.push_back(static_cast<int>(i));
    }
    const auto half = [&](llvm::ArrayRef<int> part) {
      return scalef(o, b.CreateShuffleVector(x, part), b.CreateShuffleVector(n, part));
    };
    Value* first = half(low);
    return b.CreateShuffleVector(first, half(high), all);
  }
  if (lanes < least) {
    llvm::SmallVector<int, 4> pad, cut;
    for (unsigned i = 0; i < least; ++i) pad.push_back(static_cast<int>(i % lanes));
    for (unsigned i = 0; i < lanes; ++i) cut.push_back(static_cast<int>(i));
    if (lanes == 1)
      return b.CreateExtractElement(scalef(o, o.splat(x, least), o.splat(n, least)), b.getInt64(0));
    Value* r = scalef(o, b.CreateShuffleVector(x, pad), b.CreateShuffleVector(n, pad));
    return b.CreateShuffleVector(r, cut);
  }
  Value* y = b.CreateSIToFP(n, x->getType());
  Value* zero = llvm::Constant::getNullValue(x->getType());
  Value* mask = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(std::max(lanes, 8u)));
  using namespace llvm;
  if (lanes == most) {
    Value* args[] = {x, y, zero, mask, b.getInt32(4)};
    return b.CreateIntrinsic(
        wide ? Intrinsic::x86_avx512_mask_scalef_pd_512 : Intrinsic::x86_avx512_mask_scalef_ps_512,
        {}, args);
  }
  Value* args[] = {x, y, zero, mask};
  if (lanes == most / 2)
    return b.CreateIntrinsic(
        wide ? Intrinsic::x86_avx512_mask_scalef_pd_256 : Intrinsic::x86_avx512_mask_scalef_ps_256,
        {}, args);
  return b.CreateIntrinsic(
      wide ? Intrinsic::x86_avx512_mask_scalef_pd_128 : Intrinsic::x86_avx512_mask_scalef_ps_128,
      {}, args);
}

// x * 2^n in one rounding: by the processor, or in integers and two products, of which only the
// last can leave the range of normal numbers.
Piece ldexp(PieceOps& o, PieceCall& c) {
  auto& b = o.b;
  Value *x = c.in[0].v, *n = c.in[1].v;
  if (o.target.avx512) return {scalef(o, x, n)};
  const bool wide = c.from == DType::kF64;
  const int bias = wide ? 1023 : 127;
  const std::uint64_t mantissa = wide ? 52 : 23;
  llvm::Type* type = o.int_like(x, wide ? 64 : 32);
  const auto k = [&](std::uint64_t v) { return llvm::ConstantInt::get(type, v); };
  const auto clamp_to = [&](Value* v, std::int64_t low, std::int64_t high) {
    v = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, o.int_const(v, low));
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, o.int_const(v, high));
  };
  const auto power_of_two = [&](Value* e) {  // -bias < e <= bias
    Value* u = b.CreateAdd(b.CreateSExt(e, type), k(static_cast<std::uint64_t>(bias)));
    return b.CreateBitCast(b.CreateShl(u, k(mantissa)), x->getType());
  };
  // x = s * 2^e with 1 <= |s| < 2; subnormals are scaled up first.
  const int up = wide ? 54 : 25;
  Value* tiny = b.CreateFCmpOLT(o.fabs(x), o.float_const(x, std::ldexp(1.0, 1 - bias)));
  Value* y = o.select(tiny, b.CreateFMul(x, o.float_const(x, std::ldexp(1.0, up))), x);
  Value* u = b.CreateBitCast(y, type);
  const std::uint64_t field_mask = wide ? 0x7ff : 0xff;
  Value* field = b.CreateAnd(b.CreateLShr(u, k(mantissa)), k(field_mask));
  Value* e = b.CreateSub(b.CreateTrunc(field, n->getType()), o.int_const(n, bias));
  Value* cleared = b.CreateAnd(u, k(~(field_mask << mantissa)));
  Value* s = b.CreateBitCast(b.CreateOr(cleared, k(static_cast<std::uint64_t>(bias) << mantissa)),
                             x->getType());
  Value* total = b.CreateAdd(clamp_to(n, -8 * bias, 8 * bias), e);
  total = b.CreateSub(total, o.select(tiny, o.int_const(n, up), o.int_const(n, 0)));
  const int digits = static_cast<int>(mantissa);
  total = clamp_to(total, -bias - digits - 2, bias + 1);
  Value* low = b.CreateICmpSLT(total, o.int_const(total, 1 - bias));
  Value* high = b.CreateICmpSGT(total, o.int_const(total, bias));
  Value* first = b.CreateZExt(high, total->getType());
  first = o.select(low, o.int_const(total, -(digits + 3)), first);
  Value* r =
      b.CreateFMul(b.CreateFMul(s, power_of_two(first)), power_of_two(b.CreateSub(total, first)));
  Value* infinite = b.CreateFCmpOEQ(o.fabs(x), llvm::ConstantFP::getInfinity(x->getType()));
  Value* special = b.CreateOr(b.CreateFCmpUEQ(x, o.float_const(x, 0.0)), infinite);
  return {o.select(special, x, r)};
}

const std::unordered_map<const ir::OpDef*, PieceRule>& rules() {
  using llvm::Intrinsic::IndependentIntrinsics;
  static const auto* table = new std::unordered_map<const ir::OpDef*, PieceRule>{
      {&ops::kAdd, {add}},
      {&ops::kSubtract, {subtract}},
      {&ops::kMultiply, {multiply}},
      {&ops::kDivide, {divide}},
      {&ops::kRemainder, {remainder}},
      {&ops::kMaximum, {extremum<true>}},
      {&ops::kMinimum, {extremum<false>}},
      {&ops::kPower, {power, true}},
      {&ops::kAnd, {and_}},
      {&ops::kOr, {or_}},
      {&ops::kXor, {xor_}},
      {&ops::kNot, {not_}},
      {&ops::kShiftLeft, {shift<Shift::kLeft>}},
      {&ops::kShiftRightLogical, {shift<Shift::kLogical>}},
      {&ops::kShiftRightArithmetic, {shift<Shift::kArithmetic>}},
      {&ops::kComplex, {make_complex}},
      {&ops::kCompare, {compare}},
      {&ops::kSelect, {select}},
      {&ops::kClamp, {clamp}},
      {&ops::kAbs, {abs}},
      {&ops::kCeil, {float_unary<llvm::Intrinsic::ceil>}},
      {&ops::kFloor, {float_unary<llvm::Intrinsic::floor>}},
      {&ops::kRoundNearestAfz, {float_unary<llvm::Intrinsic::round>}},
      {&ops::kRoundNearestEven, {float_unary<llvm::Intrinsic::roundeven>}},
      {&ops::kSqrt, {float_unary<llvm::Intrinsic::sqrt>}},
      {&ops::kRsqrt, {rsqrt}},
      {&ops::kNegate, {negate}},
      {&ops::kSign, {sign}},
      {&ops::kIsFinite, {is_finite}},
      {&ops::kCountLeadingZeros, {count_leading_zeros}},
      {&ops::kPopcnt, {popcnt}},
      {&ops::kReal, {real}},
      {&ops::kImag, {imag}},
      {&ops::kSquare, {square}},
      {&ops::kConvert, {convert}},
      {&ops::kReducePrecision, {reduce_precision}},
      {&ops::kKernelFma, {fma}},
      {&ops::kKernelLdexp, {ldexp}},
  };
  return *table;
}

}  // namespace

PieceRule piece_rule(const ir::OpDef& def) {
  const auto it = rules().find(&def);
  return it == rules().end() ? PieceRule() : it->second;
}

}  // namespace xylem::jit
