// The function around a kernel's body, its grid loops, and the dispatch of ops.

#include "xylem/compiler/jit/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <utility>

#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "xylem/base/error.h"
#include "xylem/ir/ops/all.h"

namespace xylem::jit {

namespace ops = ir::ops;

llvm::Function* emit_kernel(llvm::Module& module, const ir::Kernel& kernel,
                            const std::string& symbol, const std::string& name,
                            const Target& target, const DebugLines& debug) {
  return Emitter(module, kernel, target, debug).run(symbol, name);
}

bool can_emit(const ir::OpDef& def) {
  static const auto* others = new std::unordered_set<const ir::OpDef*>{&ops::kConstant,
                                                                       &ops::kIota,
                                                                       &ops::kOptimizationBarrier,
                                                                       &ops::kBroadcastInDim,
                                                                       &ops::kReshape,
                                                                       &ops::kTranspose,
                                                                       &ops::kSlice,
                                                                       &ops::kReverse,
                                                                       &ops::kConcatenate,
                                                                       &ops::kPad,
                                                                       &ops::kBitcastConvert,
                                                                       &ops::kDotGeneral,
                                                                       &ops::kReduce,
                                                                       &ops::kIf,
                                                                       &ops::kCase,
                                                                       &ops::kWhile,
                                                                       &ops::kKernelLoad,
                                                                       &ops::kKernelStore,
                                                                       &ops::kKernelGather,
                                                                       &ops::kKernelScatter,
                                                                       &ops::kKernelPrefetch,
                                                                       &ops::kKernelFor};
  return piece_rule(def).fn || others->contains(&def);
}

Emitter::Emitter(llvm::Module& module, const ir::Kernel& kernel, const Target& target,
                 const DebugLines& debug)
    : module_(module),
      context_(module.getContext()),
      kernel_(kernel),
      target_(target),
      debug_(debug),
      b(module.getContext()),
      ops_(b, target) {}

const RowLayout& Emitter::layout(std::int64_t n) const {
  auto [it, inserted] = layouts_.try_emplace(n);
  if (inserted) {
    std::int64_t at = 0;
    unsigned lanes = full_lanes_;
    while (at < n) {
      while (static_cast<std::int64_t>(lanes) > n - at) lanes /= 2;
      it->second.lanes.push_back(lanes);
      it->second.starts.push_back(at);
      at += lanes;
    }
  }
  return it->second;
}

void Emitter::count_dtypes(const ir::Graph& g, std::vector<bool>& used) const {
  for (const ir::Value& v : g.values)
    if (v.type.is_tensor() && v.type.rank() > 0)
      used[static_cast<std::size_t>(v.type.dtype())] = true;
  for (const ir::Op& op : g.ops)
    for (const ir::GraphPtr& region : op.regions) count_dtypes(*region, used);
}

// Pieces fill one vector register of the width that most of the work is done in: 4 bytes if there
// are such numbers, the widest one else.
void Emitter::choose_lanes() {
  std::vector<bool> used(kNumDTypes, false);
  count_dtypes(*kernel_.body, used);
  bool has[9] = {};
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    if (!used[static_cast<std::size_t>(i)] || t == DType::kBool || t == DType::kFloat0) continue;
    const DType part = is_complex(t) ? real_dtype(t) : t;
    has[is_float(part) ? std::max(dtype_bytes(part), 4) : dtype_bytes(part)] = true;
  }
  int bytes = 4;
  if (!has[4]) {
    if (has[8])
      bytes = 8;
    else if (has[2])
      bytes = 2;
    else if (has[1])
      bytes = 1;
  }
  full_lanes_ = static_cast<unsigned>(target_.vector_bytes / bytes);
}

// The lines that the native text gives to ops: one each, and around regions "graph(…", "return",
// "}" and, behind all of an op's regions, "]".
void Emitter::number_lines(const ir::Graph& g, unsigned* line) {
  ++*line;
  for (const ir::Op& op : g.ops) {
    line_of_[&op] = (*line)++;
    for (const ir::GraphPtr& region : op.regions) number_lines(*region, line);
    if (!op.regions.empty()) ++*line;
  }
  *line += 2;
}

void Emitter::start_debug_lines(const std::string& name) {
  if (!debug_.file) return;
  llvm::DIBuilder& d = *debug_.builder;
  auto* type = d.createSubroutineType(d.getOrCreateTypeArray({}));
  auto* program =
      d.createFunction(debug_.file, name, fn_->getName(), debug_.file, debug_.first, type,
                       debug_.first, llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition);
  fn_->setSubprogram(program);
  b.SetCurrentDebugLocation(llvm::DILocation::get(context_, debug_.first, 1, program));
  unsigned line = debug_.first;
  number_lines(*kernel_.body, &line);
}

void Emitter::set_attributes(llvm::Function* fn) const {
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->addFnAttr("target-cpu", target_.cpu);
  fn->addFnAttr("target-features", target_.features);
  fn->addFnAttr("prefer-vector-width", "512");
  fn->addFnAttr("frame-pointer", "all");
}

llvm::Function* Emitter::run(const std::string& symbol, const std::string& name) {
  choose_lanes();
  auto* ptr = b.getPtrTy();
  auto* type =
      llvm::FunctionType::get(b.getInt32Ty(), {ptr, ptr, b.getInt64Ty(), b.getInt64Ty()}, false);
  // The name is for people, the alias for the linker: names may repeat.
  std::string readable = "xylem_";
  for (char c : name.substr(0, 100))
    readable += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  fn_ = llvm::Function::Create(type, llvm::Function::InternalLinkage, readable, module_);
  llvm::GlobalAlias::create(type, 0, llvm::GlobalValue::ExternalLinkage, symbol, fn_, &module_);
  set_attributes(fn_);
  for (unsigned i = 0; i < 2; ++i) {
    fn_->addParamAttr(i, llvm::Attribute::NoAlias);
    fn_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  b.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", fn_));
  start_debug_lines(name);
  scopes_.emplace_back();
  load_arguments();
  emit_grid();
  std::size_t instructions = 0;
  for (const llvm::BasicBlock& block : *fn_) instructions += block.size();
  constexpr std::size_t kMostInstructions = 200000;  // half a second of compile time
  if (instructions > kMostInstructions)
    throw UserError(ErrorParts{
        "code generator: kernel " + name, fmt::format("at most {} instructions", kMostInstructions),
        fmt::format("{}", instructions), "Loop over smaller tiles, or split the kernel"});
  if (streams_) b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b.CreateRet(b.getInt32(0));
  sink_splats(*fn_);
  return fn_;
}

void Emitter::load_arguments() {
  llvm::Argument* buffers = fn_->getArg(0);
  llvm::Argument* scalars = fn_->getArg(1);
  const std::size_t count = kernel_.params.size();
  std::size_t ordinary = 0;
  for (const auto& p : kernel_.params) ordinary += p.space == ir::MemorySpace::kScratch ? 0 : 1;

  // Parameters that may be one memory share a scope; all others are apart.
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("xylem");
  std::vector<std::size_t> group(count);
  for (std::size_t i = 0; i < count; ++i) group[i] = i;
  for (std::size_t i = 0; i < count; ++i) {
    const int other = kernel_.params[i].alias;
    if (other < 0) continue;
    const std::size_t from = group[i], to = group[static_cast<std::size_t>(other)];
    for (std::size_t& g : group)
      if (g == from) g = to;
  }
  std::vector<llvm::MDNode*> scopes(count);
  for (std::size_t i = 0; i < count; ++i)
    scopes[i] = group[i] == i || !scopes[group[i]] ? md.createAnonymousAliasScope(domain) : nullptr;
  for (std::size_t i = 0; i < count; ++i)
    if (group[i] != i) scopes[i] = scopes[group[i]];
  for (std::size_t i = 0; i < count; ++i) {
    llvm::SmallVector<llvm::Metadata*, 8> others;
    for (std::size_t j = 0; j < count; ++j)
      if (group[j] == j && group[i] != j) others.push_back(scopes[j]);
    scope_tags_.push_back(llvm::MDNode::get(context_, {scopes[i]}));
    noalias_tags_.push_back(llvm::MDNode::get(context_, others));
  }

  std::size_t next = 0, next_scratch = ordinary;
  llvm::MDNode* align = llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b.getInt64(64)));
  for (std::size_t i = 0; i < count; ++i) {
    const ir::Kernel::Param& p = kernel_.params[i];
    const std::size_t slot = p.space == ir::MemorySpace::kScratch ? next_scratch++ : next++;
    auto* load = b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), buffers, slot),
                              fmt::format("p{}", i));
    load->setMetadata(llvm::LLVMContext::MD_align, align);
    load->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(context_, {}));
    Ref r;
    r.param = static_cast<int>(i);
    r.dtype = p.dtype;
    r.dims = p.map.block.empty() ? p.dims : p.map.block;
    r.strides = row_major_strides(p.dims);
    r.base = load;
    refs_.push_back(std::move(r));
  }
  for (int i = 0; i < kernel_.num_scalars; ++i)
    scalars_.push_back(scalar_tile(
        b.CreateLoad(b.getInt64Ty(),
                     b.CreateConstGEP1_64(b.getInt64Ty(), scalars, static_cast<std::uint64_t>(i))),
        0));
}

// Parallel points one by one, the ordered axes inside of each.
void Emitter::emit_grid() {
  std::vector<Tile> indices(kernel_.grid.size());
  std::vector<std::size_t> parallel, ordered;
  std::vector<Tile> sizes;
  for (std::size_t i = 0; i < kernel_.grid.size(); ++i) {
    const auto& axis = kernel_.grid[i];
    sizes.push_back(axis.size >= 0 ? constant_index(axis.size)
                                   : scalars_[static_cast<std::size_t>(axis.scalar)]);
    indices[i] = constant_index(0);
    if (axis.size == 1) continue;
    (axis.kind == ir::Kernel::AxisKind::kParallel ? parallel : ordered).push_back(i);
  }

  const std::function<void(std::size_t)> inner = [&](std::size_t k) {
    if (k == ordered.size()) return emit_body(indices);
    emit_loop(constant_index(0), sizes[ordered[k]], 1, {}, [&](Tile iv, std::vector<Tile>) {
      indices[ordered[k]] = std::move(iv);
      inner(k + 1);
      return std::vector<Tile>();
    });
  };

  // With several axes their indices are carried and counted up like digits.
  std::vector<Tile> digits;
  std::vector<Value*> limits;
  if (parallel.size() > 1) {
    Value* rest = fn_->getArg(2);
    for (std::size_t k = parallel.size(); k-- > 0;) {
      Value* n =
          b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, scalar(sizes[parallel[k]]), b.getInt64(1));
      limits.insert(limits.begin(), n);
      digits.insert(digits.begin(), scalar_tile(k == 0 ? rest : b.CreateURem(rest, n), 0));
      rest = b.CreateUDiv(rest, n);
    }
  }
  emit_loop(scalar_tile(fn_->getArg(2), 0), scalar_tile(fn_->getArg(3), 0), 1, digits,
            [&](Tile iv, std::vector<Tile> at) {
              if (parallel.size() == 1) indices[parallel[0]] = std::move(iv);
              for (std::size_t k = 0; k < at.size(); ++k) indices[parallel[k]] = at[k];
              inner(0);
              Value* carry = b.getInt64(1);
              for (std::size_t k = at.size(); k-- > 0;) {
                Value* up = b.CreateAdd(scalar(at[k]), carry);
                Value* wraps = b.CreateICmpEQ(up, limits[k]);
                Value* v = k == 0 ? up : b.CreateSelect(wraps, b.getInt64(0), up);
                carry = b.CreateZExt(wraps, b.getInt64Ty());
                at[k] = scalar_tile(v, level());
              }
              return at;
            });
}

void Emitter::emit_body(const std::vector<Tile>& indices) {
  std::vector<EnvValue> args;
  for (const Tile& t : indices) args.push_back({t, nullptr});
  for (std::size_t i = 0; i < refs_.size(); ++i) {
    const ir::Kernel::BlockMap& map = kernel_.params[i].map;
    if (!map.block.empty()) {
      Linear offset;
      for (std::size_t d = 0; d < map.block.size(); ++d) {
        offset.constant += map.offset[d] * refs_[i].strides[d];
        for (std::size_t a = 0; a < indices.size(); ++a) {
          Tile index = indices[a];
          add_scaled(offset, linear_of(index),
                     map.coef[d * indices.size() + a] * refs_[i].strides[d]);
        }
      }
      refs_[i].offset = std::move(offset);
    }
    args.push_back({{}, &refs_[i]});
  }
  for (const Tile& t : scalars_) args.push_back({t, nullptr});
  emit_graph(*kernel_.body, std::move(args));
}

std::vector<EnvValue> Emitter::emit_graph(const ir::Graph& g, std::vector<EnvValue> args) {
  Env env(g.values.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    env[static_cast<std::size_t>(g.params[i])] = std::move(args[i]);
  for (const ir::Op& op : g.ops) {
    if (debug_.file)
      b.SetCurrentDebugLocation(
          llvm::DILocation::get(context_, line_of_[&op], 1, fn_->getSubprogram()));
    emit_op(g, op, env);
  }
  std::vector<EnvValue> out;
  for (ir::ValueId v : g.results) out.push_back(env[static_cast<std::size_t>(v)]);
  return out;
}

void Emitter::check_size(const ir::Op& op, const Dims& dims) const {
  constexpr std::int64_t kMostElements = 1 << 16;
  const std::int64_t n = num_elements(dims);
  if (n < 1 || n > kMostElements)
    throw UserError(
        ErrorParts{fmt::format("code generator: {}", op.def->name),
                   fmt::format("tiles of 1 to {} elements", kMostElements), to_string(dims),
                   "Loop over smaller tiles: a tile is meant to fit in registers"},
        op.loc.source);
}

void Emitter::emit_op(const ir::Graph& g, const ir::Op& op, Env& env) {
  for (ir::ValueId v : op.results) check_size(op, g.type(v).dims());
  const ir::OpDef* def = op.def;
  if (def == &ops::kKernelLoad) return emit_load(g, op, env);
  if (def == &ops::kKernelStore) return emit_store(op, env);
  if (def == &ops::kKernelGather) return emit_gather(op, env);
  if (def == &ops::kKernelScatter) return emit_scatter(op, env);
  if (def == &ops::kKernelPrefetch) return emit_prefetch(op, env);
  if (def == &ops::kKernelFor) return emit_for(op, env);
  if (def == &ops::kWhile) return emit_while(op, env);
  if (def == &ops::kIf || def == &ops::kCase) return emit_branches(op, env);
  if (def == &ops::kReduce) return emit_reduce(g, op, env);
  if (emit_linear(op, env)) return;
  emit_pure(g, op, env);
}

// Sums of index scalars are kept as sums until a value or an address is needed.
bool Emitter::emit_linear(const ir::Op& op, Env& env) {
  const bool add = op.def == &ops::kAdd, sub = op.def == &ops::kSubtract;
  const bool mul = op.def == &ops::kMultiply;
  if (!add && !sub && !mul) return false;
  Tile& x = env[static_cast<std::size_t>(op.operands[0])].tile;
  Tile& y = env[static_cast<std::size_t>(op.operands[1])].tile;
  if (x.dtype != DType::kI64 || !x.is_scalar() || !y.is_scalar()) return false;
  Linear a = linear_of(x);
  const Linear c = linear_of(y);
  if (mul) {
    if (!a.terms.empty() && !c.terms.empty()) return false;
    const std::int64_t factor = a.terms.empty() ? a.constant : c.constant;
    Linear product;
    add_scaled(product, a.terms.empty() ? c : a, factor);
    a = std::move(product);
  } else {
    add_scaled(a, c, sub ? -1 : 1);
  }
  Tile& out = env[static_cast<std::size_t>(op.results[0])].tile;
  out.dtype = DType::kI64;
  out.is_linear = true;
  out.level = a.terms.empty() ? 0 : a.terms.back().level;
  out.linear = std::move(a);
  return true;
}

// Ops without effects: emitted in the outermost loop where their operands are known.
void Emitter::emit_pure(const ir::Graph& g, const ir::Op& op, Env& env) {
  const PieceRule rule = piece_rule(*op.def);
  llvm::SmallVector<Tile*, 4> in;
  int at = 0;
  bool lifted = false;  // a scalar region applied to whole tiles (reduce)
  for (ir::ValueId v : op.operands) {
    in.push_back(&env[static_cast<std::size_t>(v)].tile);
    at = std::max(at, in.back()->level);
    lifted = lifted || in.back()->dims != g.type(v).dims();
  }
  const ir::ValueId result = op.results.empty() ? ir::kNoValue : op.results[0];
  const ir::Type& to = g.type(op.results[0]);
  // Code with blocks stays where it is; code for tiles does not leave a branch that may not be
  // taken.
  if (rule.makes_blocks) at = level();
  if (to.size() > 1)
    for (int k = at + 1; k <= level(); ++k)
      if (scopes_[static_cast<std::size_t>(k)].is_branch) at = k;

  const auto emit = [&]() -> Tile {
    if (rule.fn) return emit_pointwise(op, in, to.dtype());
    if (op.def == &ops::kConstant) return emit_constant(op.attrs.array("value"));
    if (op.def == &ops::kIota) return emit_iota(op);
    if (op.def == &ops::kOptimizationBarrier) return *in[0];
    if (lifted) unsupported(op, to.dtype(), "Use elementwise ops in regions of reductions");
    if (op.def == &ops::kBroadcastInDim) return emit_broadcast(op, *in[0], to.dims());
    if (op.def == &ops::kReshape) return emit_reshape(*in[0], to.dims());
    if (op.def == &ops::kTranspose) return emit_transpose(*in[0], op.attrs.dims("permutation"));
    if (op.def == &ops::kSlice) return emit_slice(op, *in[0]);
    if (op.def == &ops::kReverse) return emit_reverse(op, *in[0]);
    if (op.def == &ops::kConcatenate) return emit_concatenate(op, in);
    if (op.def == &ops::kPad) return emit_pad(op, *in[0], *in[1], to.dims());
    if (op.def == &ops::kBitcastConvert) return emit_bitcast(op, *in[0], to);
    if (op.def == &ops::kDotGeneral) return emit_dot(op, *in[0], *in[1], to);
    unsupported(op, in.empty() ? to.dtype() : in[0]->dtype,
                "Legalise the op before it is put into a kernel");
  };
  if (op.def == &ops::kOptimizationBarrier && op.operands.size() > 1) {
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      env[static_cast<std::size_t>(op.results[i])] = env[static_cast<std::size_t>(op.operands[i])];
    return;
  }
  Tile out = at_level(at, emit);
  out.level = std::min(at, level());
  if (out.dtype == DType::kI64 && out.is_scalar() && !out.is_linear)
    out = scalar_tile(out.pieces[0].v, out.level);
  env[static_cast<std::size_t>(result)].tile = std::move(out);
}

Tile Emitter::empty_like(DType dtype, const Dims& dims) const {
  Tile t;
  t.dtype = dtype;
  t.dims = dims;
  const std::int64_t n = t.row_length();
  t.pieces.resize(static_cast<std::size_t>(t.size() / n) * layout(n).lanes.size());
  return t;
}

Tile Emitter::emit_pointwise(const ir::Op& op, std::span<Tile* const> in, DType to) {
  const PieceRule rule = piece_rule(*op.def);
  Dims dims;
  for (const Tile* t : in)
    if (!t->is_scalar()) dims = t->dims;
  // Make the form that the rule works on, in the scope of each operand.
  const bool by_bits = op.def == &ops::kSelect || op.def == &ops::kReducePrecision;
  for (Tile* t : in) {
    if (t->is_linear && t->pieces.empty()) scalar(*t);
    if (!is_narrow_float(t->dtype)) continue;
    at_level(t->level, [&] {
      std::map<Value*, Piece> done;
      for (Piece& p : t->pieces) {
        Piece& known = done[p.v ? p.v : p.f];
        if (known.v || known.f) {
          p = known;
          continue;
        }
        if (by_bits) ops_.bits(t->dtype, p);
        if (!by_bits || op.def == &ops::kReducePrecision) ops_.f32(t->dtype, p);
        known = p;
      }
    });
  }
  Tile out = empty_like(to, dims);
  const RowLayout& row = layout(out.row_length());
  const DType from = op.def == &ops::kSelect || op.def == &ops::kClamp ? in[1]->dtype
                     : in.empty()                                      ? to
                                                                       : in[0]->dtype;
  // Equal operands (rows of a broadcast, say) give one result.
  std::map<std::vector<Value*>, Piece> memo;
  for (std::size_t i = 0; i < out.pieces.size(); ++i) {
    const unsigned lanes = row.lanes[i % row.lanes.size()];
    llvm::SmallVector<Piece, 4> operands;
    std::vector<Value*> key;
    for (Tile* t : in) {
      if (t->is_scalar() && !dims.empty()) {
        operands.push_back(at_level(t->level, [&] { return splat_piece(t->pieces[0], lanes); }));
      } else {
        operands.push_back(t->pieces[i]);
      }
      key.insert(key.end(), {operands.back().v, operands.back().im, operands.back().f});
    }
    auto [it, inserted] = memo.try_emplace(std::move(key));
    if (inserted) {
      PieceCall call{op, std::span<Piece>(operands.data(), operands.size()), from, to, lanes};
      it->second = rule.fn(ops_, call);
    }
    out.pieces[i] = it->second;
  }
  return out;
}

}  // namespace xylem::jit
