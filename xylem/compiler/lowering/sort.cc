#include "xylem/compiler/fusion/buffer_elemental.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"

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

// Stable bottom-up merge sort of each row in scratch memory of twice its size; the comparator is
// inlined. A comparator without order cannot make it leave the row.
void lower_sort(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const std::size_t n = op.results.size();
  const ir::Type& t = g.type(op.operands[0]);
  std::int64_t axis = op.attrs.i64_or("dimension", -1);
  if (axis < 0) axis += t.rank();
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < t.rank(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : t.dim(d);
  const std::int64_t size = t.rank() == 0 ? 1 : t.dim(static_cast<int>(axis));
  if (t.size() == 0) return;

  ir::KernelBuilder k("sort");
  const Value row = k.parallel(outer), column = k.parallel(inner);
  BufferElemental e(g, l.plan(), {1}, &k);
  Values in, out, work;
  std::vector<Use> uses;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    // Each input is a parameter of its own, even if two are the same buffer.
    const ir::Type& ti = g.type(op.operands[i]);
    in.push_back(k.read(ti.dtype(), {ti.size()}));
    uses.push_back({l.buffer(op.operands[i])});
  }
  for (std::size_t i = 0; i < n; ++i) {
    out.push_back(k.write(g.type(op.results[i]).dtype(), {t.size()}));
    uses.push_back({l.buffer(op.results[i]), true});
  }
  for (std::size_t i = 0; i < n; ++i)
    work.push_back(k.scratch(g.type(op.results[i]).dtype(), {2 * size}));
  e.loops().push_back({0, 0, 1, k.index(0)});

  const Value base = k.add(k.mul(row, size * inner), column);
  const auto element = [&](Value i) { return k.add(base, k.mul(i, inner)); };
  k.for_(k.index(0), k.index(size), 1, std::span<const Value>(), [&](Value i, auto) {
    for (std::size_t a = 0; a < n; ++a)
      k.store(work[a], k.load_scalar(in[a], {element(i)}), {i}, {});
    return Values{};
  });
  Values captured;
  for (std::size_t c = n; c < op.operands.size(); ++c)
    captured.push_back(k.load_scalar(in[c], {k.index(0)}));
  const auto at_least = [&](Value v, Value low) { return k.one(o::kMaximum, {v, low}); };
  // Carries: run length, where the runs lie (0 or `size`).
  const Values last = k.while_(
      Values{k.index(1), k.index(0)},
      [&](std::span<const Value> c) { return k.less(c[0], k.index(size)); },
      [&](std::span<const Value> c) {
        const Value width = c[0], from = c[1];
        const Value to = k.sub(k.index(size), from);
        k.while_(
            Values{k.index(0)},
            [&](std::span<const Value> s) { return k.less(s[0], k.index(size)); },
            [&](std::span<const Value> s) {
              const Value lo = s[0];
              const Value mid = k.min(k.add(lo, width), k.index(size));
              const Value hi = k.min(k.add(mid, width), k.index(size));
              k.for_(lo, hi, 1, Values{lo, mid}, [&](Value to_at, std::span<const Value> ij) {
                e.enter();
                const Value i = k.min(ij[0], k.sub(mid, k.index(1)));
                const Value j = at_least(k.min(ij[1], k.sub(hi, k.index(1))), k.index(0));
                Values a, b, args;
                for (std::size_t x = 0; x < n; ++x) {
                  a.push_back(k.load_scalar(work[x], {k.add(from, i)}));
                  b.push_back(k.load_scalar(work[x], {k.add(from, j)}));
                  args.push_back(b.back());
                  args.push_back(a.back());
                }
                args.insert(args.end(), captured.begin(), captured.end());
                const Value before = e.inline_region(*op.regions[0], args)[0];
                const Value left_done = k.one(o::kNot, {k.less(ij[0], mid)});
                const Value take =
                    k.one(o::kAnd, {k.less(ij[1], hi), k.one(o::kOr, {left_done, before})});
                for (std::size_t x = 0; x < n; ++x)
                  k.store(work[x], k.one(o::kSelect, {take, b[x], a[x]}), {k.add(to, to_at)}, {});
                const Value one =
                    k.one(o::kConvert, {take}, Attrs{{"result_dtype", Attr(DType::kI64)}});
                e.leave();
                return Values{k.add(ij[0], k.sub(k.index(1), one)), k.add(ij[1], one)};
              });
              return Values{k.add(hi, k.index(0))};
            });
        return Values{k.add(width, width), to};
      });
  k.for_(k.index(0), k.index(size), 1, std::span<const Value>(), [&](Value i, auto) {
    for (std::size_t a = 0; a < n; ++a)
      k.store(out[a], k.load_scalar(work[a], {k.add(last[1], i)}), {element(i)}, {});
    return Values{};
  });
  double passes = 1;
  for (std::int64_t w = 1; w < size; w *= 2) ++passes;
  l.kernel(k.finish(), std::move(uses), outer * inner,
           static_cast<double>(t.size()) * passes * 4 + 50);
}

// The k largest of each row in order, kept by insertion while the row passes; of equal ones the
// first. Most elements cost one comparison.
void lower_top_k(Lowering& l, const Op& op) {
  const ir::Type& t = l.graph().type(op.operands[0]);
  const std::int64_t size = t.dims().back(), most = op.attrs.i64("k");
  if (t.size() == 0 || most == 0) return;
  const std::int64_t rows = t.size() / size;

  ir::KernelBuilder k("top_k");
  const Value row = k.parallel(rows);
  BufferElemental e(l.graph(), l.plan(), {1}, &k);
  const Value in = k.read(t.dtype(), {t.size()});
  const Value values = k.write(t.dtype(), {rows * most});
  const Value places = k.write(DType::kI32, {rows * most});
  // One element more: what falls out of the list lands there.
  const Value list = k.scratch(t.dtype(), {most + 1});
  const Value list_places = k.scratch(DType::kI64, {most + 1});
  e.loops().push_back({0, 0, 1, k.index(0)});

  Attrs compare{{"comparison_direction", Attr(ir::EnumAttr("GT"))}};
  if (is_float(t.dtype())) compare.set("compare_type", Attr(ir::EnumAttr("TOTALORDER")));
  const Value base = k.mul(row, k.index(size));
  const auto before = [&](Value j) {
    return k.one(o::kMaximum, {k.sub(j, k.index(1)), k.index(0)});
  };
  k.for_(k.index(0), k.index(size), 1, std::span<const Value>(), [&](Value i, auto) {
    const Value v = k.load_scalar(in, {k.add(base, i)});
    const Values at = k.while_(
        Values{k.min(i, k.index(most))},
        [&](std::span<const Value> j) {
          e.enter();
          const Value above =
              e.apply(o::kCompare, {v, k.load_scalar(list, {before(j[0])})}, compare);
          e.leave();
          return k.one(o::kAnd, {k.less(k.index(0), j[0]), above});
        },
        [&](std::span<const Value> j) {
          const Value from = before(j[0]);
          k.store(list, k.load_scalar(list, {from}), {j[0]}, {});
          k.store(list_places, k.load_scalar(list_places, {from}), {j[0]}, {});
          return Values{from};
        });
    k.store(list, v, {at[0]}, {});
    k.store(list_places, i, {at[0]}, {});
    return Values{};
  });
  const Value out = k.mul(row, k.index(most));
  k.for_(k.index(0), k.index(most), 1, std::span<const Value>(), [&](Value i, auto) {
    k.store(values, k.load_scalar(list, {i}), {k.add(out, i)}, {});
    const Value place = k.one(o::kConvert, {k.load_scalar(list_places, {i})},
                              Attrs{{"result_dtype", Attr(DType::kI32)}});
    k.store(places, place, {k.add(out, i)}, {});
    return Values{};
  });
  l.kernel(k.finish(),
           {{l.buffer(op.operands[0])},
            {l.buffer(op.results[0]), true},
            {l.buffer(op.results[1]), true}},
           rows, static_cast<double>(t.size()) * 1.5 + 20);
}

}  // namespace xylem::compiler
