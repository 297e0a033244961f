#include "xylem/base/error.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/compiler/reducer.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Op;
using ir::ValueId;

// One accumulator never takes more elements than this along a row.
constexpr std::int64_t kBlock = 4096;
// Rows that one block of a column reduction adds up.
constexpr std::int64_t kRows = 64;

struct Split {
  int dim = -1;            // the reduced dimension that is cut
  std::int64_t block = 0;  // elements of it per block
};

// Cuts the outermost reduced dimension whose part below it is at most a block. Shape alone decides.
Split choose(const Dims& dims, const Dims& reduced) {
  std::int64_t total = 1;
  for (std::int64_t d : reduced) total *= dims[d];
  const int last = dims.ssize() - 1;
  const bool row = reduced.contains(last);
  const std::int64_t kept = num_elements(dims) / std::max<std::int64_t>(total, 1);
  const std::int64_t limit = row ? kBlock : kRows;
  // Rows short enough, or so many results that the pool has work: one level is right.
  if (total < (row ? 2 * kBlock : 4 * kRows)) return {};
  if (row && total <= 8 * kBlock && kept >= 64) return {};
  std::int64_t below = 1;
  for (int i = last; i >= 0; --i) {
    if (!reduced.contains(i)) continue;
    if (below * dims[i] > limit) {
      const std::int64_t block = std::max<std::int64_t>(limit / below, 1);
      if (block >= dims[i]) return {};
      return {i, block};
    }
    below *= dims[i];
  }
  return {};
}

}  // namespace

ir::GraphPtr split_reductions(const ir::GraphPtr& graph) {
  bool any = false;
  const auto split_of = [&](const Op& op) -> Split {
    if (op.def != &o::kReduce || op.results.size() != 1 || op.attrs.i64_or("num_captures", 0) != 0)
      return {};
    const ir::Type& t = graph->type(op.operands[0]);
    if (!known_reducer(*op.regions[0]) || t.dtype() != graph->type(op.results[0]).dtype())
      return {};
    return choose(t.dims(), op.attrs.dims("dimensions"));
  };
  for (const Op& op : graph->ops) any = any || split_of(op).dim >= 0;
  if (!any) return graph;
  Rewriter rewriter(*graph);
  ir::Builder& b = rewriter.builder();
  for (const Op& op : graph->ops) {
    const Split split = split_of(op);
    if (split.dim < 0) {
      rewriter.copy(op);
      continue;
    }
    b.set_location(op.loc);
    ValueId x = rewriter[op.operands[0]];
    const ir::Type t = b.type(x);
    const auto at = static_cast<std::size_t>(split.dim);
    const std::int64_t size = t.dims()[at];
    const std::int64_t blocks = (size + split.block - 1) / split.block;
    const ValueId identity =
        b.constant(reducer_identity(*known_reducer(*op.regions[0]), t.dtype()));
    if (blocks * split.block != size) {
      Dims zeros(t.dims().size(), 0), high = zeros;
      high[at] = blocks * split.block - size;
      x = b.one(o::kPad, {x, identity},
                Attrs{{"edge_padding_low", Attr(zeros)},
                      {"edge_padding_high", Attr(high)},
                      {"interior_padding", Attr(zeros)}});
    }
    // [.., size, ..] -> [.., blocks, block, ..]: first within blocks, then over them.
    Dims shape = t.dims();
    shape[at] = blocks;
    shape.insert(at + 1, split.block);
    x = b.one(o::kReshape, {x}, Attrs{{"shape", Attr(shape)}});
    Dims first, second;
    for (std::int64_t d : op.attrs.dims("dimensions")) {
      if (d >= split.dim) first.push_back(d + 1);
      if (d <= split.dim) second.push_back(d);
    }
    x = b.one(o::kReduce, {x, identity}, Attrs{{"dimensions", Attr(first)}}, op.regions);
    x = b.one(o::kReduce, {x, rewriter[op.operands[1]]}, Attrs{{"dimensions", Attr(second)}},
              op.regions);
    rewriter.set(op.results[0], x);
  }
  return rewriter.finish();
}

}  // namespace xylem::compiler
