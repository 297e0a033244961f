#include "xylem/ir/ops/internal/gather_dims.h"

#include <algorithm>

#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {

GatherDims GatherDims::of_gather(const Attrs& a) {
  return {a.dims_or("offset_dims", {}),           a.dims_or("collapsed_slice_dims", {}),
          a.dims_or("operand_batching_dims", {}), a.dims_or("start_indices_batching_dims", {}),
          a.dims_or("start_index_map", {}),       a.i64_or("index_vector_dim", 0)};
}

GatherDims GatherDims::of_scatter(const Attrs& a) {
  return {
      a.dims_or("update_window_dims", {}),           a.dims_or("inserted_window_dims", {}),
      a.dims_or("input_batching_dims", {}),          a.dims_or("scatter_indices_batching_dims", {}),
      a.dims_or("scatter_dims_to_operand_dims", {}), a.i64_or("index_vector_dim", 0)};
}

Dims GatherDims::window_operand_dims(int operand_rank) const {
  Dims gone = collapsed;
  for (std::int64_t d : operand_batching) gone.push_back(d);
  return other_dims(operand_rank, gone);
}

Dims GatherDims::batch_dims(int result_rank) const { return other_dims(result_rank, window); }

Dims GatherDims::index_batch_dims(int indices_rank) const {
  return other_dims(indices_rank, Dims{index_vector_dim});
}

GatherWalker::GatherWalker(const GatherDims& dims, const Dims& operand, const HostArray& indices,
                           const Dims& result)
    : dims_(dims),
      indices_(indices),
      index_strides_(row_major_strides(indices.dims())),
      window_operand_(dims.window_operand_dims(operand.ssize())),
      batch_(dims.batch_dims(result.ssize())),
      index_batch_(dims.index_batch_dims(indices.rank())),
      start_(operand.size()),
      offset_(operand.size()) {}

void GatherWalker::locate(const std::vector<std::int64_t>& index) {
  std::fill(start_.begin(), start_.end(), 0);
  std::fill(offset_.begin(), offset_.end(), 0);
  auto at = [](auto& v, std::int64_t i) -> auto& { return v[static_cast<std::size_t>(i)]; };
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    std::int64_t d = index_batch_[i];
    flat += at(index, batch_[i]) * index_strides_[d];
    for (std::size_t k = 0; k < dims_.index_batching.size(); ++k)
      if (dims_.index_batching[k] == d)
        at(start_, dims_.operand_batching[k]) = at(index, batch_[i]);
  }
  std::int64_t step =
      dims_.index_vector_dim < indices_.rank() ? index_strides_[dims_.index_vector_dim] : 0;
  for (std::size_t k = 0; k < dims_.index_map.size(); ++k)
    at(start_, dims_.index_map[k]) =
        integer_scalar(indices_, flat + static_cast<std::int64_t>(k) * step);
  for (std::size_t k = 0; k < window_operand_.size(); ++k)
    at(offset_, window_operand_[k]) = at(index, dims_.window[k]);
}

DimMap gather_dim_map(const GatherDims& dims, const Type& operand, const Type& indices,
                      const Type& result, const Dims& sizes, bool scatter) {
  using Kind = DimMap::FactorKind;
  DimMap m;
  auto factor = [&](Kind kind, std::int64_t size) {
    m.factors.push_back({kind, size});
    return static_cast<std::int64_t>(m.factors.size()) - 1;
  };
  Dims o(operand.dims().size(), -1), i(indices.dims().size(), -1), r(result.dims().size(), -1);
  Dims batch = dims.batch_dims(result.rank()), index_batch = dims.index_batch_dims(indices.rank());
  for (std::size_t k = 0; k < batch.size(); ++k) {
    bool batching = contains(dims.index_batching, index_batch[k]);
    r[batch[k]] = i[index_batch[k]] =
        factor(batching || !scatter ? Kind::kParallel : Kind::kOpaque, result.dims()[batch[k]]);
  }
  for (std::size_t k = 0; k < dims.operand_batching.size(); ++k)
    o[dims.operand_batching[k]] = i[dims.index_batching[k]];
  Dims window_operand = dims.window_operand_dims(operand.rank());
  for (std::size_t k = 0; k < window_operand.size(); ++k) {
    std::int64_t d = window_operand[k];
    if (sizes[d] == operand.dims()[d] && result.dims()[dims.window[k]] == sizes[d]) {
      o[d] = r[dims.window[k]] = factor(Kind::kParallel, sizes[d]);
    } else {
      o[d] = factor(Kind::kOpaque, operand.dims()[d]);
      r[dims.window[k]] = factor(Kind::kOpaque, result.dims()[dims.window[k]]);
    }
  }
  for (std::size_t d = 0; d < o.size(); ++d)
    if (o[d] < 0) o[d] = factor(Kind::kOpaque, operand.dims()[d]);
  for (std::size_t d = 0; d < i.size(); ++d)
    if (i[d] < 0) i[d] = factor(Kind::kOpaque, indices.dims()[d]);
  m.operands = {o, i};
  m.results = {r};
  return m;
}

}  // namespace xylem::ir::ops
