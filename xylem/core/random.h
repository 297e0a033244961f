#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "xylem/core/array.h"

// JAX's generators. The default is threefry2x32 with partitionable counters: every element depends
// on the key and its own index only. bits, split, fold_in, randint, permutation, bernoulli and
// uniforms on [0, 1) equal JAX's bit for bit; samplers through elementary functions within 2 ulp.
namespace xylem::random {

// What draws the bits. kThreefry2x32Legacy is the order of jax_threefry_partitionable=False, whose
// bits depend on the number drawn. kRbg draws by rng_bit_generator (Philox) and derives keys by
// threefry; kUnsafeRbg derives keys by it as well. vmap over keys of the last two draws all from
// the first key's stream, as in JAX.
enum class KeyImpl : std::uint8_t { kThreefry2x32, kThreefry2x32Legacy, kRbg, kUnsafeRbg };

// A key, or an array of keys: u32[..., 2], or u32[..., 4] of kRbg and kUnsafeRbg. A tree with one
// leaf.
struct Key {
  Array data;
  KeyImpl impl = KeyImpl::kThreefry2x32;
};

// As jax.random.key with 64-bit types off: (0, seed mod 2^32), twice for keys of four words.
Key key(std::int64_t seed, KeyImpl impl = KeyImpl::kThreefry2x32);
Key wrap_key_data(const ArrayArg& data, KeyImpl impl = KeyImpl::kThreefry2x32);
inline KeyImpl key_impl(const Key& key) { return key.impl; }
inline Key clone(const Key& key) { return key; }

// n new keys, or keys of a shape. [i] gives one of them.
Key split(const Key& key, std::int64_t n = 2);
Key split(const Key& key, Dims shape);
Key at(const Key& keys, std::int64_t i);
std::vector<Key> unstack(const Key& keys);
// auto [a, b] = split<2>(key);
template <std::size_t N>
std::array<Key, N> split(const Key& key) {
  const std::vector<Key> keys = unstack(split(key, static_cast<std::int64_t>(N)));
  std::array<Key, N> each;
  std::copy(keys.begin(), keys.end(), each.begin());
  return each;
}
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
// kHigh spends more bits, so that rare events keep their probability.
enum class Mode : std::uint8_t { kLow, kHigh };
Array bernoulli(const Key& key, const ArrayArg& p, Dims shape, Mode mode = Mode::kLow);
Array gumbel(const Key& key, Dims shape = {}, DType dtype = DType::kF32, Mode mode = Mode::kLow);
Array exponential(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
// Index drawn with probability proportional to exp(logits) along axis. The result has the shape of
// the logits without the axis, or a shape that ends with it: independent draws.
Array categorical(const Key& key, const ArrayArg& logits, int axis = -1);
struct CategoricalOptions {
  bool replace = true;  // false: draws that differ; the shape begins with their number
  Mode mode = Mode::kLow;
};
Array categorical(const Key& key, const ArrayArg& logits, int axis, Dims shape,
                  const CategoricalOptions& options = {});
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
// mean + F z with F Fᵀ the covariance: F its Cholesky factor, or eigenvectors or singular vectors
// times square roots, which allow singular covariances. Leading axes of mean and covariance
// broadcast; `shape`, if given, must end with them.
enum class NormalMethod : std::uint8_t { kCholesky, kEigh, kSvd };
Array multivariate_normal(const Key& key, const ArrayArg& mean, const ArrayArg& cov,
                          Dims shape = {}, NormalMethod method = NormalMethod::kCholesky);
// Orthogonal n×n matrices, uniform over the group; with m, n×m ones whose rows or columns are.
Array orthogonal(const Key& key, std::int64_t n, Dims shape = {}, DType dtype = DType::kF32,
                 std::optional<std::int64_t> m = std::nullopt);
// Entries of a along an axis, or of 0 … a-1 for a number; with weights p, or uniformly.
Array choice(const Key& key, const ArrayArg& a, Dims shape = {}, bool replace = true,
             const Array& p = Array(), int axis = 0);

// The samplers below take arrays of parameters; an empty shape is that to which these broadcast.

// Density x^(a-1) e^-x / Γ(a); loggamma gives its logarithm, which small a need. Differentiable by
// a, at a fixed quantile (implicit reparametrisation).
Array gamma(const Key& key, const ArrayArg& a, Dims shape = {}, DType dtype = DType::kF32);
Array loggamma(const Key& key, const ArrayArg& a, Dims shape = {}, DType dtype = DType::kF32);
Array beta(const Key& key, const ArrayArg& a, const ArrayArg& b, Dims shape = {},
           DType dtype = DType::kF32);
// Of the simplex: alpha's last axis holds the concentrations; `shape` is that of the other axes.
Array dirichlet(const Key& key, const ArrayArg& alpha, Dims shape = {}, DType dtype = DType::kF32);
Array chisquare(const Key& key, const ArrayArg& df, Dims shape = {}, DType dtype = DType::kF32);
Array f(const Key& key, const ArrayArg& dfnum, const ArrayArg& dfden, Dims shape = {},
        DType dtype = DType::kF32);
Array t(const Key& key, const ArrayArg& df, Dims shape = {}, DType dtype = DType::kF32);
// Integers; rates that are infinite give -1. The key's bits must be threefry's.
Array poisson(const Key& key, const ArrayArg& rate, Dims shape = {}, DType dtype = DType::kI32);
// Successes of n trials, as floats; NaN where n is negative or p is no probability.
Array binomial(const Key& key, const ArrayArg& n, const ArrayArg& p, Dims shape = {},
               DType dtype = DType::kF32);
// Counts of n trials over the last axis of p.
Array multinomial(const Key& key, const ArrayArg& n, const ArrayArg& p, Dims shape = {},
                  DType dtype = DType::kF32);
// Trials up to the first success.
Array geometric(const Key& key, const ArrayArg& p, Dims shape = {}, DType dtype = DType::kI32);
// Inverse Gaussian of a mean and scale 1.
Array wald(const Key& key, const ArrayArg& mean, Dims shape = {}, DType dtype = DType::kF32);
Array triangular(const Key& key, const ArrayArg& left, const ArrayArg& mode, const ArrayArg& right,
                 Dims shape = {}, DType dtype = DType::kF32);
// Length of a normal vector of three; with a random sign, scaled and moved.
Array maxwell(const Key& key, Dims shape = {}, DType dtype = DType::kF32);
Array double_sided_maxwell(const Key& key, const ArrayArg& loc, const ArrayArg& scale,
                           Dims shape = {}, DType dtype = DType::kF32);
// Density proportional to exp(-|x|^p).
Array generalized_normal(const Key& key, double p, Dims shape = {}, DType dtype = DType::kF32);
// Uniform in the unit ball of d dimensions of the p-norm.
Array ball(const Key& key, std::int64_t d, double p = 2, Dims shape = {},
           DType dtype = DType::kF32);
// The words of a key.
inline Array key_data(const Key& key) { return key.data; }
// A shuffle of 0 … n-1, or of the slices of x along an axis (independent: of each line by itself).
Array permutation(const Key& key, std::int64_t n);
Array permutation(const Key& key, const ArrayArg& x, int axis = 0, bool independent = false);

}  // namespace xylem::random
