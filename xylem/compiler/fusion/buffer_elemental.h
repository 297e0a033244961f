#pragma once

#include <unordered_map>
#include <vector>

#include "xylem/compiler/fusion/elemental.h"
#include "xylem/compiler/fusion/plan.h"

namespace xylem::compiler {

// Evaluates values from buffers, going back through inline ops: for kernels of ops that are not
// fused. Loops are given one per axis by the caller.
class BufferElemental final : public Elemental {
 public:
  struct Read {
    ir::ValueId v;
    Form flat;
  };

  BufferElemental(const ir::Graph& graph, const Plan& plan, const Dims& axes,
                  ir::KernelBuilder* builder);

  bool available(ir::ValueId v, const Forms& index, const Guard& guard, Value* tile) override;

  // Declares a parameter for a buffer to read; repeated calls give the same one.
  Value read(ir::ValueId v);
  // The roots declared so far, in order.
  const std::vector<ir::ValueId>& inputs() const { return inputs_; }
  // Dry runs: what is read.
  const std::vector<Read>& reads() const { return reads_; }

 private:
  const ir::Graph& graph_;
  const Plan& plan_;
  std::unordered_map<ir::ValueId, Value> refs_;
  std::vector<ir::ValueId> inputs_;
  std::vector<Read> reads_;
};

// Row-major loops over `shape` in a kernel: all dimensions but the last are parallel axes, the
// last one is cut into tiles of lanes, grouped so that a grid point has some work.
struct TileLoops {
  int lanes = 1;
  std::int64_t chunk = 1;  // elements of the last dimension per grid point
  std::int64_t points = 1;
  // Declares the grid axes. The evaluator gets one loop per dimension (at least one).
  void declare(ir::KernelBuilder& k, const Dims& shape, int widest_bytes);
  // Runs body(guard) for each tile of the point.
  template <class Body>
  void run(Elemental& e, const Dims& shape, const Body& body);

 private:
  std::vector<ir::KernelValue> axes_;
  ir::KernelValue chunk_axis_;
};

template <class Body>
void TileLoops::run(Elemental& e, const Dims& shape, const Body& body) {
  ir::KernelBuilder& k = e.k();
  e.set_lanes(lanes);
  e.loops().clear();
  const int rank = shape.ssize();
  if (rank == 0) {
    e.loops().push_back({0, 0, 1, k.index(0)});
    body(Elemental::Guard{});
    return;
  }
  const ir::KernelValue start = chunk_axis_.defined() ? k.mul(chunk_axis_, chunk) : k.index(0);
  for (int d = 0; d < rank; ++d)
    e.loops().push_back(
        {d, d, shape[d], d + 1 < rank ? axes_[static_cast<std::size_t>(d)] : start});
  const std::int64_t n = shape[rank - 1];
  ir::KernelValue limit = k.index(n);
  if (chunk < n) limit = k.min(k.add(start, chunk), limit);
  k.for_(start, limit, lanes, std::span<const ir::KernelValue>(), [&](ir::KernelValue at, auto) {
    e.enter();
    e.loops().back().value = at;
    Elemental::Guard guard;
    if (n % lanes != 0) guard.lanes = k.tail_mask(at, k.index(n), lanes);
    body(guard);
    e.leave();
    return std::vector<ir::KernelValue>{};
  });
}

}  // namespace xylem::compiler
