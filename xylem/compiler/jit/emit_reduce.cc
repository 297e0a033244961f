// Reductions over tiles and products of small tiles.

#include <algorithm>
#include <bit>

#include "llvm/IR/Intrinsics.h"
#include "xylem/base/error.h"
#include "xylem/compiler/jit/emitter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::jit {

// Applies a region on scalars to whole tiles, element by element.
std::vector<Tile> Emitter::apply_region(const ir::Op& op, const ir::Graph& region,
                                        std::vector<Tile> accumulators, std::vector<Tile> elements,
                                        std::span<const EnvValue> captures) {
  const Dims dims = accumulators[0].dims;
  std::vector<EnvValue> args;
  for (Tile& t : accumulators) args.push_back({std::move(t), nullptr});
  for (Tile& t : elements) args.push_back({std::move(t), nullptr});
  args.insert(args.end(), captures.begin(), captures.end());
  std::vector<Tile> out;
  for (EnvValue& v : emit_graph(region, std::move(args))) {
    if (v.tile.dims != dims) {  // a constant, or what hangs on captures only
      Tile& scalar_value = v.tile;
      if (scalar_value.is_linear && scalar_value.pieces.empty()) scalar(scalar_value);
      if (!scalar_value.is_scalar())
        unsupported(op, scalar_value.dtype, "Use elementwise ops in regions of reductions");
      v.tile = gather_elements(scalar_value.dtype, dims, [&](std::int64_t) {
        return std::pair{&scalar_value, std::int64_t{0}};
      });
      v.tile.level = level();
    }
    out.push_back(std::move(v.tile));
  }
  return out;
}

// The order hangs on the shape only: reduced dimensions but the last one first, by halves (element
// i with element i + half); then the last one, cut into powers of two (largest first), each by
// halves, and their results from left to right; at the very end init with the result.
void Emitter::emit_reduce(const ir::Graph& g, const ir::Op& op, Env& env) {
  const Dims& reduced = op.attrs.dims("dimensions");
  const auto captures = static_cast<std::size_t>(op.attrs.i64_or("num_captures", 0));
  const std::size_t n = (op.operands.size() - captures) / 2;
  std::vector<EnvValue> extra;
  for (std::size_t i = 2 * n; i < op.operands.size(); ++i)
    extra.push_back(env[static_cast<std::size_t>(op.operands[i])]);
  std::vector<Tile> values, inits;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(env[static_cast<std::size_t>(op.operands[i])].tile);
    inits.push_back(env[static_cast<std::size_t>(op.operands[n + i])].tile);
    for (Tile* t : {&values.back(), &inits.back()}) {
      if (t->is_linear && t->pieces.empty()) scalar(*t);
      t->is_linear = false;
      t->level = level();
    }
    const DType accumulator = g.type(op.results[i]).dtype();
    if (accumulator != values[i].dtype) {
      Tile wide = empty_like(accumulator, values[i].dims);
      for (std::size_t k = 0; k < wide.pieces.size(); ++k)
        wide.pieces[k] = ops_.convert(values[i].dtype, accumulator, values[i].pieces[k]);
      wide.level = level();
      values[i] = std::move(wide);
    }
  }
  const ir::Graph& region = *op.regions[0];
  const auto combine = [&](std::vector<Tile> a, std::vector<Tile> c) {
    return apply_region(op, region, std::move(a), std::move(c), extra);
  };
  // Rows r0 … r0 + count of tiles seen as [rows, rest].
  const auto rows = [&](std::vector<Tile>& from, std::int64_t first, std::int64_t count) {
    std::vector<Tile> out;
    for (Tile& t : from) {
      Tile part;
      part.dtype = t.dtype;
      part.level = level();
      part.dims = t.dims;
      part.dims[0] = count;
      const std::size_t per_row = t.pieces.size() / static_cast<std::size_t>(t.dims[0]);
      part.pieces.assign(t.pieces.begin() + static_cast<std::ptrdiff_t>(per_row) * first,
                         t.pieces.begin() + static_cast<std::ptrdiff_t>(per_row) * (first + count));
      out.push_back(std::move(part));
    }
    return out;
  };
  const auto append = [](std::vector<Tile>& to, const std::vector<Tile>& more) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].dims[0] += more[i].dims[0];
      to[i].pieces.insert(to[i].pieces.end(), more[i].pieces.begin(), more[i].pieces.end());
    }
  };
  const auto by_halves = [&](std::vector<Tile> v) {  // reduces dimension 0 to 1
    while (v[0].dims[0] > 1) {
      const std::int64_t count = v[0].dims[0], half = count / 2;
      std::vector<Tile> next = combine(rows(v, 0, half), rows(v, half, half));
      for (Tile& t : next) t.level = level();
      if (count % 2) append(next, rows(v, count - 1, 1));
      v = std::move(next);
    }
    return v;
  };

  const Dims dims = values[0].dims;
  Dims kept;
  std::int64_t outer = 1;  // product of the reduced dimensions but the last
  std::int64_t last = 1;   // the last dimension, if it is reduced
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t kept_size = 1;
  Dims order;
  for (std::int64_t d = 0; d < rank; ++d)
    if (reduced.contains(d) && d != rank - 1) order.push_back(d), outer *= dims[d];
  for (std::int64_t d = 0; d < rank; ++d)
    if (!reduced.contains(d)) {
      kept.push_back(dims[d]);
      kept_size *= dims[d];
      order.push_back(d);
    }
  if (rank > 0 && reduced.contains(rank - 1)) {
    last = dims[rank - 1];
    order.push_back(rank - 1);
  }
  // As [outer, kept, last], or [outer, kept…] where the last dimension stays.
  for (Tile& t : values) {
    if (rank == 0) break;
    t = emit_transpose(t, order);
    Dims shape = {outer};
    if (last > 1)
      shape.push_back(kept_size);
    else
      for (std::int64_t d : kept) shape.push_back(d);
    if (last > 1) shape.push_back(last);
    t = emit_reshape(t, shape);
    t.level = level();
  }
  if (rank > 0) values = by_halves(std::move(values));
  if (last > 1) {
    // The row in powers of two, largest first, each as [pieces, kept, lanes]: whatever the vector's
    // width, element i meets element i + size / 2.
    const RowLayout row = layout(last);
    std::vector<Tile> total;
    std::int64_t left = last;
    for (std::size_t first = 0; first < row.lanes.size();) {
      const auto size = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(left)));
      left -= size;
      const std::size_t end = first + static_cast<std::size_t>(size / row.lanes[first]);
      const unsigned lanes = row.lanes[first];
      std::vector<Tile> group;
      for (Tile& t : values) {
        Tile part;
        part.dtype = t.dtype;
        part.level = level();
        part.dims = {static_cast<std::int64_t>(end - first), kept_size, lanes};
        for (std::size_t k = first; k < end; ++k)
          for (std::int64_t r = 0; r < kept_size; ++r)
            part.pieces.push_back(t.pieces[static_cast<std::size_t>(r) * row.lanes.size() + k]);
        group.push_back(std::move(part));
      }
      group = by_halves(std::move(group));
      for (unsigned width = lanes; width > 1; width /= 2) {
        std::vector<Tile> low, high;
        for (Tile& t : group) {
          const auto half = [&](std::int64_t offset) {
            const Dims shape = {1, kept_size, width / 2};
            Tile h = gather_elements(t.dtype, shape, [&](std::int64_t e) {
              return std::pair{&t, e / (width / 2) * width + offset + e % (width / 2)};
            });
            h.level = level();
            return h;
          };
          low.push_back(half(0));
          high.push_back(half(width / 2));
        }
        group = combine(std::move(low), std::move(high));
        for (Tile& t : group) t.level = level();
      }
      total = total.empty() ? std::move(group) : combine(std::move(total), std::move(group));
      first = end;
    }
    values = std::move(total);
  }
  for (Tile& t : values) {
    t = emit_reshape(t, kept);
    t.level = level();
  }
  for (std::size_t i = 0; i < n; ++i) {
    Tile init = inits[i];
    inits[i] = gather_elements(init.dtype, kept, [&](std::int64_t) {
      return std::pair{&init, std::int64_t{0}};
    });
    inits[i].level = level();
  }
  std::vector<Tile> results = combine(std::move(inits), std::move(values));
  for (std::size_t i = 0; i < n; ++i) {
    Tile& t = results[i];
    if (t.is_linear && t.pieces.empty()) scalar(t);
    t.level = level();
    if (t.dtype == DType::kI64 && t.is_scalar()) t = scalar_tile(t.pieces[0].v, level());
    env[static_cast<std::size_t>(op.results[i])].tile = std::move(t);
  }
}

// As [batch, M, K] x [batch, K, N]: for each row of the result one multiply-add per element of K,
// in order, in f32 for narrow floats.
Tile Emitter::emit_dot(const ir::Op& op, Tile& lhs, Tile& rhs, const ir::Type& to) {
  for (Tile* t : {&lhs, &rhs})
    if (t->is_linear && t->pieces.empty()) scalar(*t);
  const Dims lhs_batch = op.attrs.dims_or("lhs_batching_dimensions", {});
  const Dims rhs_batch = op.attrs.dims_or("rhs_batching_dimensions", {});
  const Dims lhs_contract = op.attrs.dims_or("lhs_contracting_dimensions", {});
  const Dims rhs_contract = op.attrs.dims_or("rhs_contracting_dimensions", {});
  std::int64_t batch = 1, m = 1, k = 1, n = 1;
  Dims lhs_order, rhs_order;
  for (std::int64_t d : lhs_batch) lhs_order.push_back(d), batch *= lhs.dims[d];
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(lhs.dims.size()); ++d)
    if (!lhs_batch.contains(d) && !lhs_contract.contains(d))
      lhs_order.push_back(d), m *= lhs.dims[d];
  for (std::int64_t d : lhs_contract) lhs_order.push_back(d), k *= lhs.dims[d];
  for (std::int64_t d : rhs_batch) rhs_order.push_back(d);
  for (std::int64_t d : rhs_contract) rhs_order.push_back(d);
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(rhs.dims.size()); ++d)
    if (!rhs_batch.contains(d) && !rhs_contract.contains(d))
      rhs_order.push_back(d), n *= rhs.dims[d];
  if (batch * m * k * n > 1 << 16)
    throw UserError(
        ErrorParts{"code generator: dot_general", "at most 65536 multiply-adds, which are unrolled",
                   std::to_string(batch * m * k * n), "Loop over smaller tiles"},
        op.loc.source);
  const DType result = to.dtype();
  const DType sum_type = is_narrow_float(result) ? DType::kF32 : result;
  const auto prepare = [&](Tile& x, const Dims& order, const Dims& shape) {
    Tile t = emit_reshape(x, x.dims);
    if (!x.is_scalar()) t = emit_transpose(x, order);
    t = emit_reshape(t, shape);
    if (t.dtype == sum_type) return t;
    Tile wide = empty_like(sum_type, shape);
    for (std::size_t i = 0; i < t.pieces.size(); ++i)
      wide.pieces[i] = ops_.convert(t.dtype, sum_type, t.pieces[i]);
    return wide;
  };
  Tile a = prepare(lhs, lhs_order, Dims{batch, m, k});
  Tile c = prepare(rhs, rhs_order, Dims{batch, k, n});

  const auto fma = [&](Value* x, Value* y, Value* z) -> Value* {
    if (!z) return b.CreateFMul(x, y);
    Value* args[] = {x, y, z};
    return ops_.intrinsic(llvm::Intrinsic::fma, args);
  };
  const auto step = [&](const Piece& sum, const Piece& x, const Piece& y) -> Piece {
    if (sum_type == DType::kBool) {
      Value* both = b.CreateAnd(x.v, y.v);
      return {sum.v ? b.CreateOr(sum.v, both) : both};
    }
    if (is_integer(sum_type)) {
      Value* p = b.CreateMul(x.v, y.v);
      return {sum.v ? b.CreateAdd(sum.v, p) : p};
    }
    if (is_complex(sum_type))
      return {fma(b.CreateFNeg(x.im), y.im, fma(x.v, y.v, sum.v)),
              fma(x.im, y.v, fma(x.v, y.im, sum.im))};
    return {fma(x.v, y.v, sum.v)};
  };
  Tile out = empty_like(result, Dims{batch, m, n});
  const RowLayout& row = layout(n);
  const std::size_t width = row.lanes.size();
  for (std::int64_t at = 0; at < batch * m; ++at) {
    std::vector<Piece> sums(width);
    for (std::int64_t i = 0; i < k; ++i) {
      const Piece x = lane(a, at * k + i);
      for (std::size_t j = 0; j < width; ++j) {
        const auto line = static_cast<std::size_t>(at / m * k + i);
        sums[j] = step(sums[j], splat_piece(x, row.lanes[j]), c.pieces[line * width + j]);
      }
    }
    for (std::size_t j = 0; j < width; ++j) {
      Piece s = sums[j];
      if (is_integer(result)) s.v = ops_.wrap(result, s.v);
      if (is_narrow_float(result)) s = ops_.round(result, s.v);
      out.pieces[static_cast<std::size_t>(at) * width + j] = s;
    }
  }
  return emit_reshape(out, to.dims());
}

}  // namespace xylem::jit
