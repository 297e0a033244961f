#pragma once

#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/core/transforms.h"

// Forward-mode rules that are told which tangents are zero, as
// jax.custom_jvp.defjvp(rule, symbolic_zeros=True).

namespace xylem {

struct SymbolicZeros {};
inline constexpr SymbolicZeros symbolic_zeros{};

namespace internal {

// Primals, then tangents, undefined where they are zero -> results, then their tangents, undefined
// for zero.
using LazyJvpRule = std::function<std::vector<Array>(std::span<const Array>)>;
std::vector<Array> custom_jvp_lazily(std::span<const Array> args, FlatFunction primal,
                                     LazyJvpRule rule, SourceLoc where);

}  // namespace internal

// custom_jvp whose rule gets an undefined array for every tangent that is zero, and may return one:
// it is called anew for every set of zero tangents. The rule must also work with all tangents there
// (vmap passes them all), and may close over concrete arrays only.
template <class F, class Rule>
auto custom_jvp(F&& f, Rule&& rule, SymbolicZeros) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          rule = std::decay_t<Rule>(std::forward<Rule>(rule))](const auto&... args) mutable {
    std::tuple inputs{internal::as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(f, inputs))>;
    std::optional<R> result;
    std::vector<Array> leaves = tree::leaves<Array>(inputs);
    const std::size_t n = leaves.size();
    auto flat = [rule, skeleton = internal::without_arrays(inputs), n](std::span<const Array> in) {
      auto primals = tree::unflatten<Array>(skeleton, in.first(n));
      auto tangents = tree::unflatten<Array>(skeleton, in.subspan(n));
      auto [out, dot] = rule(primals, tangents);
      std::vector<Array> all = tree::leaves<Array>(out);
      for (const Array& a : tree::leaves<Array>(dot)) all.push_back(a);
      return all;
    };
    std::vector<Array> r =
        internal::custom_jvp_lazily(leaves, internal::recording(f, inputs, result), std::move(flat),
                                    internal::current_call_site());
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  };
}

}  // namespace xylem
