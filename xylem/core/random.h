#pragma once

#include <cstdint>
#include <vector>

#include "xylem/core/array.h"

// JAX's default generator, threefry2x32 with partitionable counters: every element depends on the
// key and its own index only. bits, split, fold_in, randint, permutation, bernoulli and uniforms on
// [0, 1) equal JAX's bit for bit; samplers through elementary functions within 2 ulp.
namespace xylem::random {

// A key, or an array of keys: u32[..., 2]. A tree with one leaf.
struct Key {
  Array data;
};

// As jax.random.key with 64-bit types off: (0, seed mod 2^32).
Key key(std::int64_t seed);
Key wrap_key_data(const ArrayArg& data);

// n new keys, or keys of a shape. [i] gives one of them.
Key split(const Key& key, std::int64_t n = 2);
Key split(const Key& key, Dims shape);
Key at(const Key& keys, std::int64_t i);
std::vector<Key> unstack(const Key& keys);
Key fold_in(const Key& key, const ArrayArg& data);

// Random bits of u8, u16, u32 or u64.
Array bits(const Key& key, Dims shape = {}, DType dtype = DType::kU32);
// Uniform on [minval, maxval).
Array uniform(const Key& key, Dims shape = {}, DType dtype = DType::kF32,
              const ArrayArg& minval = 0.0, const ArrayArg& maxval = 1.0);
Array normal(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
// Normal, conditioned to [lower, upper].
Array truncated_normal(const Key& key, const ArrayArg& lower, const ArrayArg& upper,
                       Dims shape = {}, DType dtype = DType::kF32);
// Integers of [minval, maxval).
Array randint(const Key& key, Dims shape, const ArrayArg& minval, const ArrayArg& maxval,
              DType dtype = DType::kI32);
Array bernoulli(const Key& key, const ArrayArg& p = 0.5);
Array bernoulli(const Key& key, const ArrayArg& p, Dims shape);
Array gumbel(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
Array exponential(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
// Index drawn with probability proportional to exp(logits) along axis. The result has the shape of
// the logits without the axis, or a shape that ends with it: independent draws.
Array categorical(const Key& key, const ArrayArg& logits, int axis = -1);
Array categorical(const Key& key, const ArrayArg& logits, int axis, Dims shape);
// -log(1 - u) / sign / … of one uniform each, as JAX derives them.
Array laplace(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
Array logistic(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
Array cauchy(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
Array rademacher(const Key& key, Dims shape = {}, DType dtype = DType::kI32);  // -1 or 1
Array rayleigh(const Key& key, const ArrayArg& scale, Dims shape = {}, DType dtype = DType::kF32);
Array weibull_min(const Key& key, const ArrayArg& scale, const ArrayArg& concentration,
                  Dims shape = {}, DType dtype = DType::kF32);
Array pareto(const Key& key, const ArrayArg& b, Dims shape = {}, DType dtype = DType::kF32);
Array lognormal(const Key& key, const ArrayArg& sigma = 1.0, Dims shape = {},
                DType dtype = DType::kF32);
// mean + L z with L the Cholesky factor of the covariance.
Array multivariate_normal(const Key& key, const ArrayArg& mean, const ArrayArg& cov,
                          Dims shape = {});
// Entries of a (along its first axis), or of 0 … a-1 for a number; with weights p, or uniformly.
Array choice(const Key& key, const ArrayArg& a, Dims shape = {}, bool replace = true,
             const Array& p = Array());
// The words of a key.
inline Array key_data(const Key& key) { return key.data; }
// A shuffle of 0 … n-1, or of the slices of x along an axis (independent: of each line by itself).
Array permutation(const Key& key, std::int64_t n);
Array permutation(const Key& key, const ArrayArg& x, int axis = 0, bool independent = false);

}  // namespace xylem::random
