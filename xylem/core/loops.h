#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "xylem/core/control_flow.h"
#include "xylem/core/transforms.h"

// Loops without a carry, and scans that run in logarithmic depth.

namespace xylem {

struct MapOptions {
  // 0: the whole axis at once, as vmap. -1: one at a time.
  std::int64_t batch_size = -1;
};

namespace internal {

std::vector<Array> map_batched(std::span<const Array> xs, std::int64_t batch_size, FlatFunction f,
                               SourceLoc where);
using FlatCombine =
    std::function<std::vector<Array>(std::span<const Array>, std::span<const Array>)>;
std::vector<Array> associative_scan(std::span<const Array> elems, bool reverse, int axis,
                                    const FlatCombine& combine, SourceLoc where);

}  // namespace internal

// f of each slice of the leading axis, stacked; one after the other, or in batches by vmap.
template <class F, class Xs>
auto map(F&& f, const Xs& mapped, const MapOptions& options = {}) {
  auto xs = internal::as_tree(mapped);
  using Y = std::decay_t<decltype(f(xs))>;
  std::optional<Y> y;
  std::vector<Array> r = internal::map_batched(
      tree::leaves<Array>(xs), options.batch_size,
      [&](std::span<const Array> in) {
        y.emplace(f(tree::unflatten<Array>(xs, in)));
        return tree::leaves<Array>(*y);
      },
      internal::current_call_site());
  return tree::unflatten<Array>(std::move(*y), std::span<const Array>(r));
}

struct AssociativeScanOptions {
  bool reverse = false;
  int axis = 0;
};

// Element i of the result is fn(… fn(fn(e0, e1), e2) …, ei), by about 2 log2(n) calls of fn on
// slices: fn must be associative and work on whole axes.
template <class F, class T>
T associative_scan(F&& fn, const T& elems, const AssociativeScanOptions& options = {}) {
  internal::FlatCombine combine = [&](std::span<const Array> a, std::span<const Array> b) {
    return tree::leaves<Array>(
        T(fn(tree::unflatten<Array>(elems, a), tree::unflatten<Array>(elems, b))));
  };
  std::vector<Array> r =
      internal::associative_scan(tree::leaves<Array>(elems), options.reverse, options.axis, combine,
                                 internal::current_call_site());
  return tree::unflatten<Array>(elems, std::span<const Array>(r));
}

}  // namespace xylem
