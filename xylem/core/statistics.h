#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "xylem/core/numpy.h"

// Order statistics, histograms, sets and searches of jax.numpy. Functions whose result's size is in
// the values take a `size` to be used under jit: what is left over is filled, what is too much cut.
namespace xylem {

// --- means and order ---------------------------------------------------------------------------
// Weights have the shape of x, or one axis of the length of `axis`.
Array average(const ArrayArg& x, std::optional<int> axis = std::nullopt,
              const Array& weights = Array(), bool keepdims = false);
enum class QuantileMethod : std::uint8_t { kLinear, kLower, kHigher, kMidpoint, kNearest };
// q in [0, 1] (clamped), a scalar or a vector, whose axis comes first. NaN where there is a NaN.
Array quantile(const ArrayArg& x, const ArrayArg& q, const AxisArg& axis = {},
               QuantileMethod method = QuantileMethod::kLinear, bool keepdims = false);
Array percentile(const ArrayArg& x, const ArrayArg& q, const AxisArg& axis = {},
                 QuantileMethod method = QuantileMethod::kLinear, bool keepdims = false);
Array median(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array ptp(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
// Covariance and correlation of the rows of x, divisor n - 1.
Array cov(const ArrayArg& x);
Array corrcoef(const ArrayArg& x);

// Without NaNs. Of a slice of NaNs alone: 0, 1, NaN; nanargmax and nanargmin give -1.
Array nansum(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array nanprod(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array nanmean(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array nanvar(const ArrayArg& x, const AxisArg& axis = {}, double ddof = 0, bool keepdims = false);
Array nanstd(const ArrayArg& x, const AxisArg& axis = {}, double ddof = 0, bool keepdims = false);
Array nanmax(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array nanmin(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);
Array nanargmax(const ArrayArg& x, std::optional<int> axis = std::nullopt);
Array nanargmin(const ArrayArg& x, std::optional<int> axis = std::nullopt);
Array nancumsum(const ArrayArg& x, std::optional<int> axis = std::nullopt);
Array nancumprod(const ArrayArg& x, std::optional<int> axis = std::nullopt);
Array nanquantile(const ArrayArg& x, const ArrayArg& q, const AxisArg& axis = {},
                  QuantileMethod method = QuantileMethod::kLinear, bool keepdims = false);
Array nanpercentile(const ArrayArg& x, const ArrayArg& q, const AxisArg& axis = {},
                    QuantileMethod method = QuantileMethod::kLinear, bool keepdims = false);
Array nanmedian(const ArrayArg& x, const AxisArg& axis = {}, bool keepdims = false);

// --- histograms ----------------------------------------------------------------------------------
// How often each of 0, 1, … occurs in a vector of integers, or the sum of the weights. Negative
// ones count as 0, those beyond `length` are dropped; without a length the values must be known.
Array bincount(const ArrayArg& x, const Array& weights = Array(), std::int64_t minlength = 0,
               std::optional<std::int64_t> length = std::nullopt);
struct Histogram {
  Array counts, edges;
};
Array histogram_bin_edges(const ArrayArg& x, std::int64_t bins = 10,
                          std::optional<std::pair<double, double>> range = std::nullopt);
Histogram histogram(const ArrayArg& x, std::int64_t bins = 10,
                    std::optional<std::pair<double, double>> range = std::nullopt,
                    const Array& weights = Array(), bool density = false);
Histogram histogram(const ArrayArg& x, const Array& edges, const Array& weights = Array(),
                    bool density = false);
// Counts over the bins of every column of the sample [n, d]: `bins` equal ones each, or edges.
struct HistogramDd {
  Array counts;
  std::vector<Array> edges;
};
HistogramDd histogramdd(const ArrayArg& sample, std::int64_t bins = 10,
                        const std::vector<std::pair<double, double>>& range = {},
                        const Array& weights = Array(), bool density = false);
HistogramDd histogramdd(const ArrayArg& sample, std::span<const Array> edges,
                        const Array& weights = Array(), bool density = false);
HistogramDd histogram2d(const ArrayArg& x, const ArrayArg& y, std::int64_t bins = 10,
                        const std::vector<std::pair<double, double>>& range = {},
                        const Array& weights = Array(), bool density = false);
// The number of bins before each value; bins ascend or descend.
Array digitize(const ArrayArg& x, const ArrayArg& bins, bool right = false);

// --- searches and sets ---------------------------------------------------------------------------
// Positions of the elements that are not zero, one array per axis.
std::vector<Array> nonzero(const ArrayArg& x, std::optional<std::int64_t> size = std::nullopt,
                           std::int64_t fill_value = 0);
Array flatnonzero(const ArrayArg& x, std::optional<std::int64_t> size = std::nullopt,
                  std::int64_t fill_value = 0);
Array argwhere(const ArrayArg& x, std::optional<std::int64_t> size = std::nullopt,
               std::int64_t fill_value = 0);
// The different values in ascending order; NaNs are one. `indices`: first occurrences, `inverse`:
// for each element of x its place among the values, `counts`: how often each occurs (0 for fill).
// The fill is the least value if not given; an empty array has none.
struct Unique {
  Array values, indices, inverse, counts;
};
Unique unique_all(const ArrayArg& x, std::optional<std::int64_t> size = std::nullopt,
                  std::optional<double> fill_value = std::nullopt);
Array unique(const ArrayArg& x, std::optional<std::int64_t> size = std::nullopt,
             std::optional<double> fill_value = std::nullopt);
Array isin(const ArrayArg& x, const ArrayArg& values, bool invert = false);
Array union1d(const ArrayArg& x, const ArrayArg& y,
              std::optional<std::int64_t> size = std::nullopt);
Array intersect1d(const ArrayArg& x, const ArrayArg& y);
Array setdiff1d(const ArrayArg& x, const ArrayArg& y);
Array setxor1d(const ArrayArg& x, const ArrayArg& y);
Array unique_values(const ArrayArg& x);
std::pair<Array, Array> unique_counts(const ArrayArg& x);
std::pair<Array, Array> unique_inverse(const ArrayArg& x);
// Slices of x along an axis (of the flat array) where the condition, a vector, holds. With a size:
// filled behind, or cut.
Array compress(const ArrayArg& condition, const ArrayArg& x, std::optional<int> axis = std::nullopt,
               std::optional<std::int64_t> size = std::nullopt, double fill_value = 0);
Array extract(const ArrayArg& condition, const ArrayArg& x,
              std::optional<std::int64_t> size = std::nullopt, double fill_value = 0);
// Order of the columns by the last key, then the one before, …
Array lexsort(std::span<const Array> keys, int axis = -1);
// Linear interpolation of the points (xp, fp), constant outside.
Array interp(const ArrayArg& x, const ArrayArg& xp, const ArrayArg& fp,
             std::optional<double> left = std::nullopt, std::optional<double> right = std::nullopt);

}  // namespace xylem
