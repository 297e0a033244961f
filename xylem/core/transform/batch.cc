#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"

namespace xylem::transform {

using ir::Builder;
using ir::Expr;
using ir::Graph;
using ir::kNoValue;
using ir::Op;
using ir::ValueId;

ValueId batch_to_front(Builder& b, ValueId v, int dim, std::int64_t size) {
  Expr x{&b, v};
  if (dim == kNotMapped) return ir::broadcast_new_dim(x, 0, size).v;
  return ir::move_dim(x, dim, 0).v;
}

namespace {

// Whether mapping over the axis concerns the op although none of its operands is mapped.
bool names_axis(const Op& op, const std::string& axis) {
  if (const ir::Attr* name = op.attrs.find("axis_name"); name && op.def->is(ir::kXylem))
    return op.attrs.str("axis_name") == axis;
  for (const ir::GraphPtr& r : op.regions)
    for (const Op& inner : r->ops)
      if (names_axis(inner, axis)) return true;
  return false;
}

}  // namespace

void batch_into(Builder& b, const Graph& g, std::span<const ValueId> args,
                std::span<const int> dims, std::int64_t size, const std::string& axis_name,
                std::vector<ValueId>& results, std::vector<int>& result_dims) {
  std::vector<ValueId> value(g.values.size(), kNoValue);
  std::vector<int> dim(g.values.size(), kNotMapped);
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    value[static_cast<std::size_t>(g.params[i])] = args[i];
    dim[static_cast<std::size_t>(g.params[i])] = dims[i];
  }
  std::vector<ValueId> operands;
  std::vector<int> operand_dims;
  for (const Op& op : g.ops) {
    operands.clear();
    operand_dims.clear();
    bool mapped = false;
    for (ValueId v : op.operands) {
      operands.push_back(value[static_cast<std::size_t>(v)]);
      operand_dims.push_back(dim[static_cast<std::size_t>(v)]);
      mapped = mapped || operand_dims.back() != kNotMapped;
    }
    if (!mapped && (axis_name.empty() || !names_axis(op, axis_name))) {
      ir::ValueIds r = b.clone(op, operands);
      for (std::size_t i = 0; i < r.size(); ++i)
        value[static_cast<std::size_t>(op.results[i])] = r[i];
      continue;
    }
    const OpRules& rules = rules_of(*op.def);
    if (!rules.batch) {
      const char* why = rules.refuse_batch ? rules.refuse_batch : "the op has no batching rule";
      throw UserError(ErrorParts{fmt::format("vmap of {}", op.def->name),
                                 "every op on mapped values must have a batching rule", why,
                                 "Use map or scan over the axis instead of vmap"},
                      op.loc.source);
    }
    ir::Location saved = b.location();
    b.set_location(op.loc);
    BatchCall call{b, op, operands, operand_dims, size, axis_name, {}, {}};
    rules.batch(call);
    b.set_location(saved);
    XYLEM_CHECK(
        call.results.size() == op.results.size() && call.result_dims.size() == op.results.size(),
        op.def->name);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      value[static_cast<std::size_t>(op.results[i])] = call.results[i];
      dim[static_cast<std::size_t>(op.results[i])] = call.result_dims[i];
    }
  }
  results.clear();
  result_dims.clear();
  for (ValueId v : g.results) {
    results.push_back(value[static_cast<std::size_t>(v)]);
    result_dims.push_back(dim[static_cast<std::size_t>(v)]);
  }
}

namespace {

void batched_params(Builder& b, const Graph& g, std::span<const int> in_dims, std::int64_t size,
                    std::vector<ValueId>& args) {
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    ir::Type t = g.type(g.params[i]);
    if (in_dims[i] != kNotMapped) {
      Dims d = t.dims();
      d.insert(static_cast<std::size_t>(in_dims[i]), size);
      t = t.with_dims(d);
    }
    args.push_back(b.param(t));
  }
}

}  // namespace

BatchedRegion batch_region(const Graph& g, const Mask& in, std::int64_t size,
                           const std::string& axis_name, const Mask& force) {
  Builder b(g.name);
  std::vector<int> dims, out_dims;
  for (bool m : in) dims.push_back(m ? 0 : kNotMapped);
  std::vector<ValueId> args, results;
  batched_params(b, g, dims, size, args);
  batch_into(b, g, args, dims, size, axis_name, results, out_dims);
  BatchedRegion r;
  for (std::size_t i = 0; i < results.size(); ++i) {
    bool want = out_dims[i] != kNotMapped || (i < force.size() && force[i]);
    r.out.push_back(want);
    if (want) results[i] = batch_to_front(b, results[i], out_dims[i], size);
  }
  r.graph = b.finish(std::move(results));
  return r;
}

Batched batch(const Graph& g, std::span<const int> in_dims, std::int64_t size,
              const std::string& axis_name) {
  Builder b(g.name);
  std::vector<ValueId> args, results;
  Batched r;
  batched_params(b, g, in_dims, size, args);
  batch_into(b, g, args, in_dims, size, axis_name, results, r.out_dims);
  r.graph = b.finish(std::move(results));
  return r;
}

ir::GraphPtr batch_to(const Graph& g, std::span<const int> in_dims, std::int64_t size,
                      std::span<const int> out_dims, const std::string& axis_name) {
  Builder b(g.name);
  std::vector<ValueId> args, results;
  std::vector<int> dims;
  batched_params(b, g, in_dims, size, args);
  batch_into(b, g, args, in_dims, size, axis_name, results, dims);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Expr x{&b, results[i]};
    if (out_dims[i] == kNotMapped) {
      if (dims[i] != kNotMapped)
        throw_user_error({fmt::format("vmap: result {}", i),
                          "out_axes none asks for a result that does not depend on the mapped axis",
                          "the result does", "Give an output axis, or reduce over the axis"});
      continue;
    }
    if (dims[i] == kNotMapped)
      results[i] = ir::broadcast_new_dim(x, out_dims[i], size).v;
    else
      results[i] = ir::move_dim(x, dims[i], out_dims[i]).v;
  }
  return b.finish(std::move(results));
}

}  // namespace xylem::transform
