#pragma once

#include "xylem/ir/op_def.h"

// The dimension bookkeeping that gather and scatter have in common: a scatter is a gather with
// operand and result exchanged.

namespace xylem::ir::ops {

struct GatherDims {
  Dims window;            // dimensions of result / updates that walk along the window
  Dims collapsed;         // operand dimensions of window size 1 that the result does not have
  Dims operand_batching;  // operand dimensions that run together with …
  Dims index_batching;    // … these dimensions of the indices
  Dims index_map;         // operand dimension of each component of an index vector
  std::int64_t index_vector_dim = 0;

  static GatherDims of_gather(const Attrs& attrs);
  static GatherDims of_scatter(const Attrs& attrs);

  // Operand dimensions that the window dimensions stand for, in order.
  Dims window_operand_dims(int operand_rank) const;
  // Dimensions of result / updates that walk over the indices.
  Dims batch_dims(int result_rank) const;
  // Dimensions of the indices without the index vector.
  Dims index_batch_dims(int indices_rank) const;
};

// Where an element of the result / updates lies: its window's start in the operand (as the indices
// say, neither clamped nor checked) and its place in the window.
class GatherWalker {
 public:
  GatherWalker(const GatherDims& dims, const Dims& operand, const HostArray& indices,
               const Dims& result);
  // Fills `start()` and `offset()`, one entry for each operand dimension.
  void locate(const std::vector<std::int64_t>& index);
  const std::vector<std::int64_t>& start() const { return start_; }
  const std::vector<std::int64_t>& offset() const { return offset_; }

 private:
  const GatherDims& dims_;
  HostArray indices_;
  Dims index_strides_, window_operand_, batch_, index_batch_;
  std::vector<std::int64_t> start_, offset_;
};

// The shared dimension map. `sizes`: window sizes by operand dimension; a dimension that the
// window covers wholly is parallel. Index dimensions are parallel or, for scatter, opaque: several
// of them may meet in one element.
DimMap gather_dim_map(const GatherDims& dims, const Type& operand, const Type& indices,
                      const Type& result, const Dims& sizes, bool scatter);

}  // namespace xylem::ir::ops
