// Conversions between dtypes, and the codes of the narrow floats.

#include <cmath>

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "xylem/base/error.h"
#include "xylem/base/float_codec.h"
#include "xylem/compiler/jit/piece_ops.h"

namespace xylem::jit {
namespace {

std::int64_t as_signed(std::uint32_t v) { return static_cast<std::int32_t>(v); }

}  // namespace

// Exact value (f32) of the codes of a narrow float.
Value* PieceOps::decode(DType t, Value* code) {
  Value* u = b.CreateZExt(code, int_like(code, 32));
  if (t == DType::kBF16) return b.CreateBitCast(b.CreateShl(u, int_const(u, 16)), f32_like(code));
  if (t == DType::kF16)
    return b.CreateFPExt(b.CreateBitCast(code, like(code, b.getHalfTy())), f32_like(code));

  const FloatFormat f = float_format(t);
  const int m = f.mantissa_bits;
  const auto c = [&](std::int64_t v) { return int_const(u, v); };
  if (f.specials == Specials::kE8M0) {
    Value* r = b.CreateShl(u, c(23));
    r = select(b.CreateICmpEQ(u, c(0)), c(1 << 22), r);
    r = select(b.CreateICmpEQ(u, c(255)), c(0x7fc00000), r);
    return b.CreateBitCast(r, f32_like(code));
  }
  u = b.CreateAnd(u, c((1 << f.width()) - 1));
  const int magnitude_bits = f.exponent_bits + m;
  Value* magnitude = b.CreateAnd(u, c((1 << magnitude_bits) - 1));
  Value* sign = b.CreateShl(b.CreateLShr(u, c(magnitude_bits)), c(31));
  // Subnormals: an integer times a power of two. The others: shifted into place.
  const double unit = std::ldexp(1.0, 1 - f.bias - m);
  Value* small = b.CreateSIToFP(magnitude, f32_like(code));
  small = b.CreateBitCast(b.CreateFMul(small, float_const(small, unit)), u->getType());
  Value* normal =
      b.CreateAdd(b.CreateShl(magnitude, c(23 - m)), c(std::int64_t{127 - f.bias} << 23));
  Value* r = select(b.CreateICmpULT(magnitude, c(1 << m)), small, normal);
  const std::uint32_t largest = max_finite_code(f);
  if (largest < (1u << magnitude_bits) - 1) {
    // Infinity of the IEEE-like types and NaN with its payload.
    Value* special = c(0x7fc00000);
    if (f.specials == Specials::kIeee) {
      Value* mantissa = b.CreateAnd(magnitude, c((1 << m) - 1));
      special = b.CreateOr(c(0x7f800000), b.CreateShl(mantissa, c(23 - m)));
      special = select(b.CreateICmpNE(mantissa, c(0)), b.CreateOr(special, c(1 << 22)), special);
    }
    r = select(b.CreateICmpUGT(magnitude, c(largest)), special, r);
  }
  r = b.CreateOr(r, sign);
  if (f.specials == Specials::kFnuz)
    r = select(b.CreateICmpEQ(u, c(1 << magnitude_bits)), c(as_signed(0xffc00000u)), r);
  return b.CreateBitCast(r, f32_like(code));
}

// The codes of f32 numbers in an f8, f6 or f4 type: rounds to nearest even, once.
Value* PieceOps::encode(DType t, Value* x) {
  const FloatFormat f = float_format(t);
  const int m = f.mantissa_bits;
  Value* u = b.CreateBitCast(x, int_like(x, 32));
  const auto c = [&](std::int64_t v) { return int_const(u, v); };
  llvm::Type* bytes = int_like(x, 8);
  Value* a = b.CreateAnd(u, c(0x7fffffff));
  if (f.specials == Specials::kE8M0) {
    // Powers of two; halfway goes up, as every significand of one bit is odd. In the lowest binade
    // everything goes up.
    Value* r = b.CreateLShr(b.CreateAdd(a, c(0x400000)), c(23));
    Value* low = b.CreateZExt(b.CreateICmpUGT(a, c(0x400000)), u->getType());
    r = select(b.CreateICmpULT(a, c(0x800000)), low, r);
    Value* bad = b.CreateOr(b.CreateICmpSLE(u, c(0)), b.CreateICmpUGT(r, c(254)));
    return b.CreateTrunc(select(bad, c(255), r), bytes);
  }
  const int magnitude_bits = f.exponent_bits + m;
  // Normal numbers: round in place, a carry runs into the exponent.
  Value* last = b.CreateAnd(b.CreateLShr(a, c(23 - m)), c(1));
  Value* normal = b.CreateAdd(b.CreateAdd(a, c((1 << (22 - m)) - 1)), last);
  normal = b.CreateSub(b.CreateLShr(normal, c(23 - m)), c(std::int64_t{127 - f.bias} << m));
  // Below the least normal number the code is the multiple of the least number. (Large ones are
  // kept off: the integer conversion could not take them.)
  Value* is_small = b.CreateICmpULT(a, c(std::int64_t{128 - f.bias} << 23));
  Value* small = b.CreateBitCast(select(is_small, a, c(0)), x->getType());
  small = b.CreateFMul(small, float_const(small, std::ldexp(1.0, f.bias - 1 + m)));
  small = b.CreateUnaryIntrinsic(llvm::Intrinsic::rint, small);
  small = b.CreateFPToSI(small, u->getType());
  Value* r = select(is_small, small, normal);

  Value* sign = b.CreateShl(b.CreateLShr(u, c(31)), c(magnitude_bits));
  const std::uint32_t largest = max_finite_code(f);
  Value* above = b.CreateICmpUGT(r, c(largest));
  if (f.specials == Specials::kFnuz) {
    sign = select(b.CreateICmpEQ(r, c(0)), c(0), sign);
    r = b.CreateOr(r, sign);
  } else {
    r = b.CreateOr(r, sign);
  }
  const std::uint32_t over = overflow_code(f, false);
  Value* over_value = c(over);
  if (overflow_code(f, true) != over) over_value = b.CreateOr(over_value, sign);
  r = select(above, over_value, r);
  const std::uint32_t nan = nan_code(f, false);
  Value* nan_value = c(nan);
  if (nan_code(f, true) != nan) nan_value = b.CreateOr(nan_value, sign);
  r = select(b.CreateICmpUGT(a, c(0x7f800000)), nan_value, r);
  return b.CreateTrunc(r, bytes);
}

Piece PieceOps::round(DType t, Value* x) {
  if (t == DType::kBF16) {
    // In integers: the processor's conversion flushes subnormals.
    Value* u = b.CreateBitCast(x, int_like(x, 32));
    Value* last = b.CreateAnd(b.CreateLShr(u, int_const(u, 16)), int_const(u, 1));
    Value* r = b.CreateAdd(b.CreateAdd(u, int_const(u, 0x7fff)), last);
    Value* nan =
        b.CreateOr(b.CreateAnd(u, int_const(u, as_signed(0x80000000u))), int_const(u, 0x7fc00000));
    r = select(b.CreateFCmpUNO(x, x), nan, r);
    r = b.CreateAnd(r, int_const(u, as_signed(0xffff0000u)));
    return {nullptr, nullptr, b.CreateBitCast(r, x->getType())};
  }
  if (t == DType::kF16) {
    Value* half = b.CreateBitCast(b.CreateFPTrunc(x, like(x, b.getHalfTy())), int_like(x, 16));
    // One NaN, of either sign.
    Value* sign = b.CreateAnd(half, int_const(half, -0x8000));
    Value* nan = b.CreateOr(sign, int_const(half, 0x7e00));
    return {select(b.CreateFCmpUNO(x, x), nan, half)};
  }
  return {encode(t, x)};
}

Value* PieceOps::bits(DType t, Piece& p) {
  if (p.v) return p.v;
  if (t == DType::kBF16) {
    Value* u = b.CreateBitCast(p.f, int_like(p.f, 32));
    p.v = b.CreateTrunc(b.CreateLShr(u, int_const(u, 16)), int_like(p.f, 16));
  } else if (t == DType::kF16) {
    p.v = b.CreateBitCast(b.CreateFPTrunc(p.f, like(p.f, b.getHalfTy())), int_like(p.f, 16));
  } else {
    p.v = encode(t, p.f);
  }
  return p.v;
}

Value* PieceOps::f32(DType t, Piece& p) {
  if (!p.f) p.f = decode(t, p.v);
  return p.f;
}

Value* PieceOps::round_to_odd(Value* x) {
  Value* y = b.CreateFPTrunc(x, f32_like(x));
  Value* back = b.CreateFPExt(y, x->getType());
  Value* u = b.CreateBitCast(y, int_like(x, 32));
  // Towards zero, then the last bit says that something was cut off.
  Value* away = b.CreateFCmpOGT(fabs(back), fabs(x));
  Value* inexact = b.CreateFCmpONE(back, x);
  u = b.CreateSub(u, b.CreateZExt(away, u->getType()));
  u = b.CreateOr(u, b.CreateZExt(inexact, u->getType()));
  return b.CreateBitCast(u, y->getType());
}

// The processor's own f32 to i32: the least integer for all that does not fit. Null if there is no
// such instruction for this number of lanes.
Value* PieceOps::truncate_to_i32(Value* x) {
  using namespace llvm;
  if (!x->getType()->getScalarType()->isFloatTy()) return nullptr;
  switch (lanes_of(x)) {
    case 16: {
      if (!target.avx512) return nullptr;
      Value* args[] = {x, Constant::getNullValue(int_like(x, 32)), b.getInt16(0xffff),
                       b.getInt32(4)};
      return b.CreateIntrinsic(Intrinsic::x86_avx512_mask_cvttps2dq_512, {}, args);
    }
    case 8:
      return target.avx2 ? b.CreateIntrinsic(Intrinsic::x86_avx_cvtt_ps2dq_256, {}, {x}) : nullptr;
    case 4: return b.CreateIntrinsic(Intrinsic::x86_sse2_cvttps2dq, {}, {x});
    default: return nullptr;
  }
}

// Truncates and saturates; NaN gives 0. `x` is f32 or f64.
Value* PieceOps::float_to_int(Value* x, DType to) {
  if (to == DType::kI32) {
    if (Value* q = truncate_to_i32(x)) {
      Value* high = b.CreateFCmpOGE(x, float_const(x, 2147483648.0));
      q = select(high, int_const(q, INT32_MAX), q);
      return select(b.CreateFCmpORD(x, x), q, int_const(q, 0));
    }
  }
  const int width = dtype_bits(to);
  const bool is_signed = is_signed_int(to);
  const double low = is_signed ? -std::ldexp(1.0, width - 1) : 0.0;
  const double high = std::ldexp(1.0, is_signed ? width - 1 : width);
  const bool via_i32 = width < 32;
  llvm::Type* type = int_like(x, via_i32 ? 32 : static_cast<unsigned>(width));
  Value* at_least = b.CreateFCmpOGE(x, float_const(x, low));
  Value* too_high = b.CreateFCmpOGE(x, float_const(x, high));
  Value* inside = b.CreateAnd(at_least, b.CreateNot(too_high));
  Value* safe = select(inside, x, float_const(x, 0.0));
  Value* q = is_signed || via_i32 ? b.CreateFPToSI(safe, type) : b.CreateFPToUI(safe, type);
  const llvm::APInt top = is_signed ? llvm::APInt::getSignedMaxValue(static_cast<unsigned>(width))
                                    : llvm::APInt::getMaxValue(static_cast<unsigned>(width));
  const unsigned bits = type->getScalarSizeInBits();
  Value* highest = llvm::ConstantInt::get(type, is_signed ? top.sext(bits) : top.zext(bits));
  q = select(too_high, highest, q);
  if (is_signed) {
    Value* lowest = llvm::ConstantInt::get(
        type, llvm::APInt::getSignedMinValue(static_cast<unsigned>(width)).sext(bits));
    q = select(b.CreateFCmpOLT(x, float_const(x, low)), lowest, q);
  }
  return b.CreateTrunc(q, like(x, element_type(to)));
}

// To f32 or f64; for narrow targets an f32 whose rounding to the target is right.
Value* PieceOps::int_to_float(DType from, Value* v, DType to) {
  const bool is_signed = is_signed_int(from);
  const auto cast = [&](Value* x, llvm::Type* type) {
    return is_signed ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  };
  if (to == DType::kF64) return cast(v, f64_like(v));
  if (to == DType::kF32 || dtype_bits(from) <= 16) return cast(v, f32_like(v));
  if (dtype_bits(from) == 64) {
    // What f64 cannot hold is kept as a sticky bit far below the precision of the target.
    Value* low = b.CreateAnd(v, int_const(v, 0x7ff));
    Value* sticky = b.CreateShl(b.CreateZExt(b.CreateICmpNE(low, int_const(v, 0)), v->getType()),
                                int_const(v, 11));
    Value* cut = b.CreateOr(b.CreateAnd(v, int_const(v, ~std::int64_t{0x7ff})), sticky);
    Value* top = is_signed ? b.CreateAShr(v, int_const(v, 53)) : b.CreateLShr(v, int_const(v, 53));
    Value* is_small = b.CreateICmpEQ(top, int_const(v, 0));
    if (is_signed) is_small = b.CreateOr(is_small, b.CreateICmpEQ(top, int_const(v, -1)));
    v = select(is_small, v, cut);
  }
  return round_to_odd(cast(v, f64_like(v)));
}

Piece PieceOps::convert(DType from, DType to, Piece p) {
  if (from == to) return p;
  if (is_complex(from)) {
    if (is_complex(to)) {
      const auto part = [&](Value* x) {
        return to == DType::kC128 ? b.CreateFPExt(x, f64_like(x)) : b.CreateFPTrunc(x, f32_like(x));
      };
      return {part(p.v), part(p.im)};
    }
    return convert(real_dtype(from), to, {p.v});
  }
  if (is_complex(to)) {
    Piece re = convert(from, real_dtype(to), p);
    return {re.v, float_const(re.v, 0.0)};
  }
  if (from == DType::kBool) {
    if (is_integer(to)) return {b.CreateZExt(p.v, like(p.v, element_type(to)))};
    if (to == DType::kF64) return {b.CreateUIToFP(p.v, f64_like(p.v))};
    Value* one = llvm::ConstantFP::get(f32_like(p.v), 1.0);
    Value* x = select(p.v, one, llvm::ConstantFP::get(f32_like(p.v), 0.0));
    return result(to, x);
  }
  if (is_integer(from)) {
    if (to == DType::kBool) return {b.CreateICmpNE(p.v, int_const(p.v, 0))};
    if (is_integer(to)) {
      llvm::Type* type = like(p.v, element_type(to));
      Value* v =
          is_signed_int(from) ? b.CreateSExtOrTrunc(p.v, type) : b.CreateZExtOrTrunc(p.v, type);
      return {wrap(to, v)};
    }
    Value* x = int_to_float(from, p.v, to);
    return result(to, x);
  }
  Value* x = number(from, p);
  if (to == DType::kBool) return {b.CreateFCmpUNE(x, float_const(x, 0.0))};
  if (is_integer(to)) return {wrap(to, float_to_int(x, to))};
  if (to == DType::kF64) return {b.CreateFPExt(x, f64_like(x))};
  if (from == DType::kF64)
    return to == DType::kF32 ? Piece{b.CreateFPTrunc(x, f32_like(x))} : round(to, round_to_odd(x));
  return result(to, x);
}

Piece PieceOps::bitcast(DType from, DType to, Piece p) {
  if (is_complex(from)) return p;
  Value* v = is_narrow_float(from) ? bits(from, p) : p.v;
  if (is_narrow_float(from) && dtype_bits(from) < 8)
    v = b.CreateAnd(v, int_const(v, (1 << dtype_bits(from)) - 1));
  if (is_sub_byte(from) && !is_sub_byte(to))
    v = b.CreateAnd(v, int_const(v, (1 << dtype_bits(from)) - 1));
  v = b.CreateBitCast(v, like(v, element_type(to)));
  return {wrap(to, v)};
}

}  // namespace xylem::jit
