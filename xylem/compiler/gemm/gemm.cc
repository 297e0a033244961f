#include "xylem/compiler/gemm/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "xylem/ir/kernel/kernel_builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {

namespace o = ir::ops;
using ir::KernelBuilder;
using Value = ir::KernelValue;
using Values = std::vector<Value>;

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t panels_of(const GemmShape& s, const GemmTile& t) { return ceil_div(s.n, t.columns); }

// Element number of (batch…, 0, 0).
Value batch_offset(KernelBuilder& k, const Values& batch, const Dims& strides) {
  Value at = k.index(0);
  for (std::size_t i = 0; i < batch.size(); ++i) at = k.add(at, k.mul(batch[i], strides[i]));
  return at;
}

// Element number of a row-major index over `sizes`.
Value place(KernelBuilder& k, Value index, const Dims& sizes, const Dims& steps) {
  Value at = k.index(0);
  for (int d = sizes.ssize() - 1; d >= 0; --d) {
    Value i = index;
    if (d > 0) {
      const Value size = k.index(sizes[d]);
      i = k.one(o::kRemainder, {index, size});
      index = k.one(o::kDivide, {index, size});
    }
    at = k.add(at, k.mul(i, steps[d]));
  }
  return at;
}

// Loops over all indices of `sizes`, the last one innermost; body(position, offsets, carries) gets
// the index' row-major number and, per list of steps, its element number.
using SumBody =
    std::function<Values(Value position, const Values& offsets, std::span<const Value> carries)>;
Values sum_loops(KernelBuilder& k, const Dims& sizes, const std::vector<Dims>& steps, int d,
                 Value position, const Values& offsets, const Values& carries,
                 const SumBody& body) {
  if (d == sizes.ssize()) return body(position, offsets, carries);
  return k.for_(k.index(0), k.index(sizes[d]), 1, carries,
                [&](Value i, std::span<const Value> inner) {
                  Values moved;
                  for (std::size_t s = 0; s < steps.size(); ++s)
                    moved.push_back(k.add(offsets[s], k.mul(i, steps[s][d])));
                  return sum_loops(k, sizes, steps, d + 1, k.add(k.mul(position, sizes[d]), i),
                                   moved, Values(inner.begin(), inner.end()), body);
                });
}

}  // namespace

// Eight rows of two vectors keep both multipliers busy with room for the operands; fewer rows take
// more columns. A narrow result takes one vector and more rows.
GemmTile choose_tile(const GemmShape& s) {
  const int vector = 64 / std::max(dtype_bytes(s.dtype), 4);
  const std::int64_t m = s.m();
  GemmTile t{8, 2 * vector};
  if (s.n <= vector) {
    t.columns = vector;
    while (t.columns / 2 >= s.n && t.columns > 4) t.columns /= 2;
    t.rows = 12;
  } else if (m <= 4 && s.n > 2 * vector) {
    t.columns = 4 * vector;
  }
  t.rows = static_cast<int>(std::min<std::int64_t>(t.rows, m));
  // The row count near it that wastes least.
  int best = t.rows;
  std::int64_t waste = ceil_div(m, best) * best - m;
  for (int r = t.rows - 1; r >= std::max(t.rows - 2, 1) && waste > 0; --r)
    if (std::int64_t w = ceil_div(m, r) * r - m; w < waste) {
      best = r;
      waste = w;
    }
  t.rows = best;
  return t;
}

bool reads_in_place(const GemmShape& s, const MatrixLayout& b, const GemmTile&) {
  if (b.column.back() != 1) return false;
  const std::int64_t bytes = dtype_bytes(s.dtype), k = s.k();
  if (s.m() <= 16) return true;
  // Many rows of a page's stride fall on the same lines of the first cache.
  const bool conflicts = (b.row.back() * bytes) % 4096 == 0 && k > 32;
  return k * s.n * bytes <= (1 << 19) && !conflicts;
}

PackKernel make_pack_kernel(const GemmShape& s, const MatrixLayout& b, const GemmTile& tile) {
  PackKernel out;
  KernelBuilder k("pack");
  Values batch;
  for (std::int64_t d : s.batch) {
    batch.push_back(k.parallel(d));
    out.points *= d;
  }
  const std::int64_t panels = panels_of(s, tile), c = tile.columns, depth = s.k();
  const std::int64_t column = b.column.back();
  const Value panel = k.parallel(panels);
  out.points *= panels;
  out.elements = out.points * depth * c;
  const Value src = k.read(s.dtype, {b.size});
  const Value dst = k.write(s.dtype, {out.elements});
  Dims dense(s.batch.size(), 0);
  std::int64_t stride = panels * depth * c;
  for (int i = dense.ssize() - 1; i >= 0; --i) {
    dense[i] = stride;
    stride *= s.batch[i];
  }
  const Value first = k.mul(panel, c);
  const Value from = k.add(batch_offset(k, batch, b.batch), k.mul(first, column));
  const Value to = k.add(batch_offset(k, batch, dense), k.mul(panel, depth * c));
  Value mask;
  if (s.n % c != 0) mask = k.tail_mask(first, k.index(s.n), c);
  Value steps;
  if (column != 1) {
    const ir::Attr shape(Dims{c});
    steps = k.one(o::kIota, {},
                  ir::Attrs{{"iota_dimension", ir::Attr(0)},
                            {"shape", shape},
                            {"result_dtype", ir::Attr(DType::kI64)}});
    steps = k.one(o::kMultiply, {steps, k.broadcast(k.index(column), {c})});
  }
  const auto copy = [&](Value i, const Values& offsets, auto) {
    const Value at = k.add(from, offsets[0]);
    const Value v = column == 1
                        ? k.load(src, {at}, {0}, {c}, mask)
                        : k.gather(src, k.one(o::kAdd, {k.broadcast(at, {c}), steps}), mask);
    k.store(dst, v, {k.add(to, k.mul(i, c))}, {0});
    return Values{};
  };
  sum_loops(k, s.sums, {b.row}, 0, k.index(0), {k.index(0)}, {}, copy);
  out.kernel = k.finish();
  return out;
}

GemmKernel make_gemm_kernel(const GemmShape& s, const MatrixLayout& a, const MatrixLayout& b,
                            bool packed, const GemmTile& tile) {
  GemmKernel out;
  KernelBuilder k(fmt::format("gemm_{}x{}x{}", s.m(), s.k(), s.n));
  const std::int64_t r = tile.rows, c = tile.columns, m = s.m(), depth = s.k();
  const std::int64_t panels = panels_of(s, tile), strips = ceil_div(m, r);
  Values batch;
  std::int64_t matrices = 1;
  for (std::int64_t d : s.batch) {
    batch.push_back(k.parallel(d));
    matrices *= d;
  }
  // A grid point takes some strips of one panel: about 200 kflop, but enough points for the pool.
  std::int64_t per_point = std::clamp<std::int64_t>(200000 / (2 * r * c * depth) + 1, 1, strips);
  while (per_point > 1 && matrices * panels * ceil_div(strips, per_point) < 8) per_point /= 2;
  const std::int64_t blocks = ceil_div(strips, per_point);
  const Value panel = k.parallel(panels);
  const Value block = k.parallel(blocks);
  out.points = matrices * panels * blocks;

  Dims dense_b(s.batch.size(), 0), dense_c(s.batch.size(), 0);
  std::int64_t stride_b = panels * depth * c, stride_c = m * s.n;
  for (int i = dense_b.ssize() - 1; i >= 0; --i) {
    dense_b[i] = stride_b;
    dense_c[i] = stride_c;
    stride_b *= s.batch[i];
    stride_c *= s.batch[i];
  }
  const Value ra = k.read(s.dtype, {a.size});
  const Value rb = k.read(s.dtype, {packed ? stride_b : b.size});
  const Value rc = k.write(s.dtype, {stride_c});

  const Value first_column = k.mul(panel, c);
  const Value base_a = batch_offset(k, batch, a.batch);
  const Value base_b = packed ? k.add(batch_offset(k, batch, dense_b), k.mul(panel, depth * c))
                              : k.add(batch_offset(k, batch, b.batch), first_column);
  Dims step_b = b.row;
  if (packed) {
    step_b = row_major_strides(s.sums);
    for (std::int64_t& step : step_b) step *= c;
  }
  const Value base_c = k.add(batch_offset(k, batch, dense_c), first_column);
  Value columns;
  if (s.n % c != 0) columns = k.tail_mask(first_column, k.index(s.n), c);
  const Value zero = k.splat(s.dtype, {c}, 0);
  const bool whole_rows = m % r == 0;
  // The rows of a strip lie one step apart.
  const bool straight = s.rows.size() == 1 || (s.rows.back() % r == 0 && whole_rows);

  const Value first_strip = k.mul(block, per_point);
  Value last_strip = k.add(first_strip, per_point);
  if (strips % per_point != 0) last_strip = k.min(last_strip, k.index(strips));
  k.for_(first_strip, last_strip, 1, std::span<const Value>(), [&](Value strip, auto) {
    const Value top = k.mul(strip, r);
    Values rows, at_a, acc;
    const Value first = straight ? place(k, top, s.rows, a.row) : Value{};
    for (std::int64_t i = 0; i < r; ++i) {
      Value row = k.add(top, i);
      if (!whole_rows) row = k.min(row, k.index(m - 1));
      rows.push_back(row);
      Value at =
          straight && whole_rows ? k.add(first, i * a.row.back()) : place(k, row, s.rows, a.row);
      at_a.push_back(k.add(base_a, at));
      acc.push_back(zero);
    }
    const auto multiply = [&](Value, const Values& at, std::span<const Value> sums) {
      const Value vb = k.load(rb, {k.add(base_b, at[1])}, {0}, {c}, packed ? Value{} : columns);
      Values next;
      for (std::int64_t i = 0; i < r; ++i) {
        const Value x = k.load_scalar(ra, {k.add(at_a[static_cast<std::size_t>(i)], at[0])});
        const Value va = k.broadcast(x, {c});
        const Value sum = sums[static_cast<std::size_t>(i)];
        next.push_back(is_float(s.dtype) ? k.fma(va, vb, sum)
                                         : k.one(o::kAdd, {sum, k.one(o::kMultiply, {va, vb})}));
      }
      return next;
    };
    acc = sum_loops(k, s.sums, {a.column, step_b}, 0, k.index(0), {k.index(0), k.index(0)}, acc,
                    multiply);
    for (std::int64_t i = 0; i < r; ++i) {
      const auto x = static_cast<std::size_t>(i);
      // Rows behind the last one repeat it; the same numbers are stored again.
      k.store(rc, acc[x], {k.add(base_c, k.mul(rows[x], s.n))}, {0}, columns);
    }
    return Values{};
  });
  out.kernel = k.finish();
  return out;
}

}  // namespace xylem::compiler
