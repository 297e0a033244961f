#pragma once

#include <cstdint>

namespace xylem {

// How derivatives behave where JAX's are known to hurt; docs/numerics.md lists every difference.
//   safe   no NaN out of the branch that a select did not take, zero subgradients of norms at zero,
//          finite derivatives of eigenvectors at repeated values, tails of sigmoid and expm1 kept
//   jax    JAX's rules, for comparison with it
enum class Numerics : std::uint8_t { safe, jax };

// The calling thread's mode; part of the key of compiled functions.
Numerics numerics();

// Sets the mode of this thread for its lifetime.
class NumericsScope {
 public:
  explicit NumericsScope(Numerics mode);
  ~NumericsScope();
  NumericsScope(const NumericsScope&) = delete;
  NumericsScope& operator=(const NumericsScope&) = delete;

 private:
  Numerics saved_;
};

}  // namespace xylem
