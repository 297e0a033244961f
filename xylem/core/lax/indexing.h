#pragma once

#include <cstdint>

#include "xylem/ir/attr.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/op_def.h"

namespace xylem::lax {

// Dimension numbers of stablehlo.gather and stablehlo.scatter.
struct GatherDims {
  Dims offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims;
  Dims start_index_map;
  std::int64_t index_vector_dim = 0;

  GatherDims() = default;
  explicit GatherDims(const ir::Attrs& attrs);
  void write(ir::Attrs& attrs) const;
};

struct ScatterDims {
  Dims update_window_dims, inserted_window_dims, input_batching_dims;
  Dims scatter_indices_batching_dims, scatter_dims_to_operand_dims;
  std::int64_t index_vector_dim = 0;

  ScatterDims() = default;
  explicit ScatterDims(const ir::Attrs& attrs);
  void write(ir::Attrs& attrs) const;
};

// The scatter that writes where the gather reads, and the other way.
ScatterDims scatter_dims_of(const GatherDims& g);
GatherDims gather_dims_of(const ScatterDims& s);

ir::Expr gather(ir::Expr operand, ir::Expr indices, const GatherDims& dims,
                const Dims& slice_sizes);
// combine: the region's op, null to set.
ir::Expr scatter(ir::Expr operand, ir::Expr indices, ir::Expr updates, const ScatterDims& dims,
                 const ir::OpDef* combine, bool unique);

// Clamps component i of the index vectors to [0, last[i]].
ir::Expr clamp_indices(ir::Expr indices, const Dims& last, int index_vector_dim);

// Window size per operand dimension of a scatter.
Dims window_sizes(const ScatterDims& s, const ir::Type& operand, const ir::Type& updates);
// i1 of the updates' shape: whether the window of an update lies wholly inside the operand.
ir::Expr windows_inside(ir::Expr indices, const ScatterDims& s, const ir::Type& operand,
                        const Dims& sizes, const ir::Type& updates);

// values[..., index[...], ...] along `axis`: both have one shape but for that axis.
ir::Expr take_along_axis(ir::Expr values, ir::Expr index, int axis);

}  // namespace xylem::lax
