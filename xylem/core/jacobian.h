#pragma once

#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/core/transforms.h"

// Whole derivatives: Jacobians, Hessians and products with them.

namespace xylem {
namespace internal {

// d results / d arguments, one block for each result leaf and active argument leaf, results first;
// a block has the shape of the result followed by that of the argument.
struct Jacobian {
  std::vector<Array> results;
  std::vector<Array> blocks;
};
Jacobian jacobian(std::span<const Array> args, const std::vector<bool>& active, FlatFunction f,
                  bool forward, SourceLoc where);
Tree<Array> nested_tree(const Structure& outer, const Structure& inner,
                        std::span<const Array> leaves);

template <int I, class... Args>
std::vector<bool> mask_of(const std::tuple<Args...>& args) {
  std::vector<bool> mask;
  std::size_t k = 0;
  std::apply(
      [&](const auto&... a) {
        (..., [&] { mask.resize(mask.size() + tree::leaves<Array>(a).size(), k++ == I); }());
      },
      args);
  return mask;
}

// The blocks in the type of the result if the argument is one array, in that of the argument if the
// result is, and as a Tree of the result's structure of trees of the argument's otherwise.
template <class R, class A>
auto as_jacobian(R result, const A& argument, std::span<const Array> blocks) {
  if constexpr (std::is_same_v<A, Array>)
    return tree::unflatten<Array>(std::move(result), blocks);
  else if constexpr (std::is_same_v<R, Array>)
    return tree::unflatten<Array>(argument, blocks);
  else
    return nested_tree(tree::structure<Array>(result), tree::structure<Array>(argument), blocks);
}

template <class F, int I>
class JacobianOf {
 public:
  JacobianOf(F f, bool forward) : f_(std::move(f)), forward_(forward) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using Tuple = std::tuple<PassAs<F, Args>...>;
    Tuple inputs{as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(std::declval<F&>(), std::declval<const Tuple&>()))>;
    std::optional<R> result;
    Jacobian j = jacobian(tree::leaves<Array>(inputs), mask_of<I>(inputs),
                          recording(f_, inputs, result), forward_, current_call_site());
    return as_jacobian(std::move(*result), std::get<I>(inputs), j.blocks);
  }

 private:
  mutable F f_;
  bool forward_;
};

}  // namespace internal

// The Jacobian by one argument (the first): result axes, then argument axes. Forward mode takes one
// pass per element of the argument, reverse mode one per element of the result; both run all passes
// at once by vmap.
template <class F>
auto jacfwd(F&& f) {
  return internal::JacobianOf<std::decay_t<F>, 0>(std::forward<F>(f), true);
}
template <class F, int I>
auto jacfwd(F&& f, Argnums<I>) {
  return internal::JacobianOf<std::decay_t<F>, I>(std::forward<F>(f), true);
}
template <class F>
auto jacrev(F&& f) {
  return internal::JacobianOf<std::decay_t<F>, 0>(std::forward<F>(f), false);
}
template <class F, int I>
auto jacrev(F&& f, Argnums<I>) {
  return internal::JacobianOf<std::decay_t<F>, I>(std::forward<F>(f), false);
}
// jacfwd of jacrev. Of a function of a struct to a scalar: a Tree of Trees.
template <class F>
auto hessian(F&& f) {
  return jacfwd(jacrev(std::forward<F>(f)));
}

// (x, v, rest…) -> the product of the Hessian of f (a scalar) by its first argument at x with v, in
// about the time of two gradients.
template <class F>
auto hvp(F&& f) {
  return [g = grad(std::forward<F>(f))](const auto& x, const auto& v, const auto&... rest) {
    auto at = [&](const auto& p) { return g(p, rest...); };
    return jvp(at, std::tuple{x}, std::tuple{v}).second;
  };
}

}  // namespace xylem
