#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "xylem/compiler/fusion/form.h"
#include "xylem/ir/graph.h"
#include "xylem/ir/kernel/kernel_builder.h"

namespace xylem::compiler {

// Whether an element of the op's result is a function of few elements of its operands that
// `Elemental` can write down: pointwise ops and those that move elements.
bool is_elemental(const ir::Graph& graph, const ir::Op& op);
// Elemental ops that cost nothing in a loop: constants, iota and pure index changes.
bool is_free(const ir::Graph& graph, const ir::Op& op);
// What one element of the op costs, in plain operations.
int cost_of(const ir::OpDef& def);
// A constant that kernels hold as an immediate.
bool is_immediate(const ir::Op& op);

// Evaluates values of a graph element by element: eval(v, index) gives the tile of v at an index
// that is a form over axes, by going back through the ops that make v until it meets what is
// available (buffers, values already in registers). A tile is a scalar (type []) if it is the same
// in all lanes, otherwise a vector [lanes] along the vector loop.
//
// Without a builder it only looks: it records the forms that would be needed, the cuts of axes
// that would make them separable, and the cost. The planner and the first pass of kernel
// generation use that.
class Elemental {
 public:
  using Value = ir::KernelValue;

  // What must hold for a load to be allowed: `lanes` i1[lanes] or undefined, `all` i1[] or
  // undefined.
  struct Guard {
    Value lanes, all;
  };

  // A loop of the kernel: consecutive axes merged into one index. `value` is its current index
  // (the first lane's, for the vector loop).
  struct Loop {
    int first = 0, last = 0;  // axes
    std::int64_t size = 1;
    Value value;
  };

  Elemental(const ir::Graph& graph, AxisTable table, ir::KernelBuilder* builder)
      : graph_(graph), table_(std::move(table)), k_(builder) {
    scopes_.emplace_back();
  }
  virtual ~Elemental() = default;

  // True if v at this index is at hand; then *tile is it.
  virtual bool available(ir::ValueId v, const Forms& index, const Guard& guard, Value* tile) = 0;

  Value eval(ir::ValueId v, const Forms& index, const Guard& guard);
  // The op's result without asking whether it is available.
  Value eval_op(ir::ValueId v, const Forms& index, const Guard& guard);

  // Element `flat` of a one-dimensional ref.
  Value load(Value ref, const Form& flat, const Guard& guard);
  void store(Value ref, const Form& flat, Value tile, const Guard& guard);
  // The index of element number `flat`; through run-time division where it is not separable.
  Forms split_index(const Form& flat, const Dims& dims, const Guard& guard);

  // The index into a dimension of size n that lies at `f` once n elements are spread `step` apart;
  // adds to *ok the conditions that there is one; *never: there is none anywhere.
  Form spread_index(Form f, std::int64_t n, std::int64_t step, Guard* ok, bool* never);
  // Both hold. Conditions that are the same in all lanes stay apart from the others: loads of one
  // element for all lanes depend on them alone.
  Guard narrow(const Guard& guard, const Guard& condition);
  Guard narrow(const Guard& guard, Value condition);
  // The conjunction as one tile; undefined if always true.
  Value whole(const Guard& guard) { return both(guard.all, guard.lanes); }

  // An index as i64[] (no lanes) or as i64[lanes].
  Value scalar_index(const Form& f);
  Value index_tile(const Form& f);
  bool has_lanes(const Form& f) const;
  // Widens a scalar tile to all lanes.
  Value widen(Value tile);
  bool wide(Value tile) const { return !k_->dims(tile).empty(); }
  // clamp(tile, 0, room) as a new axis.
  Form clamped(Value tile, DType dtype, std::int64_t room);
  // An i64 tile whose values lie in [0, size) as a new axis.
  Form opaque(Value tile, std::int64_t size);
  // A pointwise op on tiles that may be scalar or wide.
  Value apply(const ir::Op& op, std::vector<Value> operands);
  Value apply(const ir::OpDef& def, std::vector<Value> operands, ir::Attrs attrs = {});
  // Inlines a region of pointwise ops on scalars. Throws UserError for others.
  std::vector<Value> inline_region(const ir::Graph& region, std::span<const Value> args);

  // Values made between these calls are forgotten at the second: they live in an inner region.
  void enter() { scopes_.emplace_back(); }
  void leave() { scopes_.pop_back(); }

  bool dry() const { return k_ == nullptr; }
  ir::KernelBuilder& k() { return *k_; }
  AxisTable& table() { return table_; }
  std::vector<Loop>& loops() { return loops_; }
  int lanes() const { return lanes_; }
  void set_lanes(int lanes) { lanes_ = lanes; }

  // Dry runs: forms that need one number each, cuts wanted, ops evaluated (elementary functions
  // count more).
  std::vector<Form> recorded;
  std::vector<AxisSplit> splits;
  int cost = 0;

 private:
  struct Entry {
    ir::ValueId v;
    Guard guard;
    Forms index;
    Value tile;
  };
  struct Scope {
    std::unordered_map<std::size_t, std::vector<Entry>> tiles;
    std::unordered_map<std::size_t, std::vector<std::pair<Form, Value>>> numbers;
  };

  Value tile_of(const ir::Op& op, ir::ValueId v, const Forms& index, const Guard& guard);
  Value pad(const ir::Op& op, const Forms& index, const Guard& guard);
  Value concatenate(const ir::Op& op, const Forms& index, const Guard& guard);
  Value gather(const ir::Op& op, const Forms& index, const Guard& guard);
  Value dynamic_slice(const ir::Op& op, const Forms& index, const Guard& guard);
  Value iota(const ir::Op& op, ir::ValueId v, const Forms& index);
  // i1 tile: lo <= f < hi; undefined if always true. *never: always false.
  Value in_range(const Form& f, std::int64_t lo, std::int64_t hi, bool* never);
  Value both(Value a, Value b);  // conjunction; undefined is true
  struct Address;
  Address address(const Form& f);
  Value iota_tile(std::int64_t coef);

  const ir::Graph& graph_;
  AxisTable table_;
  ir::KernelBuilder* k_;
  int lanes_ = 1;
  std::vector<Loop> loops_;
  std::vector<Value> opaque_values_;  // per axis
  std::vector<Scope> scopes_;
};

}  // namespace xylem::compiler
