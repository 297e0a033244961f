// Derivatives and batching of sorting.

#include <algorithm>

#include "xylem/core/lax/indexing.h"
#include "xylem/core/lax/through.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Expr;
using ir::kNoValue;
using ir::ValueId;
namespace ops = ir::ops;

int sort_dimension(const ir::Op& op, int rank) {
  auto d = static_cast<int>(op.attrs.i64_or("dimension", -1));
  return d < 0 ? d + rank : d;
}

// Sorts an index along with the operands and gathers the tangents by it.
void sort_jvp(JvpCall& c) {
  std::size_t n = c.op.results.size();
  const ir::Graph& comparator = *c.op.regions[0];
  ir::Builder region;
  std::vector<ValueId> args;
  for (std::size_t i = 0; i < comparator.params.size(); ++i) {
    if (i == 2 * n) {
      region.param(ir::Type::tensor(DType::kI32));
      region.param(ir::Type::tensor(DType::kI32));
    }
    args.push_back(region.param(comparator.type(comparator.params[i])));
  }
  if (comparator.params.size() == 2 * n) {
    region.param(ir::Type::tensor(DType::kI32));
    region.param(ir::Type::tensor(DType::kI32));
  }
  ir::GraphPtr with_index = region.finish(region.inline_graph(comparator, args));
  ir::Type t = c.b.type(c.primals[0]);
  int axis = sort_dimension(c.op, t.rank());
  std::vector<ValueId> operands(c.primals.begin(),
                                c.primals.begin() + static_cast<std::ptrdiff_t>(n));
  operands.push_back(ir::iota(c.b, DType::kI32, t.dims(), axis).v);
  operands.insert(operands.end(), c.primals.begin() + static_cast<std::ptrdiff_t>(n),
                  c.primals.end());
  ir::ValueIds r = c.b.op(ops::kSort, operands, c.op.attrs, {with_index});
  for (std::size_t i = 0; i < n; ++i) {
    c.primal_out.push_back(r[i]);
    c.tangent_out.push_back(
        c.tangents[i] == kNoValue
            ? kNoValue
            : lax::take_along_axis({&c.b, c.tangents[i]}, {&c.b, r[n]}, axis).v);
  }
}

void sort_batch(BatchCall& c) {
  std::size_t n = c.op.results.size();
  std::vector<ValueId> operands(c.operands.begin(), c.operands.end());
  int rank = c.b.type(c.operands[0]).rank() - (c.dims[0] != kNotMapped ? 1 : 0);
  for (std::size_t i = 0; i < n; ++i)
    operands[i] = batch_to_front(c.b, operands[i], c.dims[i], c.size);
  Attrs attrs = c.op.attrs;
  attrs.set("dimension", Attr(sort_dimension(c.op, rank) + 1));
  std::vector<ir::GraphPtr> regions = c.op.regions;
  bool captures = std::any_of(c.dims.begin() + static_cast<std::ptrdiff_t>(n), c.dims.end(),
                              [](int d) { return d != kNotMapped; });
  if (captures) {
    // What the comparator captures is sorted along: every element has it beside itself.
    const Dims shape = c.b.type(operands[0]).dims();
    for (std::size_t i = n; i < operands.size(); ++i) {
      Expr x{&c.b, batch_to_front(c.b, operands[i], c.dims[i], c.size)};
      if (x.rank() != 1)
        throw_user_error({"vmap of stablehlo.sort",
                          "captures of the comparator that depend on the mapped axis must be "
                          "scalars",
                          "captured is " + x.type().to_string(), "Sort keys made outside"},
                         c.op.loc.source);
      operands[i] = ir::broadcast_in_dim(x, shape, Dims{0}).v;
    }
    const ir::Graph& compare = *regions[0];
    Builder region;
    std::vector<ValueId> args;
    for (ValueId v : std::span(compare.params).first(2 * n))
      args.push_back(region.param(compare.type(v)));
    for (ValueId v : std::span(compare.params).subspan(2 * n)) {
      args.push_back(region.param(compare.type(v)));
      region.param(compare.type(v));
    }
    regions = {region.finish(region.inline_graph(compare, args))};
    attrs.erase("num_captures");
  }
  ir::ValueIds r = c.b.op(ops::kSort, operands, attrs, regions);
  c.results.assign(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(n));
  c.result_dims.assign(n, 0);
}

void top_k_jvp(JvpCall& c) {
  ir::ValueIds r = c.b.clone(c.op, c.primals);
  int axis = c.b.type(r[0]).rank() - 1;
  c.primal_out = {r[0], r[1]};
  c.tangent_out = {lax::take_along_axis({&c.b, c.tangents[0]}, {&c.b, r[1]}, axis).v, kNoValue};
}

void top_k_batch(BatchCall& c) {
  Expr x = ir::move_dim({&c.b, c.operands[0]}, c.dims[0], 0);
  ir::ValueIds r = c.b.clone(c.op, std::span<const ValueId>(&x.v, 1));
  c.results = {r[0], r[1]};
  c.result_dims = {0, 0};
}

// As in JAX: the first state draws for all, the others stay as they are.
void generator_batch(BatchCall& c) {
  Expr states{&c.b, batch_to_front(c.b, c.operands[0], c.dims[0], c.size)};
  Dims zero(static_cast<std::size_t>(states.rank()), 0), one = zero, limit = states.dims();
  for (std::int64_t& d : one) d = 1;
  Attrs attrs = c.op.attrs;
  Dims shape = attrs.dims("shape");
  shape.insert(0, c.size);
  attrs.set("shape", Attr(shape));
  if (c.size == 0) {
    Dims none = shape;
    c.results = {states.v, ir::zeros(c.b, unbatched_results(c)[1].with_dims(none)).v};
    c.result_dims = {0, 0};
    return;
  }
  Dims first_limit = limit, rest_start = zero;
  first_limit[0] = 1;
  rest_start[0] = 1;
  Expr first = ir::slice(states, zero, first_limit, one);
  Dims state_dims = limit;
  state_dims.erase(0);
  ir::ValueIds r = c.b.op(ops::kRngBitGenerator, {ir::reshape(first, state_dims).v}, attrs);
  Expr parts[2] = {ir::reshape({&c.b, r[0]}, first_limit),
                   ir::slice(states, rest_start, limit, one)};
  c.results = {ir::concatenate(parts, 0).v, r[1]};
  c.result_dims = {0, 0};
}

}  // namespace

void register_sort_rules(RuleTable& t) {
  t[ops::kSort].jvp = sort_jvp;
  t[ops::kSort].batch = sort_batch;
  t[ops::kTopK].jvp = top_k_jvp;
  t[ops::kTopK].batch = top_k_batch;
  t[ops::kRngBitGenerator].no_derivative = true;
  t[ops::kRngBitGenerator].batch = generator_batch;
  t[ops::kAfterAll].no_derivative = true;
  t[ops::kAfterAll].refuse_batch = "tokens order effects and have no elements to map";
}

}  // namespace xylem::transform
