#include "xylem/compiler/fusion/buffer_elemental.h"

#include <algorithm>

#include "xylem/compiler/fusion/loop_kernel.h"

namespace xylem::compiler {

using ir::ValueId;
using Value = ir::KernelValue;

namespace {
AxisTable axis_table(const Dims& axes) {
  AxisTable t;
  for (std::int64_t s : axes) t.axes.push_back({s, true, false});
  if (axes.empty()) t.axes.push_back({1, true, false});
  return t;
}
}  // namespace

BufferElemental::BufferElemental(const ir::Graph& graph, const Plan& plan, const Dims& axes,
                                 ir::KernelBuilder* builder)
    : Elemental(graph, axis_table(axes), builder), graph_(graph), plan_(plan) {}

Value BufferElemental::read(ValueId v) {
  const ValueId root = plan_.root(v);
  auto [it, added] = refs_.try_emplace(root);
  if (added) {
    it->second = k().read(graph_.type(root).dtype(), {graph_.type(root).size()});
    inputs_.push_back(root);
  }
  return it->second;
}

bool BufferElemental::available(ValueId v, const Forms& index, const Guard& guard, Value* tile) {
  const std::int32_t def = graph_.value(v).def;
  if (def >= 0 && plan_.roles[static_cast<std::size_t>(def)] == Role::kInline) return false;
  const ValueId root = plan_.root(v);
  const Form flat = flatten(index, graph_.type(v).dims());
  if (dry()) reads_.push_back({root, flat});
  *tile = load(dry() ? Value{} : refs_.at(root), flat, guard);
  return true;
}

void TileLoops::declare(ir::KernelBuilder& k, const Dims& shape, int widest_bytes) {
  axes_.clear();
  points = 1;
  if (shape.empty()) {
    lanes = 1;
    chunk = 1;
    return;
  }
  for (int d = 0; d + 1 < shape.ssize(); ++d) {
    axes_.push_back(k.parallel(shape[d]));
    points *= shape[d];
  }
  const std::int64_t n = shape.back();
  std::int64_t pow2 = 1;
  while (pow2 < n) pow2 *= 2;
  lanes =
      static_cast<int>(std::min<std::int64_t>(kVectorBytes / std::clamp(widest_bytes, 2, 8), pow2));
  chunk = n;
  if (n > 16384 || points < 32)
    chunk = std::min(
        n, (std::clamp<std::int64_t>(n * points / 64, 512, 8192) + lanes - 1) / lanes * lanes);
  const std::int64_t chunks = (n + chunk - 1) / chunk;
  points *= chunks;
  chunk_axis_ = chunks > 1 ? k.parallel(chunks) : Value{};
}

}  // namespace xylem::compiler
