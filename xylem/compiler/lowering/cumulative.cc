// Ops that walk along dimensions in order: cumulative sums and windows.

#include <algorithm>

#include "xylem/compiler/fusion/buffer_elemental.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/compiler/reducer.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Op;
using ir::ValueId;
using Value = ir::KernelValue;
using Values = std::vector<Value>;

Value convert(Elemental& e, Value v, DType to) {
  if (e.k().dtype(v) == to) return v;
  return e.apply(o::kConvert, {v}, Attrs{{"result_dtype", Attr(to)}});
}

const ir::OpDef& step_op(const Op& op) {
  if (op.def == &o::kCumsum) return o::kAdd;
  if (op.def == &o::kCumprod) return o::kMultiply;
  return op.def == &o::kCummax ? o::kMaximum : o::kMinimum;
}

}  // namespace

// One walk per row; the lanes are the rows where the dimension is not the last.
void lower_cumulative(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const ir::Type& t = g.type(op.operands[0]);
  const std::int64_t axis = op.attrs.i64("dimension");
  const bool reverse = op.attrs.flag("reverse");
  const ir::OpDef& combine = step_op(op);
  const DType wide = is_float(t.dtype()) && dtype_bits(t.dtype()) < 32 ? DType::kF32 : t.dtype();
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < t.rank(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : t.dim(d);
  const std::int64_t n = t.dim(static_cast<int>(axis));
  const Dims shape = {outer, inner};
  ir::KernelBuilder k("cumulative");
  TileLoops loops;
  loops.declare(k, shape, dtype_bytes(wide));
  // The walk's index is a third axis, in front: forms are (walk, outer, inner).
  BufferElemental e(g, l.plan(), {n, outer, inner}, &k);
  const Value x = e.read(op.operands[0]);
  const Value y = k.write(t.dtype(), {t.size()}, {}, k.param_number(x));
  loops.run(e, shape, [&](const Elemental::Guard& guard) {
    std::vector<Elemental::Loop> pair = e.loops();
    pair[0].first = pair[0].last = 1;
    pair[1].first = pair[1].last = 2;
    Value start = k.constant(reducer_identity(combine, wide));
    if (e.lanes() > 1) start = e.widen(start);
    k.for_(k.index(0), k.index(n), 1, {start}, [&](Value i, std::span<const Value> acc) {
      e.enter();
      if (reverse) i = k.sub(k.index(n - 1), i);
      e.loops() = {{0, 0, n, i}, pair[0], pair[1]};
      Form flat = Form::axis(0, inner);
      if (outer > 1) flat = flat + Form::axis(1, n * inner);
      if (inner > 1) flat = flat + Form::axis(2);
      Value v = convert(e, e.load(x, flat, guard), wide);
      Value next = e.apply(combine, {acc[0], v});
      e.store(y, flat, convert(e, next, t.dtype()), guard);
      e.leave();
      return Values{e.lanes() > 1 ? e.widen(next) : next};
    });
    e.loops() = pair;
    e.loops()[0].first = e.loops()[0].last = 0;
    e.loops()[1].first = e.loops()[1].last = 1;
  });
  l.kernel(k.finish(), {{l.buffer(op.operands[0])}, {l.buffer(op.results[0]), true, 0}},
           loops.points, static_cast<double>(t.size()) * (inner > 1 ? 0.2 : 1.5) + 20);
}

// result[i] = region over the window at i, in row-major order of the window.
void lower_reduce_window(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const std::size_t n = op.results.size();
  const Dims& out = g.type(op.results[0]).dims();
  const Dims& in = g.type(op.operands[0]).dims();
  const std::size_t rank = out.size();
  const Dims window = op.attrs.dims("window_dimensions");
  const Dims strides = op.attrs.dims_or("window_strides", Dims(rank, 1));
  const Dims dilation = op.attrs.dims_or("window_dilations", Dims(rank, 1));
  const Dims holes = op.attrs.dims_or("base_dilations", Dims(rank, 1));
  Dims low(rank, 0);
  if (const Attr* padding = op.attrs.find("padding"))
    for (std::size_t d = 0; d < rank; ++d)
      low[d] = static_cast<std::int64_t>(
          padding->get<HostArray>()->at(static_cast<std::int64_t>(2 * d)));
  int bytes = 1;
  for (ValueId v : op.results) bytes = std::max(bytes, dtype_bytes(g.type(v).dtype()));
  ir::KernelBuilder k("reduce_window");
  TileLoops loops;
  loops.declare(k, out, bytes);
  // Axes: the window's dimensions, then the result's.
  Dims axes;
  for (std::int64_t w : window) axes.push_back(w);
  for (std::int64_t d : out) axes.push_back(d);
  BufferElemental e(g, l.plan(), axes, &k);
  for (ValueId v : op.operands) e.read(v);
  Values results;
  for (ValueId v : op.results) results.push_back(k.write(g.type(v).dtype(), {g.type(v).size()}));
  loops.run(e, out, [&](const Elemental::Guard& guard) {
    std::vector<Elemental::Loop> own = e.loops();
    for (auto& loop : own) loop.first = loop.last = loop.first + static_cast<int>(rank);
    Values acc;
    for (std::size_t r = 0; r < n; ++r) {
      Value init = convert(e, e.eval(op.operands[n + r], {}, {}), g.type(op.results[r]).dtype());
      acc.push_back(e.lanes() > 1 ? e.widen(init) : init);
    }
    std::vector<Elemental::Loop> walked;
    const std::function<Values(std::size_t, Values)> walk = [&](std::size_t d, Values values) {
      if (d == rank) {
        e.loops() = walked;
        e.loops().insert(e.loops().end(), own.begin(), own.end());
        Forms at;
        Elemental::Guard condition;
        for (std::size_t i = 0; i < rank; ++i) {
          Form f = Form::number(-low[i]);
          if (out[i] > 1) f = f + Form::axis(static_cast<int>(rank + i), strides[i]);
          if (window[i] > 1) f = f + Form::axis(static_cast<int>(i), dilation[i]);
          bool never = false;
          at.push_back(e.spread_index(f, in[i], holes[i], &condition, &never));
          if (never) return values;  // the whole window lies in the padding
        }
        // Padding and holes do not take part.
        const Elemental::Guard inside = e.narrow(guard, condition);
        const Value ok = e.whole(condition);
        const ir::Graph& region = *op.regions[0];
        Values args = values;
        for (std::size_t r = 0; r < n; ++r)
          args.push_back(convert(e, e.eval(op.operands[r], at, inside),
                                 region.type(region.params[n + r]).dtype()));
        for (std::size_t c = 2 * n; c < op.operands.size(); ++c)
          args.push_back(e.eval(op.operands[c], {}, {}));
        Values next = e.inline_region(region, args);
        if (ok.defined())
          for (std::size_t r = 0; r < n; ++r)
            next[r] = e.apply(o::kSelect, {ok, next[r], values[r]});
        if (e.lanes() > 1)
          for (Value& v : next) v = e.widen(v);
        return next;
      }
      return k.for_(k.index(0), k.index(window[d]), 1, values,
                    [&](Value i, std::span<const Value> inside) {
                      e.enter();
                      walked.push_back({static_cast<int>(d), static_cast<int>(d), window[d], i});
                      Values next = walk(d + 1, Values(inside.begin(), inside.end()));
                      walked.pop_back();
                      e.leave();
                      return next;
                    });
    };
    const Values done = walk(0, acc);
    e.loops() = own;
    Form flat;
    const Dims out_strides = row_major_strides(out);
    for (std::size_t i = 0; i < rank; ++i)
      if (out[i] > 1) flat = flat + Form::axis(static_cast<int>(rank + i), out_strides[i]);
    for (std::size_t r = 0; r < n; ++r) e.store(results[r], flat, done[r], guard);
    for (auto& loop : e.loops()) loop.first = loop.last = loop.first - static_cast<int>(rank);
  });
  std::vector<Use> uses;
  for (ValueId v : e.inputs()) uses.push_back({v});
  for (ValueId v : op.results) uses.push_back({l.buffer(v), true});
  const double work =
      static_cast<double>(num_elements(out)) * static_cast<double>(num_elements(window));
  l.kernel(k.finish(), std::move(uses), loops.points, work * 0.15 + 20, work);
}

}  // namespace xylem::compiler
