#include "xylem/compiler/fusion/loop_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/compiler/fusion/elemental.h"
#include "xylem/compiler/reducer.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Graph;
using ir::Kernel;
using ir::KernelBuilder;
using ir::Op;
using ir::ValueId;
using Value = ir::KernelValue;
using Values = std::vector<Value>;

namespace {

// Ops per element above which a value of an earlier walk over the row is kept in scratch rather
// than computed again.
constexpr int kRecompute = 8;

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

std::int64_t power_of_two(std::int64_t n) {
  std::int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

struct Member {
  int op = -1;
  bool row = false, reduction = false;
  int stage = 0;  // the walk over the row in which it is computed; rows: before which walk
  int cost = 0;
  bool late = false;  // read in a later walk
  bool scratch = false;
  std::vector<int> sources;  // full members that it reads
};

// A reduction's running values while a row is walked.
struct Accumulator {
  int member = -1;
  const ir::OpDef* known = nullptr;  // lanes accumulate apart and are combined at the end
  bool arg = false;                  // argmax, argmin: value and index
  DType dtype = DType::kF32;         // of the running value
  std::size_t first = 0, count = 1;  // carries
};

class LoopKernel final : public Elemental {
 public:
  LoopKernel(const Graph& g, const Plan& plan, const Group& group,
             const std::function<bool(ValueId)>& dies, AxisTable table, KernelBuilder* builder)
      : Elemental(g, std::move(table), builder), g_(g), plan_(plan), group_(group), dies_(dies) {
    for (int i : group.ops) {
      const Op& op = g.ops[static_cast<std::size_t>(i)];
      Member m;
      m.op = i;
      m.row = plan.row[static_cast<std::size_t>(i)];
      m.reduction = is_reduction(op);
      for (ValueId r : op.results) member_of_[r] = static_cast<int>(members_.size());
      members_.push_back(std::move(m));
    }
  }

  struct Read {
    ValueId v;
    Form flat;
    int stage;
  };

  bool available(ValueId v, const Forms& index, const Guard& guard, Value* tile) override {
    const std::int32_t def = g_.value(v).def;
    if (def >= 0 && plan_.roles[static_cast<std::size_t>(def)] == Role::kInline) return false;
    const ValueId root = plan_.root(v);
    auto it = member_of_.find(root);
    if (it == member_of_.end()) {
      const Form flat = flatten(index, g_.type(v).dims());
      if (dry()) reads_.push_back({root, flat, current_});
      *tile = load(refs_.empty() ? Value{} : refs_.at(root), flat, guard);
      return true;
    }
    Member& m = members_[static_cast<std::size_t>(it->second)];
    if (dry()) {
      if (current_member_ >= 0) {
        Member& user = members_[static_cast<std::size_t>(current_member_)];
        user.stage = std::max(user.stage, m.stage + (m.reduction ? 1 : 0));
        if (!m.row) user.sources.push_back(it->second);
      }
      cost += 1;
      return true;
    }
    if (m.row) {
      *tile = rows_.at(root);
      return true;
    }
    if (m.scratch && m.stage < current_) {
      const Value row = scratch_.at(root);
      *tile = column_ && lanes() > 1
                  ? k().load(row, {scalar_index(scratch_form_ * lanes())}, {0}, {lanes()})
                  : load(row, scratch_form_, guard);
      return true;
    }
    *tile = eval_op(root, canonical(root), guard);
    return true;
  }

  // Index of a member at the loops' current element.
  Forms canonical(ValueId v) {
    const std::int32_t def = g_.value(v).def;
    const bool row = plan_.row[static_cast<std::size_t>(def)];
    return split_index(row ? outer_ : whole_, g_.type(v).dims(), {});
  }

  // First pass: stages, forms, cuts.
  void look() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& m = members_[i];
      const Op& op = g_.ops[static_cast<std::size_t>(m.op)];
      current_member_ = static_cast<int>(i);
      // What another member evaluated is evaluated again here: each must meet its own sources.
      enter();
      const int before = cost;
      const std::size_t first_read = reads_.size();
      if (m.reduction) {
        const std::size_t n = op.results.size();
        const Forms index = split_index(whole_, g_.type(op.operands[0]).dims(), {});
        for (std::size_t k = 0; k < n; ++k) eval(op.operands[k], index, {});
        if (!(op.def == &o::kReduce)) recorded.push_back(index[at_dim(op)]);
        cost += 2 * static_cast<int>(n);
        // Its init and captures do not depend on the walk, but must be there when it ends.
        const int loop_stage = m.stage;
        for (std::size_t k = n; k < op.operands.size(); ++k) eval(op.operands[k], {}, {});
        m.stage = std::max(m.stage, loop_stage);
      } else {
        eval_op(op.results[0], canonical(op.results[0]), {});
      }
      for (std::size_t r = first_read; r < reads_.size(); ++r) reads_[r].stage = m.stage;
      m.cost = cost - before;
      leave();
      for (ValueId r : op.results)
        if (is_output(r)) recorded.push_back(m.row ? outer_ : whole_);
    }
    // Full members read in later walks.
    std::vector<int> again(members_.size(), 0);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& m = members_[i];
      again[i] = std::min(m.cost, kRecompute + 1);
      for (int s : m.sources) {
        Member& source = members_[static_cast<std::size_t>(s)];
        if ((!m.row || m.reduction) && m.stage > source.stage) source.late = true;
        again[i] = std::min(again[i] + again[static_cast<std::size_t>(s)], kRecompute + 1);
      }
    }
    for (std::size_t i = 0; i < members_.size(); ++i)
      members_[i].scratch = members_[i].late && again[i] > kRecompute;
    current_member_ = -1;
  }

  std::size_t at_dim(const Op& op) const {
    return static_cast<std::size_t>(op.attrs.i64("dimension"));
  }
  bool is_output(ValueId v) const {
    return std::find(group_.outputs.begin(), group_.outputs.end(), v) != group_.outputs.end();
  }

  void set_space(const Form& whole, const Form& outer, const std::vector<bool>& reduced) {
    whole_ = whole;
    outer_ = outer;
    reduced_ = reduced;
  }
  void copy_look(const LoopKernel& dry_run) {
    members_ = dry_run.members_;
    reads_ = dry_run.reads_;
  }

  LoweredKernel generate(std::vector<Loop> merged);

  const std::vector<Member>& members() const { return members_; }

 private:
  bool loop_reduced(const Loop& l) const { return reduced_[static_cast<std::size_t>(l.first)]; }

  int choose_lanes();
  void declare_params(LoweredKernel* out);
  int find_alias(ValueId output, const std::vector<ValueId>& inputs,
                 std::vector<bool>* taken) const;
  void elementwise_body();
  void row_body();
  void store_outputs(int stage, const Guard& guard);
  void walk_row(int stage);
  Values element(const std::vector<Accumulator>& accs, std::span<const Value> carries,
                 const Guard& guard);
  Values nested(std::size_t loop, const std::vector<Accumulator>& accs, Values carries,
                const Guard& guard);
  std::vector<Accumulator> start(int stage, Values* carries);
  void end(const Accumulator& acc, std::span<const Value> carries);
  void row_members(int stage);
  void set_row(ValueId v, Value tile);
  Value arg_better(const Op& op, Value a, Value ai, Value b, Value bi);
  Values combine(const Accumulator& acc, const Values& a, const Values& b);
  Value half(Value tile, std::int64_t start, std::int64_t size);

  const Graph& g_;
  const Plan& plan_;
  const Group& group_;
  const std::function<bool(ValueId)>& dies_;
  Form whole_, outer_, scratch_form_;
  std::vector<bool> reduced_;  // per loop axis
  std::vector<Member> members_;
  std::unordered_map<ValueId, int> member_of_;
  std::unordered_map<ValueId, Value> refs_, rows_, scratch_;
  std::vector<Read> reads_;
  int current_ = 0;          // the walk that is being generated
  int current_member_ = -1;  // dry run
  bool column_ = false;      // lanes run over kept elements, rows are walked by scalars
  bool pure_ = true;         // nothing is reduced
  std::int64_t chunk_ = 0;   // pure: elements of the vector loop per grid point
  Value chunk_start_;
  Guard outer_guard_;
};

// ---- Shape of the loops ----------------------------------------------------------------------

int LoopKernel::choose_lanes() {
  const Loop& vector = loops().back();
  int bytes = 1, total = 0;
  bool one_by_one = false;
  for (const Member& m : members_) {
    const Op& op = g_.ops[static_cast<std::size_t>(m.op)];
    for (ValueId v : op.results) bytes = std::max(bytes, dtype_bytes(g_.type(v).dtype()));
    for (ValueId v : op.operands) bytes = std::max(bytes, dtype_bytes(g_.type(v).dtype()));
    total += m.cost;
    if (op.def == &o::kReduce && (op.results.size() > 1 || !known_reducer(*op.regions[0])))
      one_by_one = true;
  }
  // A reduction by an unknown region takes the elements of a row in their order.
  if (one_by_one && loop_reduced(vector)) return 1;
  std::int64_t lanes = kVectorBytes / std::clamp(bytes, 2, 8);
  if (total <= 24 && !pure_)
    lanes *= 4;
  else if (total <= 40)
    lanes *= 2;
  lanes = std::min<std::int64_t>(lanes, 64);
  return static_cast<int>(std::min(lanes, power_of_two(vector.size)));
}

int LoopKernel::find_alias(ValueId output, const std::vector<ValueId>& inputs,
                           std::vector<bool>* taken) const {
  const Member& m = members_[static_cast<std::size_t>(member_of_.at(output))];
  if (m.row) return -1;
  const DType dtype = g_.type(output).dtype();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Type& t = g_.type(inputs[i]);
    if ((*taken)[i] || t.nbytes() != g_.type(output).nbytes() ||
        dtype_bytes(t.dtype()) != dtype_bytes(dtype) || !dies_(inputs[i]))
      continue;
    bool same = true;
    for (const Read& r : reads_)
      if (r.v == inputs[i]) same = same && r.flat == whole_ && r.stage <= m.stage;
    // A value computed again in a later walk reads its inputs again.
    for (const Member& other : members_)
      if (other.late && !other.scratch) same = false;
    if (!same) continue;
    (*taken)[i] = true;
    return static_cast<int>(i);
  }
  return -1;
}

void LoopKernel::declare_params(LoweredKernel* out) {
  for (ValueId v : group_.inputs) {
    refs_[v] = k().read(g_.type(v).dtype(), {g_.type(v).size()});
    out->operands.push_back(v);
    out->alias.push_back(-1);
    out->bytes += static_cast<double>(g_.type(v).nbytes());
  }
  std::vector<bool> taken(group_.inputs.size(), false);
  for (ValueId v : group_.outputs) {
    const int alias = find_alias(v, group_.inputs, &taken);
    refs_[v] = k().write(g_.type(v).dtype(), {g_.type(v).size()}, {}, alias);
    out->operands.push_back(v);
    out->alias.push_back(alias);
    out->bytes += static_cast<double>(g_.type(v).nbytes());
  }
  std::int64_t inner = 1;
  for (const Loop& l : loops())
    if (loop_reduced(l)) inner *= l.size;
  for (const Member& m : members_)
    if (m.scratch) {
      const ValueId v = g_.ops[static_cast<std::size_t>(m.op)].results[0];
      scratch_[v] = k().scratch(g_.type(v).dtype(), {column_ ? inner * lanes() : inner});
    }
}

LoweredKernel LoopKernel::generate(std::vector<Loop> merged) {
  loops() = std::move(merged);
  pure_ = true;
  for (const Member& m : members_) pure_ = pure_ && !m.reduction;
  column_ = !pure_ && !loop_reduced(loops().back());
  set_lanes(choose_lanes());
  const std::int64_t n = loops().back().size;
  std::int64_t inner_stride = 1;
  for (std::size_t l = loops().size(); l-- > 0;)
    if (loop_reduced(loops()[l])) {
      scratch_form_ = scratch_form_ + Form::axis(loops()[l].last, inner_stride);
      inner_stride *= loops()[l].size;
    }

  LoweredKernel out;
  std::int64_t rows = 1;
  for (std::size_t l = 0; l < loops().size(); ++l) {
    Loop& loop = loops()[l];
    if (l + 1 == loops().size() || loop_reduced(loop)) continue;
    rows *= loop.size;
    loop.value = k().parallel(loop.size);
  }
  Value tile;
  if (pure_) {
    chunk_ = n;
    if (n > 16384 || rows < 32)
      chunk_ = std::min(n, round_up(std::clamp<std::int64_t>(n * rows / 64, 512, 8192), lanes()));
    const std::int64_t chunks = (n + chunk_ - 1) / chunk_;
    if (chunks > 1) tile = k().parallel(chunks);
    rows *= chunks;
  } else if (column_) {
    const std::int64_t tiles = (n + lanes() - 1) / lanes();
    if (tiles > 1) tile = k().parallel(tiles);
    rows *= tiles;
  }
  out.points = rows;
  declare_params(&out);
  cost = 0;
  if (pure_) {
    chunk_start_ = tile.defined() ? k().mul(tile, chunk_) : k().index(0);
    elementwise_body();
  } else {
    if (column_) loops().back().value = tile.defined() ? k().mul(tile, lanes()) : k().index(0);
    row_body();
  }
  out.kernel = k().finish();
  out.flops = static_cast<double>(group_.total) * cost;
  out.ns = out.flops * 0.25 / 16 + out.bytes / 20 + 20;
  return out;
}

// ---- Bodies ----------------------------------------------------------------------------------

void LoopKernel::elementwise_body() {
  Loop& vector = loops().back();
  const std::int64_t n = vector.size;
  const auto point = [&](Value at) {
    vector.value = at;
    Guard guard;
    if (n % lanes() != 0) guard.lanes = k().tail_mask(at, k().index(n), lanes());
    store_outputs(0, guard);
  };
  if (chunk_ <= lanes()) return point(chunk_start_);
  Value limit = k().index(n);
  if (chunk_ < n) limit = k().min(k().add(chunk_start_, chunk_), limit);
  k().for_(chunk_start_, limit, lanes(), std::span<const Value>(), [&](Value at, auto) {
    enter();
    point(at);
    leave();
    return Values{};
  });
}

// Computes the full members of a walk that somebody outside of it needs, then stores them.
void LoopKernel::store_outputs(int stage, const Guard& guard) {
  struct Store {
    ValueId v;
    Value tile;
    bool scratch;
  };
  std::vector<Store> stores;
  for (const Member& m : members_) {
    if (m.row || m.stage != stage) continue;
    const ValueId v = g_.ops[static_cast<std::size_t>(m.op)].results[0];
    if (!is_output(v) && !m.scratch) continue;
    const Value tile = eval_op(v, canonical(v), guard);
    if (is_output(v)) stores.push_back({v, tile, false});
    if (m.scratch) stores.push_back({v, tile, true});
  }
  for (const Store& s : stores) {
    if (!s.scratch) {
      store(refs_.at(s.v), whole_, s.tile, guard);
    } else if (column_ && lanes() > 1) {
      k().store(scratch_.at(s.v), widen(s.tile), {scalar_index(scratch_form_ * lanes())}, {0});
    } else {
      store(scratch_.at(s.v), scratch_form_, s.tile, guard);
    }
  }
}

void LoopKernel::row_body() {
  if (column_ && loops().back().size % lanes() != 0)
    outer_guard_.lanes =
        k().tail_mask(loops().back().value, k().index(loops().back().size), lanes());
  int last = 0;
  for (const Member& m : members_) last = std::max(last, m.stage + (m.reduction ? 1 : 0));
  for (int stage = 0; stage <= last; ++stage) {
    row_members(stage);
    walk_row(stage);
  }
}

void LoopKernel::set_row(ValueId v, Value tile) {
  rows_[v] = tile;
  if (is_output(v)) store(refs_.at(v), outer_, tile, outer_guard_);
}

// Row values that are known before walk `stage`.
void LoopKernel::row_members(int stage) {
  for (const Member& m : members_) {
    if (!m.row || m.reduction || m.stage != stage) continue;
    const ValueId v = g_.ops[static_cast<std::size_t>(m.op)].results[0];
    set_row(v, eval_op(v, canonical(v), outer_guard_));
  }
}

void LoopKernel::walk_row(int stage) {
  current_ = stage;
  bool any = false;
  for (const Member& m : members_) {
    if (m.stage != stage || (m.row && !m.reduction)) continue;
    any = any || m.reduction || m.scratch ||
          is_output(g_.ops[static_cast<std::size_t>(m.op)].results[0]);
  }
  if (!any) return;
  Values carries;
  const std::vector<Accumulator> accs = start(stage, &carries);
  enter();
  const Values done = nested(0, accs, std::move(carries), outer_guard_);
  leave();
  for (const Accumulator& acc : accs)
    end(acc, std::span<const Value>(done).subspan(acc.first, acc.count));
}

Values LoopKernel::nested(std::size_t l, const std::vector<Accumulator>& accs, Values carries,
                          const Guard& guard) {
  while (l < loops().size() && !loop_reduced(loops()[l])) ++l;
  if (l == loops().size()) return element(accs, carries, guard);
  Loop& loop = loops()[l];
  const bool vector = l + 1 == loops().size();
  const std::int64_t step = vector ? lanes() : 1;
  return k().for_(k().index(0), k().index(loop.size), step, carries,
                  [&](Value at, std::span<const Value> inside) {
                    enter();
                    loop.value = at;
                    Guard g = guard;
                    if (vector && loop.size % step != 0)
                      g.lanes = k().tail_mask(at, k().index(loop.size), lanes());
                    Values next = nested(l + 1, accs, Values(inside.begin(), inside.end()), g);
                    leave();
                    return next;
                  });
}

// ---- Reductions ------------------------------------------------------------------------------

namespace {

// Narrow floats are summed in f32.
DType accumulator_dtype(DType t) { return is_float(t) && dtype_bits(t) < 32 ? DType::kF32 : t; }

Attrs to_dtype(DType t) { return Attrs{{"result_dtype", Attr(t)}}; }
Attrs direction(const char* d) { return Attrs{{"comparison_direction", Attr(ir::EnumAttr(d))}}; }

}  // namespace

std::vector<Accumulator> LoopKernel::start(int stage, Values* carries) {
  std::vector<Accumulator> accs;
  const bool spread = lanes() > 1;
  const auto add = [&](Value v) { carries->push_back(spread ? widen(v) : v); };
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& m = members_[i];
    if (!m.reduction || m.stage != stage) continue;
    const Op& op = g_.ops[static_cast<std::size_t>(m.op)];
    Accumulator acc;
    acc.member = static_cast<int>(i);
    acc.first = carries->size();
    if (op.def == &o::kReduce) {
      acc.known = op.results.size() == 1 ? known_reducer(*op.regions[0]) : nullptr;
      if (acc.known) {
        acc.dtype = accumulator_dtype(g_.type(op.results[0]).dtype());
        add(k().constant(reducer_identity(*acc.known, acc.dtype)));
      } else {
        acc.count = op.results.size();
        for (std::size_t r = 0; r < acc.count; ++r) {
          Value init = eval(op.operands[acc.count + r], {}, {});
          const DType want = g_.type(op.results[r]).dtype();
          if (k().dtype(init) != want) init = apply(o::kConvert, {init}, to_dtype(want));
          add(init);
        }
      }
    } else {
      acc.arg = true;
      acc.count = 2;
      acc.dtype = g_.type(op.operands[0]).dtype();
      const ir::OpDef& worst = op.def == &o::kArgmax ? o::kMaximum : o::kMinimum;
      add(k().constant(reducer_identity(worst, acc.dtype)));
      add(k().index(std::numeric_limits<std::int64_t>::max()));
    }
    accs.push_back(acc);
  }
  return accs;
}

// Whether (a, ai) comes before (b, bi): larger (smaller), NaN first of all, then the lower index.
Value LoopKernel::arg_better(const Op& op, Value a, Value ai, Value b, Value bi) {
  const char* better = op.def == &o::kArgmax ? "GT" : "LT";
  const Value lower = apply(o::kCompare, {ai, bi}, direction("LT"));
  const Value equal = apply(o::kCompare, {a, b}, direction("EQ"));
  Value first = apply(o::kCompare, {a, b}, direction(better));
  if (!is_float(k().dtype(a))) return apply(o::kOr, {first, apply(o::kAnd, {equal, lower})});
  const Value na = apply(o::kCompare, {a, a}, direction("NE"));
  const Value nb = apply(o::kCompare, {b, b}, direction("NE"));
  const Value tie = apply(o::kOr, {equal, apply(o::kAnd, {na, nb})});
  first = apply(o::kOr, {first, apply(o::kAnd, {na, apply(o::kNot, {nb})})});
  return apply(o::kOr, {first, apply(o::kAnd, {tie, lower})});
}

Values LoopKernel::combine(const Accumulator& acc, const Values& a, const Values& b) {
  if (acc.known) return {apply(*acc.known, {a[0], b[0]})};
  const Op& op =
      g_.ops[static_cast<std::size_t>(members_[static_cast<std::size_t>(acc.member)].op)];
  const Value take = arg_better(op, b[0], b[1], a[0], a[1]);
  return {apply(o::kSelect, {take, b[0], a[0]}), apply(o::kSelect, {take, b[1], a[1]})};
}

// One element (tile) of the walk.
Values LoopKernel::element(const std::vector<Accumulator>& accs, std::span<const Value> carries,
                           const Guard& guard) {
  Values next;
  const bool spread = lanes() > 1;
  for (const Accumulator& acc : accs) {
    const Op& op =
        g_.ops[static_cast<std::size_t>(members_[static_cast<std::size_t>(acc.member)].op)];
    const Forms index = split_index(whole_, g_.type(op.operands[0]).dims(), {});
    const Values old(carries.begin() + static_cast<std::ptrdiff_t>(acc.first),
                     carries.begin() + static_cast<std::ptrdiff_t>(acc.first + acc.count));
    Values now;
    if (acc.known) {
      Value x = eval(op.operands[0], index, guard);
      if (k().dtype(x) != acc.dtype) x = apply(o::kConvert, {x}, to_dtype(acc.dtype));
      now = combine(acc, old, {x});
    } else if (acc.arg) {
      const Form& f = index[at_dim(op)];
      const Value i = has_lanes(f) ? index_tile(f) : scalar_index(f);
      now = combine(acc, old, {eval(op.operands[0], index, guard), i});
    } else {
      Values args = old;
      const ir::Graph& region = *op.regions[0];
      for (std::size_t r = 0; r < acc.count; ++r) {
        Value x = eval(op.operands[r], index, guard);
        const DType want = region.type(region.params[acc.count + r]).dtype();
        if (k().dtype(x) != want) x = apply(o::kConvert, {x}, to_dtype(want));
        args.push_back(x);
      }
      for (std::size_t c = 2 * acc.count; c < op.operands.size(); ++c)
        args.push_back(eval(op.operands[c], {}, {}));
      now = inline_region(region, args);
    }
    for (std::size_t c = 0; c < acc.count; ++c) {
      Value v = spread ? widen(now[c]) : now[c];
      // Lanes behind the end of the row keep what they had.
      if (guard.lanes.defined() && !column_) v = apply(o::kSelect, {guard.lanes, v, old[c]});
      next.push_back(v);
    }
  }
  store_outputs(current_, guard);
  return next;
}

Value LoopKernel::half(Value tile, std::int64_t start, std::int64_t size) {
  return k().one(o::kSlice, {tile},
                 Attrs{{"start_indices", Attr(Dims{start})},
                       {"limit_indices", Attr(Dims{start + size})},
                       {"strides", Attr(Dims{1})}});
}

// Combines the lanes by halves, then the init.
void LoopKernel::end(const Accumulator& acc, std::span<const Value> carries) {
  const Op& op =
      g_.ops[static_cast<std::size_t>(members_[static_cast<std::size_t>(acc.member)].op)];
  Values v(carries.begin(), carries.end());
  if (!column_ && lanes() > 1) {
    for (std::int64_t width = lanes() / 2; width >= 1; width /= 2) {
      Values a, b;
      for (Value x : v) {
        a.push_back(half(x, 0, width));
        b.push_back(half(x, width, width));
      }
      v = combine(acc, a, b);
    }
    for (Value& x : v) x = k().one(o::kReshape, {x}, Attrs{{"shape", Attr(Dims{})}});
  }
  if (acc.known) {
    Value init = eval(op.operands[1], {}, {});
    if (k().dtype(init) != acc.dtype) init = apply(o::kConvert, {init}, to_dtype(acc.dtype));
    v[0] = apply(*acc.known, {init, v[0]});
    const DType want = g_.type(op.results[0]).dtype();
    if (want != acc.dtype) v[0] = apply(o::kConvert, {v[0]}, to_dtype(want));
  } else if (acc.arg) {
    v = {apply(o::kConvert, {v[1]}, to_dtype(g_.type(op.results[0]).dtype()))};
  }
  for (std::size_t r = 0; r < op.results.size(); ++r) set_row(op.results[r], v[r]);
}

// ---- Space -----------------------------------------------------------------------------------

struct Axes {
  Dims sizes;
  std::vector<bool> reduced;

  AxisTable table() const {
    AxisTable t;
    for (std::int64_t s : sizes) t.axes.push_back({s, true, false});
    return t;
  }
  void forms(Form* whole, Form* outer) const {
    *whole = *outer = Form();
    std::int64_t stride = 1, outer_stride = 1;
    for (int i = sizes.ssize() - 1; i >= 0; --i) {
      if (sizes[i] == 1) continue;
      *whole = *whole + Form::axis(i, stride);
      stride *= sizes[i];
      if (!reduced[static_cast<std::size_t>(i)]) {
        *outer = *outer + Form::axis(i, outer_stride);
        outer_stride *= sizes[i];
      }
    }
  }
};

// Neighbouring axes that every form steps through as one become one loop.
std::vector<Elemental::Loop> merge_axes(const Axes& axes, const std::vector<Form>& recorded) {
  std::vector<Elemental::Loop> loops;
  for (int i = 0; i < axes.sizes.ssize(); ++i) {
    if (!loops.empty() && axes.reduced[static_cast<std::size_t>(i)] ==
                              axes.reduced[static_cast<std::size_t>(i) - 1]) {
      bool one = true;
      for (const Form& f : recorded) one = one && f.coef(i - 1) == f.coef(i) * axes.sizes[i];
      if (one) {
        loops.back().last = i;
        loops.back().size *= axes.sizes[i];
        continue;
      }
    }
    loops.push_back({i, i, axes.sizes[i], {}});
  }
  return loops;
}

}  // namespace

LoweredKernel make_loop_kernel(const Graph& graph, const Plan& plan, const Group& group,
                               const std::function<bool(ValueId)>& dies) {
  Axes axes;
  for (const Part& p : group.space) {
    axes.sizes.push_back(p.size);
    axes.reduced.push_back(p.reduced);
  }
  if (axes.sizes.empty()) {
    axes.sizes.push_back(1);
    axes.reduced.push_back(false);
  }
  for (int round = 0;; ++round) {
    XYLEM_CHECK(round < 64, "cutting axes did not end");
    Form whole, outer;
    axes.forms(&whole, &outer);
    LoopKernel look(graph, plan, group, dies, axes.table(), nullptr);
    look.set_space(whole, outer, axes.reduced);
    look.look();
    AxisSplit cut;
    for (const AxisSplit& s : look.splits)
      if (s.axis < axes.sizes.ssize() && cut.axis < 0) cut = s;
    if (cut.axis >= 0) {
      axes.sizes[cut.axis] /= cut.inner;
      axes.sizes.insert(static_cast<std::size_t>(cut.axis) + 1, cut.inner);
      axes.reduced.insert(axes.reduced.begin() + cut.axis + 1,
                          axes.reduced[static_cast<std::size_t>(cut.axis)]);
      continue;
    }
    std::vector<Elemental::Loop> loops = merge_axes(axes, look.recorded);
    const Op& last = graph.ops[static_cast<std::size_t>(group.ops.back())];
    KernelBuilder builder(
        fmt::format("fused_{}", last.def->name.substr(last.def->name.find('.') + 1)));
    LoopKernel real(graph, plan, group, dies, axes.table(), &builder);
    real.set_space(whole, outer, axes.reduced);
    real.copy_look(look);
    return real.generate(std::move(loops));
  }
}

}  // namespace xylem::compiler
