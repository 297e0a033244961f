#include <algorithm>
#include <utility>

#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/compiler/reducer.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/window_selection.h"

// Ops whose regions see single elements, as ops on whole arrays.

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::GraphPtr;
using ir::Op;
using ir::Type;
using ir::ValueId;

ValueId reshape(Builder& b, ValueId v, const Dims& shape) {
  return b.one(o::kReshape, {v}, Attrs{{"shape", Attr(shape)}});
}

ValueId spread(Builder& b, ValueId scalar, const Dims& shape) {
  return b.one(o::kBroadcastInDim, {scalar},
               Attrs{{"broadcast_dimensions", Attr(Dims{})}, {"shape", Attr(shape)}});
}

// A region with control flow of its own is applied to one element after the other.
ValueId expand_map_as_scan(Builder& b, const Op& op, std::span<const ValueId> operands) {
  const auto captures = static_cast<std::size_t>(op.attrs.i64_or("num_captures", 0));
  const std::size_t n = operands.size() - captures;
  const Type t = b.type(operands[0]);
  const ir::Graph& region = *op.regions[0];
  // A scan's body takes constants first.
  Builder body("map");
  std::vector<ValueId> params, args;
  for (std::size_t i = 0; i < operands.size(); ++i)
    params.push_back(body.param(region.type(region.params[(i + n) % operands.size()])));
  for (std::size_t i = 0; i < operands.size(); ++i)
    args.push_back(params[(i + captures) % operands.size()]);
  const GraphPtr graph = body.finish(body.inline_graph(region, args));
  std::vector<ValueId> in(operands.begin() + static_cast<std::ptrdiff_t>(n), operands.end());
  for (ValueId v : operands.first(n)) in.push_back(reshape(b, v, {t.size()}));
  const ValueId flat = b.one(o::kScan, std::span<const ValueId>(in),
                             Attrs{{"length", Attr(t.size())},
                                   {"num_consts", Attr(static_cast<std::int64_t>(captures))},
                                   {"num_carry", Attr(0)}},
                             {graph});
  return reshape(b, flat, t.dims());
}

// map of a region of elementwise ops is the same ops on whole arrays.
ValueId expand_map(Builder& b, const Op& op, std::span<const ValueId> operands) {
  const ir::Graph& region = *op.regions[0];
  for (const Op& inner : region.ops)
    if (!inner.def->is(ir::kPointwise) && !inner.def->is(ir::kConstant))
      return expand_map_as_scan(b, op, operands);
  const auto captures = static_cast<std::size_t>(op.attrs.i64_or("num_captures", 0));
  const std::size_t n = operands.size() - captures;
  const Dims shape = b.type(operands[0]).dims();
  std::vector<ValueId> map(region.values.size(), ir::kNoValue);
  const auto at = [&](ValueId v) -> ValueId& { return map[static_cast<std::size_t>(v)]; };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i >= n && b.type(operands[i]).rank() != 0) return expand_map_as_scan(b, op, operands);
    at(region.params[i]) = i < n ? operands[i] : spread(b, operands[i], shape);
  }
  for (const Op& inner : region.ops) {
    std::vector<ValueId> args;
    for (ValueId v : inner.operands) args.push_back(at(v));
    const ir::ValueIds results = b.clone(inner, args);
    for (std::size_t r = 0; r < results.size(); ++r)
      at(inner.results[r]) =
          inner.def->is(ir::kConstant) ? spread(b, results[r], shape) : results[r];
  }
  return at(region.results[0]);
}

// A reduce_window whose windows hold all that comes before (or after) a place, as JAX writes
// cumulative ops: the same as a walk, whose cost does not grow with the square of the dimension.
struct Walk {
  const ir::OpDef* op = nullptr;  // xylem.cumsum, …; null: no such windows
  std::int64_t dimension = 0;
  bool reverse = false;
};

Walk walk_of(const ir::Graph& g, const Op& op) {
  if (op.def != &o::kReduceWindow || op.results.size() != 1 || op.operands.size() != 2) return {};
  const Type& x = g.type(op.operands[0]);
  if (!x.is_static() || g.type(op.results[0]).dims() != x.dims()) return {};
  const Dims ones(x.dims().size(), 1);
  for (std::string_view name : {"window_strides", "window_dilations", "base_dilations"})
    if (op.attrs.dims_or(name, ones) != ones) return {};
  const Dims window = op.attrs.dims_or("window_dimensions", ones);
  const Attr* padding = op.attrs.find("padding");
  if (!padding) return {};
  Walk walk{nullptr, -1, false};
  for (int d = 0; d < x.rank(); ++d) {
    const HostArray& p = *padding->get<HostArray>();
    const std::int64_t low = static_cast<std::int64_t>(p.at(2 * d)),
                       high = static_cast<std::int64_t>(p.at(2 * d + 1)), n = x.dim(d);
    if (window[d] == 1 && low == 0 && high == 0) continue;
    if (walk.dimension >= 0 || window[d] != n || low + high != n - 1 || (low != 0 && high != 0))
      return {};
    walk.dimension = d;
    walk.reverse = low == 0;
  }
  if (walk.dimension < 0) return {};
  const ir::OpDef* step = known_reducer(*op.regions[0]);
  const ir::OpDef* by_step = step == &o::kAdd        ? &o::kCumsum
                             : step == &o::kMultiply ? &o::kCumprod
                             : step == &o::kMaximum  ? &o::kCummax
                             : step == &o::kMinimum  ? &o::kCummin
                                                     : nullptr;
  if (!by_step || x.dtype() == DType::kBool) return {};
  const Op* init = g.def(op.operands[1]);
  while (init && (init->def == &o::kBroadcastInDim || init->def == &o::kReshape))
    init = g.def(init->operands[0]);
  if (!init || init->def != &o::kConstant) return {};
  const HostArray value = init->attrs.at("value").get<HostArray>()->reshape({});
  const bool zero = step == &o::kAdd && value.bit_equal(HostArray::zeros(x.dtype(), {}));
  if (zero || value.bit_equal(reducer_identity(*step, x.dtype()))) walk.op = by_step;
  return walk;
}

ValueId expand_walk(Builder& b, const Walk& walk, std::span<const ValueId> operands) {
  const ValueId walked =
      b.one(*walk.op, {operands[0]},
            Attrs{{"dimension", Attr(walk.dimension)}, {"reverse", Attr(walk.reverse)}});
  if (walk.op != &o::kCumsum) return walked;
  // 0 + -0.0 is 0.0; a walk starts with its first element.
  return b.one(o::kAdd, {walked, spread(b, operands[1], b.type(walked).dims())});
}

}  // namespace

ir::GraphPtr expand_windows(const ir::GraphPtr& graph) {
  const auto matters = [](const Op& op) {
    return op.def == &o::kSelectAndScatter || op.def == &o::kMap || op.def == &o::kReduceWindow;
  };
  if (std::none_of(graph->ops.begin(), graph->ops.end(), matters)) return graph;
  Rewriter rewriter(*graph);
  Builder& b = rewriter.builder();
  for (const Op& op : graph->ops) {
    b.set_location(op.loc);
    const ir::ValueIds operands = rewriter.operands(op);
    if (op.def == &o::kSelectAndScatter)
      rewriter.set(op.results[0], o::expand_select_and_scatter(b, op, operands));
    else if (op.def == &o::kMap)
      rewriter.set(op.results[0], expand_map(b, op, operands));
    else if (const Walk walk = walk_of(*graph, op); walk.op)
      rewriter.set(op.results[0], expand_walk(b, walk, operands));
    else
      rewriter.copy(op);
  }
  return rewriter.finish();
}

}  // namespace xylem::compiler
