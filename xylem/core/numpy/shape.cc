#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/ir/ops/all.h"

namespace xylem {

using ir::Attr;
using ir::Attrs;
namespace ops = ir::ops;

namespace {

int axis_of(int axis, int rank, const char* what, SourceLoc where) {
  return static_cast<int>(AxisArg(axis).resolve(rank, what, where)[0]);
}

}  // namespace

Array reshape(const ArrayArg& x, Dims shape) { return x.array.reshape(std::move(shape), x.where); }
Array ravel(const ArrayArg& x) { return x.array.reshape({-1}, x.where); }
Array transpose(const ArrayArg& x, Dims permutation) {
  return x.array.transpose(std::move(permutation), x.where);
}
Array transpose(const ArrayArg& x) { return x.array.T(x.where); }

Array swapaxes(const ArrayArg& x, int a, int b) {
  int n = x.array.ndim();
  Dims p;
  for (int i = 0; i < n; ++i) p.push_back(i);
  std::swap(p[axis_of(a, n, "swapaxes", x.where)], p[axis_of(b, n, "swapaxes", x.where)]);
  return x.array.transpose(p, x.where);
}

Array moveaxis(const ArrayArg& x, int from, int to) {
  int n = x.array.ndim();
  from = axis_of(from, n, "moveaxis", x.where);
  to = axis_of(to, n, "moveaxis", x.where);
  Dims p;
  for (int i = 0; i < n; ++i)
    if (i != from) p.push_back(i);
  p.insert(static_cast<std::size_t>(to), from);
  return x.array.transpose(p, x.where);
}

Array expand_dims(const ArrayArg& x, const AxisArg& axis) {
  // Axes count in the result.
  Dims shape = x.array.shape();
  if (axis.count() < 0)
    throw UserError(ErrorParts{"expand_dims", "the places of the new axes", "none is named",
                               "Give an axis of the result, or several"},
                    internal::CallSite::outermost(x.where));
  for (std::int64_t a : axis.resolve(x.array.ndim() + axis.count(), "expand_dims", x.where))
    shape.insert(static_cast<std::size_t>(a), 1);
  return x.array.reshape(shape, x.where);
}

Array squeeze(const ArrayArg& x, const AxisArg& axis) {
  Dims shape;
  Dims axes = axis.resolve(x.array.ndim(), "squeeze", x.where);
  bool all = axis.count() < 0;
  for (int i = 0; i < x.array.ndim(); ++i) {
    std::int64_t d = x.array.shape()[i];
    if (axes.contains(i) && d == 1) continue;
    if (axes.contains(i) && !all)
      throw UserError(
          ErrorParts{"squeeze", "squeezed axes must have size 1",
                     fmt::format("axis {} of {}", i, x.array.type_string()), "Name axes of size 1"},
          internal::CallSite::outermost(x.where));
    shape.push_back(d);
  }
  return x.array.reshape(shape, x.where);
}

Array broadcast_to(const ArrayArg& x, Dims shape) {
  Dims both[2] = {x.array.shape(), shape};
  if (internal::broadcast_shapes(both, "broadcast_to", x.where) != shape)
    throw UserError(ErrorParts{"broadcast_to", "the array must broadcast to the shape",
                               fmt::format("{} to {}", x.array.type_string(), to_string(shape)),
                               "Give a shape whose trailing axes equal the array's, or 1"},
                    internal::CallSite::outermost(x.where));
  return internal::broadcast(x.array, shape, x.where);
}

Array concatenate(std::span<const Array> parts, int axis, SourceLoc at) {
  SourceLoc where = internal::CallSite::outermost(at);
  if (parts.empty())
    throw_user_error(
        {"concatenate", "at least one array is needed", "none was given", "Pass the parts"}, where);
  std::vector<WeakDType> types;
  for (const Array& p : parts) types.push_back(internal::weak_dtype(p));
  WeakDType t = promote_types(types, where);
  int a = axis_of(axis, parts[0].ndim(), "concatenate", where);
  std::vector<Array> same;
  for (const Array& p : parts) {
    bool fits = p.ndim() == parts[0].ndim();
    for (int d = 0; fits && d < p.ndim(); ++d) fits = d == a || p.shape()[d] == parts[0].shape()[d];
    if (!fits)
      throw_user_error({"concatenate", fmt::format("the arrays must agree in every axis but {}", a),
                        fmt::format("{} and {}", parts[0].type_string(), p.type_string()),
                        "Reshape or pad one of them, or choose another axis"},
                       where);
    same.push_back(internal::with_dtype(p, t, where));
  }
  return internal::apply_one(ops::kConcatenate, same, Attrs{{"dimension", Attr(a)}}, where, t.weak);
}
Array concatenate(std::initializer_list<Array> parts, int axis, SourceLoc where) {
  return concatenate(std::span<const Array>(parts.begin(), parts.size()), axis, where);
}

Array stack(std::span<const Array> parts, int axis, SourceLoc where) {
  std::vector<Array> rows;
  for (const Array& p : parts) rows.push_back(expand_dims(ArrayArg(p, where), axis));
  return concatenate(rows, axis, where);
}
Array stack(std::initializer_list<Array> parts, int axis, SourceLoc where) {
  return stack(std::span<const Array>(parts.begin(), parts.size()), axis, where);
}

std::vector<Array> split(const ArrayArg& x, const std::vector<std::int64_t>& indices, int axis) {
  int a = axis_of(axis, x.array.ndim(), "split", x.where);
  std::int64_t n = x.array.shape()[a];
  std::vector<Array> parts;
  Dims start(x.array.shape().size(), 0), strides(x.array.shape().size(), 1);
  Dims limit = x.array.shape();
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    limit[a] = i < indices.size() ? indices[i] : n;
    if (limit[a] < start[a] || limit[a] > n)
      throw UserError(ErrorParts{"split", fmt::format("split points that ascend from 0 to {}", n),
                                 fmt::format("{} behind {}", limit[a], start[a]),
                                 "Sort the points, and leave out those beyond the axis"},
                      internal::CallSite::outermost(x.where));
    parts.push_back(internal::slice(x.array, start, limit, strides, x.where));
    start[a] = limit[a];
  }
  return parts;
}

std::vector<Array> split(const ArrayArg& x, int sections, int axis) {
  int a = axis_of(axis, x.array.ndim(), "split", x.where);
  std::int64_t n = x.array.shape()[a];
  if (sections <= 0 || n % sections != 0)
    throw UserError(ErrorParts{"split", "the axis must divide into equal sections",
                               fmt::format("size {} into {}", n, sections),
                               "Give split points instead of a number of sections"},
                    internal::CallSite::outermost(x.where));
  std::vector<std::int64_t> points;
  for (int i = 1; i < sections; ++i) points.push_back(n / sections * i);
  return split(x, points, a);
}

std::vector<Array> unstack(const ArrayArg& x, int axis) {
  Array moved = moveaxis(x, axis, 0);
  std::vector<Array> rows;
  for (std::int64_t i = 0; i < moved.dim(0); ++i) rows.push_back(moved[i]);
  return rows;
}

Array tile(const ArrayArg& x, Dims reps) {
  Dims shape = x.array.shape();
  while (shape.size() < reps.size()) shape.insert(0, 1);
  while (reps.size() < shape.size()) reps.insert(0, 1);
  Dims wide, dims, result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    wide.push_back(reps[i]);
    wide.push_back(shape[i]);
    dims.push_back(static_cast<std::int64_t>(2 * i + 1));
    result.push_back(reps[i] * shape[i]);
  }
  Array y = x.array.reshape(shape, x.where);
  return internal::broadcast_in_dim(y, wide, dims, x.where).reshape(result, x.where);
}

Array repeat(const ArrayArg& x, std::int64_t repeats, int axis) {
  if (x.array.ndim() == 0) return repeat(ArrayArg(x.array.reshape({1}), x.where), repeats, axis);
  int a = axis_of(axis, x.array.ndim(), "repeat", x.where);
  Dims wide = x.array.shape(), dims, result = x.array.shape();
  for (int i = 0; i < x.array.ndim(); ++i) dims.push_back(i <= a ? i : i + 1);
  wide.insert(static_cast<std::size_t>(a) + 1, repeats);
  result[a] *= repeats;
  return internal::broadcast_in_dim(x.array, wide, dims, x.where).reshape(result, x.where);
}

Array flip(const ArrayArg& x, const AxisArg& axis) {
  Dims axes = axis.resolve(x.array.ndim(), "flip", x.where);
  return internal::apply_one(ops::kReverse, std::span<const Array>(&x.array, 1),
                             Attrs{{"dimensions", Attr(axes)}}, x.where, x.array.weak_type());
}

Array roll(const ArrayArg& x, std::int64_t shift, int axis) {
  int a = axis_of(axis, x.array.ndim(), "roll", x.where);
  std::int64_t n = x.array.shape()[a];
  if (n == 0) return x.array;
  shift = ((shift % n) + n) % n;
  if (shift == 0) return x.array;
  std::vector<Array> parts = split(x, std::vector<std::int64_t>{n - shift}, a);
  return concatenate({parts[1], parts[0]}, a);
}

Array pad(const ArrayArg& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
          const ArrayArg& value) {
  int n = x.array.ndim();
  if (static_cast<int>(widths.size()) != n && widths.size() != 1)
    throw UserError(
        ErrorParts{"pad", fmt::format("one (before, after) pair for each of {} axes", n),
                   fmt::format("given {}", widths.size()), "Give a pair per axis, or one for all"},
        internal::CallSite::outermost(x.where));
  Dims low, high, interior(static_cast<std::size_t>(n), 0);
  for (int i = 0; i < n; ++i) {
    const auto& w = widths.size() == 1 ? widths[0] : widths[static_cast<std::size_t>(i)];
    low.push_back(w.first);
    high.push_back(w.second);
  }
  Array operands[2] = {x.array, value.array.astype(x.array.dtype(), x.where)};
  return internal::apply_one(ops::kPad, operands,
                             Attrs{{"edge_padding_low", Attr(low)},
                                   {"edge_padding_high", Attr(high)},
                                   {"interior_padding", Attr(interior)}},
                             x.where, x.array.weak_type());
}

namespace {

Array triangle(const ArrayArg& x, int k, bool lower) {
  int n = x.array.ndim();
  if (n < 2)
    throw UserError(ErrorParts{lower ? "tril" : "triu", "an array of two or more axes is needed",
                               fmt::format("given {}", x.array.type_string()), "Add an axis"},
                    internal::CallSite::outermost(x.where));
  Array mask = tri(x.array.dim(-2), x.array.dim(-1), lower ? k : k - 1, DType::kBool);
  Array zero = zeros_like(x);
  return lower ? where(ArrayArg(mask, x.where), x, zero) : where(ArrayArg(mask, x.where), zero, x);
}

}  // namespace

Array tril(const ArrayArg& x, int k) { return triangle(x, k, true); }
Array triu(const ArrayArg& x, int k) { return triangle(x, k, false); }

Array diag(const ArrayArg& x, int k) {
  std::int64_t shift = k < 0 ? -std::int64_t{k} : k;
  if (x.array.ndim() != 1 && x.array.ndim() != 2)
    throw UserError(ErrorParts{"diag", "an array of one or two axes", x.array.type_string(),
                               "Take the diagonal of one matrix at a time, with vmap"},
                    internal::CallSite::outermost(x.where));
  if (x.array.ndim() == 1) {
    std::int64_t n = x.array.dim(0) + shift;
    std::int64_t before = k > 0 ? shift : 0, after = k < 0 ? shift : 0;
    Array column = pad(x, {{after, before}});  // entry i stands in row i (k >= 0)
    Array rows = internal::broadcast_in_dim(column, {n, n}, {0}, x.where);
    return where(ArrayArg(eye(n, n, k, DType::kBool), x.where), rows, zeros_like(rows));
  }
  std::int64_t r = x.array.dim(0), c = x.array.dim(1);
  std::int64_t top = k < 0 ? shift : 0, left = k > 0 ? shift : 0;
  top = std::min(top, r);
  left = std::min(left, c);
  std::int64_t n = std::min(r - top, c - left);
  Array block = internal::slice(x.array, {top, left}, {top + n, left + n}, {1, 1}, x.where);
  Array kept = where(ArrayArg(eye(n, n, 0, DType::kBool), x.where), block, zeros_like(block));
  return sum(ArrayArg(kept, x.where), 1);
}

}  // namespace xylem
