#include "xylem/core/statistics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "xylem/base/error.h"
#include "xylem/core/internal/flat.h"
#include "xylem/core/numpy/ops.h"
#include "xylem/core/special.h"

namespace xylem {

using internal::CallSite;
using internal::constant;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Array inexact(const ArrayArg& x) {
  return internal::with_dtype(x.array, to_inexact(internal::weak_dtype(x.array)), x.where);
}

// The reduced axes as one last axis.
Array to_last(const Array& x, const Dims& axes) {
  Dims order, shape;
  std::int64_t n = 1;
  for (int d = 0; d < x.ndim(); ++d)
    if (!axes.contains(d)) {
      order.push_back(d);
      shape.push_back(x.shape()[d]);
    }
  for (std::int64_t a : axes) {
    order.push_back(a);
    n *= x.shape()[a];
  }
  shape.push_back(n);
  return x.transpose(order).reshape(shape);
}

bool all_numbers(const Array& x) { return !is_inexact(x.dtype()); }

// x with NaNs replaced.
Array replaced(const Array& x, double value) {
  return where(isnan(x), constant(x.dtype(), {}, value), x);
}

}  // namespace

Array average(const ArrayArg& x, std::optional<int> axis, const Array& weights, bool keepdims) {
  CallSite site(x.where);
  AxisArg over = axis ? AxisArg(*axis) : AxisArg();
  if (!weights.defined()) return mean(x, over, keepdims);
  WeakDType t = to_inexact(
      promote_types(internal::weak_dtype(x.array), internal::weak_dtype(weights), x.where));
  Array a = internal::with_dtype(x.array, t, x.where);
  Array w = internal::with_dtype(weights, t, x.where);
  if (w.shape() != a.shape()) {
    if (!axis || w.ndim() != 1 || w.dim(0) != a.dim(*axis))
      throw_user_error({"average", "weights of the array's shape, or a vector along the axis",
                        fmt::format("{} and weights {}", a.type_string(), w.type_string()),
                        "Name the axis that the weights belong to"},
                       CallSite::outermost(x.where));
    Dims d = over.resolve(a.ndim(), "average", x.where);
    w = internal::broadcast_in_dim(w, a.shape(), d, x.where);
  }
  return sum(a * w, over, keepdims) / sum(w, over, keepdims);
}

Array quantile(const ArrayArg& x, const ArrayArg& q_arg, const AxisArg& axis, QuantileMethod method,
               bool keepdims) {
  CallSite site(x.where);
  WeakDType t = to_inexact(internal::weak_dtype(x.array));
  if (is_complex(t.dtype) || q_arg.array.ndim() > 1)
    throw_user_error({"quantile", "real values and a q of at most one axis",
                      fmt::format("{} and q {}", x.array.type_string(), q_arg.array.type_string()),
                      "Take the quantiles of real and imag, or reshape q"},
                     CallSite::outermost(x.where));
  Array a = internal::with_dtype(x.array, {t.dtype, false}, x.where);
  // Positions need the precision of q: a 16-bit float does not count far.
  DType positions_dtype =
      q_arg.array.weak_type() ? t.dtype : to_inexact(internal::weak_dtype(q_arg.array)).dtype;
  Array q = q_arg.array.astype(positions_dtype);
  Dims axes = axis.resolve(a.ndim(), "quantile", x.where);
  Dims kept;
  for (int d = 0; d < a.ndim(); ++d) kept.push_back(axes.contains(d) ? 1 : a.shape()[d]);
  Array line = to_last(a, axes);
  std::int64_t n = line.dim(-1);
  if (n == 0)
    throw_user_error({"quantile", "an empty slice has no quantiles", x.array.type_string(),
                      "Reduce over axes that have elements"},
                     CallSite::outermost(x.where));
  line = sort(where(any(isnan(line), -1, true), kNaN, line), -1);
  Array position = q * static_cast<double>(n - 1);
  Array low = floor(position), high = ceil(position);
  Array high_weight = position - low, low_weight = 1.0 - high_weight;
  auto value = [&](const Array& at) {
    Array i = clip(at, 0.0, static_cast<double>(n - 1)).astype(DType::kI32);
    // The axis of q comes first.
    Array v = take(line, i, -1, IndexMode::kClip);
    return q.ndim() == 1 ? moveaxis(v, -1, 0) : v;
  };
  auto weight = [&](const Array& w, const Array& v) {
    return q.ndim() == 1 ? internal::broadcast_in_dim(w, v.shape(), {0}, {}) : w;
  };
  Array lo = value(low), hi = value(high), r;
  switch (method) {
    case QuantileMethod::kLinear:
      r = lo * weight(low_weight, lo) + hi * weight(high_weight, hi);
      break;
    case QuantileMethod::kLower: r = lo; break;
    case QuantileMethod::kHigher: r = hi; break;
    case QuantileMethod::kMidpoint: r = (lo + hi) * 0.5; break;
    case QuantileMethod::kNearest: r = where(weight(high_weight, hi) <= 0.5, lo, hi); break;
  }
  r = r.astype(t.dtype);
  if (!keepdims) return r;
  if (q.ndim() == 1) kept.insert(0, q.dim(0));
  return r.reshape(kept);
}

Array percentile(const ArrayArg& x, const ArrayArg& q, const AxisArg& axis, QuantileMethod method,
                 bool keepdims) {
  CallSite site(x.where);
  return quantile(x, inexact(q) / 100.0, axis, method, keepdims);
}

Array median(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return quantile(x, ArrayArg(0.5, x.where), axis, QuantileMethod::kMidpoint, keepdims);
}

Array ptp(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  CallSite site(x.where);
  return max(x, axis, keepdims) - min(x, axis, keepdims);
}

Array cov(const ArrayArg& x) {
  CallSite site(x.where);
  Array a = inexact(x);
  if (a.ndim() > 2)
    throw_user_error(
        {"cov", "a vector or a matrix of rows is needed", a.type_string(), "Reshape the array"},
        CallSite::outermost(x.where));
  bool single = a.ndim() < 2 || a.dim(0) == 1;
  if (a.ndim() < 2) a = a.reshape({1, -1});
  Array centered = a - mean(a, 1, true);
  Array r = matmul(centered, conj(transpose(centered))) / static_cast<double>(a.dim(1) - 1);
  return single ? r.reshape({}) : r;
}

Array corrcoef(const ArrayArg& x) {
  CallSite site(x.where);
  Array c = cov(x);
  if (c.ndim() == 0) return c / c;
  Array d = sqrt(real(sum(c * eye(c.dim(0), -1, 0, c.dtype()), 1)));
  Array r = c / expand_dims(d, 1) / expand_dims(d, 0);
  return is_complex(r.dtype()) ? r : clip(r, -1.0, 1.0);
}

Array nansum(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  CallSite site(x.where);
  return sum(all_numbers(x.array) ? x.array : replaced(x.array, 0), axis, keepdims);
}
Array nanprod(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  CallSite site(x.where);
  return prod(all_numbers(x.array) ? x.array : replaced(x.array, 1), axis, keepdims);
}
Array nanmean(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  CallSite site(x.where);
  if (all_numbers(x.array)) return mean(x, axis, keepdims);
  Array n = sum(logical_not(isnan(x)).astype(x.array.dtype()), axis, keepdims);
  return nansum(x, axis, keepdims) / n;
}
Array nanvar(const ArrayArg& x, const AxisArg& axis, double ddof, bool keepdims) {
  CallSite site(x.where);
  if (all_numbers(x.array)) return var(x, axis, ddof, keepdims);
  Array nan = isnan(x);
  Array centered = where(nan, constant(x.array.dtype(), {}, 0), x.array - nanmean(x, axis, true));
  Array squares = is_complex(x.array.dtype()) ? real(centered * conj(centered)) : square(centered);
  Array n = sum(logical_not(nan).astype(squares.dtype()), axis, keepdims) - ddof;
  Array r = sum(squares, axis, keepdims) / where(n > 0.0, n, 1.0);
  return where(n > 0.0, r, constant(r.dtype(), {}, kNaN));
}
Array nanstd(const ArrayArg& x, const AxisArg& axis, double ddof, bool keepdims) {
  CallSite site(x.where);
  return sqrt(nanvar(x, axis, ddof, keepdims));
}

namespace {

Array nan_extremum(const ArrayArg& x, const AxisArg& axis, bool keepdims, bool largest) {
  CallSite site(x.where);
  auto reduce = [&](const Array& a) {
    return largest ? max(a, axis, keepdims) : min(a, axis, keepdims);
  };
  if (all_numbers(x.array)) return reduce(x.array);
  Array r = reduce(replaced(x.array, largest ? -kInf : kInf));
  return where(all(isnan(x), axis, keepdims), constant(r.dtype(), {}, kNaN), r);
}

Array nan_arg(const ArrayArg& x, std::optional<int> axis, bool largest) {
  CallSite site(x.where);
  auto arg = [&](const Array& a) { return largest ? argmax(a, axis) : argmin(a, axis); };
  if (all_numbers(x.array)) return arg(x.array);
  Array r = arg(replaced(x.array, largest ? -kInf : kInf));
  Array none = all(isnan(x), axis ? AxisArg(*axis) : AxisArg());
  return where(none, constant(r.dtype(), {}, -1), r);
}

}  // namespace

Array nanmax(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return nan_extremum(x, axis, keepdims, true);
}
Array nanmin(const ArrayArg& x, const AxisArg& axis, bool keepdims) {
  return nan_extremum(x, axis, keepdims, false);
}
Array nanargmax(const ArrayArg& x, std::optional<int> axis) { return nan_arg(x, axis, true); }
Array nanargmin(const ArrayArg& x, std::optional<int> axis) { return nan_arg(x, axis, false); }
Array nancumsum(const ArrayArg& x, std::optional<int> axis) {
  CallSite site(x.where);
  return cumsum(all_numbers(x.array) ? x.array : replaced(x.array, 0), axis);
}

// --- histograms ----------------------------------------------------------------------------------

Array bincount(const ArrayArg& x, const Array& weights, std::int64_t minlength,
               std::optional<std::int64_t> length) {
  CallSite site(x.where);
  Array i = is_bool(x.array.dtype()) ? x.array.astype(DType::kI32) : x.array;
  if (!is_integer(i.dtype()) || i.ndim() != 1 ||
      (weights.defined() && weights.shape() != i.shape()))
    throw_user_error(
        {"bincount", "a vector of integers, and weights of its shape",
         weights.defined() ? fmt::format("{} and {}", i.type_string(), weights.type_string())
                           : i.type_string(),
         "Convert with astype, flatten with ravel"},
        CallSite::outermost(x.where));
  if (!length) {
    HostArray host;
    try {
      host = i.to_host();
    } catch (const ConcretizationError&) {
      throw ConcretizationError(ErrorParts{"bincount", "the length of the result must be known",
                                           "the values are traced", "Pass a length"},
                                CallSite::outermost(x.where));
    }
    double most = -1;
    for (std::int64_t k = 0; k < host.size(); ++k) most = std::max(most, host.at(k));
    if (host.size() > 0 && most < 0) most = 0;
    length = std::max(minlength, static_cast<std::int64_t>(most) + 1);
  }
  Array one = weights.defined() ? weights : ones({}, DType::kI32);
  return zeros({*length}, one.dtype())
      .at(is_unsigned_int(i.dtype()) ? i : maximum(i, 0))
      .add(one, {.mode = IndexMode::kDrop});
}

namespace {

Array blended(const Array& start, const Array& stop, std::int64_t num) {
  if (num < 2) return start.reshape({1});
  DType t = start.dtype();
  Array step = internal::iota(t, {num}, 0) / static_cast<double>(num - 1);
  Array r = start * (1.0 - step) + stop * step;
  return where(internal::iota(DType::kI32, {num}, 0) == static_cast<int>(num - 1), stop, r);
}

}  // namespace

Array histogram_bin_edges(const ArrayArg& x, std::int64_t bins,
                          std::optional<std::pair<double, double>> range) {
  CallSite site(x.where);
  DType t = to_inexact(internal::weak_dtype(x.array)).dtype;
  if (bins < 1)
    throw_user_error({"histogram: bins", "at least one bin", fmt::format("given {}", bins),
                      "Give the number of bins"},
                     CallSite::outermost(x.where));
  Array lo = range ? constant(t, {}, range->first) : min(x).astype(t);
  Array hi = range ? constant(t, {}, range->second) : max(x).astype(t);
  Array flat = lo == hi;
  return blended(where(flat, lo - 0.5, lo), where(flat, hi + 0.5, hi), bins + 1);
}

Histogram histogram(const ArrayArg& x, const Array& given, const Array& weights, bool density) {
  CallSite site(x.where);
  Array a = inexact(x), w = weights.defined() ? inexact(weights) : ones_like(a);
  Array edges = given.astype(to_inexact(internal::weak_dtype(x.array)).dtype);
  int last = static_cast<int>(edges.dim(0)) - 1;
  Array bin = searchsorted(edges, ravel(a), true);
  bin = where(ravel(a) == edges[last], last, bin);
  Array counts =
      zeros({edges.dim(0)}, w.dtype()).at(bin).add(ravel(w))(idx::slice(1, std::nullopt));
  if (density) counts = counts / diff(edges) / sum(counts);
  return {counts, edges};
}

Histogram histogram(const ArrayArg& x, std::int64_t bins,
                    std::optional<std::pair<double, double>> range, const Array& weights,
                    bool density) {
  return histogram(x, histogram_bin_edges(x, bins, range), weights, density);
}

Array digitize(const ArrayArg& x, const ArrayArg& bins, bool right) {
  CallSite site(x.where);
  if (bins.array.ndim() != 1)
    throw_user_error({"digitize: bins", "a vector", bins.array.type_string(), "Flatten it"},
                     CallSite::outermost(x.where));
  auto n = static_cast<int>(bins.array.dim(0));
  if (n == 0) return zeros(x.array.shape(), DType::kI32);
  Array up = searchsorted(bins, x, !right);
  Array down = n - searchsorted(flip(bins), x, !right);
  return where(bins.array[n - 1] >= bins.array[0], up, down);
}

// --- searches and sets ---------------------------------------------------------------------------

namespace {

// The first `size` positions where the vector is true, then fill.
Array positions(const Array& mask, std::optional<std::int64_t> size, const Array& fill,
                const char* what, SourceLoc where_) {
  std::int64_t n;
  if (size) {
    n = *size;
  } else {
    try {
      n = sum(mask).item<std::int64_t>();
    } catch (const ConcretizationError&) {
      throw ConcretizationError(
          ErrorParts{what, "the size of the result must be known", "the values are traced",
                     "Pass a size; what is left over is filled"},
          CallSite::outermost(where_));
    }
  }
  std::int64_t have = mask.dim(0);
  Array order = argsort(logical_not(mask));
  if (have < n) order = concatenate({order, zeros({n - have}, DType::kI32)});
  order = order(idx::slice(0, n));
  return where(arange(n) < sum(mask), order, fill);
}

}  // namespace

std::vector<Array> nonzero(const ArrayArg& x, std::optional<std::int64_t> size,
                           std::int64_t fill_value) {
  CallSite site(x.where);
  Array mask = ravel(logical_not(logical_not(x)));
  if (x.array.size() == 0) {
    Array none = zeros({size.value_or(0)}, DType::kI32);
    return std::vector<Array>(x.array.shape().size(), none);
  }
  if (x.array.ndim() == 0)
    throw_user_error(
        {"nonzero", "an array with an axis is needed", x.array.type_string(), "Use atleast_1d"},
        CallSite::outermost(x.where));
  Array fill = full({}, static_cast<int>(fill_value), DType::kI32);
  Array flat = positions(mask, size, constant(DType::kI32, {}, -1), "nonzero", x.where);
  std::vector<Array> r;
  Dims strides = row_major_strides(x.array.shape());
  for (int d = 0; d < x.array.ndim(); ++d) {
    auto stride = static_cast<int>(std::max<std::int64_t>(strides[d], 1));
    auto n = static_cast<int>(std::max<std::int64_t>(x.array.shape()[d], 1));
    r.push_back(where(flat < 0, fill, mod(floor_divide(flat, stride), n)));
  }
  return r;
}

Array flatnonzero(const ArrayArg& x, std::optional<std::int64_t> size, std::int64_t fill_value) {
  CallSite site(x.where);
  return nonzero(ravel(x), size, fill_value)[0];
}

Array argwhere(const ArrayArg& x, std::optional<std::int64_t> size, std::int64_t fill_value) {
  CallSite site(x.where);
  if (x.array.ndim() == 0) {
    std::int64_t n = size ? *size : nonzero(ravel(x))[0].dim(0);
    return zeros({n, 0}, DType::kI32);
  }
  return stack(nonzero(x, size, fill_value), -1);
}

Unique unique_all(const ArrayArg& x, std::optional<std::int64_t> size,
                  std::optional<double> fill_value) {
  CallSite site(x.where);
  Array a = ravel(x);
  std::int64_t n = a.dim(0);
  if (n == 0) {
    if (size && *size > 0) {
      if (!fill_value)
        throw_user_error({"unique", "values to fill with", "an empty array and a size",
                          "Give a fill_value, or an array with elements"},
                         CallSite::outermost(x.where));
      a = full({*size}, *fill_value, a.dtype());
    }
    return {a, zeros({0}, DType::kI32), zeros({0}, DType::kI32), zeros({0}, DType::kI32)};
  }
  Array order = argsort(a), sorted = take(a, order, 0, IndexMode::kClip);
  Array next = sorted(idx::slice(1, std::nullopt)), before = sorted(idx::slice(0, n - 1));
  Array differs = next != before;
  if (is_inexact(a.dtype()))
    differs = logical_and(differs, logical_not(isnan(before) & isnan(next)));
  Array first = concatenate({ones({1}, DType::kBool), differs});
  Array at = positions(first, size, zeros({}, DType::kI32), "unique", x.where);
  std::int64_t k = at.dim(0);
  Array found = sum(first), is_real = arange(k) < found;
  Unique u;
  Array picked = take(sorted, at, 0, IndexMode::kClip);
  Array fill = fill_value ? constant(a.dtype(), {}, *fill_value) : sorted[0];
  u.values = where(is_real, picked, fill);
  u.indices = take(order, at, 0, IndexMode::kClip);
  Array rank = cumsum(first.astype(DType::kI32), 0) - 1;
  u.inverse = zeros({n}, DType::kI32)
                  .at(order)
                  .set(rank, {.unique_indices = true})
                  .reshape(x.array.shape());
  // One more than asked for: where the last of them ends.
  Array cut =
      positions(first, k + 1, constant(DType::kI32, {}, static_cast<double>(n)), "unique", x.where);
  u.counts = where(is_real, cut(idx::slice(1, std::nullopt)) - cut(idx::slice(0, k)), 0);
  return u;
}

Array unique(const ArrayArg& x, std::optional<std::int64_t> size,
             std::optional<double> fill_value) {
  return unique_all(x, size, fill_value).values;
}

Array isin(const ArrayArg& x, const ArrayArg& values, bool invert_result) {
  CallSite site(x.where);
  Array found = any(expand_dims(x, -1) == ravel(values), -1);
  return invert_result ? logical_not(found) : found;
}

Array union1d(const ArrayArg& x, const ArrayArg& y, std::optional<std::int64_t> size) {
  CallSite site(x.where);
  return unique(concatenate({ravel(x), ravel(y)}), size);
}
Array intersect1d(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  Array u = unique(x);
  return u(isin(u, y));
}
Array setdiff1d(const ArrayArg& x, const ArrayArg& y) {
  CallSite site(x.where);
  Array u = unique(x);
  return u(isin(u, y, true));
}

Array lexsort(std::span<const Array> keys, int axis) {
  if (keys.empty())
    throw_user_error({"lexsort", "at least one key is needed", "none was given", "Pass the keys"},
                     CallSite::outermost({}));
  if (keys[0].ndim() == 0) return zeros({}, DType::kI32);
  // Stable sorts from the least important key on.
  Array order;
  for (const Array& k : keys) {
    Array key = order.defined() ? take_along_axis(k, order, axis) : k;
    Array by = argsort(key, axis);
    order = order.defined() ? take_along_axis(order, by, axis) : by;
  }
  return order;
}

Array interp(const ArrayArg& x_arg, const ArrayArg& xp_arg, const ArrayArg& fp_arg,
             std::optional<double> left, std::optional<double> right) {
  CallSite site(x_arg.where);
  if (xp_arg.array.ndim() != 1 || xp_arg.array.shape() != fp_arg.array.shape())
    throw_user_error(
        {"interp", "xp and fp must be vectors of one length",
         fmt::format("{} and {}", xp_arg.array.type_string(), fp_arg.array.type_string()),
         "Flatten them"},
        CallSite::outermost(x_arg.where));
  WeakDType t = to_inexact(promote_types(internal::weak_dtype(x_arg.array),
                                         internal::weak_dtype(xp_arg.array), x_arg.where));
  Array x = internal::with_dtype(x_arg.array, t, {}),
        xp = internal::with_dtype(xp_arg.array, t, {});
  Array fp = inexact(fp_arg);
  auto n = static_cast<int>(xp.dim(0));
  Array i = clip(searchsorted(xp, x, true), 1, n - 1);
  auto at = [&](const Array& a, const Array& k) { return take(a, k, 0, IndexMode::kClip); };
  Array x0 = at(xp, i - 1), f0 = at(fp, i - 1);
  Array dx = at(xp, i) - x0, df = at(fp, i) - f0;
  double eps = std::ldexp(1.0, -dtype_info(t.dtype).mantissa_bits);
  // Half the spacing of numbers at eps: what NumPy's spacing(eps) is.
  Array flat = abs(dx) <= eps * eps;
  Array f = where(flat, f0, f0 + (x - x0) / where(flat, 1.0, dx) * df);
  f = where(x < xp[0], left ? constant(fp.dtype(), {}, *left) : fp[0], f);
  return where(x > xp[n - 1], right ? constant(fp.dtype(), {}, *right) : fp[n - 1], f);
}

}  // namespace xylem
