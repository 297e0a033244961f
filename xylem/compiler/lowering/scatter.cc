#include <algorithm>

#include "xylem/compiler/fusion/buffer_elemental.h"
#include "xylem/compiler/fusion/loop_kernel.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/gather_scatter.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Op;
using ir::ValueId;
using Value = ir::KernelValue;
using Values = std::vector<Value>;

}  // namespace

// The updates one after the other, in row-major order. Where the last dimension of the updates is
// one of their window, its elements never meet, so it gives lanes and work for the pool.
void lower_scatter(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const auto captures = static_cast<std::size_t>(op.attrs.i64_or("num_captures", 0));
  const std::size_t n = op.results.size();
  const ValueId indices = op.operands[n];
  const ir::Type& index_type = g.type(indices);
  const Dims& dims = g.type(op.operands[0]).dims();
  const Dims& updates = g.type(op.operands[n + 1]).dims();
  const Dims window_dims = op.attrs.dims_or("update_window_dims", {});
  const Dims inserted = op.attrs.dims_or("inserted_window_dims", {});
  const Dims input_batch = op.attrs.dims_or("input_batching_dims", {});
  const Dims index_batch = op.attrs.dims_or("scatter_indices_batching_dims", {});
  const Dims map = op.attrs.dims_or("scatter_dims_to_operand_dims", {});
  const std::int64_t vector_dim = op.attrs.i64("index_vector_dim");
  const int rank = updates.ssize();
  const bool spread = rank > 0 && window_dims.contains(rank - 1) && updates[rank - 1] > 1;

  int bytes = 1;
  for (ValueId v : op.results) bytes = std::max(bytes, dtype_bytes(g.type(v).dtype()));
  ir::KernelBuilder k("scatter");
  int lanes = 1;
  std::int64_t tiles = 1;
  Value tile;
  if (spread) {
    while (lanes < updates[rank - 1] && lanes < kVectorBytes / std::clamp(bytes, 2, 8)) lanes *= 2;
    tiles = (updates[rank - 1] + lanes - 1) / lanes;
    if (tiles > 1) tile = k.parallel(tiles);
  }
  BufferElemental e(g, l.plan(), updates, &k);
  for (std::size_t i = n; i < op.operands.size(); ++i) e.read(op.operands[i]);
  Values outs;
  for (ValueId v : op.results) outs.push_back(k.read_write(g.type(v).dtype(), {g.type(v).size()}));

  Elemental::Guard lane_guard;
  e.set_lanes(lanes);
  std::vector<Elemental::Loop> loops;
  for (int d = 0; d < rank; ++d) loops.push_back({d, d, updates[d], k.index(0)});
  if (loops.empty()) loops.push_back({0, 0, 1, k.index(0)});
  if (spread) {
    loops.back().value = tile.defined() ? k.mul(tile, lanes) : k.index(0);
    if (updates[rank - 1] % lanes != 0)
      lane_guard.lanes = k.tail_mask(loops.back().value, k.index(updates[rank - 1]), lanes);
  }

  const auto body = [&] {
    e.loops() = loops;
    Forms index;
    for (int d = 0; d < rank; ++d) index.push_back(updates[d] == 1 ? Form() : Form::axis(d));
    Forms scattered;  // of the dimensions that are not the window's
    for (int d = 0; d < rank; ++d)
      if (!window_dims.contains(d)) scattered.push_back(index[static_cast<std::size_t>(d)]);
    Forms at(dims.size());
    Dims span(dims.size(), 1);  // of the window, per operand dimension
    std::size_t next = 0;
    for (int d = 0; d < dims.ssize(); ++d) {
      if (inserted.contains(d) || input_batch.contains(d)) continue;
      const auto u = static_cast<std::size_t>(window_dims[next++]);
      at[static_cast<std::size_t>(d)] = index[u];
      span[d] = updates[u];
    }
    for (std::size_t i = 0; i < input_batch.size(); ++i) {
      const std::int64_t sd = index_batch[i];
      at[static_cast<std::size_t>(input_batch[i])] =
          scattered[static_cast<std::size_t>(sd - (sd > vector_dim ? 1 : 0))];
    }
    Elemental::Guard guard = lane_guard;
    for (std::size_t i = 0; i < map.size(); ++i) {
      const auto d = static_cast<std::size_t>(map[i]);
      Forms where;
      std::size_t s = 0;
      for (int x = 0; x < index_type.rank(); ++x)
        where.push_back(x == vector_dim ? Form::number(static_cast<std::int64_t>(i))
                                        : scattered[s++]);
      Value start = e.eval(indices, where, {});
      if (k.dtype(start) != DType::kI64)
        start = e.apply(o::kConvert, {start}, Attrs{{"result_dtype", Attr(DType::kI64)}});
      // 0 <= start <= dim - span as one unsigned comparison would be; two signed ones here.
      const auto compare = [&](const char* direction, std::int64_t limit) {
        return e.apply(o::kCompare, {start, k.index(limit)},
                       Attrs{{"comparison_direction", Attr(ir::EnumAttr(direction))}});
      };
      Value ok = e.apply(o::kAnd, {compare("GE", 0), compare("LE", dims[d] - span[d])});
      guard.all = guard.all.defined() ? e.apply(o::kAnd, {guard.all, ok}) : ok;
      at[d] = at[d] + e.opaque(start, dims[d]);
    }
    const Form flat = flatten(at, dims);
    Values args;
    for (std::size_t r = 0; r < n; ++r) args.push_back(e.load(outs[r], flat, guard));
    for (std::size_t r = 0; r < n; ++r)
      args.push_back(e.eval(op.operands[n + 1 + r], index, guard));
    for (std::size_t c = 0; c < captures; ++c)
      args.push_back(e.eval(op.operands[2 * n + 1 + c], {}, {}));
    const Values now = e.inline_region(*op.regions[0], args);
    for (std::size_t r = 0; r < n; ++r) e.store(outs[r], flat, now[r], guard);
  };
  const std::function<void(int)> walk = [&](int d) {
    if (d == rank || (spread && d == rank - 1)) return body();
    k.for_(k.index(0), k.index(updates[d]), 1, std::span<const Value>(), [&](Value i, auto) {
      e.enter();
      loops[static_cast<std::size_t>(d)].value = i;
      walk(d + 1);
      e.leave();
      return Values{};
    });
  };
  walk(0);

  std::vector<Use> uses;
  for (ValueId v : e.inputs()) uses.push_back({v});
  const std::size_t first = uses.size();
  for (std::size_t r = 0; r < n; ++r)
    uses.push_back({l.buffer(op.results[r]), true, static_cast<int>(first + n + r), true});
  for (std::size_t r = 0; r < n; ++r)
    uses.push_back({.buffer = l.buffer(op.operands[r]), .hidden = true});
  const double work = static_cast<double>(num_elements(updates));
  l.kernel(k.finish(), std::move(uses), tiles, 4 * work / lanes + 20, work);
}

}  // namespace xylem::compiler
