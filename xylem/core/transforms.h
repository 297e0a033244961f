#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/base/tree.h"
#include "xylem/core/array.h"
#include "xylem/core/internal/api.h"

// jit, grad, vmap and their kin. Each takes a callable and returns a callable; arguments and
// results are trees of arrays. They compose in any order.

namespace xylem {

// Positions of the arguments to differentiate.
template <int... I>
struct Argnums {};
template <int... I>
inline constexpr Argnums<I...> argnums{};
// The function returns a pair (value, auxiliary results).
struct HasAux {};
inline constexpr HasAux has_aux{};

namespace internal {

// What becomes an Array when it is passed as an argument: a plain number (a weakly typed traced
// scalar) and an array in host memory.
template <class T>
inline constexpr bool kBecomesArray = std::is_arithmetic_v<std::remove_cvref_t<T>> ||
                                      std::is_same_v<std::remove_cvref_t<T>, HostArray>;

template <class F, class T, class... Rest>
using PassAs = std::conditional_t<kBecomesArray<T>, Array, std::remove_cvref_t<T>>;

template <class T>
auto as_tree(T&& t) {
  if constexpr (kBecomesArray<T>)
    return ArrayArg(t).array;
  else
    return std::remove_cvref_t<T>(std::forward<T>(t));
}

template <class T>
T without_arrays(T t) {
  for (Array* a : tree::leaf_pointers<Array>(t)) *a = Array();
  return t;
}

// Calls f on the arguments' tree with other leaves; leaves of its result.
template <class F, class Tuple>
auto call_with(F& f, const Tuple& skeleton, std::span<const Array> leaves) {
  return std::apply(f, tree::unflatten<Array>(skeleton, leaves));
}

// call_with as a flat function that keeps the typed result of its last call in `result`. Refers to
// its arguments.
template <class F, class Tuple, class R>
auto recording(F& f, const Tuple& inputs, std::optional<R>& result) {
  return [&f, &inputs, &result](std::span<const Array> in) {
    result.emplace(call_with(f, inputs, in));
    return tree::leaves<Array>(*result);
  };
}

template <class F, class... Args>
using ResultOf = std::decay_t<std::invoke_result_t<F&, const Args&...>>;

// void results stand for an empty tree.
template <class T>
inline constexpr bool kIsPair = false;
template <class A, class B>
inline constexpr bool kIsPair<std::pair<A, B>> = true;
template <class A, class B>
inline constexpr bool kIsPair<std::tuple<A, B>> = true;

}  // namespace internal

// --- jit ---------------------------------------------------------------------------------------

struct JitOptions {
  std::string name = "jit";
  // Programs that are kept, at least one; a new one pushes out the one that was called longest ago.
  std::size_t max_programs = 1024;
};

// A compiled function with a cache of its own. Arguments that are moved in are donated: their
// buffers may be reused for results. Copies share the cache. Thread safe.
template <class F>
class Jitted {
 public:
  Jitted(F f, const JitOptions& options)
      : f_(std::move(f)), cache_(internal::make_jit_cache(options.name, options.max_programs)) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    using Tuple = std::tuple<internal::PassAs<F, Args>...>;
    using R = std::decay_t<decltype(std::apply(std::declval<F&>(), std::declval<const Tuple&>()))>;
    std::vector<Array*> donors;
    (add_donors<Args>(donors, args), ...);
    // The copies hold the leaves until the call; the caller's handles are emptied then.
    Tuple inputs{internal::as_tree(std::as_const(args))...};
    tree::Flat<Array> flat = tree::flatten<Array>(inputs);
    Tuple skeleton = internal::without_arrays(std::move(inputs));
    std::shared_ptr<void> made;
    auto traced = [&](std::span<const Array> leaves) {
      R result = internal::call_with(f_, skeleton, leaves);
      std::vector<Array> out = tree::leaves<Array>(result);
      made = std::make_shared<R>(internal::without_arrays(std::move(result)));
      return out;
    };
    internal::JitCall call =
        internal::jit_call(*cache_, flat.structure, std::move(flat.leaves), donors, traced, made,
                           internal::current_call_site());
    const auto* skeleton_of_result = static_cast<const R*>(internal::skeleton(*call.entry).get());
    return tree::unflatten<Array>(R(*skeleton_of_result), std::move(call.results));
  }

  // Number of compiled programs that are kept.
  std::size_t cache_size() const { return internal::num_entries(*cache_); }
  void clear_cache() const { internal::clear(*cache_); }
  // The program for these arguments, traced and not run: a Lowered (aot.h). Arguments may be of
  // shape_dtype_struct.
  template <class... Args>
  auto lower(const Args&... args) const;
  // Native text of the program for these arguments, before optimisation.
  template <class... Args>
  std::string lower_text(const Args&... args) const {
    using Tuple = std::tuple<internal::PassAs<F, Args>...>;
    Tuple inputs{internal::as_tree(args)...};
    std::vector<Array> leaves = tree::leaves<Array>(inputs);
    return internal::lowered_text(leaves, [&](std::span<const Array> in) {
      return tree::leaves<Array>(internal::call_with(f_, inputs, in));
    });
  }

 private:
  template <class Arg, class T>
  static void add_donors(std::vector<Array*>& donors, T& arg) {
    if constexpr (internal::kBecomesArray<T>) {
      donors.push_back(nullptr);
    } else if constexpr (std::is_lvalue_reference_v<Arg> || std::is_const_v<Arg>) {
      donors.resize(donors.size() +
                        tree::leaf_pointers<Array>(const_cast<std::remove_const_t<T>&>(arg)).size(),
                    nullptr);
    } else {
      for (Array* a : tree::leaf_pointers<Array>(arg)) donors.push_back(a);
    }
  }

  mutable F f_;
  std::shared_ptr<internal::JitCache> cache_;
};

template <class F>
Jitted<std::decay_t<F>> jit(F&& f, const JitOptions& options = {}) {
  return {std::forward<F>(f), options};
}

// --- gradients ----------------------------------------------------------------------------------

namespace internal {

template <class... Args, int... I>
std::vector<bool> active_mask(Argnums<I...>, const std::tuple<Args...>& args) {
  std::vector<bool> mask;
  std::size_t k = 0;
  Array asked;
  bool found = false;
  std::apply(
      [&](const auto&... a) {
        (..., [&] {
          bool on = ((static_cast<std::size_t>(I) == k) || ...);
          for (const Array& leaf : tree::leaves<Array>(a)) {
            mask.push_back(on && leaf.defined() && is_inexact(leaf.dtype()));
            if (on && leaf.defined()) asked = leaf;
            found = found || mask.back();
          }
          ++k;
        }());
      },
      args);
  if (asked.defined() && !found) throw_nothing_to_differentiate(asked);
  return mask;
}

// Gradients as trees of the arguments' types; one argument alone is not wrapped.
template <class Tuple, int... I>
auto gradients(Argnums<I...>, const Tuple& skeleton, std::span<const Array> grads) {
  Tuple g = tree::unflatten<Array>(skeleton, grads);
  if constexpr (sizeof...(I) == 1)
    return std::get<I...>(std::move(g));
  else
    return std::make_tuple(std::get<I>(g)...);
}

template <bool kAux, class Numbers, class F>
class ValueAndGrad {
 public:
  explicit ValueAndGrad(F f) : f_(std::move(f)) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using Tuple = std::tuple<PassAs<F, Args>...>;
    Tuple inputs{as_tree(args)...};
    std::vector<Array> leaves = tree::leaves<Array>(inputs);
    std::vector<bool> active = active_mask(Numbers{}, inputs);
    using R = std::decay_t<decltype(std::apply(std::declval<F&>(), std::declval<const Tuple&>()))>;
    if constexpr (kAux)
      static_assert(kIsPair<R>, "has_aux: the function must return std::pair{value, aux}");
    else
      static_assert(std::is_same_v<R, Array>,
                    "grad: the function must return one Array; use has_aux for more");
    std::optional<R> result;
    std::size_t outputs = 0;
    std::vector<Array> r = value_and_grad(leaves, active, internal::recording(f_, inputs, result),
                                          outputs, current_call_site());
    std::span<const Array> all(r);
    R value = tree::unflatten<Array>(std::move(*result), all.first(outputs));
    return std::pair{std::move(value), gradients(Numbers{}, inputs, all.subspan(outputs))};
  }

 private:
  mutable F f_;
};

template <bool kAux, class Numbers, class F>
class Grad {
 public:
  explicit Grad(F f) : f_(std::move(f)) {}
  template <class... Args>
  auto operator()(const Args&... args) const {
    auto [value, grad] = f_(args...);
    if constexpr (kAux)
      return std::pair{std::move(grad), std::get<1>(std::move(value))};
    else
      return grad;
  }

 private:
  ValueAndGrad<kAux, Numbers, F> f_;
};

}  // namespace internal

// (value, gradient) of a function with a real scalar result. The gradient has the type of the
// differentiated argument; its integer leaves are undefined.
template <class F>
auto value_and_grad(F&& f) {
  return internal::ValueAndGrad<false, Argnums<0>, std::decay_t<F>>(std::forward<F>(f));
}
template <class F, int... I>
auto value_and_grad(F&& f, Argnums<I...>) {
  return internal::ValueAndGrad<false, Argnums<I...>, std::decay_t<F>>(std::forward<F>(f));
}
// ((value, aux), gradient).
template <class F>
auto value_and_grad(F&& f, HasAux) {
  return internal::ValueAndGrad<true, Argnums<0>, std::decay_t<F>>(std::forward<F>(f));
}
template <class F, int... I>
auto value_and_grad(F&& f, Argnums<I...>, HasAux) {
  return internal::ValueAndGrad<true, Argnums<I...>, std::decay_t<F>>(std::forward<F>(f));
}
template <class F>
auto grad(F&& f) {
  return internal::Grad<false, Argnums<0>, std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}
template <class F, int... I>
auto grad(F&& f, Argnums<I...>) {
  return internal::Grad<false, Argnums<I...>, std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}
// (gradient, aux).
template <class F>
auto grad(F&& f, HasAux) {
  return internal::Grad<true, Argnums<0>, std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}
template <class F, int... I>
auto grad(F&& f, Argnums<I...>, HasAux) {
  return internal::Grad<true, Argnums<I...>, std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}

// (f(primals), directional derivative along tangents). Arguments are tuples of equal structure;
// undefined tangents are zero.
template <class F, class... P>
auto jvp(F&& f, const std::tuple<P...>& primals, const std::tuple<P...>& tangents) {
  std::vector<Array> p = tree::leaves<Array>(primals), t = tree::leaves<Array>(tangents);
  using R = std::decay_t<decltype(std::apply(f, primals))>;
  std::optional<R> result;
  internal::Jvp r = internal::jvp(
      p, t,
      [&](std::span<const Array> in) {
        result.emplace(internal::call_with(f, primals, in));
        return tree::leaves<Array>(*result);
      },
      internal::current_call_site());
  R out = tree::unflatten<Array>(*result, std::span<const Array>(r.primals));
  R dot = tree::unflatten<Array>(std::move(*result), std::span<const Array>(r.tangents));
  return std::pair{std::move(out), std::move(dot)};
}

namespace internal {

// Primal results and linear part of f at `inputs`, by every inexact leaf.
template <class F, class Tuple, class R>
VjpResult linear_parts(F& f, const Tuple& inputs, std::optional<R>& result) {
  std::vector<Array> leaves = tree::leaves<Array>(inputs);
  std::vector<bool> active;
  for (const Array& a : leaves) active.push_back(a.defined() && is_inexact(a.dtype()));
  return internal::vjp(leaves, active, recording(f, inputs, result), current_call_site());
}

}  // namespace internal

// (f(args), function from a cotangent of the result to a tuple of cotangents of the arguments).
template <class F, class... Args>
auto vjp(F&& f, const Args&... args) {
  std::tuple<Args...> inputs{args...};
  using R = std::decay_t<decltype(std::apply(f, inputs))>;
  std::optional<R> result;
  internal::VjpResult r = internal::linear_parts(f, inputs, result);
  R out = tree::unflatten<Array>(std::move(*result), std::span<const Array>(r.primals));
  auto back = [map = r.map,
               skeleton = internal::without_arrays(std::move(inputs))](const R& cotangent) {
    std::vector<Array> c = internal::apply_transpose(*map, tree::leaves<Array>(cotangent),
                                                     internal::current_call_site());
    return tree::unflatten<Array>(skeleton, std::span<const Array>(c));
  };
  return std::pair{std::move(out), std::move(back)};
}

// (f(args), the linear function from tangents of the arguments to the tangent of the result), with
// the work on the primal values done once.
template <class F, class... Args>
auto linearize(F&& f, const Args&... args) {
  std::tuple<Args...> inputs{args...};
  using R = std::decay_t<decltype(std::apply(f, inputs))>;
  std::optional<R> result;
  internal::VjpResult r = internal::linear_parts(f, inputs, result);
  R out = tree::unflatten<Array>(*result, std::span<const Array>(r.primals));
  auto linear = [map = r.map,
                 skeleton = internal::without_arrays(std::move(*result))](const Args&... tangents) {
    std::tuple<Args...> t{tangents...};
    std::vector<Array> o =
        internal::apply_linear(*map, tree::leaves<Array>(t), internal::current_call_site());
    return tree::unflatten<Array>(skeleton, std::span<const Array>(o));
  };
  return std::pair{std::move(out), std::move(linear)};
}

// --- vmap ---------------------------------------------------------------------------------------

inline constexpr int no_axis = internal::kUnmapped;

// Axes for vmap: one number for everything, one per argument (or per result), or Trees that are
// prefixes of the arguments' structures.
class Axes {
 public:
  Axes(int all = 0) : all_(all) {}
  Axes(std::initializer_list<int> each) : each_(each.begin(), each.end()), per_value_(true) {}
  Axes(std::vector<Tree<int>> trees) : trees_(std::move(trees)), per_value_(true) {}

  // One axis per leaf of value i with the given structure.
  void expand(std::size_t i, std::size_t count, const Structure& structure, const char* what,
              std::vector<int>& out) const;

 private:
  int all_ = 0;
  std::vector<int> each_;
  std::vector<Tree<int>> trees_;
  bool per_value_ = false;
};

struct VmapOptions {
  Axes in_axes = 0;
  Axes out_axes = 0;
  std::string axis_name = {};
  std::int64_t axis_size = -1;
};

template <class F>
class Vmapped {
 public:
  Vmapped(F f, VmapOptions options) : f_(std::move(f)), options_(std::move(options)) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using Tuple = std::tuple<internal::PassAs<F, Args>...>;
    Tuple inputs{internal::as_tree(args)...};
    std::vector<Array> leaves = tree::leaves<Array>(inputs);
    std::vector<int> axes;
    std::size_t k = 0;
    std::apply(
        [&](const auto&... a) {
          (..., options_.in_axes.expand(k++, sizeof...(Args), tree::structure<Array>(a),
                                        "vmap: in_axes", axes));
        },
        inputs);
    using R = std::decay_t<decltype(std::apply(std::declval<F&>(), std::declval<const Tuple&>()))>;
    std::optional<R> result;
    std::vector<Array> r = internal::vmap(
        leaves, axes, options_.axis_size, options_.axis_name,
        internal::recording(f_, inputs, result),
        [&](std::size_t) {
          std::vector<int> out;
          options_.out_axes.expand(0, 1, tree::structure<Array>(*result), "vmap: out_axes", out);
          return out;
        },
        internal::current_call_site());
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  }

 private:
  mutable F f_;
  VmapOptions options_;
};

// Maps f over an axis of its arguments, without writing the loop.
template <class F>
Vmapped<std::decay_t<F>> vmap(F&& f, VmapOptions options = {}) {
  return {std::forward<F>(f), std::move(options)};
}

// --- remat, eval_shape, custom rules
// --------------------------------------------------------------

struct RematOptions {
  // "", "nothing_saveable", "everything_saveable", "dots_saveable",
  // "dots_with_no_batch_dims_saveable", "save_only_these_names:a,b",
  // "save_any_names_but_these:a,b".
  std::string policy = "nothing_saveable";
};

// f whose intermediate values are computed again in the backward pass instead of being kept.
template <class F>
auto remat(F&& f, RematOptions options = {}) {
  return [f = std::decay_t<F>(std::forward<F>(f)), options](const auto&... args) mutable {
    std::tuple inputs{internal::as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(f, inputs))>;
    std::optional<R> result;
    std::vector<Array> r =
        internal::remat(tree::leaves<Array>(inputs), options.policy,
                        internal::recording(f, inputs, result), internal::current_call_site());
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  };
}

// The result's type without computing: its arrays have shape and dtype only. Arguments may be
// concrete or come from shape_dtype_struct.
template <class F, class... Args>
auto eval_shape(F&& f, const Args&... args) {
  std::tuple inputs{internal::as_tree(args)...};
  using R = std::decay_t<decltype(std::apply(f, inputs))>;
  std::optional<R> result;
  std::vector<Array> r =
      internal::eval_shape(tree::leaves<Array>(inputs), internal::recording(f, inputs, result),
                           internal::current_call_site());
  return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
}

// An array without contents.
inline Array shape_dtype_struct(Dims shape, DType dtype) {
  return internal::make_abstract({std::move(shape), dtype, false});
}

// f with a forward-mode rule: rule(primals tuple, tangents tuple) -> pair(result, tangent). Reverse
// mode transposes the rule. Tangents of integer leaves are undefined.
template <class F, class Rule>
auto custom_jvp(F&& f, Rule&& rule) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          rule = std::decay_t<Rule>(std::forward<Rule>(rule))](const auto&... args) mutable {
    std::tuple inputs{internal::as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(f, inputs))>;
    std::optional<R> result;
    std::size_t n = tree::leaves<Array>(inputs).size();
    std::vector<Array> r = internal::custom_jvp(
        tree::leaves<Array>(inputs), internal::recording(f, inputs, result),
        [&](std::span<const Array> in) {
          auto primals = tree::unflatten<Array>(inputs, in.first(n));
          auto tangents = tree::unflatten<Array>(inputs, in.subspan(n));
          auto [out, dot] = rule(primals, tangents);
          std::vector<Array> all = tree::leaves<Array>(out);
          for (Array& a : tree::leaves<Array>(dot)) all.push_back(a);
          return all;
        },
        internal::current_call_site());
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  };
}

// f with a reverse-mode rule: forward(args...) -> pair(result, residuals); backward(residuals,
// cotangent of the result) -> tuple of cotangents of the arguments (undefined: zero).
template <class F, class Forward, class Backward>
auto custom_vjp(F&& f, Forward&& forward, Backward&& backward) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          forward = std::decay_t<Forward>(std::forward<Forward>(forward)),
          backward = std::decay_t<Backward>(std::forward<Backward>(backward))](
             const auto&... args) mutable {
    std::tuple inputs{internal::as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(f, inputs))>;
    using Fwd = std::decay_t<decltype(std::apply(forward, inputs))>;
    std::optional<R> result;
    std::optional<Fwd> fwd;
    std::vector<Array> r = internal::custom_vjp(
        tree::leaves<Array>(inputs), internal::recording(f, inputs, result),
        internal::recording(forward, inputs, fwd),
        [&](std::span<const Array> in) {
          const auto& residual_skeleton = std::get<1>(*fwd);
          std::size_t n = tree::leaves<Array>(residual_skeleton).size();
          auto residuals = tree::unflatten<Array>(residual_skeleton, in.first(n));
          R ct = tree::unflatten<Array>(*result, in.subspan(n));
          return tree::leaves<Array>(backward(residuals, ct));
        },
        internal::current_call_site());
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  };
}

}  // namespace xylem
