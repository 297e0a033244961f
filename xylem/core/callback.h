#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/transforms.h"

// Functions of the host inside programs: jax.pure_callback, jax.experimental.io_callback and
// jax.debug. They are called with concrete arrays, eagerly and under jit, in loops and branches, on
// whatever thread runs the program. What they throw is the error of the program: a UserError with
// the message, thrown by the call of the jitted function or by whoever reads its results.

namespace xylem {

struct PureCallbackOptions {
  // What vmap does: "" (refuses), "sequential" and "sequential_unrolled" (one call for each
  // position), "expand_dims" (one call; mapped arguments have the axis in front, others a new axis
  // of size 1), "broadcast_all" (one call; every argument has the axis in front).
  std::string vmap_method = {};
  std::string name = "callback";
};
struct IoCallbackOptions {
  // Calls of ordered callbacks come in the order of the program. vmap refuses them.
  bool ordered = false;
  std::string name = "callback";
};

namespace internal {

using FlatCallback = std::function<std::vector<Array>(std::span<const Array>)>;

enum class CallbackKind : std::uint8_t { kPure, kIo, kDebug };
std::vector<Array> callback(CallbackKind kind, const std::string& name,
                            const std::string& vmap_method, bool ordered, FlatCallback f,
                            std::span<const Array> args, std::span<const Array> results,
                            SourceLoc where);

// f on trees as a flat function that owns what it needs.
template <class R, class F, class... Args>
FlatCallback flat_callback(F f, std::tuple<Args...> skeleton) {
  return [f = std::move(f), skeleton = std::move(skeleton)](std::span<const Array> in) mutable {
    auto args = tree::unflatten<Array>(skeleton, in);
    if constexpr (std::is_void_v<R>) {
      std::apply(f, args);
      return std::vector<Array>();
    } else {
      return tree::leaves<Array>(R(std::apply(f, args)));
    }
  };
}

template <class R, class F, class... Args>
R typed_callback(CallbackKind kind, const std::string& name, const std::string& vmap_method,
                 bool ordered, F&& f, const R& result, const Args&... args) {
  std::tuple inputs{as_tree(args)...};
  std::vector<Array> leaves = tree::leaves<Array>(inputs), types = tree::leaves<Array>(result);
  std::vector<Array> r = callback(
      kind, name, vmap_method, ordered,
      flat_callback<R>(std::decay_t<F>(std::forward<F>(f)), without_arrays(std::move(inputs))),
      leaves, types, current_call_site());
  return tree::unflatten<Array>(R(result), std::span<const Array>(r));
}

}  // namespace internal

// f(args…), a function without side effects. `result` is a tree of arrays of the results' shapes
// and dtypes (shape_dtype_struct will do). The call may be left out, repeated or moved. Refuses
// differentiation: wrap it in custom_jvp or custom_vjp.
template <class F, class R, class... Args>
R pure_callback(F&& f, const R& result, const PureCallbackOptions& options, const Args&... args) {
  return internal::typed_callback(internal::CallbackKind::kPure, options.name, options.vmap_method,
                                  false, std::forward<F>(f), result, args...);
}
template <class F, class R, class... Args>
R pure_callback(F&& f, const R& result, const Args&... args) {
  return pure_callback(std::forward<F>(f), result, PureCallbackOptions{}, args...);
}

// f(args…) for its effects: called exactly once wherever the program comes by, also if nobody uses
// the result. Under vmap once for each position.
template <class F, class R, class... Args>
R io_callback(F&& f, const R& result, const IoCallbackOptions& options, const Args&... args) {
  return internal::typed_callback(internal::CallbackKind::kIo, options.name, "", options.ordered,
                                  std::forward<F>(f), result, args...);
}
template <class F, class R, class... Args>
R io_callback(F&& f, const R& result, const Args&... args) {
  return io_callback(std::forward<F>(f), result, IoCallbackOptions{}, args...);
}

// f(args…) without results, for looking at values: sees primal values only when differentiated,
// every position under vmap.
template <class F, class... Args>
void debug_callback(F&& f, const IoCallbackOptions& options, const Args&... args) {
  std::tuple inputs{internal::as_tree(args)...};
  std::vector<Array> leaves = tree::leaves<Array>(inputs);
  internal::callback(internal::CallbackKind::kDebug, options.name, "", options.ordered,
                     internal::flat_callback<void>(std::decay_t<F>(std::forward<F>(f)),
                                                   internal::without_arrays(std::move(inputs))),
                     leaves, {}, internal::current_call_site());
}
template <class F, class... Args>
void debug_callback(F&& f, const Args&... args) {
  debug_callback(std::forward<F>(f), IoCallbackOptions{}, args...);
}

// A value of debug_print, with or without the name that its field has in the format.
struct DebugValue {
  std::string name;
  Array array;

  DebugValue(const ArrayArg& a) : array(a.array) {}
  template <class T>
  requires std::is_convertible_v<T, ArrayArg> DebugValue(const T& v) : DebugValue(ArrayArg(v)) {}
  DebugValue(std::string n, const ArrayArg& a) : name(std::move(n)), array(a.array) {}
};

// Prints a line when the program comes by: "{}" stands for the next value, "{name}" for the named
// one, "{{" and "}}" for braces. Arrays print as NumPy's. UserError if fields and values do not
// fit.
//   debug_print("x = {}, y = {y}", {x, {"y", y}});
void debug_print(std::string_view format, std::initializer_list<DebugValue> values = {},
                 bool ordered = false, SourceLoc where = SourceLoc::current());
// Where debug_print writes; standard output if empty. Returns what it was before.
std::function<void(std::string_view)> set_debug_output(std::function<void(std::string_view)> sink);

// Waits for outstanding effects. A call returns after the effects of its program, so there are none.
inline void effects_barrier() {}

}  // namespace xylem
