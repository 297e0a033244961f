#include "xylem/core/transform/checkify.h"

#include <map>

#include "xylem/base/error.h"
#include "xylem/core/lax/indexing.h"
#include "xylem/core/transform/passes.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/custom_linear.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Builder;
using ir::Expr;
using ir::Graph;
using ir::GraphPtr;
using ir::Op;
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

constexpr unsigned kKinds[] = {kUserCheck, kNanCheck, kIndexCheck, kDivisionCheck};

// Ops that are their first region, wherever they stand.
bool is_call(const Op& op) {
  return op.def == &ops::kCall || op.def == &ops::kCustomJvp || op.def == &ops::kCustomVjp ||
         op.def == &ops::kRemat || op.def == &ops::kLinearSolve || op.def == &ops::kCustomVmap ||
         op.def == &ops::kComposite;
}
bool is_loop_or_branch(const Op& op) {
  return op.def == &ops::kScan || op.def == &ops::kWhile || op.def == &ops::kIf ||
         op.def == &ops::kCase;
}

bool makes_numbers(const Graph& g, const Op& op) {
  if (!op.regions.empty() && op.def != &ops::kReduce && op.def != &ops::kScatter) return false;
  if (op.def->is(ir::kStructural) || op.def->is(ir::kConstant) || op.operands.empty()) return false;
  if (op.def == &ops::kSelect || op.def == &ops::kConcatenate || op.def == &ops::kGather ||
      op.def == &ops::kStopGradient || op.def == &ops::kCheckpointName ||
      op.def == &ops::kOptimizationBarrier || op.def == &ops::kDynamicSlice ||
      op.def == &ops::kDynamicUpdateSlice || op.def == &ops::kBitcastConvert)
    return false;
  for (ValueId r : op.results)
    if (is_inexact(g.type(r).dtype())) return true;
  return false;
}

bool indexes(const Op& op) {
  return op.def == &ops::kGather || op.def == &ops::kScatter || op.def == &ops::kDynamicSlice ||
         op.def == &ops::kDynamicUpdateSlice;
}

class Checkifier {
 public:
  explicit Checkifier(unsigned kinds) : kinds_(kinds) {}

  Checkified run(const Graph& g) {
    collect(g);
    for (const CheckEntry& e : out_.entries) {
      first_.push_back(slots_.size());
      slots_.insert(slots_.end(), e.payload.begin(), e.payload.end());
    }
    Builder b(g.name);
    std::vector<ValueId> args;
    for (ValueId v : g.params) args.push_back(b.param(g.type(v)));
    std::vector<ValueId> state = {b.splat(DType::kI32, {}, 0)};
    for (const Type& t : slots_) state.push_back(b.splat(t.dtype(), t.dims(), 0));
    std::vector<ValueId> results = body(b, g, args, state);
    results.insert(results.begin(), state.begin(), state.end());
    out_.graph = b.finish(std::move(results));
    return std::move(out_);
  }

 private:
  using State = std::vector<ValueId>;

  // --- what can fail ----------------------------------------------------------------------------

  void add(const Op& op, CheckEntry e) {
    auto key = std::pair{&op, static_cast<unsigned>(e.kind)};
    if (entry_of_.contains(key)) return;
    entry_of_[key] = out_.entries.size();
    e.op = op.def->name;
    e.where = op.loc.source;
    out_.entries.push_back(std::move(e));
  }

  void collect(const Graph& g) {
    for (const Op& op : g.ops) {
      if (op.def == &ops::kCheck && (kinds_ & kUserCheck)) {
        CheckEntry e;
        e.code = op.attrs.i64("code");
        for (std::size_t i = 1; i < op.operands.size(); ++i)
          e.payload.push_back(g.type(op.operands[i]));
        add(op, std::move(e));
      }
      if (indexes(op) && (kinds_ & kIndexCheck)) {
        CheckEntry e;
        e.kind = kIndexCheck;
        e.shape = g.type(op.operands[0]).dims();
        e.payload = {Type::tensor(DType::kI64), Type::tensor(DType::kI32)};
        add(op, std::move(e));
      }
      if (op.def == &ops::kDivide && (kinds_ & kDivisionCheck)) {
        CheckEntry e;
        e.kind = kDivisionCheck;
        add(op, std::move(e));
      }
      if ((kinds_ & kNanCheck) && makes_numbers(g, op)) {
        CheckEntry e;
        e.kind = kNanCheck;
        add(op, std::move(e));
      }
      if (is_call(op)) collect(*op.regions[0]);
      if (is_loop_or_branch(op))
        for (const GraphPtr& r : op.regions) collect(*r);
    }
  }

  bool can_fail(const Graph& g) const {
    for (const Op& op : g.ops) {
      for (unsigned k : kKinds)
        if (entry_of_.contains({&op, k})) return true;
      if (is_call(op) && can_fail(*op.regions[0])) return true;
      if (is_loop_or_branch(op))
        for (const GraphPtr& r : op.regions)
          if (can_fail(*r)) return true;
    }
    return false;
  }

  // --- the state --------------------------------------------------------------------------------

  void record(Builder& b, State& state, Expr fails, const Op& op, CheckKind kind,
              std::span<const ValueId> payload) const {
    const std::size_t i = entry_of_.at({&op, static_cast<unsigned>(kind)});
    Expr code{&b, state[0]};
    Expr first = ir::binary(ops::kAnd, fails, ir::compare(code, 0, "EQ"));
    state[0] = ir::select(first, ir::scalar(b, DType::kI32, static_cast<double>(i + 1)), code).v;
    for (std::size_t k = 0; k < payload.size(); ++k) {
      ValueId& slot = state[1 + first_[i] + k];
      slot = ir::select(first, Expr{&b, payload[k]}, Expr{&b, slot}).v;
    }
  }

  static Expr any(Expr x) {
    Dims axes;
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
    return axes.empty() ? x : ir::reduce(ops::kOr, x, axes);
  }
  static Expr negated(Builder& b, Expr x) { return {&b, b.one(ops::kNot, {x.v})}; }

  // --- checks of one op -------------------------------------------------------------------------

  // `indices` of any shape, which of them are bad, and the array's axis that each belongs to.
  void record_index(Builder& b, State& state, const Op& op, Expr indices, Expr bad,
                    Expr axis) const {
    std::int64_t n = num_elements(indices.dims());
    if (n == 0) return;
    auto row = [&](Expr x) { return ir::reshape(x, Dims{n}); };
    Expr place = ir::iota(b, DType::kI32, Dims{n}, 0);
    Expr first =
        ir::reduce(ops::kMinimum,
                   ir::select(row(bad), place, ir::like(place, static_cast<double>(n - 1))), {0});
    auto pick = [&](Expr x) {
      ValueId v = b.one(ops::kDynamicSlice, {row(x).v, first.v}, {{"slice_sizes", Attr(Dims{1})}});
      return ir::reshape({&b, v}, {}).v;
    };
    record(b, state, any(bad), op, kIndexCheck,
           std::vector<ValueId>{pick(ir::convert(indices, DType::kI64)), pick(axis)});
  }

  static Expr axes_of(Builder& b, const Dims& map, const Dims& shape, int vector_dim) {
    std::vector<std::int32_t> v(map.begin(), map.end());
    Expr row{&b, b.constant(HostArray::from(v, {map.ssize()}))};
    if (vector_dim < shape.ssize()) return ir::broadcast_in_dim(row, shape, Dims{vector_dim});
    return ir::broadcast_in_dim(ir::reshape(row, {}), shape, {});
  }

  void check_index(Builder& b, State& state, const Op& op, const std::vector<ValueId>& in) const {
    const Type operand = b.type(in[0]);
    if (op.def == &ops::kGather || op.def == &ops::kScatter) {
      const bool reads = op.def == &ops::kGather;
      const lax::ScatterDims s =
          reads ? lax::scatter_dims_of(lax::GatherDims(op.attrs)) : lax::ScatterDims(op.attrs);
      Dims sizes =
               reads ? op.attrs.dims("slice_sizes") : lax::window_sizes(s, operand, b.type(in[2])),
           last;
      for (std::int64_t d : s.scatter_dims_to_operand_dims)
        last.push_back(operand.dim(static_cast<int>(d)) - sizes[d]);
      if (last.empty()) return;
      Expr indices{&b, in[1]};
      const auto axis = static_cast<int>(s.index_vector_dim);
      Expr bad = ir::compare(indices, lax::clamp_indices(indices, last, axis), "NE");
      record_index(b, state, op, indices, bad,
                   axes_of(b, s.scatter_dims_to_operand_dims, indices.dims(), axis));
      return;
    }
    const bool update = op.def == &ops::kDynamicUpdateSlice;
    const Dims sizes = update ? b.type(in[1]).dims() : op.attrs.dims("slice_sizes");
    std::vector<Expr> starts;
    Dims last, map;
    for (int d = 0; d < operand.rank(); ++d) {
      Expr start{&b, in[static_cast<std::size_t>(d + (update ? 2 : 1))]};
      starts.push_back(ir::reshape(ir::convert(start, DType::kI64), {1}));
      last.push_back(operand.dim(d) - sizes[d]);
      map.push_back(d);
    }
    if (starts.empty()) return;
    Expr indices = ir::concatenate(starts, 0);
    Expr bad = ir::compare(indices, lax::clamp_indices(indices, last, 0), "NE");
    record_index(b, state, op, indices, bad, axes_of(b, map, indices.dims(), 0));
  }

  void check(Builder& b, State& state, const Op& op, const std::vector<ValueId>& in,
             const std::vector<ValueId>& out) const {
    auto asked = [&](unsigned kind) { return entry_of_.contains({&op, kind}); };
    if (asked(kIndexCheck)) check_index(b, state, op, in);
    if (asked(kDivisionCheck)) {
      Expr y{&b, in[1]};
      record(b, state, any(ir::compare(y, 0, "EQ")), op, kDivisionCheck, {});
    }
    if (asked(kNanCheck)) {
      Expr bad{&b, ir::kNoValue};
      for (ValueId v : out) {
        Expr x{&b, v};
        if (!is_inexact(x.dtype())) continue;
        Expr nan = any(ir::compare(x, x, "NE"));
        bad = bad.defined() ? ir::binary(ops::kOr, bad, nan) : nan;
      }
      record(b, state, bad, op, kNanCheck, {});
    }
  }

  // --- programs ---------------------------------------------------------------------------------

  std::vector<ValueId> body(Builder& b, const Graph& g, std::span<const ValueId> args,
                            State& state) const {
    std::vector<ValueId> map(g.values.size(), ir::kNoValue);
    for (std::size_t i = 0; i < args.size(); ++i)
      map[static_cast<std::size_t>(g.params[i])] = args[i];
    for (const Op& op : g.ops) {
      std::vector<ValueId> in;
      for (ValueId v : op.operands) in.push_back(map[static_cast<std::size_t>(v)]);
      b.set_location(op.loc);
      std::vector<ValueId> out = step(b, op, in, state);
      for (std::size_t i = 0; i < out.size(); ++i)
        map[static_cast<std::size_t>(op.results[i])] = out[i];
    }
    std::vector<ValueId> results;
    for (ValueId v : g.results) results.push_back(map[static_cast<std::size_t>(v)]);
    return results;
  }

  std::vector<ValueId> step(Builder& b, const Op& op, const std::vector<ValueId>& in,
                            State& state) const {
    if (op.def == &ops::kCheck) {
      if (entry_of_.contains({&op, kUserCheck}))
        record(b, state, any(negated(b, {&b, in[0]})), op, kUserCheck, std::span(in).subspan(1));
      return {};
    }
    bool inside = false;
    for (const GraphPtr& r : op.regions) inside = inside || can_fail(*r);
    if (inside && is_call(op) && can_fail(*op.regions[0]))
      return body(b, *op.regions[0], in, state);
    if (inside && op.def == &ops::kScan) return scan(b, op, in, state);
    if (inside && op.def == &ops::kWhile) return loop(b, op, in, state);
    if (inside && (op.def == &ops::kIf || op.def == &ops::kCase)) return branches(b, op, in, state);
    ir::ValueIds r = b.clone(op, in);
    std::vector<ValueId> out(r.begin(), r.end());
    check(b, state, op, in, out);
    return out;
  }

  // Parameters for the state, behind what the builder has.
  State state_params(Builder& b) const {
    State s = {b.param(Type::tensor(DType::kI32))};
    for (const Type& t : slots_) s.push_back(b.param(t));
    return s;
  }

  static std::vector<ValueId> params(Builder& b, const Graph& g, std::size_t from, std::size_t to) {
    std::vector<ValueId> r;
    for (std::size_t i = from; i < to; ++i) r.push_back(b.param(g.type(g.params[i])));
    return r;
  }

  static void append(std::vector<ValueId>& to, std::span<const ValueId> from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  // Takes the state off the front of an op's results.
  static std::vector<ValueId> split(const ir::ValueIds& r, State& state) {
    std::copy(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(state.size()), state.begin());
    return {r.begin() + static_cast<std::ptrdiff_t>(state.size()), r.end()};
  }

  std::vector<ValueId> scan(Builder& b, const Op& op, const std::vector<ValueId>& in,
                            State& state) const {
    const auto consts = static_cast<std::size_t>(op.attrs.i64("num_consts"));
    const Graph& g = *op.regions[0];
    Builder rb(g.name);
    std::vector<ValueId> args = params(rb, g, 0, consts);
    State inner = state_params(rb);
    append(args, params(rb, g, consts, g.params.size()));
    std::vector<ValueId> r = body(rb, g, args, inner), results = inner;
    append(results, r);
    std::vector<ValueId> operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(consts));
    append(operands, state);
    append(operands, std::span(in).subspan(consts));
    ir::Attrs attrs = op.attrs;
    attrs.set("num_carry",
              Attr(op.attrs.i64("num_carry") + static_cast<std::int64_t>(state.size())));
    return split(b.op(ops::kScan, operands, std::move(attrs), {rb.finish(std::move(results))}),
                 state);
  }

  // The condition is checked where it is evaluated: before each step, and once more at the end.
  std::vector<ValueId> loop(Builder& b, const Op& op, const std::vector<ValueId>& in,
                            State& state) const {
    const Graph &cond = *op.regions[0], &step = *op.regions[1];
    const bool cond_fails = can_fail(cond);
    Builder cb(cond.name), sb(step.name);
    State unused = state_params(cb), inner = state_params(sb);
    State ignored = unused;
    std::vector<ValueId> ca = params(cb, cond, 0, cond.params.size()),
                         sa = params(sb, step, 0, step.params.size());
    std::vector<ValueId> go = body(cb, cond, ca, ignored);
    if (cond_fails) body(sb, cond, sa, inner);
    std::vector<ValueId> r = body(sb, step, sa, inner), results = inner;
    append(results, r);
    std::vector<ValueId> operands = state;
    append(operands, in);
    std::vector<ValueId> out =
        split(b.op(ops::kWhile, operands, op.attrs,
                   {dce_keeping(cb, std::move(go)), sb.finish(std::move(results))}),
              state);
    if (cond_fails) {
      std::vector<ValueId> last = out;
      append(last, std::span(in).subspan(out.size()));
      body(b, cond, last, state);
    }
    return out;
  }

  static GraphPtr dce_keeping(Builder& b, std::vector<ValueId> results) {
    return dce(*b.finish(std::move(results)));
  }

  std::vector<ValueId> branches(Builder& b, const Op& op, const std::vector<ValueId>& in,
                                State& state) const {
    std::vector<GraphPtr> regions;
    for (const GraphPtr& g : op.regions) {
      Builder rb(g->name);
      std::vector<ValueId> args = params(rb, *g, 0, g->params.size());
      State inner = state_params(rb);
      std::vector<ValueId> r = body(rb, *g, args, inner), results = inner;
      append(results, r);
      regions.push_back(rb.finish(std::move(results)));
    }
    std::vector<ValueId> operands = in;
    append(operands, state);
    ir::Attrs attrs = op.attrs;
    attrs.set("num_captures", Attr(static_cast<std::int64_t>(operands.size()) - 1));
    return split(b.op(*op.def, operands, std::move(attrs), std::move(regions)), state);
  }

  unsigned kinds_;
  Checkified out_;
  std::map<std::pair<const Op*, unsigned>, std::size_t> entry_of_;
  std::vector<std::size_t> first_;  // slot of each entry's payload
  std::vector<Type> slots_;
};

}  // namespace

Checkified checkify(const Graph& g, unsigned kinds) { return Checkifier(kinds).run(g); }

}  // namespace xylem::transform
