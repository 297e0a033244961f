#include "xylem/core/promotion.h"

#include <fmt/format.h>

#include <array>
#include <bitset>
#include <vector>

#include "xylem/base/error.h"

namespace xylem {
namespace {

// Nodes of the lattice: the dtypes, then the three weak kinds.
constexpr int kWeakInt = kNumDTypes, kWeakFloat = kNumDTypes + 1, kWeakComplex = kNumDTypes + 2;
constexpr int kNumNodes = kNumDTypes + 3;
using Set = std::bitset<kNumNodes>;

int node(DType t) { return static_cast<int>(t); }

int node_of(WeakDType t) {
  if (!t.weak || is_bool(t.dtype)) return node(t.dtype);
  if (is_integer(t.dtype)) return kWeakInt;
  return is_complex(t.dtype) ? kWeakComplex : kWeakFloat;
}

// above[n]: every node that n may become, n included.
const std::array<Set, kNumNodes>& above() {
  static const std::array<Set, kNumNodes> table = [] {
    std::array<std::vector<int>, kNumNodes> edges;
    auto edge = [&](int from, std::initializer_list<int> to) {
      for (int t : to) edges[static_cast<std::size_t>(from)].push_back(t);
    };
    using enum DType;
    auto n = [](DType t) { return node(t); };
    edge(n(kBool), {kWeakInt});
    edge(kWeakInt, {n(kU8), n(kI8), n(kI2), n(kI4), n(kU2), n(kU4)});
    edge(n(kU8), {n(kU16), n(kI16)});
    edge(n(kU16), {n(kU32), n(kI32)});
    edge(n(kU32), {n(kU64), n(kI64)});
    edge(n(kU64), {kWeakFloat});
    edge(n(kI8), {n(kI16)});
    edge(n(kI16), {n(kI32)});
    edge(n(kI32), {n(kI64)});
    edge(n(kI64), {kWeakFloat});
    edge(kWeakFloat, {n(kF4E2M1FN), n(kF6E2M3FN), n(kF6E3M2FN), n(kF8E3M4), n(kF8E4M3),
                      n(kF8E4M3FN), n(kF8E4M3FNUZ), n(kF8E4M3B11FNUZ), n(kF8E5M2), n(kF8E5M2FNUZ),
                      n(kF8E8M0FNU), n(kBF16), n(kF16), kWeakComplex});
    edge(n(kBF16), {n(kF32)});
    edge(n(kF16), {n(kF32)});
    edge(n(kF32), {n(kF64), n(kC64)});
    edge(n(kF64), {n(kC128)});
    edge(kWeakComplex, {n(kC64)});
    edge(n(kC64), {n(kC128)});
    std::array<Set, kNumNodes> sets;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < kNumNodes; ++i) {
        Set s = sets[i];
        s.set(i);
        for (int to : edges[i]) s |= sets[static_cast<std::size_t>(to)];
        changed = changed || s != sets[i];
        sets[i] = s;
      }
    }
    return sets;
  }();
  return table;
}

WeakDType from_node(int n) {
  if (n == kWeakInt) return {DType::kI32, true};
  if (n == kWeakFloat) return {DType::kF32, true};
  if (n == kWeakComplex) return {DType::kC64, true};
  return {static_cast<DType>(n), false};
}

}  // namespace

WeakDType promote_types(WeakDType a, WeakDType b, SourceLoc where) {
  int x = node_of(a), y = node_of(b);
  if (x == y) return a;
  const auto& up = above();
  Set common = up[static_cast<std::size_t>(x)] & up[static_cast<std::size_t>(y)];
  // The join is the common node from which every other common node is reached.
  for (std::size_t i = 0; i < kNumNodes; ++i)
    if (common.test(i) && (common & ~up[i]).none()) {
      WeakDType r = from_node(static_cast<int>(i));
      // A weak value of a wider dtype keeps it against nothing but other weak values.
      if (r.weak && a.weak && a.dtype != r.dtype && static_cast<int>(i) == x) r.dtype = a.dtype;
      return r;
    }
  throw UserError(ErrorParts{"promote_types", "the operands must have a common dtype",
                             fmt::format("given {} and {}, which do not promote implicitly",
                                         dtype_name(a.dtype), dtype_name(b.dtype)),
                             "Convert one of them with astype"},
                  where);
}

WeakDType promote_types(std::span<const WeakDType> types, SourceLoc where) {
  WeakDType r = types[0];
  for (WeakDType t : types.subspan(1)) r = promote_types(r, t, where);
  return r;
}

WeakDType to_inexact(WeakDType t) {
  if (is_inexact(t.dtype)) return t;
  return {DType::kF32, t.weak};
}

}  // namespace xylem
