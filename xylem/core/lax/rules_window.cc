// Derivatives, transposes and batching of windowed reductions.

#include <algorithm>

#include "xylem/core/lax/indexing.h"
#include "xylem/core/lax/through.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/window_selection.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Expr;
using ir::kNoValue;
using ir::OpDef;
using ir::ValueId;
namespace ops = ir::ops;

struct Window {
  Dims size, stride, base_dilation, dilation, low, high;

  Window(const Attrs& a, std::size_t rank)
      : size(a.dims_or("window_dimensions", Dims(rank, 1))),
        stride(a.dims_or("window_strides", Dims(rank, 1))),
        base_dilation(a.dims_or("base_dilations", Dims(rank, 1))),
        dilation(a.dims_or("window_dilations", Dims(rank, 1))),
        low(rank, 0),
        high(rank, 0) {
    if (!a.has("padding")) return;
    HostArray p = a.array("padding").astype(DType::kI64);
    for (std::size_t d = 0; d < rank; ++d) {
      low[d] = p.as<std::int64_t>()[2 * d];
      high[d] = p.as<std::int64_t>()[2 * d + 1];
    }
  }

  Dims holes() const {
    Dims r = base_dilation;
    for (std::int64_t& d : r) --d;
    return r;
  }
};

const OpDef* reducer_of(const ir::Op& op) {
  return op.results.size() == 1 ? ops::single_op_reducer(*op.regions[0]) : nullptr;
}

Expr flat_gather(Expr x, Expr places) {
  lax::GatherDims g;
  g.collapsed_slice_dims = {0};
  g.start_index_map = {0};
  g.index_vector_dim = places.rank();
  return lax::gather(ir::reshape(x, {x.type().size()}), places, g, {1});
}

// The body with a flag beside the operands that says whether there is an element.
ir::GraphPtr skipping_absent(const ir::Graph& body, std::size_t n) {
  Builder b(body.name);
  ir::Type flag = ir::Type::tensor(DType::kBool);
  std::vector<Expr> acc, element;
  Expr acc_there{&b, kNoValue}, element_there{&b, kNoValue};
  auto params = [&](std::vector<Expr>& side, std::size_t from) {
    for (std::size_t i = 0; i < n; ++i)
      side.push_back({&b, b.param(body.type(body.params[from + i]))});
    return Expr{&b, b.param(flag)};
  };
  acc_there = params(acc, 0);
  element_there = params(element, n);
  std::vector<ValueId> args, results;
  for (const std::vector<Expr>* side : {&acc, &element})
    for (Expr e : *side) args.push_back(e.v);
  for (std::size_t i = 2 * n; i < body.params.size(); ++i)
    args.push_back(b.param(body.type(body.params[i])));
  std::vector<ValueId> both = b.inline_graph(body, args);
  Expr two = ir::binary(ops::kAnd, acc_there, element_there);
  for (std::size_t i = 0; i < n; ++i)
    results.push_back(ir::select(two, {&b, both[i]}, ir::select(acc_there, acc[i], element[i])).v);
  results.push_back(ir::binary(ops::kOr, acc_there, element_there).v);
  return b.finish(results);
}

// The windows' contents as trailing axes, then a reduce over these. Padding and holes are no
// elements.
std::vector<ValueId> reduce_patches(Builder& b, const ir::Op& op,
                                    std::span<const ValueId> operands) {
  std::size_t n = op.results.size();
  const ir::Graph& body = *op.regions[0];
  const Dims from = b.type(operands[0]).dims();
  std::size_t rank = from.size();
  Window w(op.attrs, rank);
  std::vector<ir::Type> types;
  for (ValueId v : operands) types.push_back(b.type(v));
  Dims all = ir::infer_types({*op.def, types, op.attrs, op.regions, op.loc})[0].dims(), axes;
  for (std::size_t d = 0; d < rank; ++d) {
    all.push_back(w.size[d]);
    axes.push_back(static_cast<std::int64_t>(rank + d));
  }
  Expr flag{&b, b.splat(DType::kBool, from, 1)};
  auto patches = [&](Expr x, Expr padding) {
    if (num_elements(all) == 0) return ir::zeros(b, x.type().with_dims(all));
    if (rank == 0) return x;
    Expr padded = ir::pad(x, padding, w.low, w.high, w.holes());
    Expr place = ir::zeros(b, ir::Type::tensor(DType::kI64, all));
    std::int64_t step = 1;
    for (std::size_t d = rank; d-- > 0;) {
      auto at = static_cast<int>(d);
      Expr start = ir::iota(b, DType::kI64, all, at) * static_cast<double>(w.stride[d] * step);
      Expr inside = ir::iota(b, DType::kI64, all, at + static_cast<int>(rank)) *
                    static_cast<double>(w.dilation[d] * step);
      place = place + start + inside;
      step *= padded.dims()[d];
    }
    return flat_gather(padded, place);
  };
  std::vector<ValueId> args;
  for (std::size_t i = 0; i < n; ++i)
    args.push_back(patches({&b, operands[i]}, ir::scalar(b, b.type(operands[i]).dtype(), 0)).v);
  args.push_back(patches(flag, {&b, b.splat(DType::kBool, {}, 0)}).v);
  for (std::size_t i = 0; i < n; ++i) args.push_back(operands[n + i]);
  args.push_back(b.splat(DType::kBool, {}, 1));
  args.insert(args.end(), operands.begin() + static_cast<std::ptrdiff_t>(2 * n), operands.end());
  Attrs attrs{{"dimensions", Attr(axes)}};
  if (const Attr* captures = op.attrs.find("num_captures")) attrs.set("num_captures", *captures);
  ir::ValueIds r = b.op(ops::kReduce, args, std::move(attrs), {skipping_absent(body, n)});
  return {r.begin(), r.begin() + static_cast<std::ptrdiff_t>(n)};
}

// As in JAX, the first element that equals the maximum takes the whole tangent.
void extremum_jvp(JvpCall& c, std::string_view direction) {
  Expr y{&c.b, c.b.clone(c.op, c.primals)[0]};
  Expr x{&c.b, c.primals[0]}, init{&c.b, c.primals[1]}, t{&c.b, c.tangents[0]};
  c.primal_out = {y.v};
  if (x.type().size() == 0 || y.type().size() == 0) {
    c.tangent_out = {kNoValue};
    return;
  }
  Builder select;
  Expr a{&select, select.param(ir::Type::tensor(x.dtype()))};
  Expr e{&select, select.param(ir::Type::tensor(x.dtype()))};
  ir::GraphPtr keep = select.finish({ir::compare(a, e, direction).v});
  Expr still{&c.b, c.b.one(ops::kStopGradient, {x.v})};
  Expr place{&c.b, ops::selected_places(c.b, c.op.attrs, *keep, still.v)};
  // Windows of padding, and those whose initial value is beyond all elements, do not move.
  Expr best = flat_gather(still, place);
  Expr bound = ir::broadcast_to({&c.b, c.b.one(ops::kStopGradient, {init.v})}, best.dims());
  Expr moves =
      ir::binary(ops::kAnd, ir::compare(place, 0, "GE"),
                 ir::unary(ops::kNot, ir::compare(bound, best, direction == "GE" ? "GT" : "LT")));
  c.tangent_out = {ir::select(moves, flat_gather(t, place), like(best, 0)).v};
}

void reduce_window_jvp(JvpCall& c) {
  const OpDef* reducer = reducer_of(c.op);
  if (reducer == &ops::kAdd) {
    c.primal_out = {c.b.clone(c.op, c.primals)[0]};
    ValueId t[2] = {c.tangents[0], c.tangents[1]};
    for (std::size_t i = 0; i < 2; ++i)
      if (t[i] == kNoValue) t[i] = ir::zeros(c.b, c.b.type(c.primals[i])).v;
    c.tangent_out = {c.b.clone(c.op, std::span<const ValueId>(t, 2))[0]};
    return;
  }
  bool still_init = c.tangents.size() < 2 || c.tangents[1] == kNoValue;
  if (still_init && (reducer == &ops::kMaximum || reducer == &ops::kMinimum))
    return extremum_jvp(c, reducer == &ops::kMaximum ? "GE" : "LE");
  jvp_through(c, [&](Builder& b, std::span<const ValueId> operands) {
    return reduce_patches(b, c.op, operands);
  });
  ir::ValueIds y = c.b.clone(c.op, c.primals);
  c.primal_out.assign(y.begin(), y.end());
}

std::int64_t dilated(std::int64_t n, std::int64_t dilation) {
  return n == 0 ? 0 : (n - 1) * dilation + 1;
}

// A windowed sum is a convolution with ones: the cotangents with holes for the strides, summed over
// windows that look back.
void reduce_window_transpose(TransposeCall& c) {
  XYLEM_CHECK(reducer_of(c.op) == &ops::kAdd, "only sums are linear");
  Expr ct{&c.b, c.cotangents[0]};
  const ir::Type& x = c.types[0];
  auto rank = static_cast<std::size_t>(x.rank());
  Window w(c.op.attrs, rank);
  if (c.linear[0]) {
    Expr same = ir::convert(ct, x.dtype());
    if (x.size() == 0 || ct.type().size() == 0) {
      c.operand_ct[0] = ir::zeros(c.b, x).v;
    } else {
      Dims low(rank, 0), high(rank, 0), holes(rank, 0);
      for (std::size_t d = 0; d < rank; ++d) {
        std::int64_t window = dilated(w.size[d], w.dilation[d]);
        low[d] = window - w.low[d] - 1;
        high[d] = dilated(x.dim(static_cast<int>(d)), w.base_dilation[d]) + window - 1 -
                  dilated(ct.dims()[d], w.stride[d]) - low[d];
        holes[d] = w.stride[d] - 1;
      }
      Expr zero = ir::scalar(c.b, x.dtype(), 0);
      Expr spread = ir::pad(same, zero, low, high, holes);
      c.operand_ct[0] = c.b.one(ops::kReduceWindow, {spread.v, zero.v},
                                Attrs{{"window_dimensions", Attr(w.size)},
                                      {"window_strides", Attr(w.base_dilation)},
                                      {"window_dilations", Attr(w.dilation)}},
                                {ir::binary_region(ops::kAdd, x.dtype())});
    }
  }
  if (c.linear[1]) {
    // How often the initial value takes part: once, and for padding and holes.
    Expr one = ir::scalar(c.b, c.types[1].dtype(), 1);
    ValueId args[2] = {ir::zeros(c.b, x).v, one.v};
    Expr count{&c.b, c.b.clone(c.op, std::span<const ValueId>(args, 2))[0]};
    Dims axes;
    for (int d = 0; d < ct.rank(); ++d) axes.push_back(d);
    c.operand_ct[1] = ir::convert(ir::reduce_sum(ct * count, axes), c.types[1].dtype()).v;
  }
}

// The window's attributes with a mapped dimension in front.
Attrs with_batch(Attrs attrs, std::size_t rank) {
  for (const char* name :
       {"window_dimensions", "window_strides", "base_dilations", "window_dilations"}) {
    if (!attrs.has(name)) continue;
    Dims d = attrs.dims(name);
    d.insert(0, 1);
    attrs.set(name, Attr(d));
  }
  if (attrs.has("padding")) {
    HostArray p = attrs.array("padding").astype(DType::kI64);
    std::vector<std::int64_t> v = {0, 0};
    for (std::size_t i = 0; i < 2 * rank; ++i) v.push_back(p.as<std::int64_t>()[i]);
    attrs.set("padding", Attr(HostArray::from(v, {static_cast<std::int64_t>(rank) + 1, 2})));
  }
  return attrs;
}

bool any_mapped(std::span<const int> dims) {
  return std::any_of(dims.begin(), dims.end(), [](int d) { return d != kNotMapped; });
}

void reduce_window_batch(BatchCall& c) {
  std::size_t n = c.op.results.size();
  if (any_mapped(c.dims.subspan(n))) {  // initial values or captures
    batch_through(c, [&](Builder& b, std::span<const ValueId> operands) {
      return reduce_patches(b, c.op, operands);
    });
    return;
  }
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  for (std::size_t i = 0; i < n; ++i)
    operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  auto rank = static_cast<std::size_t>(c.b.type(operands[0]).rank()) - 1;
  ir::ValueIds r = c.b.op(ops::kReduceWindow, operands, with_batch(c.op.attrs, rank), c.op.regions);
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

// --- select_and_scatter ------------------------------------------------------------------------

// The selection does not move; what is scattered does.
std::vector<ValueId> scatter_selected(Builder& b, const ir::Op& op,
                                      std::span<const ValueId> operands) {
  std::vector<ValueId> args(operands.begin(), operands.end());
  if (is_inexact(b.type(args[0]).dtype())) args[0] = b.one(ops::kStopGradient, {args[0]});
  return {ops::expand_select_and_scatter(b, op, args)};
}

void select_and_scatter_jvp(JvpCall& c) {
  jvp_through(c, [&](Builder& b, std::span<const ValueId> operands) {
    return scatter_selected(b, c.op, operands);
  });
}

void select_and_scatter_batch(BatchCall& c) {
  if (any_mapped(c.dims.subspan(2))) {
    batch_through(c, [&](Builder& b, std::span<const ValueId> operands) {
      return std::vector<ValueId>{ops::expand_select_and_scatter(b, c.op, operands)};
    });
    return;
  }
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  for (std::size_t i = 0; i < 2; ++i)
    operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  auto rank = static_cast<std::size_t>(c.b.type(operands[0]).rank()) - 1;
  Attrs attrs = c.op.attrs;
  if (!attrs.has("window_dimensions")) attrs.set("window_dimensions", Attr(Dims(rank, 1)));
  c.results = {c.b.one(ops::kSelectAndScatter, operands, with_batch(attrs, rank), c.op.regions)};
  c.result_dims = {0};
}

}  // namespace

void register_window_rules(RuleTable& t) {
  t[ops::kReduceWindow].jvp = reduce_window_jvp;
  t[ops::kReduceWindow].transpose = reduce_window_transpose;
  t[ops::kReduceWindow].batch = reduce_window_batch;
  t[ops::kSelectAndScatter].jvp = select_and_scatter_jvp;
  t[ops::kSelectAndScatter].batch = select_and_scatter_batch;
}

}  // namespace xylem::transform
