// Functions of shapes and of creation that are made of others.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/gather.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using internal::CallSite;
using internal::constant;

namespace {

int axis_of(int axis, int rank, const char* what, SourceLoc where) {
  return static_cast<int>(AxisArg(axis).resolve(rank, what, where)[0]);
}

// x[start:limit] along one axis.
Array cut(const Array& x, int axis, std::int64_t start, std::int64_t limit, std::int64_t step = 1) {
  Dims lo(x.shape().size(), 0), hi = x.shape(), st(x.shape().size(), 1);
  lo[axis] = start;
  hi[axis] = std::max(limit, start);
  st[axis] = step;
  return internal::slice(x, lo, hi, st, {});
}

std::vector<Array> each(std::span<const Array> xs, Array (*f)(const ArrayArg&)) {
  std::vector<Array> r;
  for (const Array& x : xs) r.push_back(f(x));
  return r;
}

[[noreturn]] void refuse(const char* what, std::string_view expected, const std::string& given,
                         std::string_view advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given, advice}, CallSite::outermost(where));
}

}  // namespace

// --- creation -----------------------------------------------------------------------------------

Array identity(std::int64_t n, DType dtype) { return eye(n, n, 0, dtype); }
Array empty(Dims shape, DType dtype) { return zeros(std::move(shape), dtype); }
Array empty_like(const ArrayArg& x) { return zeros_like(x); }
Array asarray(const ArrayArg& x, std::optional<DType> dtype) {
  return dtype ? x.array.astype(*dtype, x.where) : x.array;
}
Array copy(const ArrayArg& x) { return x.array; }

Array logspace(double start, double stop, std::int64_t num, bool endpoint, double base) {
  return power(base, linspace(start, stop, num, endpoint));
}

Array geomspace(double start, double stop, std::int64_t num, bool endpoint) {
  if (start == 0 || stop == 0 || (start < 0) != (stop < 0))
    refuse("geomspace", "ends of one sign, not zero", fmt::format("{} and {}", start, stop),
           "Use linspace", {});
  double sign = start < 0 ? -1 : 1;
  Array r = sign * logspace(std::log10(sign * start), std::log10(sign * stop), num, endpoint);
  if (num > 0) r = r.at(0).set(start);
  if (num > 1 && endpoint) r = r.at(-1).set(stop);
  return r;
}

std::vector<Array> meshgrid(std::span<const Array> axes, std::string_view indexing) {
  if (indexing != "xy" && indexing != "ij")
    refuse("meshgrid: indexing", "\"xy\" or \"ij\"", std::string(indexing), "Choose one", {});
  int n = static_cast<int>(axes.size());
  bool swap = indexing == "xy" && n >= 2;
  Dims shape;
  for (const Array& a : axes) {
    if (a.ndim() > 1) refuse("meshgrid", "vectors are needed", a.type_string(), "Flatten them", {});
    shape.push_back(a.size());
  }
  if (swap) std::swap(shape[0], shape[1]);
  std::vector<Array> r;
  for (int i = 0; i < n; ++i) {
    int d = swap && i < 2 ? 1 - i : i;
    r.push_back(
        internal::broadcast_in_dim(ravel(axes[static_cast<std::size_t>(i)]), shape, {d}, {}));
  }
  return r;
}
std::vector<Array> meshgrid(std::initializer_list<Array> axes, std::string_view indexing) {
  return meshgrid(std::span<const Array>(axes.begin(), axes.size()), indexing);
}

Array indices(Dims shape) {
  std::vector<Array> r;
  for (int d = 0; d < shape.ssize(); ++d) r.push_back(internal::iota(DType::kI32, shape, d));
  if (r.empty()) return zeros({0}, DType::kI32);
  return stack(r);
}

namespace {

std::pair<Array, Array> positions_where(std::int64_t n, std::int64_t m,
                                        bool (*in)(std::int64_t, std::int64_t, int), int k) {
  std::vector<std::int32_t> rows, columns;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j)
      if (in(i, j, k)) {
        rows.push_back(static_cast<std::int32_t>(i));
        columns.push_back(static_cast<std::int32_t>(j));
      }
  return {Array(rows), Array(columns)};
}

}  // namespace

std::pair<Array, Array> tril_indices(std::int64_t n, int k, std::int64_t m) {
  return positions_where(
      n, m < 0 ? n : m, [](std::int64_t i, std::int64_t j, int o) { return j - i <= o; }, k);
}
std::pair<Array, Array> triu_indices(std::int64_t n, int k, std::int64_t m) {
  return positions_where(
      n, m < 0 ? n : m, [](std::int64_t i, std::int64_t j, int o) { return j - i >= o; }, k);
}
std::pair<Array, Array> diag_indices(std::int64_t n) { return {arange(n), arange(n)}; }

Array vander(const ArrayArg& x, std::int64_t n, bool increasing) {
  CallSite site(x.where);
  if (x.array.ndim() != 1)
    refuse("vander", "a vector is needed", x.array.type_string(), "Flatten it", x.where);
  if (n < 0) n = x.array.dim(0);
  if (n == 0) return zeros({x.array.dim(0), 0}, x.array.dtype());
  std::vector<Array> columns = {ones_like(x)};
  for (std::int64_t i = 1; i < n; ++i) columns.push_back(columns.back() * x.array);
  if (!increasing) std::reverse(columns.begin(), columns.end());
  return stack(columns, -1);
}

// --- axes ---------------------------------------------------------------------------------------

Array permute_dims(const ArrayArg& x, Dims permutation) {
  for (std::int64_t d : permutation)
    if (d < 0)
      refuse("permute_dims", "axes that are not negative", fmt::format("{}", d), "Use transpose",
             x.where);
  return transpose(x, std::move(permutation));
}
Array matrix_transpose(const ArrayArg& x) { return swapaxes(x, -1, -2); }

Array moveaxis(const ArrayArg& x, const std::vector<int>& from, const std::vector<int>& to) {
  int n = x.array.ndim();
  if (from.size() != to.size())
    refuse("moveaxis", "as many targets as sources",
           fmt::format("{} and {}", from.size(), to.size()), "Pair them", x.where);
  std::vector<std::pair<int, int>> moves;
  Dims sources;
  for (std::size_t i = 0; i < from.size(); ++i) {
    int s = axis_of(from[i], n, "moveaxis", x.where);
    moves.emplace_back(axis_of(to[i], n, "moveaxis", x.where), s);
    sources.push_back(s);
  }
  Dims order;
  for (int i = 0; i < n; ++i)
    if (!sources.contains(i)) order.push_back(i);
  std::sort(moves.begin(), moves.end());
  for (const auto& [t, s] : moves) order.insert(static_cast<std::size_t>(t), s);
  return x.array.transpose(order, x.where);
}

Array rollaxis(const ArrayArg& x, int axis, int start) {
  int n = x.array.ndim();
  axis = axis_of(axis, n, "rollaxis", x.where);
  if (start < 0) start += n;
  if (axis < start) --start;
  return moveaxis(x, axis, start);
}

Array atleast_1d(const ArrayArg& x) {
  return x.array.ndim() >= 1 ? x.array : x.array.reshape({1}, x.where);
}
Array atleast_2d(const ArrayArg& x) {
  if (x.array.ndim() >= 2) return x.array;
  return x.array.reshape({1, x.array.size()}, x.where);
}
Array atleast_3d(const ArrayArg& x) {
  int n = x.array.ndim();
  if (n >= 3) return x.array;
  if (n == 2) return x.array.reshape({x.array.dim(0), x.array.dim(1), 1}, x.where);
  return x.array.reshape({1, x.array.size(), 1}, x.where);
}

std::vector<Array> broadcast_arrays(std::span<const Array> xs) {
  std::vector<Dims> shapes;
  for (const Array& x : xs) shapes.push_back(x.shape());
  Dims shape = internal::broadcast_shapes(shapes, "broadcast_arrays", {});
  std::vector<Array> r;
  for (const Array& x : xs) r.push_back(internal::broadcast(x, shape, {}));
  return r;
}
std::vector<Array> broadcast_arrays(std::initializer_list<Array> xs) {
  return broadcast_arrays(std::span<const Array>(xs.begin(), xs.size()));
}
Dims broadcast_shapes(std::initializer_list<Dims> shapes) {
  return internal::broadcast_shapes(std::span<const Dims>(shapes.begin(), shapes.size()),
                                    "broadcast_shapes", {});
}

// --- joining and splitting
// ------------------------------------------------------------------------

Array concat(std::span<const Array> parts, int axis, SourceLoc where) {
  return concatenate(parts, axis, where);
}

Array append(const ArrayArg& x, const ArrayArg& values, std::optional<int> axis) {
  CallSite site(x.where);
  if (axis) return concatenate({x.array, values.array}, *axis);
  return concatenate({ravel(x), ravel(values)});
}

Array vstack(std::span<const Array> parts, SourceLoc where) {
  CallSite site(where);
  return concatenate(each(parts, atleast_2d), 0);
}
Array hstack(std::span<const Array> parts, SourceLoc where) {
  CallSite site(where);
  std::vector<Array> p = each(parts, atleast_1d);
  return concatenate(p, !p.empty() && p[0].ndim() == 1 ? 0 : 1);
}
Array dstack(std::span<const Array> parts, SourceLoc where) {
  CallSite site(where);
  return concatenate(each(parts, atleast_3d), 2);
}
Array column_stack(std::span<const Array> parts, SourceLoc where) {
  CallSite site(where);
  std::vector<Array> p;
  for (const Array& a : parts) p.push_back(a.ndim() >= 2 ? a : a.reshape({a.size(), 1}));
  return concatenate(p, 1);
}
Array block(const std::vector<std::vector<Array>>& rows, SourceLoc where) {
  CallSite site(where);
  std::vector<Array> joined;
  for (const std::vector<Array>& row : rows) {
    std::vector<Array> p = each(row, atleast_2d);
    joined.push_back(concatenate(p, -1));
  }
  return concatenate(joined, -2);
}

std::vector<Array> array_split(const ArrayArg& x, int sections, int axis) {
  int a = axis_of(axis, x.array.ndim(), "array_split", x.where);
  if (sections <= 0)
    refuse("array_split", "at least one section", fmt::format("{}", sections), "Give a number > 0",
           x.where);
  std::int64_t n = x.array.shape()[a], at = 0;
  std::vector<std::int64_t> points;
  for (int i = 0; i + 1 < sections; ++i) {
    at += n / sections + (i < n % sections ? 1 : 0);
    points.push_back(at);
  }
  return split(x, points, a);
}
std::vector<Array> vsplit(const ArrayArg& x, int sections) { return split(x, sections, 0); }
std::vector<Array> hsplit(const ArrayArg& x, int sections) {
  return split(x, sections, x.array.ndim() == 1 ? 0 : 1);
}

Array repeat(const ArrayArg& x, const Array& repeats, int axis, std::optional<std::int64_t> total) {
  CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "repeat", x.where);
  std::int64_t n = x.array.shape()[a];
  if (repeats.ndim() > 1 || (repeats.ndim() == 1 && repeats.dim(0) != n && repeats.dim(0) != 1))
    refuse("repeat", "one count, or one for each slice",
           fmt::format("{} counts for {} slices", repeats.type_string(), n),
           "Give a vector of the axis' length", x.where);
  Array counts = broadcast_to(repeats, {n}).astype(DType::kI32);
  if (!total) {
    try {
      total = sum(counts).item<std::int64_t>();
    } catch (const ConcretizationError&) {
      throw ConcretizationError(
          ErrorParts{"repeat", "the length of the result must be known", "the counts are traced",
                     "Pass the total number of repeats"},
          CallSite::outermost(x.where));
    }
  }
  if (n == 0) return x.array;
  Array slice_of = searchsorted(cumsum(counts, 0), arange(*total), true);
  return take(x, slice_of, a, IndexMode::kClip);
}

Array fliplr(const ArrayArg& x) { return flip(x, 1); }
Array flipud(const ArrayArg& x) { return flip(x, 0); }

Array rot90(const ArrayArg& x, int k, int axis0, int axis1) {
  CallSite site(x.where);
  int n = x.array.ndim();
  int a = axis_of(axis0, n, "rot90", x.where), b = axis_of(axis1, n, "rot90", x.where);
  if (a == b)
    refuse("rot90", "two different axes", fmt::format("{} and {}", axis0, axis1), "Name a plane",
           x.where);
  k = ((k % 4) + 4) % 4;
  if (k == 0) return x.array;
  if (k == 2) return flip(flip(x, a), b);
  return k == 1 ? swapaxes(flip(x, b), a, b) : flip(swapaxes(x, a, b), b);
}

Array roll(const ArrayArg& x, std::int64_t shift) {
  CallSite site(x.where);
  return roll(ravel(x), shift, 0).reshape(x.array.shape());
}
Array roll(const ArrayArg& x, const Array& shift, int axis) {
  CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "roll", x.where);
  std::int64_t n = x.array.shape()[a];
  if (n == 0) return x.array;
  Array from = mod(arange(n) - shift, static_cast<int>(n));
  return take(x, from, a, IndexMode::kClip);
}

Array pad(const ArrayArg& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
          std::string_view mode) {
  CallSite site(x.where);
  if (mode == "constant" || mode == "empty") return pad(x, widths, ArrayArg(0));
  bool edge = mode == "edge", wrap = mode == "wrap", reflect = mode == "reflect";
  if (!edge && !wrap && !reflect && mode != "symmetric")
    refuse("pad: mode", "constant, edge, reflect, symmetric, wrap or empty", std::string(mode),
           "Choose one of these", x.where);
  int n = x.array.ndim();
  if (static_cast<int>(widths.size()) != n && widths.size() != 1)
    refuse("pad", fmt::format("one (before, after) pair for each of {} axes", n),
           fmt::format("given {}", widths.size()), "Give a pair per axis, or one for all", x.where);
  Array r = x.array;
  for (int d = 0; d < n; ++d) {
    auto [before, after] = widths.size() == 1 ? widths[0] : widths[static_cast<std::size_t>(d)];
    std::int64_t size = r.shape()[d];
    if (before == 0 && after == 0) continue;
    if (size == 0 || before < 0 || after < 0)
      refuse("pad", "widths that are not negative, on axes with elements",
             fmt::format("({}, {}) on {}", before, after, r.type_string()),
             "Use mode constant, or slice", x.where);
    // Which element stands at each place, by the period of the mode.
    std::vector<std::int32_t> from;
    for (std::int64_t i = -before; i < size + after; ++i) {
      std::int64_t k;
      if (edge) {
        k = std::clamp<std::int64_t>(i, 0, size - 1);
      } else if (wrap) {
        k = ((i % size) + size) % size;
      } else {
        std::int64_t period = reflect ? std::max<std::int64_t>(2 * (size - 1), 1) : 2 * size;
        k = ((i % period) + period) % period;
        if (k >= size) k = reflect ? period - k : period - 1 - k;
      }
      from.push_back(static_cast<std::int32_t>(k));
    }
    r = take(r, Array(from), d, IndexMode::kClip);
  }
  return r;
}

Array insert(const ArrayArg& x, std::int64_t index, const ArrayArg& values, int axis) {
  CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "insert", x.where);
  std::int64_t n = x.array.shape()[a];
  index = std::clamp<std::int64_t>(index < 0 ? index + n : index, 0, n);
  Dims shape = x.array.shape();
  shape[a] = values.array.ndim() == x.array.ndim() ? values.array.shape()[a] : 1;
  Array v = values.array.astype(x.array.dtype());
  if (v.ndim() == x.array.ndim() - 1 && v.ndim() > 0) v = expand_dims(v, a);
  v = broadcast_to(v, shape);
  return concatenate({cut(x.array, a, 0, index), v, cut(x.array, a, index, n)}, a);
}

Array delete_(const ArrayArg& x, std::int64_t index, int axis) {
  CallSite site(x.where);
  int a = axis_of(axis, x.array.ndim(), "delete_", x.where);
  std::int64_t n = x.array.shape()[a];
  if (index < -n || index >= n)
    refuse("delete_", fmt::format("an index in [-{}, {})", n, n), fmt::format("{}", index),
           "Give a position of the axis", x.where);
  if (index < 0) index += n;
  return concatenate({cut(x.array, a, 0, index), cut(x.array, a, index + 1, n)}, a);
}

Array resize(const ArrayArg& x, Dims shape) {
  CallSite site(x.where);
  Array a = ravel(x);
  std::int64_t n = num_elements(shape), have = a.size();
  if (n == 0 || have == 0) return zeros(shape, a.dtype());
  std::vector<Array> copies(static_cast<std::size_t>((n + have - 1) / have), a);
  return cut(concatenate(copies), 0, 0, n).reshape(shape);
}

// --- diagonals
// ------------------------------------------------------------------------------------

Array diagflat(const ArrayArg& x, int k) {
  CallSite site(x.where);
  return diag(ravel(x), k);
}

Array diagonal(const ArrayArg& x, int offset, int axis1, int axis2) {
  CallSite site(x.where);
  int n = x.array.ndim();
  int a = axis_of(axis1, n, "diagonal", x.where), b = axis_of(axis2, n, "diagonal", x.where);
  if (a == b)
    refuse("diagonal", "two different axes", fmt::format("{} and {}", axis1, axis2),
           "Name the rows and the columns", x.where);
  Array m = moveaxis(x, std::vector<int>{a, b}, std::vector<int>{-2, -1});
  std::int64_t top = offset < 0 ? -offset : 0, left = offset > 0 ? offset : 0;
  std::int64_t length = std::max<std::int64_t>(0, std::min(m.dim(-2) - top, m.dim(-1) - left));
  if (length == 0) {
    Dims shape = m.shape();
    shape.resize(shape.size() - 1);
    shape[shape.size() - 1] = 0;
    return zeros(shape, m.dtype());
  }
  Array block_ = cut(cut(m, n - 2, top, top + length), n - 1, left, left + length);
  Array kept = where(eye(length, length, 0, DType::kBool), block_, zeros_like(block_));
  // One element of each row is kept: the sum is that element.
  Array r = is_bool(m.dtype()) ? any(kept, -1) : sum(kept, -1);
  return r.astype(m.dtype());
}

Array trace(const ArrayArg& x, int offset, int axis1, int axis2) {
  CallSite site(x.where);
  return sum(diagonal(x, offset, axis1, axis2), -1);
}

std::vector<Array> unravel_index(const ArrayArg& positions, Dims shape) {
  CallSite site(positions.where);
  if (!is_integer(positions.array.dtype()))
    refuse("unravel_index", "integers are needed", positions.array.type_string(),
           "Convert with astype", positions.where);
  Array rest = positions.array;
  std::vector<Array> r(shape.size());
  for (int d = shape.ssize() - 1; d >= 0; --d)
    std::tie(rest, r[static_cast<std::size_t>(d)]) = divmod(rest, static_cast<int>(shape[d]));
  // What is left over is 0 inside, -1 for those that count from the end.
  for (int d = 0; d < shape.ssize(); ++d) {
    Array& i = r[static_cast<std::size_t>(d)];
    if (!is_unsigned_int(rest.dtype())) i = where(rest < -1, 0, i);
    i = where(rest > 0, static_cast<int>(shape[d]) - 1, i);
  }
  return r;
}

Array ravel_multi_index(std::span<const Array> coordinates, Dims shape) {
  if (coordinates.size() != shape.size())
    refuse("ravel_multi_index", "one coordinate per axis",
           fmt::format("{} for {} axes", coordinates.size(), shape.size()), "Pair them", {});
  Array r = ArrayArg(0).array;
  Dims strides = row_major_strides(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!is_integer(coordinates[d].dtype()))
      refuse("ravel_multi_index", "integers are needed", coordinates[d].type_string(),
             "Convert with astype", {});
    r = r + clip(coordinates[d], 0, static_cast<int>(shape[d]) - 1) * static_cast<int>(strides[d]);
  }
  return r;
}

namespace {

Array bit_weights(bool little) {
  std::vector<std::uint8_t> w;
  for (int i = 0; i < 8; ++i) w.push_back(static_cast<std::uint8_t>(little ? i : 7 - i));
  return Array(w);
}

}  // namespace

Array packbits(const ArrayArg& x, std::optional<int> axis, bool little) {
  CallSite site(x.where);
  if (!is_bool(x.array.dtype()) && !is_integer(x.array.dtype()))
    refuse("packbits", "bools or integers", x.array.type_string(), "Compare with 0 first", x.where);
  Array a = axis ? x.array : ravel(x);
  int ax = axis_of(axis.value_or(0), a.ndim(), "packbits", x.where);
  a = moveaxis(logical_not(logical_not(a)).astype(DType::kU8), ax, -1);
  std::int64_t n = a.dim(-1), bytes = (n + 7) / 8;
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(a.shape().size());
  widths.back().second = bytes * 8 - n;
  a = pad(a, widths, ArrayArg(0));
  Dims shape = a.shape();
  shape[shape.size() - 1] = bytes;
  shape.push_back(8);
  Array r = sum(left_shift(a.reshape(shape), bit_weights(little)), -1).astype(DType::kU8);
  return moveaxis(r, -1, ax);
}

Array unpackbits(const ArrayArg& x, std::optional<int> axis, bool little) {
  CallSite site(x.where);
  if (x.array.dtype() != DType::kU8)
    refuse("unpackbits", "an array of u8", x.array.type_string(), "Convert with astype", x.where);
  Array a = axis ? x.array : ravel(x);
  int ax = axis_of(axis.value_or(0), a.ndim(), "unpackbits", x.where);
  a = moveaxis(a, ax, -1);
  Array bits = bitwise_and(right_shift(expand_dims(a, -1), bit_weights(little)),
                           constant(DType::kU8, {}, 1));
  Dims shape = a.shape();
  shape[shape.size() - 1] *= 8;
  return moveaxis(bits.reshape(shape), -1, ax);
}

// --- sums and differences along an axis
// -------------------------------------------------------------

namespace {

Array cumulative(const char* what, const ArrayArg& x, std::optional<int> axis, bool include_initial,
                 bool add_up) {
  CallSite site(x.where);
  Array a = x.array;
  if (a.ndim() == 0 || (!axis && a.ndim() != 1))
    refuse(what, "an axis, unless the array has one only", a.type_string(), "Name the axis",
           x.where);
  int ax = axis_of(axis.value_or(0), a.ndim(), what, x.where);
  DType t = a.dtype();
  if (is_bool(t) || (is_signed_int(t) && dtype_bits(t) < 32)) a = a.astype(DType::kI32);
  if (is_unsigned_int(t) && dtype_bits(t) < 32) a = a.astype(DType::kU32);
  Array r = add_up ? cumsum(a, ax) : cumprod(a, ax);
  if (!include_initial) return r;
  Dims shape = r.shape();
  shape[ax] = 1;
  return concatenate({add_up ? zeros(shape, r.dtype()) : ones(shape, r.dtype()), r}, ax);
}

}  // namespace

Array cumulative_sum(const ArrayArg& x, std::optional<int> axis, bool include_initial) {
  return cumulative("cumulative_sum", x, axis, include_initial, true);
}
Array cumulative_prod(const ArrayArg& x, std::optional<int> axis, bool include_initial) {
  return cumulative("cumulative_prod", x, axis, include_initial, false);
}

Array diff(const ArrayArg& x, int n, int axis) {
  CallSite site(x.where);
  Array a = x.array;
  if (n == 0) return a;
  int ax = axis_of(axis, a.ndim(), "diff", x.where);
  if (n < 0)
    refuse("diff", "an order that is not negative", fmt::format("{}", n), "Give 0 or more",
           x.where);
  for (int i = 0; i < n; ++i) {
    std::int64_t size = a.shape()[ax];
    if (size == 0) return a;
    Array next = cut(a, ax, 1, size), before = cut(a, ax, 0, size - 1);
    a = is_bool(a.dtype()) ? next != before : next - before;
  }
  return a;
}

Array ediff1d(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = ravel(x);
  std::int64_t n = a.dim(0);
  return cut(a, 0, std::min<std::int64_t>(1, n), n) -
         cut(a, 0, 0, std::max<std::int64_t>(n - 1, 0));
}

Array trapezoid(const ArrayArg& y, double dx, int axis) {
  CallSite site(y.where);
  Array a = moveaxis(is_inexact(y.array.dtype()) ? y.array : y.array.astype(DType::kF32), axis, -1);
  int last = a.ndim() - 1;
  std::int64_t n = a.dim(-1);
  if (n == 0)
    refuse("trapezoid", "at least one point along the axis", y.array.type_string(),
           "Take another axis", y.where);
  return 0.5 * sum(dx * (cut(a, last, 1, n) + cut(a, last, 0, n - 1)), -1);
}

Array trapezoid(const ArrayArg& y, const Array& x, int axis) {
  CallSite site(y.where);
  Array a = moveaxis(is_inexact(y.array.dtype()) ? y.array : y.array.astype(DType::kF32), axis, -1);
  int last = a.ndim() - 1;
  std::int64_t n = a.dim(-1);
  Array dx = x.ndim() == 1 ? diff(x) : diff(moveaxis(x, axis, -1), 1, -1);
  return 0.5 * sum(dx * (cut(a, last, 1, n) + cut(a, last, 0, n - 1)), -1);
}

// Central differences inside, one-sided ones at the ends.
Array gradient(const ArrayArg& x, double spacing, int axis) {
  CallSite site(x.where);
  Array a = is_inexact(x.array.dtype()) ? x.array : x.array.astype(DType::kF32);
  int ax = axis_of(axis, a.ndim(), "gradient", x.where);
  std::int64_t n = a.shape()[ax];
  if (n < 2)
    refuse("gradient", "at least two points along the axis", a.type_string(), "Take another axis",
           x.where);
  Array first = cut(a, ax, 1, 2) - cut(a, ax, 0, 1);
  Array last = cut(a, ax, n - 1, n) - cut(a, ax, n - 2, n - 1);
  Array inner = (cut(a, ax, 2, n) - cut(a, ax, 0, n - 2)) * 0.5;
  return concatenate({first, inner, last}, ax) / spacing;
}

Array put_along_axis(const ArrayArg& x, const ArrayArg& indices_, const ArrayArg& values,
                     int axis) {
  CallSite site(x.where);
  int n = x.array.ndim(), ax = axis_of(axis, n, "put_along_axis", x.where);
  Dims shape = indices_.array.shape();
  if (static_cast<int>(shape.size()) != n)
    refuse("put_along_axis", "indices must have the array's rank", indices_.array.type_string(),
           "Add axes with expand_dims", x.where);
  for (int d = 0; d < n; ++d)
    if (d != ax) shape[d] = x.array.shape()[d];
  std::vector<Index> at;
  for (int d = 0; d < n; ++d)
    at.emplace_back(d == ax ? broadcast_to(indices_, shape)
                            : internal::iota(DType::kI32, shape, d));
  return IndexedArray(x.array, at).set(values);
}

Array partition(const ArrayArg& x, int kth, int axis) {
  axis_of(axis, x.array.ndim(), "partition", x.where);
  axis_of(kth, static_cast<int>(x.array.dim(axis)), "partition: kth", x.where);
  return sort(x, axis);
}
Array argpartition(const ArrayArg& x, int kth, int axis) {
  axis_of(axis, x.array.ndim(), "argpartition", x.where);
  axis_of(kth, static_cast<int>(x.array.dim(axis)), "argpartition: kth", x.where);
  return argsort(x, axis);
}

}  // namespace xylem
