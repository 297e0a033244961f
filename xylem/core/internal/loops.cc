#include "xylem/core/loops.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"

namespace xylem::internal {
namespace {

Array cut(const Array& x, int axis, std::int64_t start, std::int64_t limit, std::int64_t step = 1) {
  Dims lo(x.shape().size(), 0), hi = x.shape(), st(x.shape().size(), 1);
  lo[axis] = start;
  hi[axis] = limit;
  st[axis] = step;
  return slice(x, lo, hi, st, {});
}

std::vector<Array> cut_all(std::span<const Array> xs, int axis, std::int64_t start,
                           std::int64_t limit, std::int64_t step = 1) {
  std::vector<Array> r;
  for (const Array& x : xs) r.push_back(cut(x, axis, start, limit, step));
  return r;
}

std::vector<Array> mapped(std::span<const Array> xs, FlatFunction f, SourceLoc where) {
  std::vector<int> axes(xs.size(), 0);
  return vmap(
      xs, axes, -1, "", f, [](std::size_t n) { return std::vector<int>(n, 0); }, where);
}

std::int64_t leading(const char* what, std::span<const Array> xs, int axis, SourceLoc where) {
  std::int64_t n = -1;
  for (const Array& x : xs) {
    if (!x.defined()) continue;
    if (x.ndim() <= axis || (n >= 0 && x.shape()[axis] != n))
      throw UserError(ErrorParts{what, fmt::format("all leaves need axis {} of one size", axis),
                                 fmt::format("one is {}", x.type_string()),
                                 "Give leaves of equal length along it"},
                      where);
    n = x.shape()[axis];
  }
  if (n < 0)
    throw UserError(ErrorParts{what, "at least one array is needed", "there is none",
                               "Pass the values to go through"},
                    where);
  return n;
}

// a0 b0 a1 b1 …; a may have one element more.
Array interleave(const Array& a, const Array& b, int axis) {
  std::int64_t n = b.shape()[axis];
  Array pairs[2] = {cut(a, axis, 0, n), b};
  Array both = stack(pairs, axis + 1);
  Dims shape = b.shape();
  shape[axis] = 2 * n;
  both = both.reshape(shape);
  if (a.shape()[axis] == n) return both;
  return concatenate({both, cut(a, axis, n, n + 1)}, axis);
}

std::vector<Array> scan_pairs(std::span<const Array> elems, int axis, const FlatCombine& combine) {
  std::int64_t n = elems[0].shape()[axis];
  std::vector<Array> all(elems.begin(), elems.end());
  if (n < 2) return all;
  std::int64_t half = n / 2;
  std::vector<Array> odd =
      scan_pairs(combine(cut_all(elems, axis, 0, 2 * half - 1, 2), cut_all(elems, axis, 1, n, 2)),
                 axis, combine);
  std::vector<Array> even;
  if (n > 2) {
    std::int64_t from_odd = n % 2 == 0 ? half - 1 : half;
    even = combine(cut_all(odd, axis, 0, from_odd), cut_all(elems, axis, 2, n, 2));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    Array first = cut(elems[i], axis, 0, 1);
    Array e = n > 2 ? concatenate({first, even[i]}, axis) : first;
    all[i] = interleave(e, odd[i], axis);
  }
  return all;
}

}  // namespace

std::vector<Array> map_batched(std::span<const Array> xs, std::int64_t batch, FlatFunction f,
                               SourceLoc where) {
  CallSite site(where);
  std::int64_t n = leading("map", xs, 0, where);
  if (batch == 0 || (batch > 0 && batch >= n)) return mapped(xs, f, where);
  auto over = [&](std::span<const Array> in, FlatFunction body) {
    return scan({}, in, -1, false, 1, body, where).ys;
  };
  if (batch < 0) return over(xs, f);
  std::int64_t whole = n / batch, done = whole * batch;
  std::vector<Array> head;
  for (const Array& x : xs) {
    Dims shape = x.shape();
    shape[0] = batch;
    shape.insert(0, whole);
    head.push_back(cut(x, 0, 0, done).reshape(shape));
  }
  auto chunk = [&](std::span<const Array> in) { return mapped(in, f, where); };
  std::vector<Array> r = over(head, chunk);
  for (Array& a : r) {
    Dims shape = a.shape();
    shape.erase(0);
    shape[0] = done;
    a = a.reshape(shape);
  }
  if (done == n) return r;
  std::vector<Array> rest = mapped(cut_all(xs, 0, done, n), f, where);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = concatenate({r[i], rest[i]});
  return r;
}

std::vector<Array> associative_scan(std::span<const Array> elems, bool reverse, int axis,
                                    const FlatCombine& combine, SourceLoc where) {
  CallSite site(where);
  if (elems.empty()) leading("associative_scan", elems, 0, where);
  int a = static_cast<int>(AxisArg(axis).resolve(elems[0].ndim(), "associative_scan", where)[0]);
  std::int64_t n = leading("associative_scan", elems, a, where);
  if (n == 0) return {elems.begin(), elems.end()};
  auto flipped = [&](std::span<const Array> xs) {
    std::vector<Array> r;
    for (const Array& x : xs) r.push_back(flip(x, a));
    return r;
  };
  if (!reverse) return scan_pairs(elems, a, combine);
  return flipped(scan_pairs(flipped(elems), a, combine));
}

}  // namespace xylem::internal
