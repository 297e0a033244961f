#pragma once

#include <memory>
#include <string>
#include <utility>

#include "xylem/core/aot.h"

// Traced programs in JAX's notation.

namespace xylem {

namespace internal {
std::string jaxpr_text(const Staged& s);
}

// A traced function, printed as jax.make_jaxpr prints one: JAX's names of primitives where an op
// has one there, StableHLO's otherwise.
//   { lambda ; a:f32[3] b:f32[]. let c:f32[3] = mul a b in (c,) }
class Jaxpr {
 public:
  explicit Jaxpr(internal::StagedPtr staged) : staged_(std::move(staged)) {}
  std::string to_string() const { return internal::jaxpr_text(*staged_); }
  const internal::StagedPtr& staged() const { return staged_; }

 private:
  internal::StagedPtr staged_;
};

// make_jaxpr(f)(args…): traces f without running it. Arguments may be of shape_dtype_struct.
template <class F>
auto make_jaxpr(F&& f) {
  return [jitted = jit(std::forward<F>(f))](const auto&... args) {
    return Jaxpr(jitted.lower(args...).staged());
  };
}

}  // namespace xylem
