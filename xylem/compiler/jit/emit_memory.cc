// Loads, stores, gathers and scatters.

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "llvm/IR/Intrinsics.h"
#include "xylem/compiler/jit/emitter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::jit {

namespace ops = ir::ops;

template <class I>
I* Emitter::tag(I* access, const Ref& ref) {
  const auto i = static_cast<std::size_t>(ref.param);
  if (noalias_tags_[i]->getNumOperands() > 0) {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope_tags_[i]);
    access->setMetadata(llvm::LLVMContext::MD_noalias, noalias_tags_[i]);
  }
  return access;
}

llvm::Type* Emitter::memory_type(DType t) {
  return t == DType::kBool ? b.getInt8Ty() : ops_.element_type(t);
}

Piece Emitter::from_memory(DType t, Value* v) {
  if (t == DType::kBool) return {b.CreateICmpNE(v, ops_.int_const(v, 0))};
  if (is_sub_byte(t)) return {ops_.wrap(t, v)};
  if (dtype_bits(t) < 8) return {b.CreateAnd(v, ops_.int_const(v, (1 << dtype_bits(t)) - 1))};
  return {v};
}

Value* Emitter::to_memory(DType t, Piece& p) {
  if (t == DType::kBool) return b.CreateZExt(p.v, ops_.int_like(p.v, 8));
  Value* v = is_narrow_float(t) ? ops_.bits(t, p) : p.v;
  if (dtype_bits(t) < 8) v = b.CreateAnd(v, ops_.int_const(v, (1 << dtype_bits(t)) - 1));
  return v;
}

namespace {

llvm::SmallVector<int, 32> every_other(unsigned lanes, int first) {
  llvm::SmallVector<int, 32> mask;
  for (unsigned i = 0; i < lanes; ++i) mask.push_back(static_cast<int>(2 * i) + first);
  return mask;
}

}  // namespace

Piece Emitter::load_contiguous(const Ref& ref, Value* p, unsigned lanes, Value* mask) {
  llvm::Type* element = memory_type(ref.dtype);
  const llvm::Align align(static_cast<std::uint64_t>(
      std::max(1, dtype_bytes(ref.dtype) / (is_complex(ref.dtype) ? 2 : 1))));
  const unsigned words = is_complex(ref.dtype) ? 2 * lanes : lanes;
  Value* v = nullptr;
  if (!mask) {
    v = tag(b.CreateAlignedLoad(ops_.with_lanes(element, words), p, align), ref);
  } else {
    auto* type = llvm::FixedVectorType::get(element, words);
    if (lanes == 1)
      mask = b.CreateVectorSplat(words, mask);
    else if (words != lanes) {
      llvm::SmallVector<int, 32> twice;
      for (unsigned i = 0; i < words; ++i) twice.push_back(static_cast<int>(i / 2));
      mask = b.CreateShuffleVector(mask, twice);
    }
    v = tag(b.CreateMaskedLoad(type, p, align, mask, llvm::Constant::getNullValue(type)), ref);
    if (words == 1) v = b.CreateExtractElement(v, b.getInt64(0));
  }
  if (is_complex(ref.dtype)) {
    // The freeze keeps instruction selection from turning shuffles of a load into loads of its
    // halves, whose chains LLVM 19 can chase without end.
    v = b.CreateFreeze(v);
    if (lanes == 1)
      return {b.CreateExtractElement(v, b.getInt64(0)), b.CreateExtractElement(v, b.getInt64(1))};
    return {b.CreateShuffleVector(v, every_other(lanes, 0)),
            b.CreateShuffleVector(v, every_other(lanes, 1))};
  }
  return from_memory(ref.dtype, v);
}

void Emitter::store_contiguous(const Ref& ref, Value* p, Piece& value, unsigned lanes, Value* mask,
                               std::uint64_t stream) {
  const llvm::Align align(static_cast<std::uint64_t>(
      std::max(1, dtype_bytes(ref.dtype) / (is_complex(ref.dtype) ? 2 : 1))));
  Value* v = nullptr;
  unsigned words = lanes;
  if (is_complex(ref.dtype)) {
    words = 2 * lanes;
    llvm::SmallVector<int, 32> zip;
    for (unsigned i = 0; i < lanes; ++i) {
      zip.push_back(static_cast<int>(i));
      zip.push_back(static_cast<int>(lanes + i));
    }
    Value *re = value.v, *im = value.im;
    if (lanes == 1) {
      auto* one = llvm::FixedVectorType::get(re->getType(), 2);
      v = b.CreateInsertElement(llvm::PoisonValue::get(one), re, b.getInt64(0));
      v = b.CreateInsertElement(v, im, b.getInt64(1));
    } else {
      v = b.CreateShuffleVector(re, im, zip);
    }
  } else {
    v = to_memory(ref.dtype, value);
  }
  if (!mask) {
    auto* store = tag(b.CreateAlignedStore(v, p, align), ref);
    // Only whole aligned registers can bypass the caches.
    const std::uint64_t bytes = module_.getDataLayout().getTypeStoreSize(v->getType());
    const auto vector =
        std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(target_.vector_bytes));
    if (stream >= vector && bytes >= 16 && std::has_single_bit(bytes)) {
      store->setAlignment(llvm::Align(vector));
      store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                         llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b.getInt32(1))));
      streams_ = true;
    }
    return;
  }
  if (lanes == 1)
    mask = b.CreateVectorSplat(words, mask);
  else if (words != lanes) {
    llvm::SmallVector<int, 32> twice;
    for (unsigned i = 0; i < words; ++i) twice.push_back(static_cast<int>(i / 2));
    mask = b.CreateShuffleVector(mask, twice);
  }
  if (words == 1) v = b.CreateVectorSplat(1, v);
  tag(b.CreateMaskedStore(v, p, align, mask), ref);
}

namespace {

// The x of offsets of the form x + constant vector, null for others.
Value* common_offset(Value* offsets, llvm::Constant** rest) {
  auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(offsets);
  if (!sum || sum->getOpcode() != llvm::Instruction::Add) return nullptr;
  for (unsigned i = 0; i < 2; ++i) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(sum->getOperand(i));
    Value* splat = sum->getOperand(1 - i);
    auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(splat);
    if (!constant || !shuffle || !shuffle->isZeroEltSplat()) continue;
    auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(shuffle->getOperand(0));
    if (!insert) continue;
    *rest = constant;
    return insert->getOperand(1);
  }
  return nullptr;
}

}  // namespace

// Elements at base + offsets (numbers of elements, one per lane).
Piece Emitter::gather(const Ref& ref, Value* base, Value* offsets, unsigned lanes, Value* mask) {
  if (is_complex(ref.dtype)) {
    // Two gathers of real numbers.
    Ref part = ref;
    part.dtype = real_dtype(ref.dtype);
    Value* twice = b.CreateShl(offsets, ops_.int_const(offsets, 1));
    Value* next = displaced(base, dtype_bytes(part.dtype));
    return {gather(part, base, twice, lanes, mask).v, gather(part, next, twice, lanes, mask).v};
  }
  llvm::Type* element = memory_type(ref.dtype);
  if (lanes == 1) return load_contiguous(ref, b.CreateGEP(element, base, offsets), 1, mask);
  // A common part moves into the base, so that the processor sees small constant indices.
  llvm::Constant* rest = nullptr;
  if (Value* common = offsets->getType()->getScalarSizeInBits() == 64
                          ? common_offset(offsets, &rest)
                          : nullptr) {
    base = b.CreateGEP(element, base, common);
    offsets = rest;
  }
  Value* wide = b.CreateSExt(offsets, ops_.int_like(offsets, 64));
  Value* pointers = b.CreateGEP(element, base, wide);
  auto* type = llvm::FixedVectorType::get(element, lanes);
  if (!mask)
    mask = llvm::ConstantInt::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), lanes));
  const llvm::Align align(static_cast<std::uint64_t>(dtype_bytes(ref.dtype)));
  Value* v = tag(
      b.CreateMaskedGather(type, pointers, align, mask, llvm::Constant::getNullValue(type)), ref);
  return from_memory(ref.dtype, v);
}

void Emitter::scatter(const Ref& ref, Value* base, Value* offsets, Piece& value, unsigned lanes,
                      Value* mask) {
  llvm::Type* element = memory_type(ref.dtype);
  if (lanes == 1) {
    if (is_complex(ref.dtype))
      element = b.getIntNTy(static_cast<unsigned>(dtype_bytes(ref.dtype)) * 8);
    return store_contiguous(ref, b.CreateGEP(element, base, offsets), value, 1, mask);
  }
  if (is_complex(ref.dtype)) {
    Ref part = ref;
    part.dtype = real_dtype(ref.dtype);
    Value* twice = b.CreateShl(offsets, ops_.int_const(offsets, 1));
    Piece re{value.v}, im{value.im};
    scatter(part, base, twice, re, lanes, mask);
    return scatter(part, displaced(base, dtype_bytes(part.dtype)), twice, im, lanes, mask);
  }
  Value* wide = b.CreateSExt(offsets, ops_.int_like(offsets, 64));
  Value* pointers = b.CreateGEP(element, base, wide);
  if (!mask)
    mask = llvm::ConstantInt::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), lanes));
  const llvm::Align align(static_cast<std::uint64_t>(dtype_bytes(ref.dtype)));
  tag(b.CreateMaskedScatter(to_memory(ref.dtype, value), pointers, align, mask), ref);
}

namespace {

// 0, stride, 2 stride, … as i64.
Value* steps(llvm::IRBuilder<>& b, std::int64_t stride, unsigned lanes) {
  llvm::SmallVector<llvm::Constant*, 32> c;
  for (unsigned i = 0; i < lanes; ++i)
    c.push_back(b.getInt64(static_cast<std::uint64_t>(stride * static_cast<std::int64_t>(i))));
  return llvm::ConstantVector::get(c);
}

}  // namespace

Piece Emitter::load_strided(const Ref& ref, Value* p, std::int64_t stride, unsigned lanes,
                            Value* mask, bool by_lanes) {
  const int bytes = dtype_bytes(ref.dtype);
  const bool no_hardware = bytes != 4 && bytes != 8;
  if (mask || is_complex(ref.dtype) || !(by_lanes || no_hardware || lanes <= 4))
    return gather(ref, p, steps(b, stride, lanes), lanes, mask);
  llvm::SmallVector<Piece, 32> parts;
  for (unsigned i = 0; i < lanes; ++i)
    parts.push_back(load_contiguous(
        ref, displaced(p, stride * static_cast<std::int64_t>(i) * bytes), 1, nullptr));
  return join(ref.dtype, parts);
}

void Emitter::store_strided(const Ref& ref, Value* p, std::int64_t stride, Piece& value,
                            unsigned lanes, Value* mask) {
  const int bytes = dtype_bytes(ref.dtype);
  if (mask || (target_.avx512 && (bytes == 4 || bytes == 8) && lanes > 2 && !is_complex(ref.dtype)))
    return scatter(ref, p, steps(b, stride, lanes), value, lanes, mask);
  for (unsigned i = 0; i < lanes; ++i) {
    Piece one;
    if (value.v || is_narrow_float(ref.dtype)) {
      Value* v = is_narrow_float(ref.dtype) ? ops_.bits(ref.dtype, value) : value.v;
      one.v = lane_of(v, i);
    }
    if (value.im) one.im = lane_of(value.im, i);
    store_contiguous(ref, displaced(p, stride * static_cast<std::int64_t>(i) * bytes), one, 1,
                     nullptr);
  }
}

Emitter::Walk Emitter::walk(const ir::Op& op, Env& env, std::size_t first_index) {
  const Ref& ref = *env[static_cast<std::size_t>(op.operands[0])].ref;
  Linear at = ref.offset;
  for (std::size_t d = 0; d < ref.strides.size(); ++d) {
    Tile& index = env[static_cast<std::size_t>(op.operands[first_index + d])].tile;
    add_scaled(at, linear_of(index), ref.strides[d]);
  }
  Walk w;
  w.pointer = pointer(ref, at, &w.displacement);
  w.alignment = alignment(at, dtype_bytes(ref.dtype));
  for (std::int64_t d : op.attrs.dims_or("dims", {})) w.strides.push_back(ref.strides[d]);
  return w;
}

namespace {

// Element offset of each row of a tile (all dimensions but the last).
std::vector<std::int64_t> row_offsets(const Dims& dims, const Dims& strides) {
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t d = 0; d + 1 < dims.size(); ++d) {
    std::vector<std::int64_t> next;
    for (std::int64_t o : offsets)
      for (std::int64_t i = 0; i < dims[d]; ++i) next.push_back(o + i * strides[d]);
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

// The tile is used only to repeat each of its elements along a row: then scalar loads serve best.
bool Emitter::only_spread(const ir::Graph& g, const ir::Op& op) const {
  const ir::ValueId v = op.results[0];
  bool used = false;
  for (const ir::Op& user : g.ops) {
    if (std::find(user.operands.begin(), user.operands.end(), v) == user.operands.end()) continue;
    if (user.def != &ops::kBroadcastInDim) return false;
    const Dims& to = user.attrs.dims("broadcast_dimensions");
    if (!to.empty() && to.back() == g.type(user.results[0]).rank() - 1 &&
        g.type(v).dims().back() != 1)
      return false;
    used = true;
  }
  return used && std::find(g.results.begin(), g.results.end(), v) == g.results.end();
}

void Emitter::emit_load(const ir::Graph& g, const ir::Op& op, Env& env) {
  const Ref& ref = *env[static_cast<std::size_t>(op.operands[0])].ref;
  const ir::Type& type = g.type(op.results[0]);
  const Walk w = walk(op, env, 1);
  Tile* mask =
      op.attrs.flag("masked") ? &env[static_cast<std::size_t>(op.operands.back())].tile : nullptr;
  Tile out = empty_like(type.dtype(), type.dims());
  out.level = level();
  const RowLayout& row = layout(out.row_length());
  const std::int64_t step = out.dims.empty() ? 1 : w.strides.back();
  const bool by_lanes = step != 1 && !mask && only_spread(g, op);
  const std::int64_t bytes = dtype_bytes(ref.dtype);
  // Columns of a matrix in memory: load its rows and transpose in registers.
  if (step != 1 && out.dims.size() == 2 && w.strides[0] == 1 && !mask && out.dims[0] % 4 == 0 &&
      out.dims[1] % 4 == 0) {
    Tile lines = empty_like(type.dtype(), Dims{out.dims[1], out.dims[0]});
    const RowLayout& line = layout(out.dims[0]);
    std::size_t k = 0;
    for (std::int64_t r = 0; r < out.dims[1]; ++r)
      for (std::size_t i = 0; i < line.lanes.size(); ++i, ++k)
        lines.pieces[k] = load_contiguous(
            ref, displaced(w.pointer, w.displacement + (r * step + line.starts[i]) * bytes),
            line.lanes[i], nullptr);
    out = emit_transpose(lines, Dims{1, 0});
    out.level = level();
    env[static_cast<std::size_t>(op.results[0])].tile = std::move(out);
    return;
  }
  std::size_t k = 0;
  for (std::int64_t offset : row_offsets(out.dims, w.strides)) {
    for (std::size_t i = 0; i < row.lanes.size(); ++i, ++k) {
      Value* p = displaced(w.pointer, w.displacement + (offset + row.starts[i] * step) * bytes);
      Value* m = mask ? mask->pieces[k].v : nullptr;
      out.pieces[k] = step == 1 || row.lanes[i] == 1
                          ? load_contiguous(ref, p, row.lanes[i], m)
                          : load_strided(ref, p, step, row.lanes[i], m, by_lanes);
    }
  }
  if (out.dtype == DType::kI64 && out.is_scalar()) out = scalar_tile(out.pieces[0].v, level());
  env[static_cast<std::size_t>(op.results[0])].tile = std::move(out);
}

void Emitter::emit_store(const ir::Op& op, Env& env) {
  const Ref& ref = *env[static_cast<std::size_t>(op.operands[0])].ref;
  Walk w = walk(op, env, 2);
  Tile value = env[static_cast<std::size_t>(op.operands[1])].tile;
  if (value.is_linear && value.pieces.empty()) scalar(value);
  Tile* mask =
      op.attrs.flag("masked") ? &env[static_cast<std::size_t>(op.operands.back())].tile : nullptr;
  std::int64_t step = value.dims.empty() ? 1 : w.strides.back();
  if (step != 1 && value.dims.size() == 2 && w.strides[0] == 1 && !mask && value.dims[0] % 4 == 0 &&
      value.dims[1] % 4 == 0) {
    value = emit_transpose(value, Dims{1, 0});
    std::swap(w.strides[0], w.strides[1]);
    step = 1;
  }
  const bool streaming = op.attrs.flag("streaming");
  const RowLayout& row = layout(value.row_length());
  const std::int64_t bytes = dtype_bytes(ref.dtype);
  std::size_t k = 0;
  for (std::int64_t offset : row_offsets(value.dims, w.strides)) {
    for (std::size_t i = 0; i < row.lanes.size(); ++i, ++k) {
      const std::int64_t part = offset + row.starts[i] * step;
      Value* p = displaced(w.pointer, w.displacement + part * bytes);
      Value* m = mask ? mask->pieces[k].v : nullptr;
      Piece piece = value.pieces[k];
      if (step == 1 || row.lanes[i] == 1)
        store_contiguous(
            ref, p, piece, row.lanes[i], m,
            streaming ? std::gcd(w.alignment, static_cast<std::uint64_t>(part * bytes)) : 0);
      else
        store_strided(ref, p, step, piece, row.lanes[i], m);
    }
  }
}

void Emitter::emit_gather(const ir::Op& op, Env& env) {
  const Ref& ref = *env[static_cast<std::size_t>(op.operands[0])].ref;
  Tile& offsets = env[static_cast<std::size_t>(op.operands[1])].tile;
  if (offsets.is_linear && offsets.pieces.empty()) scalar(offsets);
  Tile* mask =
      op.attrs.flag("masked") ? &env[static_cast<std::size_t>(op.operands[2])].tile : nullptr;
  Tile out = empty_like(ref.dtype, offsets.dims);
  out.level = level();
  const RowLayout& row = layout(out.row_length());
  for (std::size_t k = 0; k < out.pieces.size(); ++k)
    out.pieces[k] = gather(ref, ref.base, offsets.pieces[k].v, row.lanes[k % row.lanes.size()],
                           mask ? mask->pieces[k].v : nullptr);
  if (out.dtype == DType::kI64 && out.is_scalar()) out = scalar_tile(out.pieces[0].v, level());
  env[static_cast<std::size_t>(op.results[0])].tile = std::move(out);
}

void Emitter::emit_scatter(const ir::Op& op, Env& env) {
  const Ref& ref = *env[static_cast<std::size_t>(op.operands[0])].ref;
  Tile& value = env[static_cast<std::size_t>(op.operands[1])].tile;
  Tile& offsets = env[static_cast<std::size_t>(op.operands[2])].tile;
  for (Tile* t : {&value, &offsets})
    if (t->is_linear && t->pieces.empty()) scalar(*t);
  Tile* mask =
      op.attrs.flag("masked") ? &env[static_cast<std::size_t>(op.operands[3])].tile : nullptr;
  const RowLayout& row = layout(value.row_length());
  for (std::size_t k = 0; k < value.pieces.size(); ++k) {
    Piece piece = value.pieces[k];
    scatter(ref, ref.base, offsets.pieces[k].v, piece, row.lanes[k % row.lanes.size()],
            mask ? mask->pieces[k].v : nullptr);
  }
}

void Emitter::emit_prefetch(const ir::Op& op, Env& env) {
  const Walk w = walk(op, env, 1);
  Value* p = displaced(w.pointer, w.displacement);
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                    {p, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
}

}  // namespace xylem::jit
