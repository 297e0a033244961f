#include "xylem/core/gather_scatter.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/lax/indexing.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/gather.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::lax {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;
namespace xi = xylem::internal;

namespace {

void check(const char* what, const ArrayArg& indices, const IndexMode& mode) {
  if (!is_integer(indices.array.dtype()) || indices.array.ndim() == 0)
    throw UserError(ErrorParts{what, "indices are integers whose last axis holds the components",
                               indices.array.type_string(),
                               "Add an axis of size 1 for indices of one component"},
                    xi::CallSite::outermost(indices.where));
  if (mode == IndexMode::kWrap)
    throw UserError(ErrorParts{what, "modes clip, fill, drop or promise_in_bounds", "wrap",
                               "Take the indices modulo the size first"},
                    xi::CallSite::outermost(indices.where));
}

ScatterDims internal_dims(const ScatterDimensionNumbers& d, const Array& indices) {
  ScatterDims s;
  s.update_window_dims = d.update_window_dims;
  s.inserted_window_dims = d.inserted_window_dims;
  s.input_batching_dims = d.operand_batching_dims;
  s.scatter_indices_batching_dims = d.scatter_indices_batching_dims;
  s.scatter_dims_to_operand_dims = d.scatter_dims_to_operand_dims;
  s.index_vector_dim = indices.ndim() - 1;
  return s;
}

// The greatest start of each component for which a window lies inside.
Dims last_starts(const Dims& map, const Dims& shape, const Dims& sizes) {
  Dims r;
  for (std::int64_t d : map) r.push_back(shape[d] - sizes[d]);
  return r;
}

Array limits(const Dims& last, DType dtype) {
  std::vector<std::int64_t> v(last.begin(), last.end());
  return Array(HostArray::from(v, {last.ssize()})).astype(dtype);
}

// Whether each start lies in [0, last], over the components.
Array inside(const Array& indices, const Dims& last) {
  Array high = limits(last, DType::kI64), i = indices.astype(DType::kI64);
  return all(logical_and(greater_equal(i, 0), less_equal(i, high)), -1);
}

bool fills(IndexMode m) { return m == IndexMode::kFill || m == IndexMode::kDrop; }

}  // namespace

Array gather(const ArrayArg& operand, const ArrayArg& start_indices,
             const GatherDimensionNumbers& d, const Dims& slice_sizes, const GatherOptions& o) {
  xi::CallSite site(operand.where);
  check("gather", start_indices, o.mode);
  const Array& indices = start_indices.array;
  GatherDims g;
  g.offset_dims = d.offset_dims;
  g.collapsed_slice_dims = d.collapsed_slice_dims;
  g.operand_batching_dims = d.operand_batching_dims;
  g.start_indices_batching_dims = d.start_indices_batching_dims;
  g.start_index_map = d.start_index_map;
  g.index_vector_dim = indices.ndim() - 1;
  Array x = operand.array, i = indices;
  Array got = xi::gather(x, i, g, slice_sizes, o.indices_are_sorted, operand.where);
  if (o.mode == IndexMode::kClip) {
    // Clamped here too, so that derivatives go to the element that is read.
    Array high = limits(last_starts(d.start_index_map, x.shape(), slice_sizes), DType::kI64);
    i = maximum(minimum(i.astype(DType::kI64), high), 0);
    return xi::gather(x, i, g, slice_sizes, o.indices_are_sorted, operand.where);
  }
  if (!fills(o.mode)) return got;
  Array ok = inside(i, last_starts(d.start_index_map, x.shape(), slice_sizes));
  Dims where_dims;
  for (int a = 0; a < got.ndim(); ++a)
    if (!d.offset_dims.contains(a)) where_dims.push_back(a);
  ok = xi::broadcast_in_dim(ok, got.shape(), where_dims, operand.where);
  return where(ok, got, xi::fill_value(x.dtype(), o.fill_value));
}

// Shared with scatter_apply.
static Array scatter_by(const char* what, const ArrayArg& operand, const ArrayArg& indices,
                        const Array& updates, const ScatterDimensionNumbers& d,
                        const ScatterOptions& o, const ir::GraphPtr& region) {
  check(what, indices, o.mode);
  ScatterDims s = internal_dims(d, indices.array);
  Array i = indices.array;
  if (o.mode == IndexMode::kClip) {
    ir::Type x = ir::Type::tensor(operand.array.dtype(), operand.array.shape());
    ir::Type u = ir::Type::tensor(updates.dtype(), updates.shape());
    Dims sizes = window_sizes(s, x, u);
    Array high = limits(last_starts(d.scatter_dims_to_operand_dims, x.dims(), sizes), DType::kI64);
    i = maximum(minimum(i.astype(DType::kI64), high), 0);
  }
  Attrs a{{"indices_are_sorted", Attr(o.indices_are_sorted)},
          {"unique_indices", Attr(o.unique_indices)}};
  s.write(a);
  Array operands[3] = {operand.array, i, updates};
  return xi::apply(ops::kScatter, operands, std::move(a), {region}, operand.where)[0];
}

namespace {

Array scatter_op(const char* what, const ArrayArg& operand, const ArrayArg& indices,
                 const ArrayArg& updates, const ScatterDimensionNumbers& d, const ScatterOptions& o,
                 const ir::OpDef* combine) {
  xi::CallSite site(operand.where);
  DType t = operand.array.dtype();
  ir::GraphPtr region;
  if (combine) {
    region = ir::binary_region(*combine, t);
  } else {
    ir::Builder b;
    b.param(ir::Type::tensor(t));
    region = b.finish({b.param(ir::Type::tensor(t))});
  }
  return scatter_by(what, operand, indices, updates.array.astype(t, updates.where), d, o, region);
}

}  // namespace

Array scatter(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
              const ScatterDimensionNumbers& d, const ScatterOptions& o) {
  return scatter_op("scatter", operand, indices, updates, d, o, nullptr);
}
Array scatter_add(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& d, const ScatterOptions& o) {
  const ir::OpDef* add = operand.array.dtype() == DType::kBool ? &ops::kOr : &ops::kAdd;
  return scatter_op("scatter_add", operand, indices, updates, d, o, add);
}
Array scatter_sub(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& d, const ScatterOptions& o) {
  xi::CallSite site(operand.where);
  Array minus = negative(updates.array.astype(operand.array.dtype(), updates.where));
  return scatter_op("scatter_sub", operand, indices, minus, d, o, &ops::kAdd);
}
Array scatter_mul(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& d, const ScatterOptions& o) {
  return scatter_op("scatter_mul", operand, indices, updates, d, o, &ops::kMultiply);
}
Array scatter_min(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& d, const ScatterOptions& o) {
  return scatter_op("scatter_min", operand, indices, updates, d, o, &ops::kMinimum);
}
Array scatter_max(const ArrayArg& operand, const ArrayArg& indices, const ArrayArg& updates,
                  const ScatterDimensionNumbers& d, const ScatterOptions& o) {
  return scatter_op("scatter_max", operand, indices, updates, d, o, &ops::kMaximum);
}

}  // namespace xylem::lax

namespace xylem::internal {

Array scatter_apply(const ArrayArg& operand, const ArrayArg& indices,
                    FunctionRef<Array(const Array&)> f, const lax::ScatterDimensionNumbers& d,
                    const Dims& update_shape, const lax::ScatterOptions& o) {
  CallSite site(operand.where);
  DType t = operand.array.dtype();
  auto flat = [&](std::span<const Array> in) {
    return std::vector<Array>{f(in[0]).astype(t, operand.where)};
  };
  Array zero = zeros({}, t);
  FlatTrace traced = trace_flat(TraceKind::kBody, "scatter_apply", {&zero, 1}, flat);
  if (!traced.captures.empty())
    throw UserError(ErrorParts{"scatter_apply", "the function may use its argument and constants",
                               "it uses another array", "Gather, compute and scatter instead"},
                    CallSite::outermost(operand.where));
  ir::Builder b("apply");
  ir::ValueId old = b.param(ir::Type::tensor(t));
  b.param(ir::Type::tensor(t));
  ir::GraphPtr region = b.finish(b.inline_graph(*traced.graph, {&old, 1}));
  return lax::scatter_by("scatter_apply", operand, indices, zeros(update_shape, t), d, o, region);
}

}  // namespace xylem::internal
