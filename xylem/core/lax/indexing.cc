#include "xylem/core/lax/indexing.h"

#include "xylem/ir/ops/all.h"

namespace xylem::lax {

using ir::Attr;
using ir::Attrs;
using ir::Expr;
namespace ops = ir::ops;

GatherDims::GatherDims(const Attrs& a)
    : offset_dims(a.dims_or("offset_dims", {})),
      collapsed_slice_dims(a.dims_or("collapsed_slice_dims", {})),
      operand_batching_dims(a.dims_or("operand_batching_dims", {})),
      start_indices_batching_dims(a.dims_or("start_indices_batching_dims", {})),
      start_index_map(a.dims_or("start_index_map", {})),
      index_vector_dim(a.i64("index_vector_dim")) {}

void GatherDims::write(Attrs& a) const {
  a.set("offset_dims", Attr(offset_dims));
  a.set("collapsed_slice_dims", Attr(collapsed_slice_dims));
  a.set("operand_batching_dims", Attr(operand_batching_dims));
  a.set("start_indices_batching_dims", Attr(start_indices_batching_dims));
  a.set("start_index_map", Attr(start_index_map));
  a.set("index_vector_dim", Attr(index_vector_dim));
}

ScatterDims::ScatterDims(const Attrs& a)
    : update_window_dims(a.dims_or("update_window_dims", {})),
      inserted_window_dims(a.dims_or("inserted_window_dims", {})),
      input_batching_dims(a.dims_or("input_batching_dims", {})),
      scatter_indices_batching_dims(a.dims_or("scatter_indices_batching_dims", {})),
      scatter_dims_to_operand_dims(a.dims_or("scatter_dims_to_operand_dims", {})),
      index_vector_dim(a.i64("index_vector_dim")) {}

void ScatterDims::write(Attrs& a) const {
  a.set("update_window_dims", Attr(update_window_dims));
  a.set("inserted_window_dims", Attr(inserted_window_dims));
  a.set("input_batching_dims", Attr(input_batching_dims));
  a.set("scatter_indices_batching_dims", Attr(scatter_indices_batching_dims));
  a.set("scatter_dims_to_operand_dims", Attr(scatter_dims_to_operand_dims));
  a.set("index_vector_dim", Attr(index_vector_dim));
}

ScatterDims scatter_dims_of(const GatherDims& g) {
  ScatterDims s;
  s.update_window_dims = g.offset_dims;
  s.inserted_window_dims = g.collapsed_slice_dims;
  s.input_batching_dims = g.operand_batching_dims;
  s.scatter_indices_batching_dims = g.start_indices_batching_dims;
  s.scatter_dims_to_operand_dims = g.start_index_map;
  s.index_vector_dim = g.index_vector_dim;
  return s;
}

GatherDims gather_dims_of(const ScatterDims& s) {
  GatherDims g;
  g.offset_dims = s.update_window_dims;
  g.collapsed_slice_dims = s.inserted_window_dims;
  g.operand_batching_dims = s.input_batching_dims;
  g.start_indices_batching_dims = s.scatter_indices_batching_dims;
  g.start_index_map = s.scatter_dims_to_operand_dims;
  g.index_vector_dim = s.index_vector_dim;
  return g;
}

Expr gather(Expr operand, Expr indices, const GatherDims& dims, const Dims& slice_sizes) {
  Attrs a;
  dims.write(a);
  a.set("slice_sizes", Attr(slice_sizes));
  a.set("indices_are_sorted", Attr(false));
  return {operand.b, operand.b->one(ops::kGather, {operand.v, indices.v}, std::move(a))};
}

Expr scatter(Expr operand, Expr indices, Expr updates, const ScatterDims& dims,
             const ir::OpDef* combine, bool unique) {
  Attrs a;
  dims.write(a);
  a.set("indices_are_sorted", Attr(false));
  a.set("unique_indices", Attr(unique));
  ir::GraphPtr region;
  if (combine) {
    region = ir::binary_region(*combine, operand.dtype());
  } else {
    ir::Builder b;
    b.param(ir::Type::tensor(operand.dtype()));
    region = b.finish({b.param(ir::Type::tensor(operand.dtype()))});
  }
  return {operand.b,
          operand.b->one(ops::kScatter, {operand.v, indices.v, updates.v}, std::move(a), {region})};
}

Expr clamp_indices(Expr indices, const Dims& last, int index_vector_dim) {
  // Without an index dimension there is one component.
  Expr hi{indices.b, ir::kNoValue};
  if (index_vector_dim == indices.rank()) {
    hi = ir::like(indices, static_cast<double>(last[0]));
  } else {
    std::vector<std::int64_t> v(last.begin(), last.end());
    Expr row{indices.b, indices.b->constant(HostArray::from(v, {last.ssize()}))};
    hi = ir::broadcast_in_dim(ir::convert(row, indices.dtype()), indices.dims(),
                              Dims{index_vector_dim});
  }
  return ir::binary(ops::kMaximum, ir::binary(ops::kMinimum, indices, hi), ir::like(indices, 0));
}

Dims window_sizes(const ScatterDims& s, const ir::Type& operand, const ir::Type& updates) {
  Dims sizes;
  std::size_t k = 0;
  for (int d = 0; d < operand.rank(); ++d) {
    bool single = s.inserted_window_dims.contains(d) || s.input_batching_dims.contains(d);
    sizes.push_back(single ? 1 : updates.dim(static_cast<int>(s.update_window_dims[k++])));
  }
  return sizes;
}

Expr windows_inside(Expr indices, const ScatterDims& s, const ir::Type& operand, const Dims& sizes,
                    const ir::Type& updates) {
  Dims last;
  for (std::int64_t d : s.scatter_dims_to_operand_dims)
    last.push_back(operand.dim(static_cast<int>(d)) - sizes[d]);
  auto axis = static_cast<int>(s.index_vector_dim);
  Expr ok = ir::compare(indices, clamp_indices(indices, last, axis), "EQ");
  if (axis < indices.rank()) ok = ir::reduce(ops::kAnd, ok, {axis});
  Dims where;  // the updates' dimensions that are not window dimensions
  for (int d = 0; d < updates.rank(); ++d)
    if (!s.update_window_dims.contains(d)) where.push_back(d);
  return ir::broadcast_in_dim(ok, updates.dims(), where);
}

Expr take_along_axis(Expr values, Expr index, int axis) {
  GatherDims g;
  for (int d = 0; d < values.rank(); ++d)
    if (d != axis) {
      g.operand_batching_dims.push_back(d);
      g.start_indices_batching_dims.push_back(d);
    }
  g.collapsed_slice_dims = {axis};
  g.start_index_map = {axis};
  g.index_vector_dim = values.rank();
  Dims shape = index.dims();
  shape.push_back(1);
  return gather(values, ir::reshape(index, shape), g,
                Dims(static_cast<std::size_t>(values.rank()), 1));
}

}  // namespace xylem::lax
