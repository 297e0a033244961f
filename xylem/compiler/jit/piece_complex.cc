#include "xylem/compiler/jit/piece_complex.h"

#include <cmath>

#include "llvm/IR/Intrinsics.h"

namespace xylem::jit {
namespace {

bool is_f32(const Value* v) { return v->getType()->getScalarType()->isFloatTy(); }

Value* widen(PieceOps& o, Value* v) { return is_f32(v) ? o.b.CreateFPExt(v, o.f64_like(v)) : v; }
Value* narrow(PieceOps& o, Value* v, const Value* like) {
  return is_f32(like) ? o.b.CreateFPTrunc(v, like->getType()) : v;
}

Value* is_inf(PieceOps& o, Value* x) {
  return o.b.CreateFCmpOEQ(o.fabs(x), llvm::ConstantFP::getInfinity(x->getType()));
}

Value* copysign(PieceOps& o, Value* magnitude, Value* sign) {
  return o.b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

// A power of two of about 1 / (4 max(|a|, |c|)): squares neither overflow nor vanish.
Value* scale_for(PieceOps& o, Value* a, Value* c) {
  Value *x = o.fabs(a), *y = o.fabs(c);
  Value* m = o.select(o.b.CreateFCmpOGT(x, y), x, y);
  Value* u = o.b.CreateBitCast(m, o.int_like(m, 64));
  Value* field = o.b.CreateLShr(u, o.int_const(u, 52));
  // Sums of two products stay in range; the scale itself is a normal number.
  field = o.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, field, o.int_const(u, 2042));
  field = o.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, field, o.int_const(u, 2));
  Value* e = o.b.CreateShl(o.b.CreateSub(o.int_const(u, 2044), field), o.int_const(u, 52));
  return o.b.CreateBitCast(e, m->getType());
}

// sqrt(a² + c²) of f64; 1 / scale is exact.
Value* hypot(PieceOps& o, Value* a, Value* c, bool from_f32) {
  Value* scale = from_f32 ? nullptr : scale_for(o, a, c);
  Value* x = scale ? o.b.CreateFMul(a, scale) : a;
  Value* y = scale ? o.b.CreateFMul(c, scale) : c;
  Value* args[] = {x, x, o.b.CreateFMul(y, y)};
  Value* sum = o.intrinsic(llvm::Intrinsic::fma, args);
  Value* r = o.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, sum);
  if (scale) r = o.b.CreateFDiv(r, scale);
  Value* infinite = o.b.CreateOr(is_inf(o, a), is_inf(o, c));
  return o.select(infinite, llvm::ConstantFP::getInfinity(r->getType()), r);
}

}  // namespace

Piece complex_multiply(PieceOps& o, const Piece& x, const Piece& y) {
  Value* re = o.b.CreateFSub(o.b.CreateFMul(x.v, y.v), o.b.CreateFMul(x.im, y.im));
  Value* im = o.b.CreateFAdd(o.b.CreateFMul(x.v, y.im), o.b.CreateFMul(x.im, y.v));
  return {re, im};
}

Piece complex_divide(PieceOps& o, const Piece& p, const Piece& q) {
  auto& b = o.b;
  Value *a0 = widen(o, p.v), *b0 = widen(o, p.im), *c0 = widen(o, q.v), *d0 = widen(o, q.im);
  Value *c = c0, *d = d0;
  Value* scale = nullptr;
  if (!is_f32(p.v)) {
    scale = scale_for(o, c, d);
    c = b.CreateFMul(c, scale);
    d = b.CreateFMul(d, scale);
  }
  Value* norm = b.CreateFAdd(b.CreateFMul(c, c), b.CreateFMul(d, d));
  Value* re = b.CreateFAdd(b.CreateFMul(a0, c), b.CreateFMul(b0, d));
  Value* im = b.CreateFSub(b.CreateFMul(b0, c), b.CreateFMul(a0, d));
  if (scale) {  // before the division, which may overflow otherwise
    re = b.CreateFMul(re, scale);
    im = b.CreateFMul(im, scale);
  }
  re = b.CreateFDiv(re, norm);
  im = b.CreateFDiv(im, norm);
  // C's rules for infinities and zeros, where the formula gives NaN for both parts.
  Value* both = b.CreateAnd(b.CreateFCmpUNO(re, re), b.CreateFCmpUNO(im, im));
  Value* zero = o.float_const(re, 0.0);
  Value* one = o.float_const(re, 1.0);
  Value* inf = llvm::ConstantFP::getInfinity(re->getType());
  Value* by_zero = b.CreateAnd(b.CreateFCmpOEQ(norm, zero),
                               b.CreateOr(b.CreateFCmpORD(a0, a0), b.CreateFCmpORD(b0, b0)));
  const auto finite = [&](Value* x) { return b.CreateFCmpOLT(o.fabs(x), inf); };
  Value* top_infinite = b.CreateOr(is_inf(o, a0), is_inf(o, b0));
  Value* bottom_infinite = b.CreateOr(is_inf(o, c0), is_inf(o, d0));
  Value* from_infinity = b.CreateAnd(top_infinite, b.CreateAnd(finite(c0), finite(d0)));
  Value* to_zero = b.CreateAnd(bottom_infinite, b.CreateAnd(finite(a0), finite(b0)));
  const auto unit = [&](Value* x) { return copysign(o, o.select(is_inf(o, x), one, zero), x); };
  const auto fix = [&](Value* r, Value* zero_case, Value* inf_case, Value* small_case) {
    Value* v = o.select(to_zero, small_case, r);
    v = o.select(from_infinity, inf_case, v);
    v = o.select(by_zero, zero_case, v);
    return o.select(both, v, r);
  };
  Value* signed_inf = copysign(o, inf, c0);
  Value *ua = unit(a0), *ub = unit(b0), *uc = unit(c0), *ud = unit(d0);
  const auto sum = [&](Value* s, Value* t, Value* u, Value* v) {
    return b.CreateFAdd(b.CreateFMul(s, t), b.CreateFMul(u, v));
  };
  const auto difference = [&](Value* s, Value* t, Value* u, Value* v) {
    return b.CreateFSub(b.CreateFMul(s, t), b.CreateFMul(u, v));
  };
  Value* out_re = fix(re, b.CreateFMul(signed_inf, a0), b.CreateFMul(inf, sum(ua, c0, ub, d0)),
                      b.CreateFMul(zero, sum(a0, uc, b0, ud)));
  Value* out_im =
      fix(im, b.CreateFMul(signed_inf, b0), b.CreateFMul(inf, difference(ub, c0, ua, d0)),
          b.CreateFMul(zero, difference(b0, uc, a0, ud)));
  return {narrow(o, out_re, p.v), narrow(o, out_im, p.v)};
}

Piece complex_extremum(PieceOps& o, const Piece& x, const Piece& y, bool maximum) {
  auto& b = o.b;
  const auto nan = [&](const Piece& p) { return b.CreateFCmpUNO(p.v, p.im); };
  const Piece& low = maximum ? x : y;
  const Piece& high = maximum ? y : x;
  Value* less = o.select(b.CreateFCmpOEQ(low.v, high.v), b.CreateFCmpOLT(low.im, high.im),
                         b.CreateFCmpOLT(low.v, high.v));
  Value* second = b.CreateAnd(b.CreateNot(nan(x)), b.CreateOr(nan(y), less));
  return {o.select(second, y.v, x.v), o.select(second, y.im, x.im)};
}

Value* complex_abs(PieceOps& o, const Piece& x) {
  Value* r = hypot(o, widen(o, x.v), widen(o, x.im), is_f32(x.v));
  return narrow(o, r, x.v);
}

Piece complex_sign(PieceOps& o, const Piece& x) {
  Value *re = widen(o, x.v), *im = widen(o, x.im);
  Value* r = hypot(o, re, im, is_f32(x.v));
  Value* zero = o.b.CreateAnd(o.b.CreateFCmpOEQ(re, o.float_const(re, 0.0)),
                              o.b.CreateFCmpOEQ(im, o.float_const(im, 0.0)));
  Value* bad = o.b.CreateFCmpUNO(re, im);
  const auto part = [&](Value* v, Value* own) {
    Value* q = narrow(o, o.b.CreateFDiv(v, r), own);
    q = o.select(bad, llvm::ConstantFP::getNaN(q->getType()), q);
    return o.select(zero, own, q);
  };
  return {part(re, x.v), part(im, x.im)};
}

}  // namespace xylem::jit
