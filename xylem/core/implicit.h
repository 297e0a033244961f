#pragma once

#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/core/transforms.h"

// Derivatives that do not go through the code of the function: implicit differentiation, transposes
// of linear functions, own rules for vmap.

namespace xylem {
namespace internal {

using FlatMap = std::function<std::vector<Array>(std::span<const Array>)>;
// Solves with a function that it is given: (function, values) -> values.
using FlatSolve = std::function<std::vector<Array>(const FlatMap&, std::span<const Array>)>;

std::vector<Array> custom_root(std::span<const Array> guess, const FlatMap& f,
                               const FlatSolve& solve, const FlatSolve& tangent_solve,
                               SourceLoc where);
// `transpose_solve` may be null.
std::vector<Array> custom_linear_solve(std::span<const Array> b, const FlatMap& matvec,
                                       const FlatSolve& solve, const FlatSolve& transpose_solve,
                                       SourceLoc where);
// Cotangents of the results -> cotangents of the arguments, whose types alone count.
std::vector<Array> linear_transpose(std::span<const Array> args, std::span<const Array> cotangents,
                                    FlatFunction f, SourceLoc where);

// (axis size, which arguments are mapped (their axis 0), arguments) -> results; sets which results
// are mapped.
using VmapRule = std::function<std::vector<Array>(std::int64_t, const std::vector<bool>&,
                                                  std::span<const Array>, std::vector<bool>&)>;
std::vector<Array> custom_vmap(std::span<const Array> args, FlatFunction f, VmapRule rule,
                               SourceLoc where);

// A typed solver on flat values: x and what it solves for have the type of `skeleton`.
template <class T, class Solve>
FlatSolve flat_solve(const T& skeleton, const Solve& solve) {
  return [&skeleton, &solve](const FlatMap& f, std::span<const Array> in) {
    auto typed = [&](const T& t) {
      return tree::unflatten<Array>(skeleton, std::span<const Array>(f(tree::leaves<Array>(t))));
    };
    return tree::leaves<Array>(T(solve(typed, tree::unflatten<Array>(skeleton, in))));
  };
}

}  // namespace internal

// x with f(x) = 0, from solve(f, initial_guess), differentiated by the implicit function theorem:
// dx = -tangent_solve(v -> (∂f/∂x) v, (∂f/∂θ) dθ) for the values θ that f closes over. f returns
// the type of its argument. Derivatives of the first and second order, forward and (if
// tangent_solve can be transposed) reverse; none by the initial guess.
template <class F, class T, class Solve, class TangentSolve>
T custom_root(const F& f, const T& initial_guess, const Solve& solve,
              const TangentSolve& tangent_solve) {
  T guess = internal::as_tree(initial_guess);
  internal::FlatMap flat = [&](std::span<const Array> in) {
    return tree::leaves<Array>(T(f(tree::unflatten<Array>(guess, in))));
  };
  std::vector<Array> x = internal::custom_root(
      tree::leaves<Array>(guess), flat, internal::flat_solve(guess, solve),
      internal::flat_solve(guess, tangent_solve), internal::current_call_site());
  return tree::unflatten<Array>(guess, std::span<const Array>(x));
}

// x with matvec(x) = b, from solve(matvec, b), differentiated through the equation; reverse mode
// uses transpose_solve(vecmat, ct), or solve if matvec is symmetric.
struct Symmetric {};
inline constexpr Symmetric symmetric{};
struct NoTransposeSolve {};
template <class F, class T, class Solve, class TransposeSolve = NoTransposeSolve>
T custom_linear_solve(const F& matvec, const T& b, const Solve& solve,
                      const TransposeSolve& transpose_solve = {}) {
  T rhs = internal::as_tree(b);
  internal::FlatMap flat = [&](std::span<const Array> in) {
    return tree::leaves<Array>(T(matvec(tree::unflatten<Array>(rhs, in))));
  };
  internal::FlatSolve forward = internal::flat_solve(rhs, solve), backward;
  if constexpr (std::is_same_v<TransposeSolve, Symmetric>)
    backward = forward;
  else if constexpr (!std::is_same_v<TransposeSolve, NoTransposeSolve>)
    backward = internal::flat_solve(rhs, transpose_solve);
  std::vector<Array> x = internal::custom_linear_solve(tree::leaves<Array>(rhs), flat, forward,
                                                       backward, internal::current_call_site());
  return tree::unflatten<Array>(rhs, std::span<const Array>(x));
}

// The transpose of f, which must be linear in its arguments: a function from a cotangent of the
// result to a tuple of cotangents of the arguments. Of the arguments, only the types count; they
// may come from shape_dtype_struct. UserError naming the op that is not linear.
template <class F, class... Args>
auto linear_transpose(F&& f, const Args&... args) {
  std::tuple<Args...> inputs{args...};
  using R = std::decay_t<decltype(std::apply(f, inputs))>;
  return [f = std::decay_t<F>(std::forward<F>(f)), inputs](const R& cotangent) mutable {
    std::optional<R> result;
    std::vector<Array> c = internal::linear_transpose(
        tree::leaves<Array>(inputs), tree::leaves<Array>(cotangent),
        internal::recording(f, inputs, result), internal::current_call_site());
    return tree::unflatten<Array>(inputs, std::span<const Array>(c));
  };
}

// f with a rule for vmap: rule(axis size, std::vector<bool> of which leaves of the arguments are
// mapped, arguments…) -> pair(result, std::vector<bool> of which of its leaves are mapped). Mapped
// leaves have their mapped axis in front. Derivatives are f's own.
template <class F, class Rule>
auto custom_vmap(F&& f, Rule&& rule) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          rule = std::decay_t<Rule>(std::forward<Rule>(rule))](const auto&... args) mutable {
    std::tuple inputs{internal::as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(f, inputs))>;
    std::optional<R> result;
    internal::VmapRule flat = [rule, skeleton = internal::without_arrays(inputs)](
                                  std::int64_t size, const std::vector<bool>& mapped,
                                  std::span<const Array> in, std::vector<bool>& out) {
      auto typed = tree::unflatten<Array>(skeleton, in);
      auto [r, m] = std::apply([&](const auto&... a) { return rule(size, mapped, a...); }, typed);
      out.assign(m.begin(), m.end());
      return tree::leaves<Array>(r);
    };
    std::vector<Array> r =
        internal::custom_vmap(tree::leaves<Array>(inputs), internal::recording(f, inputs, result),
                              std::move(flat), internal::current_call_site());
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  };
}

}  // namespace xylem
