#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "xylem/compiler/jit/piece_ops.h"
#include "xylem/ir/kernel.h"

namespace xylem::jit {

// Lines of a text file in which each op of a kernel stands on a line of its own.
struct DebugLines {
  llvm::DIFile* file = nullptr;  // null: no lines
  llvm::DIBuilder* builder = nullptr;
  unsigned first = 1;  // line of the body's first line
};

// One function per kernel, with the signature of xylem_kernel_fn, called `symbol` for the linker
// and `name` for debuggers.
llvm::Function* emit_kernel(llvm::Module& module, const ir::Kernel& kernel,
                            const std::string& symbol, const std::string& name,
                            const Target& target, const DebugLines& debug = {});

// Whether ops of this kind can be emitted at all.
bool can_emit(const ir::OpDef& def);

// Moves repeated scalars, and the loads of such scalars, to their first use. No scheduler runs
// after us, and a product's inner loop has no registers for all of them at once.
void sink_splats(llvm::Function& fn);

// How a row of n elements is cut: pieces of `full` lanes, then powers of two.
struct RowLayout {
  std::vector<unsigned> lanes;
  std::vector<std::int64_t> starts;
};

// An i64 scalar as constant + sum of coefficient * value, so that addresses can be put together
// from parts that each live in the outermost loop where they are known.
struct Linear {
  struct Term {
    Value* value;
    std::int64_t coef;
    int level;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms;  // sorted by level, then by order of appearance
};

// A tensor in registers: its rows (all dimensions but the last) one after the other, each cut into
// pieces.
struct Tile {
  DType dtype = DType::kF32;
  Dims dims;
  int level = 0;  // of the scope in which all pieces are known
  std::vector<Piece> pieces;
  bool is_linear = false;
  Linear linear;  // instead of `pieces`

  std::int64_t row_length() const { return dims.empty() ? 1 : dims.back(); }
  std::int64_t size() const { return num_elements(dims); }
  bool is_scalar() const { return dims.empty(); }
};

// Memory of one parameter.
struct Ref {
  int param = -1;
  DType dtype = DType::kF32;
  Dims dims;
  Dims strides;  // in elements
  Value* base = nullptr;
  Linear offset;  // of the block at this grid point, in elements
};

struct EnvValue {
  Tile tile;
  const Ref* ref = nullptr;
};
using Env = std::vector<EnvValue>;

class Emitter {
 public:
  Emitter(llvm::Module& module, const ir::Kernel& kernel, const Target& target,
          const DebugLines& debug);
  llvm::Function* run(const std::string& symbol, const std::string& name);

 private:
  // emitter.cc: the function around the body, grid loops, ops.
  void choose_lanes();
  void count_dtypes(const ir::Graph& g, std::vector<bool>& used) const;
  void load_arguments();
  void emit_grid();
  void emit_body(const std::vector<Tile>& indices);
  std::vector<EnvValue> emit_graph(const ir::Graph& g, std::vector<EnvValue> args);
  void emit_op(const ir::Graph& g, const ir::Op& op, Env& env);
  void start_debug_lines(const std::string& name);
  void number_lines(const ir::Graph& g, unsigned* line);
  void emit_pure(const ir::Graph& g, const ir::Op& op, Env& env);
  bool emit_linear(const ir::Op& op, Env& env);
  Tile emit_pointwise(const ir::Op& op, std::span<Tile* const> in, DType to);

  // emit_control.cc
  struct LoopCarry {
    std::vector<llvm::PHINode*> phis;
    Tile tile;  // made of the phis
  };
  void emit_for(const ir::Op& op, Env& env);
  void emit_while(const ir::Op& op, Env& env);
  void emit_branches(const ir::Op& op, Env& env);
  // Calls a function that holds the branch, if it is long and touches no memory: equal branches,
  // such as the slow paths of elementary functions, are compiled once per kernel. False if not.
  bool call_branch(const ir::Graph& branch, std::span<EnvValue> args, std::vector<Tile>* results);
  llvm::Function* branch_function(const ir::Graph& branch, std::span<EnvValue> args,
                                  std::span<Value* const> values);
  // What all functions of a kernel have.
  void set_attributes(llvm::Function* fn) const;
  LoopCarry make_carry(Tile init, llvm::BasicBlock* from, unsigned predecessors);
  void add_incoming(LoopCarry& carry, Tile next, llvm::BasicBlock* from);
  // The i64 or i1 values that a tile is made of, in a fixed order; made if they are not there.
  std::vector<Value*> flatten(Tile& t);
  Tile unflatten(DType dtype, const Dims& dims, std::span<Value* const> values, int level);

 public:
  // A counting loop whose body is emitted by a function; used for grids and kernel.for.
  struct Loop {
    llvm::BasicBlock* preheader = nullptr;
    llvm::BasicBlock* body = nullptr;
    llvm::PHINode* iv = nullptr;
    Value* lo = nullptr;
    std::int64_t step = 1;
    std::map<std::int64_t, llvm::PHINode*> scaled;  // iv * coefficient, bumped
  };
  using LoopBody = std::function<std::vector<Tile>(Tile iv, std::vector<Tile> carries)>;
  std::vector<Tile> emit_loop(Tile lo, Tile hi, std::int64_t step, std::vector<Tile> carries,
                              const LoopBody& body);

 private:
  // Scopes: the entry block is 0, each loop body or branch is one more. What is known further out
  // is emitted there, before the end of the block in front of the next scope.
  struct Scope {
    llvm::BasicBlock* before = nullptr;  // block that ends where this scope begins
    bool is_branch = false;
    Loop* loop = nullptr;
    // Addresses and sums that were made in this scope.
    std::map<std::pair<Value*, std::vector<std::pair<Value*, std::int64_t>>>, Value*> sums;
    std::map<std::pair<Value*, unsigned>, Value*> splats;
  };
  int level() const { return static_cast<int>(scopes_.size()) - 1; }
  // Runs `fn` with the builder at a place of scope `at` (its current end, or before the scope
  // inside it begins).
  template <class F>
  auto at_level(int at, F fn) {
    if (at >= level()) return fn();
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(scopes_[static_cast<std::size_t>(at) + 1].before->getTerminator());
    return fn();
  }

  // emit_address.cc
  Tile scalar_tile(Value* v, int at_level);
  static Tile constant_index(std::int64_t v);
  Value* scalar(Tile& t);  // the value of a scalar
  Linear linear_of(Tile& t);
  static void add_scaled(Linear& sum, const Linear& part, std::int64_t factor);
  Value* materialise(const Linear& l, int* at_level);
  Value* scaled_term(const Linear::Term& t, std::int64_t coef);
  // base + bytes of the linear form, without its constant, which is returned.
  Value* pointer(const Ref& ref, const Linear& elements, std::int64_t* displacement);
  Value* displaced(Value* pointer, std::int64_t bytes);

  // emit_memory.cc
  void emit_load(const ir::Graph& g, const ir::Op& op, Env& env);
  void emit_store(const ir::Op& op, Env& env);
  void emit_gather(const ir::Op& op, Env& env);
  void emit_scatter(const ir::Op& op, Env& env);
  void emit_prefetch(const ir::Op& op, Env& env);
  struct Walk {
    Value* pointer;
    std::int64_t displacement;
    Dims strides;                 // of each tile dimension, in elements
    std::uint64_t alignment = 1;  // of the first element, in bytes
  };
  Walk walk(const ir::Op& op, Env& env, std::size_t first_index);
  Piece load_contiguous(const Ref& ref, Value* p, unsigned lanes, Value* mask);
  // `stream` (0: no) is the alignment of an address whose store may bypass the caches.
  void store_contiguous(const Ref& ref, Value* p, Piece& value, unsigned lanes, Value* mask,
                        std::uint64_t stream = 0);
  Piece load_strided(const Ref& ref, Value* p, std::int64_t stride, unsigned lanes, Value* mask,
                     bool by_lanes);
  void store_strided(const Ref& ref, Value* p, std::int64_t stride, Piece& value, unsigned lanes,
                     Value* mask);
  Piece gather(const Ref& ref, Value* base, Value* offsets, unsigned lanes, Value* mask);
  void scatter(const Ref& ref, Value* base, Value* offsets, Piece& value, unsigned lanes,
               Value* mask);
  // Memory form of one number per lane to register form and back.
  Piece from_memory(DType t, Value* v);
  Value* to_memory(DType t, Piece& p);
  llvm::Type* memory_type(DType t);
  template <class I>
  I* tag(I* access, const Ref& ref);
  bool only_spread(const ir::Graph& g, const ir::Op& op) const;
  // The largest power of two, at most 64, that divides the address.
  std::uint64_t alignment(const Linear& elements, std::int64_t bytes) const;
  std::int64_t multiple_of(Value* v) const;

  // emit_structure.cc
  Tile emit_constant(const HostArray& value);
  Tile emit_iota(const ir::Op& op);
  Tile emit_broadcast(const ir::Op& op, Tile& x, const Dims& shape);
  Tile emit_reshape(Tile& x, const Dims& shape);
  Tile emit_transpose(Tile& x, const Dims& permutation);
  std::vector<Piece> transpose_square(DType t, std::vector<Piece> rows);
  bool transpose_matrix(Tile& x, Tile* out);
  Tile emit_slice(const ir::Op& op, Tile& x);
  Tile emit_reverse(const ir::Op& op, Tile& x);
  Tile emit_concatenate(const ir::Op& op, std::span<Tile* const> in);
  Tile emit_pad(const ir::Op& op, Tile& x, Tile& value, const Dims& shape);
  Tile emit_bitcast(const ir::Op& op, Tile& x, const ir::Type& to);
  // One element, or pieces of consecutive ones, by row-major number.
  Piece lane(Tile& x, std::int64_t flat);
  Value* lane_of(Value* v, unsigned i);
  Piece slice_flat(Tile& x, std::int64_t start, unsigned lanes);
  Piece join(DType t, std::span<const Piece> parts);
  Piece splat_piece(const Piece& scalar, unsigned lanes);
  Tile from_lanes(DType dtype, const Dims& dims, const std::function<Piece(std::int64_t)>& at);
  Tile gather_elements(DType dtype, const Dims& dims,
                       const std::function<std::pair<Tile*, std::int64_t>(std::int64_t)>& source);
  Tile empty_like(DType dtype, const Dims& dims) const;
  void check_size(const ir::Op& op, const Dims& dims) const;

  // emit_reduce.cc
  void emit_reduce(const ir::Graph& g, const ir::Op& op, Env& env);
  std::vector<Tile> apply_region(const ir::Op& op, const ir::Graph& region,
                                 std::vector<Tile> accumulators, std::vector<Tile> elements,
                                 std::span<const EnvValue> captures);
  Tile emit_dot(const ir::Op& op, Tile& lhs, Tile& rhs, const ir::Type& to);

  const RowLayout& layout(std::int64_t n) const;

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const ir::Kernel& kernel_;
  const Target& target_;
  DebugLines debug_;
  std::unordered_map<const ir::Op*, unsigned> line_of_;
  llvm::IRBuilder<> b;
  PieceOps ops_;
  llvm::Function* fn_ = nullptr;
  unsigned full_lanes_ = 16;
  mutable std::map<std::int64_t, RowLayout> layouts_;
  std::map<std::string, llvm::Function*> branches_;  // by their encoded graph
  std::vector<Scope> scopes_;
  std::vector<Ref> refs_;
  std::vector<Tile> scalars_;                  // launch scalars
  std::vector<llvm::MDNode*> scope_tags_;      // per parameter: alias.scope list
  std::vector<llvm::MDNode*> noalias_tags_;    // per parameter: scopes of all others
  std::unordered_map<Value*, Loop*> loop_of_;  // counting variables of open loops
  bool streams_ = false;                       // stores past the caches must be fenced at the end
};

}  // namespace xylem::jit
