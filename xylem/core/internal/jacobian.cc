#include "xylem/core/jacobian.h"

#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"

namespace xylem::internal {
namespace {

// Rows of the identity, cut for values of the given types and stacked on axis 0: row k moves
// element k of all values together.
std::vector<Array> basis(const std::vector<AbstractValue>& types, std::int64_t n) {
  std::vector<Array> r;
  std::int64_t offset = 0;
  for (const AbstractValue& t : types) {
    std::int64_t size = num_elements(t.type.dims());
    Array part = slice(eye(n, n, 0, t.type.dtype()), {0, offset}, {n, offset + size}, {1, 1}, {});
    Dims shape = t.type.dims();
    shape.insert(0, n);
    r.push_back(part.reshape(shape));
    offset += size;
  }
  return r;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims r = a;
  for (std::int64_t d : b) r.push_back(d);
  return r;
}

}  // namespace

Jacobian jacobian(std::span<const Array> args, const std::vector<bool>& active, FlatFunction f,
                  bool forward, SourceLoc where) {
  CallSite site(where);
  VjpResult linear = vjp(args, active, f, where);
  std::vector<AbstractValue> in, out;
  std::vector<std::size_t> in_at, out_at;
  std::int64_t in_size = 0, out_size = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!active[i] || !args[i].defined()) continue;
    in.push_back(abstract(args[i]));
    in_at.push_back(i);
    in_size += args[i].size();
  }
  for (std::size_t i = 0; i < linear.primals.size(); ++i) {
    const Array& r = linear.primals[i];
    if (!r.defined() || !is_inexact(r.dtype())) continue;
    out.push_back(abstract(r));
    out_at.push_back(i);
    out_size += r.size();
  }
  Jacobian j;
  j.results = linear.primals;
  if (in.empty() || out.empty()) return j;
  const std::vector<AbstractValue>& seeds = forward ? in : out;
  const std::vector<std::size_t>& seed_at = forward ? in_at : out_at;
  std::vector<Array> moved = basis(seeds, forward ? in_size : out_size);
  std::vector<int> axes(moved.size(), 0);
  std::size_t count = forward ? args.size() : linear.primals.size();
  auto pass = [&](std::span<const Array> seed) {
    std::vector<Array> all(count);
    for (std::size_t k = 0; k < seed.size(); ++k) all[seed_at[k]] = seed[k];
    return forward ? apply_linear(*linear.map, all, where)
                   : apply_transpose(*linear.map, all, where);
  };
  std::vector<Array> got = vmap(
      moved, axes, -1, "", pass, [](std::size_t n) { return std::vector<int>(n, 0); }, where);
  // got[k]: [elements of all seeds, shape of value k].
  const std::vector<std::size_t>& got_at = forward ? out_at : in_at;
  j.blocks.resize(in.size() * out.size());
  for (std::size_t g = 0; g < got_at.size(); ++g) {
    const Array& whole = got[got_at[g]];
    std::int64_t offset = 0;
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      const Dims& shape = seeds[s].type.dims();
      std::int64_t n = num_elements(shape);
      Dims lo(whole.shape().size(), 0), hi = whole.shape(), step(whole.shape().size(), 1);
      lo[0] = offset;
      hi[0] = offset + n;
      offset += n;
      Array part = slice(whole, lo, hi, step, where);
      Dims rest = whole.shape();
      rest.erase(0);
      if (forward) {
        part = moveaxis(part, 0, -1);
        j.blocks[g * in.size() + s] = part.reshape(joined(rest, shape), where);
      } else {
        j.blocks[s * in.size() + g] = part.reshape(joined(shape, rest), where);
      }
    }
  }
  return j;
}

Tree<Array> nested_tree(const Structure& outer, const Structure& inner,
                        std::span<const Array> leaves) {
  return Tree<Array>(outer.compose(inner), std::vector<Array>(leaves.begin(), leaves.end()));
}

}  // namespace xylem::internal
