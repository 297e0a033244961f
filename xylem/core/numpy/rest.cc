// Functions of numpy.h and statistics.h that are compositions of others.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "xylem/base/error.h"
#include "xylem/core/indexing.h"
#include "xylem/core/internal/api.h"
#include "xylem/core/internal/trace.h"
#include "xylem/core/lax.h"
#include "xylem/core/numpy.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"
#include "xylem/core/statistics.h"
#include "xylem/core/transforms.h"

namespace xylem {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

[[noreturn]] void fail(const char* what, std::string expected, std::string given,
                       const char* advice, SourceLoc where) {
  throw UserError(ErrorParts{what, expected, given, advice}, internal::CallSite::outermost(where));
}

Array inexact(const ArrayArg& x) {
  return internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
}

// A vector repeated up to n elements.
Array repeated_to(const Array& v, std::int64_t n) {
  std::int64_t times = (n + v.size() - 1) / std::max<std::int64_t>(1, v.size());
  return tile(v, {times})(idx::slice(0, n));
}

}  // namespace

// --- updates
// --------------------------------------------------------------------------------------

Array put(const ArrayArg& x, const ArrayArg& indices, const ArrayArg& values, IndexMode mode) {
  internal::CallSite site(x.where);
  Array i = ravel(indices), v = ravel(values);
  std::int64_t n = x.array.size();
  if (n == 0 || i.size() == 0 || v.size() == 0) return x.array;
  v = repeated_to(v, i.size());
  if (mode == IndexMode::kClip) i = clip(i, 0, static_cast<int>(n - 1));
  if (mode == IndexMode::kWrap) i = mod(i, static_cast<int>(n));
  return ravel(x).at(i).set(v).reshape(x.array.shape());
}

Array place(const ArrayArg& x, const ArrayArg& mask, const ArrayArg& values) {
  internal::CallSite site(x.where);
  std::int64_t n = x.array.size();
  if (mask.array.size() != n || (values.array.size() == 0 && n > 0))
    fail("place", "a mask of the array's size, and values",
         mask.array.type_string() + " and " + values.array.type_string(),
         "Broadcast the mask first", x.where);
  if (n == 0) return x.array;
  // The k-th element that is chosen takes value k.
  Array chosen = not_equal(ravel(mask), 0);
  Array order = cumsum(chosen.astype(DType::kI32)) - 1;
  Array v = ravel(values);
  Array taken = take(v, mod(maximum(order, 0), static_cast<int>(v.size())), 0, IndexMode::kClip);
  return where(chosen, taken.astype(x.array.dtype()), ravel(x)).reshape(x.array.shape());
}

Array fill_diagonal(const ArrayArg& x, const ArrayArg& value) {
  internal::CallSite site(x.where);
  const Dims& shape = x.array.shape();
  bool cube = true;
  for (std::int64_t d : shape) cube = cube && d == shape[0];
  if (shape.size() < 2 || (shape.size() > 2 && !cube))
    fail("fill_diagonal", "a matrix, or an array whose axes are equally long",
         x.array.type_string(), "Index the elements with at(…)", x.where);
  std::int64_t n = *std::min_element(shape.begin(), shape.end()), step = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) step += stride;
  Array v = value.array.ndim() == 0 ? value.array : repeated_to(ravel(value), n);
  Array at = arange(n) * static_cast<int>(step);
  return ravel(x).at(at).set(v).reshape(shape);
}

std::vector<Array> ix_(std::span<const Array> vectors) {
  std::vector<Array> r;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (vectors[i].ndim() != 1 || vectors[i].dtype() == DType::kBool)
      fail("ix_", "vectors of positions", vectors[i].type_string(),
           "Use nonzero for a vector of bools", {});
    Dims shape(vectors.size(), 1);
    shape[i] = vectors[i].size();
    r.push_back(vectors[i].reshape(shape));
  }
  return r;
}

std::pair<Array, Array> tril_indices_from(const ArrayArg& x, int k) {
  if (x.array.ndim() != 2)
    fail("tril_indices_from", "a matrix", x.array.type_string(), "Give its last two axes", x.where);
  return tril_indices(x.array.dim(0), k, x.array.dim(1));
}
std::pair<Array, Array> triu_indices_from(const ArrayArg& x, int k) {
  if (x.array.ndim() != 2)
    fail("triu_indices_from", "a matrix", x.array.type_string(), "Give its last two axes", x.where);
  return triu_indices(x.array.dim(0), k, x.array.dim(1));
}

Array sort_complex(const ArrayArg& x) {
  internal::CallSite site(x.where);
  DType t = x.array.dtype();
  if (is_complex(t)) return sort(x);
  return sort(x).astype(t == DType::kF64 ? DType::kC128 : DType::kC64);
}

std::vector<Array> dsplit(const ArrayArg& x, int sections) { return split(x, sections, 2); }

bool iscomplexobj(const Array& x) { return is_complex(x.dtype()); }

// --- elementwise
// ----------------------------------------------------------------------------------

std::pair<Array, Array> frexp(const ArrayArg& x) {
  internal::CallSite site(x.where);
  Array a = inexact(x);
  DType t = a.dtype();
  if (!is_float(t) || dtype_bits(t) < 16)
    fail("frexp", "real numbers of f16, bf16, f32 or f64", a.type_string(), "Convert them",
         x.where);
  const DTypeInfo& info = dtype_info(t);
  DType u = info.bits == 16 ? DType::kU16 : info.bits == 32 ? DType::kU32 : DType::kU64;
  int m = info.mantissa_bits;
  // Subnormal numbers are made normal first.
  double lift = std::ldexp(1.0, m + 2);
  Array tiny = abs(a) < finfo(t).tiny;
  Array code = lax::bitcast_convert_type(where(tiny, a * lift, a), u);
  double field = std::ldexp(1.0, info.bits - 1 - m) - 1;
  Array biased =
      bitwise_and(right_shift(code, internal::constant(u, {}, m)), internal::constant(u, {}, field))
          .astype(DType::kI32);
  Array special = (biased == static_cast<int>(field)) | (a == 0.0);
  Array exponent = biased - (info.bias - 1) - where(tiny, m + 2, 0);
  double half = std::ldexp(static_cast<double>(info.bias - 1), m);
  Array kept = bitwise_and(
      code, internal::constant(u, {}, std::ldexp(1.0, m) - 1 + std::ldexp(1.0, info.bits - 1)));
  Array mantissa = lax::bitcast_convert_type(bitwise_or(kept, internal::constant(u, {}, half)), t);
  return {where(special, a, mantissa), where(special, 0, exponent)};
}

Array spacing(const ArrayArg& x) {
  internal::CallSite site(x.where);
  Array a = inexact(x);
  double inf = std::numeric_limits<double>::infinity();
  if (a.dtype() == DType::kF16) return nextafter(a, inf) - a;
  Array r = nextafter(a, copysign(full_like(a, inf), a)) - a;
  return where(r == 0.0, copysign(full_like(a, finfo(a.dtype()).smallest_subnormal), a), r);
}

Array i0(const ArrayArg& x) { return special::i0(x); }

Array internal::apply_along_axis(EachFunction f, int axis, const ArrayArg& x) {
  CallSite site(x.where);
  int n = x.array.ndim();
  auto ax = static_cast<int>(AxisArg(axis).resolve(n, "apply_along_axis", x.where)[0]);
  // Mapped over the axes before, each at 0, and behind, each at the end.
  std::function<Array(const Array&, int)> map = [&](const Array& a, int level) -> Array {
    if (level == n - 1) return f(a);
    // Axes in front of the line are mapped first.
    bool front = level < ax;
    int at = front ? 0 : a.ndim() - 1;
    auto flat = [&](std::span<const Array> in) {
      return std::vector<Array>{map(in[0], level + 1)};
    };
    return internal::vmap(
        {&a, 1}, {&at, 1}, -1, "", flat,
        [&](std::size_t k) { return std::vector<int>(k, front ? 0 : -1); }, x.where)[0];
  };
  return map(x.array, 0);
}

Array internal::piecewise(const ArrayArg& x, std::span<const Array> conditions,
                          std::span<const EachFunction> functions) {
  CallSite site(x.where);
  std::size_t n = conditions.size();
  if (functions.size() != n && functions.size() != n + 1)
    fail("piecewise", fmt::format("{} or {} functions", n, n + 1),
         fmt::format("{}", functions.size()), "Give one for each condition, and one for the rest",
         x.where);
  DType t = x.array.dtype();
  Array r = functions.size() == n + 1 ? functions[n](x.array).astype(t) : zeros_like(x);
  for (std::size_t i = 0; i < n; ++i) r = where(conditions[i], functions[i](x.array).astype(t), r);
  return broadcast_to(r, x.array.shape());
}

// --- statistics
// -------------------------------------------------------------------------------------

Array nancumprod(const ArrayArg& x, std::optional<int> axis) {
  internal::CallSite site(x.where);
  if (!is_inexact(x.array.dtype())) return cumprod(x, axis);
  return cumprod(where(isnan(x), ones_like(x), x.array), axis);
}

Array nanquantile(const ArrayArg& x, const ArrayArg& q_arg, const AxisArg& axis,
                  QuantileMethod method, bool keepdims) {
  internal::CallSite site(x.where);
  if (q_arg.array.ndim() == 1) {
    auto one = [&](const Array& q) { return nanquantile(x, q, axis, method, keepdims); };
    return xylem::vmap(one)(q_arg.array);
  }
  WeakDType t = to_inexact(
      promote_types(internal::weak_dtype(x.array), internal::weak_dtype(q_arg.array), x.where));
  if (is_complex(t.dtype) || q_arg.array.ndim() > 1)
    fail("nanquantile", "real values and a q of at most one axis",
         x.array.type_string() + " and q " + q_arg.array.type_string(), "Reshape q", x.where);
  Array a = internal::with_dtype(x.array, {t.dtype, false}, x.where);
  Array q = internal::with_dtype(q_arg.array, {t.dtype, false}, x.where);
  Dims axes = axis.resolve(a.ndim(), "nanquantile", x.where);
  Dims kept = a.shape(), order, outer;
  std::int64_t n = 1;
  for (int d = 0; d < a.ndim(); ++d)
    if (!axes.contains(d)) {
      order.push_back(d);
      outer.push_back(a.shape()[d]);
    }
  for (std::int64_t d : axes) {
    order.push_back(d);
    n *= a.shape()[d];
    kept[d] = 1;
  }
  if (n == 0)
    fail("nanquantile", "slices with elements", x.array.type_string(), "Reduce other axes",
         x.where);
  Dims lines = outer;
  lines.push_back(n);
  Array line = sort(transpose(a, order).reshape(lines), -1);
  // NaNs are last: positions run over the others.
  Array count = sum(logical_not(isnan(line)).astype(a.dtype()), -1, true);
  Array last = maximum(count - 1.0, 0.0);
  Array position = clip(q, 0.0, 1.0) * last;
  Array low = floor(position), high = ceil(position);
  auto value = [&](const Array& at) {
    return take_along_axis(line, minimum(at, last).astype(DType::kI32), -1, IndexMode::kClip);
  };
  Array lo = value(low), hi = value(high), share = position - low, r;
  switch (method) {
    case QuantileMethod::kLinear: r = lo * (1.0 - share) + hi * share; break;
    case QuantileMethod::kLower: r = lo; break;
    case QuantileMethod::kHigher: r = hi; break;
    case QuantileMethod::kMidpoint: r = (lo + hi) * 0.5; break;
    case QuantileMethod::kNearest: r = where(share <= 0.5, lo, hi); break;
  }
  r = where(count == 0.0, full_like(r, kNaN), r);
  return r.reshape(keepdims ? kept : outer);
}

Array nanpercentile(const ArrayArg& x, const ArrayArg& q, const AxisArg& axis,
                    QuantileMethod method, bool keepdims) {
  internal::CallSite site(x.where);
  return nanquantile(x, divide(q, 100), axis, method, keepdims);
}
Array nanmedian(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return nanquantile(x, 0.5, axis, QuantileMethod::kMidpoint, keepdims);
}

namespace {

HistogramDd histogram_of(const Array& sample, std::vector<Array> edges, const Array& weights,
                         bool density) {
  std::vector<Array> index;
  Dims cells, inner_start, inner_stop;
  std::int64_t total = 1;
  for (std::size_t d = 0; d < edges.size(); ++d) {
    Array column = sample(idx::all, static_cast<std::int64_t>(d));
    edges[d] = edges[d].astype(sample.dtype());
    Array i = searchsorted(edges[d], column, true);
    // The last bin is closed.
    index.push_back(where(column == edges[d][-1], i - 1, i));
    cells.push_back(edges[d].size() + 1);
    inner_start.push_back(1);
    inner_stop.push_back(edges[d].size());
    total *= cells[d];
  }
  Array counts = bincount(ravel_multi_index(index, cells), weights, 0, total).reshape(cells);
  counts = lax::slice(counts, inner_start, inner_stop);
  if (density) {
    counts = counts.astype(sample.dtype());
    counts = counts / sum(counts);
    for (std::size_t d = 0; d < edges.size(); ++d) {
      Dims shape(edges.size(), 1);
      shape[d] = edges[d].size() - 1;
      counts = counts / diff(edges[d]).reshape(shape);
    }
  }
  return {counts, edges};
}

void check_sample(const Array& sample, const Array& weights, SourceLoc where) {
  if (sample.ndim() != 2 || (weights.defined() && weights.shape() != Dims{sample.dim(0)}))
    fail("histogramdd", "a sample [n, d], and one weight for each row",
         sample.type_string() + (weights.defined() ? ", weights " + weights.type_string() : ""),
         "Stack the columns along axis 1", where);
}

}  // namespace

HistogramDd histogramdd(const ArrayArg& sample, std::int64_t bins,
                        const std::vector<std::pair<double, double>>& range, const Array& weights,
                        bool density) {
  internal::CallSite site(sample.where);
  Array s = inexact(sample);
  check_sample(s, weights, sample.where);
  if (!range.empty() && static_cast<std::int64_t>(range.size()) != s.dim(1))
    fail("histogramdd: range", fmt::format("{} pairs", s.dim(1)), fmt::format("{}", range.size()),
         "Give one for each column", sample.where);
  std::vector<Array> edges;
  for (std::int64_t d = 0; d < s.dim(1); ++d)
    edges.push_back(histogram_bin_edges(
        s(idx::all, d), bins,
        range.empty() ? std::nullopt : std::optional(range[static_cast<std::size_t>(d)])));
  return histogram_of(s, edges, weights, density);
}

HistogramDd histogramdd(const ArrayArg& sample, std::span<const Array> edges, const Array& weights,
                        bool density) {
  internal::CallSite site(sample.where);
  Array s = inexact(sample);
  check_sample(s, weights, sample.where);
  if (static_cast<std::int64_t>(edges.size()) != s.dim(1))
    fail("histogramdd: edges", fmt::format("{} vectors", s.dim(1)), fmt::format("{}", edges.size()),
         "Give one for each column", sample.where);
  return histogram_of(s, {edges.begin(), edges.end()}, weights, density);
}

HistogramDd histogram2d(const ArrayArg& x, const ArrayArg& y, std::int64_t bins,
                        const std::vector<std::pair<double, double>>& range, const Array& weights,
                        bool density) {
  internal::CallSite site(x.where);
  return histogramdd(stack({x.array, y.array}, 1), bins, range, weights, density);
}

// --- sets
// -------------------------------------------------------------------------------------------

Array setxor1d(const ArrayArg& x, const ArrayArg& y) {
  internal::CallSite site(x.where);
  Array both = sort(concatenate({unique(x), unique(y)}));
  if (both.size() < 2) return both;
  Array changes = not_equal(both(idx::slice(1, idx::none)), both(idx::slice(0, -1)));
  Array edge = ones({1}, DType::kBool);
  Array first = concatenate({edge, changes}), last = concatenate({changes, edge});
  return both(first & last);
}

Array unique_values(const ArrayArg& x) { return unique(x); }
std::pair<Array, Array> unique_counts(const ArrayArg& x) {
  Unique u = unique_all(x);
  return {u.values, u.counts};
}
std::pair<Array, Array> unique_inverse(const ArrayArg& x) {
  Unique u = unique_all(x);
  return {u.values, u.inverse};
}

Array compress(const ArrayArg& condition, const ArrayArg& x, std::optional<int> axis,
               std::optional<std::int64_t> size, double fill_value) {
  internal::CallSite site(x.where);
  if (condition.array.ndim() != 1)
    fail("compress", "a vector as condition", condition.array.type_string(), "Use extract",
         x.where);
  Array a = axis ? moveaxis(x, *axis, 0) : ravel(x);
  std::int64_t n = std::min(a.dim(0), condition.array.size());
  Array keep = not_equal(condition, 0)(idx::slice(0, n));
  a = lax::slice_in_dim(a, 0, n, 0);
  Array r;
  if (!size) {
    if (condition.array.size() > n && any(condition.array(idx::slice(n, idx::none))).item<bool>())
      fail("compress", fmt::format("a condition that holds within {} elements only", n),
           "it holds behind them", "Cut the condition", x.where);
    r = take(a, flatnonzero(keep), 0, IndexMode::kClip);
  } else {
    if (*size < 0 || *size > n)
      fail("compress: size", fmt::format("at most {}", n), fmt::format("{}", *size), "Ask for less",
           x.where);
    Dims shape(static_cast<std::size_t>(a.ndim()), 1);
    shape[0] = n;
    a = where(keep.reshape(shape), a, full_like(a, fill_value));
    r = take(a, argsort(keep, -1, true)(idx::slice(0, *size)), 0, IndexMode::kClip);
  }
  return axis ? moveaxis(r, 0, *axis) : r;
}

Array extract(const ArrayArg& condition, const ArrayArg& x, std::optional<std::int64_t> size,
              double fill_value) {
  return compress(ravel(condition), ravel(x), std::nullopt, size, fill_value);
}

}  // namespace xylem

namespace xylem::special {
namespace {

// Σ (x²/4)^k / (k!)²; all terms are positive. 60 of them reach |x| = 20.
Array small_i0(const Array& x) {
  Array q = square(x) * 0.25, sum = ones_like(x);
  for (int k = 60; k >= 1; --k) sum = 1.0 + q / static_cast<double>(k * k) * sum;
  return sum;
}

// e^-x I0(x) ~ Σ ((2k - 1)!!)² / (k! (8x)^k) / sqrt(2πx); from x = 20 on its 30 terms fall.
Array large_i0e(const Array& x) {
  Array sum = ones_like(x);
  for (int k = 30; k >= 1; --k) {
    double odd = 2 * k - 1;
    sum = 1.0 + odd * odd / (8.0 * k) / x * sum;
  }
  return sum / sqrt(2.0 * M_PI * x);
}

Array i0e_value(const Array& x) {
  DType t = x.dtype();
  Array a = abs(dtype_bits(t) < 32 ? x.astype(DType::kF32) : x);
  Array small = a <= 20.0;
  Array near = where(small, a, zeros_like(a)), far = where(small, full_like(a, 20.0), a);
  return where(small, exp(-near) * small_i0(near), large_i0e(far)).astype(t);
}

}  // namespace

Array i0e(const ArrayArg& x) {
  internal::CallSite site(x.where);
  using One = std::tuple<Array>;
  auto rule = [](const One& at, const One& by) {
    const Array& v = std::get<0>(at);
    Array y = i0e_value(v);
    return std::pair{y, std::get<0>(by) * (i1e(v) - sign(v) * y)};
  };
  return custom_jvp(i0e_value, rule)(inexact(x));
}
Array i0(const ArrayArg& x) {
  internal::CallSite site(x.where);
  using One = std::tuple<Array>;
  auto value = [](const Array& v) { return exp(abs(v)) * i0e_value(v); };
  auto rule = [value](const One& at, const One& by) {
    const Array& v = std::get<0>(at);
    return std::pair{value(v), std::get<0>(by) * i1(v)};
  };
  return custom_jvp(value, rule)(inexact(x));
}
Array i1(const ArrayArg& x) { return multiply(exp(abs(x)), i1e(x)); }

}  // namespace xylem::special
