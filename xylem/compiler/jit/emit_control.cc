// Loops and branches.

#include <utility>

#include "xylem/compiler/jit/emitter.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/text.h"

namespace xylem::jit {

namespace ops = ir::ops;

std::vector<Value*> Emitter::flatten(Tile& t) {
  if (t.is_linear && t.pieces.empty()) scalar(t);
  std::vector<Value*> out;
  for (Piece& p : t.pieces) {
    out.push_back(is_narrow_float(t.dtype) ? ops_.bits(t.dtype, p) : p.v);
    if (is_complex(t.dtype)) out.push_back(p.im);
  }
  return out;
}

Tile Emitter::unflatten(DType dtype, const Dims& dims, std::span<Value* const> values, int at) {
  if (dtype == DType::kI64 && dims.empty()) return scalar_tile(values[0], at);
  Tile t = empty_like(dtype, dims);
  t.level = at;
  std::size_t k = 0;
  for (Piece& p : t.pieces) {
    p.v = values[k++];
    if (is_complex(dtype)) p.im = values[k++];
  }
  return t;
}

Emitter::LoopCarry Emitter::make_carry(Tile init, llvm::BasicBlock* from, unsigned predecessors) {
  LoopCarry c;
  std::vector<Value*> values = flatten(init);
  for (Value*& v : values) {
    auto* phi = b.CreatePHI(v->getType(), predecessors);
    phi->addIncoming(v, from);
    c.phis.push_back(phi);
    v = phi;
  }
  c.tile = unflatten(init.dtype, init.dims, values, level());
  return c;
}

void Emitter::add_incoming(LoopCarry& carry, Tile next, llvm::BasicBlock* from) {
  const std::vector<Value*> values = flatten(next);
  for (std::size_t i = 0; i < values.size(); ++i) carry.phis[i]->addIncoming(values[i], from);
}

std::vector<Tile> Emitter::emit_loop(Tile lo, Tile hi, std::int64_t step, std::vector<Tile> carries,
                                     const LoopBody& body) {
  Value* first = scalar(lo);
  Value* limit = scalar(hi);
  for (Tile& t : carries) flatten(t);  // makes what is missing, before the block ends
  Value* enter = b.CreateICmpSLT(first, limit);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(enter);
  if (known && known->isZero()) return carries;

  Loop loop;
  loop.preheader = b.GetInsertBlock();
  loop.body = llvm::BasicBlock::Create(context_, "loop", fn_);
  auto* after = llvm::BasicBlock::Create(context_, "loop.end", fn_);
  loop.lo = first;
  loop.step = step;
  if (known)
    b.CreateBr(loop.body);
  else
    b.CreateCondBr(enter, loop.body, after);

  scopes_.push_back({loop.preheader, false, &loop, {}, {}});
  b.SetInsertPoint(loop.body);
  loop.iv = b.CreatePHI(b.getInt64Ty(), 2);
  loop.iv->addIncoming(first, loop.preheader);
  loop_of_[loop.iv] = &loop;
  std::vector<LoopCarry> phis;
  std::vector<Tile> inner;
  for (const Tile& t : carries) {
    phis.push_back(make_carry(t, loop.preheader, 2));
    inner.push_back(phis.back().tile);
  }
  std::vector<Tile> next = body(scalar_tile(loop.iv, level()), std::move(inner));
  for (Tile& t : next) flatten(t);
  Value* next_iv =
      b.CreateAdd(loop.iv, b.getInt64(static_cast<std::uint64_t>(step)), "", false, true);
  std::vector<std::pair<llvm::PHINode*, Value*>> bumped;
  for (const auto& [coef, phi] : loop.scaled)
    bumped.emplace_back(phi, b.CreateAdd(phi, b.getInt64(static_cast<std::uint64_t>(coef) *
                                                         static_cast<std::uint64_t>(step))));
  llvm::BasicBlock* latch = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpSLT(next_iv, limit), loop.body, after);
  loop.iv->addIncoming(next_iv, latch);
  for (const auto& [phi, v] : bumped) phi->addIncoming(v, latch);
  for (std::size_t i = 0; i < phis.size(); ++i) add_incoming(phis[i], next[i], latch);
  scopes_.pop_back();
  loop_of_.erase(loop.iv);
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(loop.preheader->getTerminator());
    for (const auto& [coef, phi] : loop.scaled)
      phi->addIncoming(b.CreateMul(first, b.getInt64(static_cast<std::uint64_t>(coef))),
                       loop.preheader);
  }

  b.SetInsertPoint(after);
  std::vector<Tile> results;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    LoopCarry out = make_carry(std::move(next[i]), latch, 2);
    if (!known) add_incoming(out, carries[i], loop.preheader);
    results.push_back(std::move(out.tile));
  }
  return results;
}

void Emitter::emit_for(const ir::Op& op, Env& env) {
  const auto n = static_cast<std::size_t>(op.attrs.i64("num_carries"));
  const auto operand = [&](std::size_t i) -> EnvValue& {
    return env[static_cast<std::size_t>(op.operands[i])];
  };
  std::vector<Tile> carries;
  for (std::size_t i = 0; i < n; ++i) carries.push_back(operand(2 + i).tile);
  std::vector<Tile> results =
      emit_loop(operand(0).tile, operand(1).tile, op.attrs.i64("step"), std::move(carries),
                [&](Tile iv, std::vector<Tile> inner) {
                  std::vector<EnvValue> args;
                  args.push_back({std::move(iv), nullptr});
                  for (Tile& t : inner) args.push_back({std::move(t), nullptr});
                  for (std::size_t i = 2 + n; i < op.operands.size(); ++i)
                    args.push_back(operand(i));
                  std::vector<Tile> next;
                  for (EnvValue& v : emit_graph(*op.regions[0], std::move(args)))
                    next.push_back(std::move(v.tile));
                  return next;
                });
  for (std::size_t i = 0; i < n; ++i)
    env[static_cast<std::size_t>(op.results[i])].tile = std::move(results[i]);
}

void Emitter::emit_while(const ir::Op& op, Env& env) {
  const std::size_t n = op.results.size();
  std::vector<Tile> init;
  for (std::size_t i = 0; i < n; ++i) {
    init.push_back(env[static_cast<std::size_t>(op.operands[i])].tile);
    flatten(init.back());
  }
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* header = llvm::BasicBlock::Create(context_, "while", fn_);
  auto* body = llvm::BasicBlock::Create(context_, "while.body", fn_);
  auto* after = llvm::BasicBlock::Create(context_, "while.end", fn_);
  b.CreateBr(header);
  scopes_.push_back({before, false, nullptr, {}, {}});
  b.SetInsertPoint(header);
  std::vector<LoopCarry> carries;
  for (Tile& t : init) carries.push_back(make_carry(std::move(t), before, 2));
  const auto args = [&] {
    std::vector<EnvValue> a;
    for (const LoopCarry& c : carries) a.push_back({c.tile, nullptr});
    for (std::size_t i = n; i < op.operands.size(); ++i)
      a.push_back(env[static_cast<std::size_t>(op.operands[i])]);
    return a;
  };
  Tile condition = std::move(emit_graph(*op.regions[0], args())[0].tile);
  b.CreateCondBr(condition.pieces[0].v, body, after);
  b.SetInsertPoint(body);
  std::vector<EnvValue> next = emit_graph(*op.regions[1], args());
  for (EnvValue& v : next) flatten(v.tile);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  b.CreateBr(header);
  for (std::size_t i = 0; i < n; ++i) add_incoming(carries[i], std::move(next[i].tile), latch);
  scopes_.pop_back();
  b.SetInsertPoint(after);
  for (std::size_t i = 0; i < n; ++i) {
    // The carries are known behind the loop too: as values of this scope.
    Tile t = std::move(carries[i].tile);
    const std::vector<Value*> values = flatten(t);
    env[static_cast<std::size_t>(op.results[i])].tile = unflatten(t.dtype, t.dims, values, level());
  }
}

bool Emitter::call_branch(const ir::Graph& branch, std::span<EnvValue> args,
                          std::vector<Tile>* results) {
  constexpr std::size_t kLong = 40;    // ops
  constexpr std::size_t kValues = 24;  // arguments
  if (branch.ops.size() < kLong || branch.results.empty()) return false;
  std::vector<Value*> values;
  for (EnvValue& a : args) {
    if (a.ref) return false;
    for (Value* v : flatten(a.tile)) values.push_back(v);
  }
  if (values.empty() || values.size() > kValues) return false;
  llvm::Function* fn = branch_function(branch, args, values);
  Value* out = b.CreateCall(fn, values);
  const bool packed = out->getType()->isStructTy();
  unsigned k = 0;
  for (ir::ValueId r : branch.results) {
    const ir::Type& type = branch.type(r);
    Tile t = empty_like(type.dtype(), type.dims());
    std::vector<Value*> parts(t.pieces.size() * (is_complex(type.dtype()) ? 2 : 1));
    for (Value*& part : parts) part = packed ? b.CreateExtractValue(out, k++) : out;
    results->push_back(unflatten(type.dtype(), type.dims(), parts, level()));
  }
  return true;
}

llvm::Function* Emitter::branch_function(const ir::Graph& branch, std::span<EnvValue> args,
                                         std::span<Value* const> values) {
  llvm::Function*& made = branches_[ir::encode(branch)];
  if (made) return made;
  std::vector<llvm::Type*> types;
  for (Value* v : values) types.push_back(v->getType());
  // The body comes first: it says what the results are.
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetCurrentDebugLocation(llvm::DebugLoc());
  llvm::Function* caller = fn_;
  llvm::DIFile* lines = std::exchange(debug_.file, nullptr);
  std::vector<Scope> scopes = std::exchange(scopes_, {});
  auto* untyped = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                         llvm::Function::InternalLinkage, "branch", module_);
  fn_ = untyped;
  scopes_.push_back({});
  b.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", fn_));
  std::vector<EnvValue> inner;
  std::size_t k = 0;
  for (EnvValue& a : args) {
    std::vector<Value*> parts(flatten(a.tile).size());
    for (Value*& part : parts) part = fn_->getArg(static_cast<unsigned>(k++));
    inner.push_back({unflatten(a.tile.dtype, a.tile.dims, parts, 0), nullptr});
  }
  std::vector<Value*> out;
  for (EnvValue& v : emit_graph(branch, std::move(inner)))
    for (Value* part : flatten(v.tile)) out.push_back(part);
  std::vector<llvm::Type*> result_types;
  for (Value* v : out) result_types.push_back(v->getType());
  llvm::Type* result =
      out.size() == 1 ? result_types[0] : llvm::StructType::get(context_, result_types);
  Value* returned = out[0];
  if (out.size() > 1) {
    returned = llvm::PoisonValue::get(result);
    for (std::size_t i = 0; i < out.size(); ++i)
      returned = b.CreateInsertValue(returned, out[i], static_cast<unsigned>(i));
  }
  b.CreateRet(returned);
  made = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                llvm::Function::InternalLinkage, "branch", module_);
  made->splice(made->begin(), untyped);
  for (unsigned i = 0; i < types.size(); ++i)
    untyped->getArg(i)->replaceAllUsesWith(made->getArg(i));
  untyped->eraseFromParent();
  set_attributes(made);
  made->addFnAttr(llvm::Attribute::NoInline);
  made->addFnAttr(llvm::Attribute::Cold);
  sink_splats(*made);
  fn_ = caller;
  debug_.file = lines;
  scopes_ = std::move(scopes);
  return made;
}

// if and case: one block per branch, joined by phis.
void Emitter::emit_branches(const ir::Op& op, Env& env) {
  Tile& selector = env[static_cast<std::size_t>(op.operands[0])].tile;
  Value* which = selector.pieces[0].v;
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* after = llvm::BasicBlock::Create(context_, "join", fn_);
  std::vector<llvm::BasicBlock*> blocks;
  for (std::size_t i = 0; i < op.regions.size(); ++i)
    blocks.push_back(llvm::BasicBlock::Create(context_, "branch", fn_));
  if (op.def == &ops::kIf) {
    b.CreateCondBr(which, blocks[0], blocks[1]);
  } else {
    auto* s = b.CreateSwitch(which, blocks.back(), static_cast<unsigned>(blocks.size()));
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i)
      s->addCase(llvm::cast<llvm::ConstantInt>(
                     llvm::ConstantInt::get(which->getType(), static_cast<std::uint64_t>(i))),
                 blocks[i]);
  }
  std::vector<std::vector<Tile>> results;
  std::vector<llvm::BasicBlock*> ends;
  for (std::size_t i = 0; i < op.regions.size(); ++i) {
    scopes_.push_back({before, true, nullptr, {}, {}});
    b.SetInsertPoint(blocks[i]);
    std::vector<EnvValue> args;
    for (std::size_t k = 1; k < op.operands.size(); ++k)
      args.push_back(env[static_cast<std::size_t>(op.operands[k])]);
    std::vector<Tile> out;
    if (!call_branch(*op.regions[i], args, &out))
      for (EnvValue& v : emit_graph(*op.regions[i], std::move(args))) {
        flatten(v.tile);
        out.push_back(std::move(v.tile));
      }
    results.push_back(std::move(out));
    ends.push_back(b.GetInsertBlock());
    b.CreateBr(after);
    scopes_.pop_back();
  }
  b.SetInsertPoint(after);
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    LoopCarry joined =
        make_carry(std::move(results[0][k]), ends[0], static_cast<unsigned>(ends.size()));
    for (std::size_t i = 1; i < ends.size(); ++i)
      add_incoming(joined, std::move(results[i][k]), ends[i]);
    env[static_cast<std::size_t>(op.results[k])].tile = std::move(joined.tile);
  }
}

}  // namespace xylem::jit
