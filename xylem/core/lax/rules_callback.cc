// Derivatives and batching of calls of host functions.

#include "xylem/core/lax/rules_callback.h"

#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/host_function.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/callback.h"
#include "xylem/ir/ops/transform.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::kNoValue;
using ir::ValueId;
namespace ops = ir::ops;

// The primal call alone; integers and printed values have no tangents.
void callback_jvp(JvpCall& c) {
  if (!c.op.attrs.flag("debug"))
    throw_user_error({c.op.def == &ops::kPureCallback ? "derivative of pure_callback"
                                                      : "derivative of io_callback",
                      "a function with a derivative",
                      "'" + c.op.attrs.str_or("name", "callback") + "' is called on the host",
                      "Wrap the call in custom_jvp or custom_vjp, or in stop_gradient"},
                     c.op.loc.source);
  ir::ValueIds r = c.b.clone(c.op, c.primals);
  c.primal_out.assign(r.begin(), r.end());
  c.tangent_out.assign(r.size(), kNoValue);
}

Attrs batched_types(const ir::Op& op, std::int64_t size) {
  Attrs attrs = op.attrs;
  ir::AttrList types;
  for (const Attr& a : *op.attrs.at("result_types").list()) {
    const ir::Type& t = *a.get<ir::Type>();
    Dims d = t.dims();
    d.insert(0, size);
    types.emplace_back(t.with_dims(d));
  }
  attrs.set("result_types", Attr(std::move(types)));
  return attrs;
}

// One call for each position, in a loop.
void one_by_one(BatchCall& c) {
  Builder body("callback");
  std::vector<ValueId> args(c.operands.size()), operands;
  std::int64_t consts = 0;
  for (bool mapped : {false, true})
    for (std::size_t i = 0; i < c.operands.size(); ++i) {
      if ((c.dims[i] != kNotMapped) != mapped) continue;
      ir::Type t = c.b.type(c.operands[i]);
      if (mapped) {
        Dims d = t.dims();
        d.erase(static_cast<std::size_t>(c.dims[i]));
        t = t.with_dims(d);
        operands.push_back(batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
      } else {
        operands.push_back(c.operands[i]);
        ++consts;
      }
      args[i] = body.param(t);
    }
  ir::ValueIds r = body.clone(c.op, args);
  ir::ValueIds s = c.b.op(ops::kScan, operands,
                          Attrs{{"length", Attr(c.size)},
                                {"reverse", Attr(false)},
                                {"num_consts", Attr(consts)},
                                {"num_carry", Attr(0)}},
                          {body.finish({r.begin(), r.end()})});
  c.results.assign(s.begin(), s.end());
  c.result_dims.assign(s.size(), 0);
}

void pure_batch(BatchCall& c) {
  const std::string method = c.op.attrs.str_or("vmap_method", "");
  if (method == "sequential" || method == "sequential_unrolled") return one_by_one(c);
  if (method.empty())
    throw_user_error({"vmap of pure_callback", "a vmap_method that says what the mapped call means",
                      "'" + c.op.attrs.str_or("name", "callback") + "' has none",
                      "Pass {.vmap_method = \"sequential\"}, expand_dims or broadcast_all"},
                     c.op.loc.source);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    bool mapped = c.dims[i] != kNotMapped;
    operands.push_back(!mapped && method == "expand_dims"
                           ? ir::broadcast_new_dim({&c.b, c.operands[i]}, 0, 1).v
                           : batch_to_front(c.b, c.operands[i], c.dims[i], c.size));
  }
  ir::ValueIds r = c.b.op(*c.op.def, operands, batched_types(c.op, c.size));
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

void io_batch(BatchCall& c) {
  if (c.op.attrs.flag("ordered") && !c.op.attrs.flag("debug"))
    throw_user_error({"vmap of io_callback", "a callback without order",
                      "'" + c.op.attrs.str_or("name", "callback") + "' is ordered",
                      "Leave ordered out, or use map instead of vmap"},
                     c.op.loc.source);
  one_by_one(c);
}

// One check of all positions, with the values of the last that fails, which JAX shows.
void check_batch(BatchCall& c) {
  Builder& b = c.b;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(batch_to_front(b, c.operands[i], c.dims[i], c.size));
  ir::Expr pred{&b, operands[0]};
  Dims inner;
  for (int d = 1; d < pred.rank(); ++d) inner.push_back(d);
  if (!inner.empty()) pred = ir::reduce(ops::kAnd, pred, inner);
  ir::Expr place = ir::iota(b, DType::kI32, Dims{c.size}, 0);
  ir::Expr failing = ir::reduce(ops::kMaximum, ir::select(pred, ir::like(place, 0), place), {0});
  std::vector<ValueId> args = {ir::reduce(ops::kAnd, pred, {0}).v};
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const ir::Type t = b.type(operands[i]);
    Dims sizes = t.dims(), dims = t.dims();
    sizes[0] = 1;
    dims.erase(0);
    std::vector<ValueId> call = {operands[i], failing.v};
    for (int d = 1; d < t.rank(); ++d) call.push_back(b.splat(DType::kI32, {}, 0));
    ValueId row = b.one(ops::kDynamicSlice, call, {{"slice_sizes", Attr(sizes)}});
    args.push_back(ir::reshape({&b, row}, dims).v);
  }
  b.clone(c.op, args);
}

}  // namespace

void register_callback_rules(RuleTable& t) {
  t[ops::kPureCallback].jvp = callback_jvp;
  t[ops::kPureCallback].batch = pure_batch;
  t[ops::kIoCallback].jvp = callback_jvp;
  t[ops::kIoCallback].batch = io_batch;
  t[ops::kCheck].no_derivative = true;
  t[ops::kCheck].batch = check_batch;
}

}  // namespace xylem::transform
