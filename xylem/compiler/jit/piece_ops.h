#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "llvm/IR/IRBuilder.h"
#include "xylem/base/dtype.h"
#include "xylem/compiler/jit/target.h"
#include "xylem/ir/op_def.h"

// Arithmetic on the pieces of tiles: LLVM vectors of a power of two of lanes, or scalars (one
// lane). Knows dtypes and rounding, nothing of graphs, memory and loops.

namespace xylem::jit {

using llvm::Value;

// Lanes of one tile. The register form of a dtype:
//
//   i1                       v: i1
//   i2 … u4                  v: i8, sign- or zero-extended
//   i8 … u64, f32, f64       v: the LLVM type
//   bf16, f16, f8, f6, f4    v: the bits as i16 or i8; f: the value as f32. One of both is there,
//                            the other is made when it is asked for. `f` is always a value of the
//                            type, so rounding has happened.
//   c64, c128                v: real parts, im: imaginary parts
struct Piece {
  Value* v = nullptr;
  Value* im = nullptr;
  Value* f = nullptr;
  friend bool operator==(const Piece&, const Piece&) = default;
};

inline bool is_narrow_float(DType t) { return is_float(t) && dtype_bits(t) < 32; }
inline bool is_sub_byte(DType t) { return is_integer(t) && dtype_bits(t) < 8; }

class PieceOps;

// One pointwise op on one piece of each operand.
struct PieceCall {
  const ir::Op& op;
  std::span<Piece> in;
  DType from;  // of operand 0 (of operand 1 for select and clamp)
  DType to;    // of the result
  unsigned lanes;
};
using PieceFn = Piece (*)(PieceOps&, PieceCall&);

// How a pointwise op is emitted.
struct PieceRule {
  PieceFn fn = nullptr;
  bool makes_blocks = false;  // emits loops: cannot be moved before a terminator
  bool cheap = false;
};
// Null rule if the op has none.
PieceRule piece_rule(const ir::OpDef& def);

[[noreturn]] void unsupported(const ir::Op& op, DType dtype, const std::string& advice);

class PieceOps {
 public:
  PieceOps(llvm::IRBuilder<>& builder, const Target& target) : b(builder), target(target) {}

  llvm::IRBuilder<>& b;
  const Target& target;

  // Types.
  llvm::Type* element_type(DType t);  // of `v`, one lane
  llvm::Type* with_lanes(llvm::Type* element, unsigned lanes);
  llvm::Type* type(DType t, unsigned lanes) { return with_lanes(element_type(t), lanes); }
  static unsigned lanes_of(const Value* v);
  // The type of v's shape with another element.
  llvm::Type* like(const Value* v, llvm::Type* element) { return with_lanes(element, lanes_of(v)); }
  llvm::Type* int_like(const Value* v, unsigned bits) { return like(v, b.getIntNTy(bits)); }
  llvm::Type* f32_like(const Value* v) { return like(v, b.getFloatTy()); }
  llvm::Type* f64_like(const Value* v) { return like(v, b.getDoubleTy()); }

  Value* splat(Value* scalar, unsigned lanes);
  Value* int_const(const Value* shape, std::int64_t c);  // of shape's integer type
  Value* float_const(const Value* shape, double c);      // of shape's float type
  Value* intrinsic(llvm::Intrinsic::ID id, std::span<Value* const> args);
  Value* fabs(Value* x);
  Value* select(Value* c, Value* x, Value* y) { return b.CreateSelect(c, x, y); }

  // Narrow floats.
  Value* bits(DType t, Piece& p);  // fills p.v
  Value* f32(DType t, Piece& p);   // fills p.f
  // x (f32) rounded to a narrow type.
  Piece round(DType t, Value* x);
  // The arithmetic value of a float piece: f32 or f64.
  Value* number(DType t, Piece& p) { return is_narrow_float(t) ? f32(t, p) : p.v; }
  // A float result: rounds where the type is narrow.
  Piece result(DType t, Value* x) {
    if (is_narrow_float(t)) return round(t, x);
    return {x};
  }
  // f64 to f32 so that a second rounding to a narrower type is right: to odd.
  Value* round_to_odd(Value* f64);

  // Integers: brings a result back into the range of i2 … u4.
  Value* wrap(DType t, Value* v);
  Value* divide_int(DType t, Value* a, Value* c);
  Value* remainder_int(DType t, Value* a, Value* c);

  Value* maximum(DType t, Value* a, Value* c);
  Value* minimum(DType t, Value* a, Value* c);
  Piece convert(DType from, DType to, Piece p);
  // Same bits, dtypes of one width.
  Piece bitcast(DType from, DType to, Piece p);

 private:
  Value* decode(DType t, Value* code);
  Value* encode(DType t, Value* x);
  Value* float_to_int(Value* x, DType to);
  Value* truncate_to_i32(Value* x);
  Value* int_to_float(DType from, Value* v, DType to);
  Value* quotient(bool is_signed, Value* a, Value* c);
};

}  // namespace xylem::jit
