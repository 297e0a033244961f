#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/base/tree.h"
#include "xylem/core/array.h"
#include "xylem/core/internal/api.h"
#include "xylem/core/transforms.h"

// Loops and branches of traced programs. Carries, inputs and results are trees.

namespace xylem {

struct ScanOptions {
  std::int64_t length = -1;  // needed if xs has no leaves
  bool reverse = false;
  std::int64_t unroll = 1;
};

namespace internal {

// UserError if a carry comes out of a body, or a result out of a branch, with another structure:
// other keys, lengths or static fields. Types that differ are compared by their leaves alone.
template <class A, class B>
void check_structure(const char* what, const A& expected, const B& given) {
  if constexpr (std::is_same_v<A, B>)
    check_structures(what, tree::structure<Array>(expected), tree::structure<Array>(given));
}

}  // namespace internal

// Carries state over the leading axis of xs: (carry, x) -> pair(carry, y), one step a slice.
// Returns pair(last carry, ys stacked). Differentiable in both modes.
template <class F, class Carry, class Xs>
auto scan(F&& f, const Carry& init, const Xs& xs, const ScanOptions& options = {}) {
  auto carry0 = internal::as_tree(init);
  auto inputs = internal::as_tree(xs);
  using Y = std::decay_t<decltype(std::get<1>(f(carry0, inputs)))>;
  std::size_t n = tree::leaves<Array>(carry0).size();
  std::optional<Y> y;
  internal::ScanFlat r = internal::scan(
      tree::leaves<Array>(carry0), tree::leaves<Array>(inputs), options.length, options.reverse,
      options.unroll,
      [&](std::span<const Array> in) {
        auto c = tree::unflatten<Array>(carry0, in.first(n));
        auto x = tree::unflatten<Array>(inputs, in.subspan(n));
        auto [next, out] = f(c, x);
        internal::check_structure("scan", carry0, next);
        std::vector<Array> all = tree::leaves<Array>(next);
        for (Array& a : tree::leaves<Array>(out)) all.push_back(a);
        y.emplace(std::move(out));
        return all;
      },
      internal::current_call_site());
  return std::pair{tree::unflatten<Array>(carry0, std::span<const Array>(r.carry)),
                   tree::unflatten<Array>(std::move(*y), std::span<const Array>(r.ys))};
}

// body while cond holds. Forward mode only. The carry keeps its structure.
template <class Cond, class Body, class Carry>
auto while_loop(Cond&& cond, Body&& body, const Carry& init) {
  auto carry0 = internal::as_tree(init);
  std::vector<Array> r = internal::while_loop(
      tree::leaves<Array>(carry0),
      [&](std::span<const Array> in) {
        return std::vector<Array>{cond(tree::unflatten<Array>(carry0, in))};
      },
      [&](std::span<const Array> in) {
        auto next = body(tree::unflatten<Array>(carry0, in));
        internal::check_structure("while_loop", carry0, next);
        return tree::leaves<Array>(next);
      },
      internal::current_call_site());
  return tree::unflatten<Array>(carry0, std::span<const Array>(r));
}

// carry = body(i, carry) for i in [lower, upper). Fixed bounds make a scan, which has a reverse
// mode; array bounds make a while_loop.
template <class Body, class Carry>
auto fori_loop(std::int64_t lower, std::int64_t upper, Body&& body, const Carry& init) {
  auto carry0 = internal::as_tree(init);
  std::size_t leaves = tree::leaves<Array>(carry0).size();
  std::vector<Array> xs = {internal::index_range(lower, upper)};
  internal::ScanFlat r = internal::scan(
      tree::leaves<Array>(carry0), xs, xs[0].dim(0), false, 1,
      [&](std::span<const Array> in) {
        auto c = tree::unflatten<Array>(carry0, in.first(leaves));
        auto next = body(in[leaves], c);
        internal::check_structure("fori_loop", carry0, next);
        return tree::leaves<Array>(next);
      },
      internal::current_call_site());
  return tree::unflatten<Array>(carry0, std::span<const Array>(r.carry));
}
template <class Body, class Carry>
auto fori_loop(const Array& lower, const Array& upper, Body&& body, const Carry& init) {
  auto carry0 = internal::as_tree(init);
  using C = decltype(carry0);
  auto r = while_loop([&](const std::pair<Array, C>& s) { return s.first < upper; },
                      [&](const std::pair<Array, C>& s) {
                        return std::pair<Array, C>{s.first + 1, body(s.first, s.second)};
                      },
                      std::pair<Array, C>{lower, carry0});
  return r.second;
}

namespace internal {

template <class R, class... Ops>
R run_branches(const Array& index, std::vector<FlatFunction> branches, std::optional<R>& result,
               const std::tuple<Ops...>& operands) {
  std::vector<Array> r =
      branch(index, branches, tree::leaves<Array>(operands), current_call_site());
  return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
}

}  // namespace internal

// on_true(operands...) or on_false(operands...), whichever a bool scalar says. Only that one runs
// (under vmap with a mapped predicate, both do).
template <class True, class False, class... Ops>
auto cond(const ArrayArg& pred, True&& on_true, False&& on_false, const Ops&... ops) {
  std::tuple operands{internal::as_tree(ops)...};
  using R = std::decay_t<decltype(std::apply(on_true, operands))>;
  std::optional<R> result;
  auto call = [&](auto& f) {
    return [&](std::span<const Array> in) {
      R r = internal::call_with(f, operands, in);
      if (result) internal::check_structure("cond", *result, r);
      std::vector<Array> leaves = tree::leaves<Array>(r);
      result.emplace(std::move(r));
      return leaves;
    };
  };
  auto no = call(on_false);
  auto yes = call(on_true);
  return internal::run_branches<R>(
      pred.array, {internal::FlatFunction(no), internal::FlatFunction(yes)}, result, operands);
}

// branches[index](operands...), the index clamped into range.
template <class F, class... Ops>
auto switch_(const ArrayArg& index, const std::vector<F>& branches, const Ops&... ops) {
  std::tuple operands{internal::as_tree(ops)...};
  using R = std::decay_t<decltype(std::apply(branches[0], operands))>;
  std::optional<R> result;
  auto call = [&](const F& f) {
    return [&](std::span<const Array> in) {
      R r = internal::call_with(f, operands, in);
      if (result) internal::check_structure("switch_", *result, r);
      std::vector<Array> leaves = tree::leaves<Array>(r);
      result.emplace(std::move(r));
      return leaves;
    };
  };
  using Call = decltype(call(branches[0]));
  std::vector<Call> calls;
  for (const F& f : branches) calls.push_back(call(f));
  std::vector<internal::FlatFunction> flat;
  for (Call& c : calls) flat.emplace_back(c);
  Array clamped = internal::clamp_index(index.array, branches.size());
  return internal::run_branches<R>(clamped, std::move(flat), result, operands);
}

}  // namespace xylem
