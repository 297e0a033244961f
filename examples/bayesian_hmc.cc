// The posterior of a Bayesian regression, by Hamiltonian Monte Carlo.
//
// Shows: grad of a log density inside scan inside scan, vmap over chains and over keys, random
// numbers in compiled code. Model: y ~ N(X w, noise²), w ~ N(0, 1); its posterior is a normal
// distribution with a closed form, which the samples are held against.
// Neal, "MCMC using Hamiltonian dynamics" (2011).
// Run:    build/examples/bayesian_hmc [--samples 1000]
// Expect: acceptance near 0.9, means and deviations within a few hundredths of the closed form.

#include <cstdio>
#include <utility>

#include "common/example.h"
#include "xylem/core/core.h"
using namespace xylem;

namespace {

struct Regression {
  Array x, y;  // [n, d], [n]
  double noise = 0.5;

  Array log_density(const Array& w) const {
    return -0.5 * sum(square((y - matmul(x, w)) / noise)) - 0.5 * sum(square(w));
  }
};

struct Draw {
  Array w, accepted;
};

// Draws of one chain, [samples, d]: each a leapfrog path with a fresh momentum, accepted or
// rejected by its change of energy.
Draw chain(const Regression& model, const random::Key& key, const Array& start,
           std::int64_t samples, double step_size, std::int64_t leaps) {
  auto log_density = [&](const Array& w) { return model.log_density(w); };
  auto force = grad(log_density);
  auto draw = [&](const Array& w, const random::Key& k) {
    const auto [momentum_key, accept_key, step_key] = random::split<3>(k);
    // Paths of different lengths, since one near a period of the motion would come back to its
    // start.
    const Array dt = step_size * random::uniform(step_key, {}, DType::kF32, 0.5, 1.0);
    const Array momentum = random::normal(momentum_key, w.shape());
    const auto [w1, p1] = fori_loop(
        0, leaps,
        [&](const Array&, const std::pair<Array, Array>& s) {
          const Array half = s.second + 0.5 * dt * force(s.first);
          const Array moved = s.first + dt * half;
          return std::pair{moved, half + 0.5 * dt * force(moved)};
        },
        std::pair{w, momentum});
    const Array change =
        log_density(w1) - 0.5 * sum(square(p1)) - (log_density(w) - 0.5 * sum(square(momentum)));
    const Array accepted = log(random::uniform(accept_key)) < change;
    const Array next = where(accepted, w1, w);
    return std::pair{next, Draw{next, accepted.astype(DType::kF32)}};
  };
  return scan(draw, start, random::split(key, samples)).second;
}

void sample(const example::Options& options) {
  const std::int64_t samples = options.integer("samples", 10, 1e6);
  const std::int64_t chains = options.integer("chains", 1, 1000);
  const std::int64_t warm_up = samples / 5, n = 50, d = 4;
  Regression model;
  model.x = random::normal(random::key(0), {n, d});
  model.x = model.x.at(idx::all, 1).add(0.8 * model.x(idx::all, 0));  // correlated inputs
  const Array truth = array({1.0, -2.0, 0.5, 0.0});
  model.y = matmul(model.x, truth) + model.noise * random::normal(random::key(1), {n});

  auto run = jit([&](const random::Key& keys, const Array& starts) {
    return vmap([&](const random::Key& key, const Array& start) {
      return chain(model, key, start, warm_up + samples, 0.05, 20);
    })(keys, starts);
  });
  const Array starts = 3 * random::normal(random::key(2), {chains, d});  // far apart on purpose
  const Draw draws = run(random::split(random::key(3), chains), starts);
  const Array w = draws.w(idx::all, idx::slice(warm_up, idx::none));  // [chains, samples, d]

  // The posterior in closed form: precision A = XᵀX/noise² + I, mean A⁻¹ Xᵀy/noise².
  const double scale = 1 / (model.noise * model.noise);
  const Array covariance = linalg::inv(scale * matmul(model.x.T(), model.x) + eye(d));
  const Array exact = matmul(covariance, scale * matmul(model.x.T(), model.y));
  const Array deviation = sqrt(linalg::diagonal(covariance));
  // Gelman and Rubin's R: the deviation of all draws over that within chains.
  const Array within = mean(var(w, 1), 0), total = var(w, {0, 1});
  std::printf("acceptance %.3f\n", mean(draws.accepted).item<double>());
  std::printf("posterior means       %s\n", mean(w, {0, 1}).to_string().c_str());
  std::printf("closed form           %s\n", exact.to_string().c_str());
  std::printf("posterior deviations  %s\n", sqrt(total).to_string().c_str());
  std::printf("closed form           %s\n", deviation.to_string().c_str());
  std::printf("largest error of a mean, in deviations %.4f\n",
              max(abs(mean(w, {0, 1}) - exact) / deviation).item<double>());
  std::printf("largest relative error of a deviation %.4f\n",
              max(abs(sqrt(total) / deviation - 1)).item<double>());
  std::printf("largest R of the chains %.4f\n", max(sqrt(total / within)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Samples a posterior by Hamiltonian Monte Carlo.",
                      {{"samples", "1000", "per chain, after a fifth more to warm up"},
                       {"chains", "8", "run at once by vmap"}},
                      sample);
}
