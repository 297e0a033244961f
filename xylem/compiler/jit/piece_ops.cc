#include "xylem/compiler/jit/piece_ops.h"

#include <fmt/format.h>

#include "llvm/IR/Intrinsics.h"
#include "xylem/base/error.h"

namespace xylem::jit {

void unsupported(const ir::Op& op, DType dtype, const std::string& advice) {
  throw UserError(ErrorParts{fmt::format("code generator: {}", op.def->name),
                             "an op and element type that it can emit",
                             fmt::format("{} on {}", op.def->name, dtype_name(dtype)), advice},
                  op.loc.source);
}

llvm::Type* PieceOps::element_type(DType t) {
  switch (t) {
    case DType::kBool: return b.getInt1Ty();
    case DType::kF32:
    case DType::kC64: return b.getFloatTy();
    case DType::kF64:
    case DType::kC128: return b.getDoubleTy();
    default: return b.getIntNTy(static_cast<unsigned>(dtype_bytes(t)) * 8);
  }
}

llvm::Type* PieceOps::with_lanes(llvm::Type* element, unsigned lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

unsigned PieceOps::lanes_of(const Value* v) {
  if (const auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType()))
    return t->getNumElements();
  return 1;
}

Value* PieceOps::splat(Value* scalar, unsigned lanes) {
  if (lanes == 1) return scalar;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(scalar))
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes), c);
  return b.CreateVectorSplat(lanes, scalar);
}

Value* PieceOps::int_const(const Value* shape, std::int64_t c) {
  return llvm::ConstantInt::getSigned(shape->getType(), c);
}

Value* PieceOps::float_const(const Value* shape, double c) {
  return llvm::ConstantFP::get(shape->getType(), c);
}

Value* PieceOps::intrinsic(llvm::Intrinsic::ID id, std::span<Value* const> args) {
  llvm::SmallVector<Value*, 4> list(args.begin(), args.end());
  return b.CreateIntrinsic(id, {args[0]->getType()}, list);
}

Value* PieceOps::fabs(Value* x) {
  return intrinsic(llvm::Intrinsic::fabs, std::initializer_list<Value*>{x});
}

// Integers.

Value* PieceOps::wrap(DType t, Value* v) {
  if (!is_sub_byte(t)) return v;
  const int width = dtype_bits(t);
  if (!is_signed_int(t)) return b.CreateAnd(v, int_const(v, (1 << width) - 1));
  Value* up = b.CreateShl(v, int_const(v, 8 - width));
  return b.CreateAShr(up, int_const(v, 8 - width));
}

// a / c rounded to zero, c neither 0 nor -1 against the least number. Vectors have no integer
// division: f32 holds quotients of 16 bits and f64 those of 32 bits exactly enough.
Value* PieceOps::quotient(bool is_signed, Value* a, Value* c) {
  const unsigned width = a->getType()->getScalarSizeInBits();
  if (lanes_of(a) == 1 || width > 32) return is_signed ? b.CreateSDiv(a, c) : b.CreateUDiv(a, c);
  if (llvm::isa<llvm::Constant>(c)) return is_signed ? b.CreateSDiv(a, c) : b.CreateUDiv(a, c);
  llvm::Type* real = width <= 16 ? f32_like(a) : f64_like(a);
  Value* x = is_signed ? b.CreateSIToFP(a, real) : b.CreateUIToFP(a, real);
  Value* y = is_signed ? b.CreateSIToFP(c, real) : b.CreateUIToFP(c, real);
  Value* q = b.CreateFDiv(x, y);
  if (width == 32)
    return is_signed ? b.CreateFPToSI(q, a->getType()) : b.CreateFPToUI(q, a->getType());
  return b.CreateTrunc(b.CreateFPToSI(q, int_like(a, 32)), a->getType());
}

namespace {

// The divisor that can be divided by: 1 where c is 0 or the quotient overflows.
Value* safe_divisor(PieceOps& o, bool is_signed, Value* a, Value* c) {
  Value* bad = o.b.CreateICmpEQ(c, o.int_const(c, 0));
  if (is_signed) {
    const unsigned width = a->getType()->getScalarSizeInBits();
    Value* least = llvm::ConstantInt::get(a->getType(), llvm::APInt::getSignedMinValue(width));
    Value* overflow =
        o.b.CreateAnd(o.b.CreateICmpEQ(a, least), o.b.CreateICmpEQ(c, o.int_const(c, -1)));
    bad = o.b.CreateOr(bad, overflow);
  }
  return o.select(bad, o.int_const(c, 1), c);
}

}  // namespace

Value* PieceOps::divide_int(DType t, Value* a, Value* c) {
  const bool is_signed = is_signed_int(t);
  Value* q = quotient(is_signed, a, safe_divisor(*this, is_signed, a, c));
  // i4: -8 / -1 = 8 fits i8 and wraps.
  Value* r = select(b.CreateICmpEQ(c, int_const(c, 0)), int_const(c, -1), wrap(t, q));
  return is_signed ? r : wrap(t, r);
}

Value* PieceOps::remainder_int(DType t, Value* a, Value* c) {
  const bool is_signed = is_signed_int(t);
  Value* safe = safe_divisor(*this, is_signed, a, c);
  Value* q = quotient(is_signed, a, safe);
  Value* r = b.CreateSub(a, b.CreateMul(q, safe));
  return select(b.CreateICmpEQ(c, int_const(c, 0)), a, wrap(t, r));
}

Value* PieceOps::maximum(DType t, Value* a, Value* c) {
  using namespace llvm;
  if (t == DType::kBool) return b.CreateOr(a, c);
  if (is_float(t)) return b.CreateBinaryIntrinsic(Intrinsic::maximum, a, c);
  return b.CreateBinaryIntrinsic(is_signed_int(t) ? Intrinsic::smax : Intrinsic::umax, a, c);
}

Value* PieceOps::minimum(DType t, Value* a, Value* c) {
  using namespace llvm;
  if (t == DType::kBool) return b.CreateAnd(a, c);
  if (is_float(t)) return b.CreateBinaryIntrinsic(Intrinsic::minimum, a, c);
  return b.CreateBinaryIntrinsic(is_signed_int(t) ? Intrinsic::smin : Intrinsic::umin, a, c);
}

}  // namespace xylem::jit
