#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "xylem/core/transforms.h"

// Custom derivatives of functions some of whose arguments are never differentiated: callables,
// configurations, anything that is no tree of arrays.

namespace xylem {

// Positions of arguments that the rules get as they are.
template <int... I>
struct NondiffArgnums {};
template <int... I>
inline constexpr NondiffArgnums<I...> nondiff_argnums{};

namespace internal {

template <int... N>
constexpr bool is_fixed(std::size_t i) {
  return ((static_cast<std::size_t>(N) == i) || ...);
}

// How many differentiated arguments stand before argument i.
template <int... N>
constexpr std::size_t moving_before(std::size_t i) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < i; ++k) n += !is_fixed<N...>(k);
  return n;
}

// The arguments that move, as a tuple of values.
template <int... N, class... A, std::size_t... I>
auto moving_args(const std::tuple<A...>& all, std::index_sequence<I...>) {
  return std::tuple_cat([&] {
    if constexpr (is_fixed<N...>(I))
      return std::tuple<>();
    else
      return std::make_tuple(as_tree(std::get<I>(all)));
  }()...);
}

// Calls f with every argument: fixed ones from `all`, the others from `moving`.
template <int... N, class F, class... A, class M, std::size_t... I>
decltype(auto) call_merged(F& f, const std::tuple<A...>& all, const M& moving,
                           std::index_sequence<I...>) {
  return f([&]() -> decltype(auto) {
    if constexpr (is_fixed<N...>(I))
      return std::get<I>(all);
    else
      return std::get<moving_before<N...>(I)>(moving);
  }()...);
}

}  // namespace internal

// custom_jvp of f by its other arguments: rule(fixed arguments…, primals tuple, tangents tuple) ->
// pair(result, tangent).
template <class F, class Rule, int... N>
auto custom_jvp(F&& f, Rule&& rule, NondiffArgnums<N...>) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          rule = std::decay_t<Rule>(std::forward<Rule>(rule))](const auto&... args) mutable {
    const auto all = std::tie(args...);
    constexpr auto seq = std::make_index_sequence<sizeof...(args)>();
    auto primal = [&](const auto&... m) {
      return internal::call_merged<N...>(f, all, std::tie(m...), seq);
    };
    auto moved = [&](const auto& primals, const auto& tangents) {
      return rule(std::get<static_cast<std::size_t>(N)>(all)..., primals, tangents);
    };
    return std::apply(custom_jvp(primal, moved), internal::moving_args<N...>(all, seq));
  };
}

// custom_vjp of f by its other arguments: forward(all arguments…) -> pair(result, residuals);
// backward(fixed arguments…, residuals, cotangent) -> tuple of cotangents of the others.
template <class F, class Forward, class Backward, int... N>
auto custom_vjp(F&& f, Forward&& forward, Backward&& backward, NondiffArgnums<N...>) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          forward = std::decay_t<Forward>(std::forward<Forward>(forward)),
          backward = std::decay_t<Backward>(std::forward<Backward>(backward))](
             const auto&... args) mutable {
    const auto all = std::tie(args...);
    constexpr auto seq = std::make_index_sequence<sizeof...(args)>();
    auto primal = [&](const auto&... m) {
      return internal::call_merged<N...>(f, all, std::tie(m...), seq);
    };
    auto fwd = [&](const auto&... m) {
      return internal::call_merged<N...>(forward, all, std::tie(m...), seq);
    };
    auto bwd = [&](const auto& residuals, const auto& cotangent) {
      return backward(std::get<static_cast<std::size_t>(N)>(all)..., residuals, cotangent);
    };
    return std::apply(custom_vjp(primal, fwd, bwd), internal::moving_args<N...>(all, seq));
  };
}

}  // namespace xylem
