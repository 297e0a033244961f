// Derivatives, transposes and batching of linear systems with their own solvers, and of functions
// with their own rule for vmap.

#include "xylem/core/internal/vmap_rules.h"
#include "xylem/core/lax/rules_callback.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/custom_linear.h"
#include "xylem/ir/ops/foreign.h"

namespace xylem::transform {
namespace {

using ir::Builder;
using ir::Expr;
using ir::GraphPtr;
using ir::kNoValue;
using ir::ValueId;
namespace ops = ir::ops;

std::size_t num_consts(const ir::Op& op) {
  return static_cast<std::size_t>(op.attrs.i64("num_consts"));
}

// A x = b gives A dx = db - dA x.
void linear_solve_jvp(JvpCall& c) {
  std::size_t n = num_consts(c.op), k = c.op.results.size();
  ir::ValueIds x = c.b.clone(c.op, c.primals);
  c.primal_out.assign(x.begin(), x.end());
  std::vector<ValueId> rhs(c.tangents.begin() + static_cast<std::ptrdiff_t>(n), c.tangents.end());
  bool matrix_moves = false;
  for (std::size_t i = 0; i < n; ++i) matrix_moves = matrix_moves || c.tangents[i] != kNoValue;
  if (matrix_moves) {
    const ir::Graph& matvec = *c.op.regions[1];
    std::vector<ValueId> p(c.primals.begin(), c.primals.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<ValueId> t(c.tangents.begin(), c.tangents.begin() + static_cast<std::ptrdiff_t>(n));
    p.insert(p.end(), x.begin(), x.end());
    t.resize(p.size(), kNoValue);
    std::vector<ValueId> out, moved;
    jvp_into(c.b, matvec, p, t, out, moved);
    for (std::size_t i = 0; i < k; ++i) {
      if (moved[i] == kNoValue) continue;
      Expr d{&c.b, moved[i]};
      rhs[i] = rhs[i] == kNoValue ? (-d).v : (Expr{&c.b, rhs[i]} - d).v;
    }
  }
  std::vector<ValueId> operands(c.primals.begin(),
                                c.primals.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = 0; i < k; ++i)
    operands.push_back(rhs[i] != kNoValue ? rhs[i] : ir::zeros(c.b, c.b.type(x[i])).v);
  ir::ValueIds dx = c.b.clone(c.op, operands);
  c.tangent_out.assign(dx.begin(), dx.end());
}

void linear_solve_transpose(TransposeCall& c) {
  std::size_t n = num_consts(c.op), k = c.result_types.size();
  if (c.op.regions.size() < 3)
    throw_user_error({"reverse-mode derivative of custom_linear_solve",
                      "a solver of the transposed system is needed", "none was given",
                      "Pass transpose_solve, or xylem::symmetric if the matrix is"},
                     c.op.loc.source);
  // The transposed system: its matrix is the transpose of matvec.
  const ir::Graph& matvec = *c.op.regions[1];
  Builder b("vecmat");
  std::vector<ValueId> values, cts;
  std::vector<bool> linear(n, false);
  linear.resize(n + k, true);
  for (std::size_t i = 0; i < n; ++i) values.push_back(b.param(matvec.type(matvec.params[i])));
  values.resize(n + k, kNoValue);
  for (std::size_t i = 0; i < k; ++i) cts.push_back(b.param(c.result_types[i]));
  std::vector<ValueId> ct = backward_pass(b, matvec, linear, values, cts), results;
  for (std::size_t i = 0; i < k; ++i)
    results.push_back(ct[n + i] != kNoValue ? ct[n + i] : ir::zeros(b, c.result_types[i]).v);
  std::vector<GraphPtr> regions = {c.op.regions[2], b.finish(std::move(results)), c.op.regions[0]};
  std::vector<ValueId> operands(c.operands.begin(),
                                c.operands.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = 0; i < k; ++i)
    operands.push_back(c.cotangents[i] != kNoValue ? c.cotangents[i]
                                                   : ir::zeros(c.b, c.result_types[i]).v);
  ir::ValueIds r = c.b.op(ops::kLinearSolve, operands, c.op.attrs, std::move(regions));
  for (std::size_t i = 0; i < k; ++i)
    if (c.linear[n + i]) c.operand_ct[n + i] = r[i];
}

void linear_solve_batch(BatchCall& c) {
  std::size_t n = num_consts(c.op);
  Mask in;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    in.push_back(i >= n || c.dims[i] != kNotMapped);
    operands.push_back(in.back() ? batch_to_front(c.b, c.operands[i], c.dims[i], c.size)
                                 : c.operands[i]);
  }
  Mask out(c.op.results.size(), true);
  std::vector<GraphPtr> regions;
  for (const GraphPtr& g : c.op.regions)
    regions.push_back(batch_region(*g, in, c.size, c.axis_name, out).graph);
  ir::ValueIds r = c.b.op(ops::kLinearSolve, operands, c.op.attrs, std::move(regions));
  c.results.assign(r.begin(), r.end());
  c.result_dims.assign(r.size(), 0);
}

// --- custom_vmap -----------------------------------------------------------------------------

void custom_vmap_jvp(JvpCall& c) {
  jvp_into(c.b, *c.op.regions[0], c.primals, c.tangents, c.primal_out, c.tangent_out);
}

void custom_vmap_transpose(TransposeCall& c) {
  c.operand_ct = backward_pass(c.b, *c.op.regions[0], c.linear, c.operands, c.cotangents);
}

void custom_vmap_batch(BatchCall& c) {
  std::vector<bool> mapped;
  std::vector<ValueId> args;
  std::vector<ir::Type> types;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    mapped.push_back(c.dims[i] != kNotMapped);
    args.push_back(mapped.back() ? batch_to_front(c.b, c.operands[i], c.dims[i], c.size)
                                 : c.operands[i]);
    types.push_back(c.b.type(args.back()));
  }
  internal::MappedGraph g =
      internal::apply_vmap_rule(c.op.attrs.i64("rule"), c.size, mapped, types);
  const ir::Graph& region = *c.op.regions[0];
  bool fits = g.graph->results.size() == region.results.size();
  for (std::size_t i = 0; fits && i < region.results.size(); ++i) {
    ir::Type want = region.type(region.results[i]);
    Dims d = want.dims();
    if (g.mapped[i]) d.insert(0, c.size);
    fits = g.graph->type(g.graph->results[i]) == want.with_dims(d);
  }
  if (!fits)
    throw_user_error({"custom_vmap: rule",
                      "it must return the function's results, mapped ones with the axis in front",
                      "it returns other types", "Return what vmap of the function would"},
                     c.op.loc.source);
  c.results = c.b.inline_graph(*g.graph, args);
  for (bool m : g.mapped) c.result_dims.push_back(m ? 0 : kNotMapped);
}

}  // namespace

void register_custom_rules(RuleTable& t) {
  t[ops::kLinearSolve].jvp = linear_solve_jvp;
  t[ops::kLinearSolve].transpose = linear_solve_transpose;
  t[ops::kLinearSolve].batch = linear_solve_batch;
  t[ops::kCustomVmap].jvp = custom_vmap_jvp;
  t[ops::kCustomVmap].transpose = custom_vmap_transpose;
  t[ops::kCustomVmap].batch = custom_vmap_batch;
  t[ops::kForeign].refuse_jvp = "an op of another dialect has no meaning here";
  register_callback_rules(t);
  t[ops::kForeign].refuse_batch = "an op of another dialect has no meaning here";
}

}  // namespace xylem::transform
