#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/core/callback.h"

// Checks that work under jit: errors as values. As jax.experimental.checkify.
//
//   auto f = [](const Array& x) { checkify::check(x > 0, "x is {}", {x}); return log(x); };
//   auto [err, y] = jit(checkify::checkify(f))(x);
//   err.throw_();
namespace xylem::checkify {

// What checkify looks for besides check(): sets of bits.
enum Checks : unsigned {
  user_checks = 1,   // check()
  nan_checks = 2,    // results of arithmetic that hold a NaN
  index_checks = 4,  // indices outside of their array, in gathers, scatters and dynamic slices
  div_checks = 8,    // division by zero
  float_checks = nan_checks | div_checks,
  automatic_checks = float_checks | index_checks,
  all_checks = automatic_checks | user_checks,
};

// A check that failed.
class JaxRuntimeError : public UserError {
 public:
  using UserError::UserError;
};

// Which check failed first, if any. A tree: goes through jit, vmap and loops like arrays.
struct Error {
  Array code;                  // 0, or which check; with an axis for every vmap around checkify
  std::vector<Array> payload;  // values of the checks
  std::int64_t table = 0;      // what the codes mean

  // The message, nothing if no check failed. Under vmap one line for each position that failed.
  std::optional<std::string> get() const;
  // Throws JaxRuntimeError with the message and the line of the check, if one failed.
  void throw_() const;
};

// Fails unless pred, a bool array, is true everywhere. Outside of traced code it throws at once;
// inside, the function must go through checkify: otherwise compiling it is a UserError. Format as
// of debug_print.
void check(const ArrayArg& pred, std::string_view message,
           std::initializer_list<DebugValue> values = {}, SourceLoc where = SourceLoc::current());

namespace internal {
struct Result {
  Error error;
  std::vector<Array> out;
};
Result run(std::span<const Array> args, unsigned checks, xylem::internal::FlatFunction f,
           SourceLoc where);
}  // namespace internal

// f with (Error, result) as its result. Composes with jit, grad, vmap and control flow, inside and
// outside.
template <class F>
auto checkify(F&& f, unsigned checks = user_checks) {
  return [f = std::decay_t<F>(std::forward<F>(f)), checks](const auto&... args) mutable {
    std::tuple inputs{xylem::internal::as_tree(args)...};
    using R = std::decay_t<decltype(std::apply(f, inputs))>;
    std::optional<R> result;
    internal::Result r = internal::run(tree::leaves<Array>(inputs), checks,
                                       xylem::internal::recording(f, inputs, result),
                                       xylem::internal::current_call_site());
    return std::pair{std::move(r.error),
                     tree::unflatten<Array>(std::move(*result), std::span<const Array>(r.out))};
  };
}

}  // namespace xylem::checkify
