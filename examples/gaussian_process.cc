// Gaussian process regression whose hyperparameters maximise the marginal likelihood.
//
// Shows: derivatives of a Cholesky factor and of triangular solves, f64, a second-order optimizer
// of ten lines. With K = s² exp(-(x - x')² / 2 l²) + n² I:
//   log p(y) = -½ yᵀ K⁻¹ y - ½ log det K - N/2 log 2π.
// Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1.
// Run:    build/examples/gaussian_process [--points 60]
// Expect: noise near the 0.2 that was put in, and predictions nearer to the function than that.

#include <cmath>
#include <cstdio>
#include <numbers>
#include <tuple>

#include "common/example.h"
#include "xylem/core/core.h"
using namespace xylem;

namespace {

struct Kernel {
  Array log_amplitude, log_length, log_noise;
};

Array covariance(const Kernel& k, const Array& a, const Array& b) {
  const Array d = (expand_dims(a, 1) - expand_dims(b, 0)) / exp(k.log_length);
  return exp(2 * k.log_amplitude - 0.5 * square(d));
}
Array noisy_covariance(const Kernel& k, const Array& x) {
  return covariance(k, x, x) + exp(2 * k.log_noise) * identity(x.size(), DType::kF64);
}

Array negative_log_likelihood(const Kernel& k, const Array& x, const Array& y) {
  const Array factor = linalg::cholesky(noisy_covariance(k, x));
  const Array whitened = linalg::solve_triangular(factor, y, {.lower = true});
  return 0.5 * sum(square(whitened)) + sum(log(linalg::diagonal(factor))) +
         0.5 * static_cast<double>(x.size()) * std::log(2 * std::numbers::pi);
}

// Mean and variance of the function at x_new.
std::pair<Array, Array> predict(const Kernel& k, const Array& x, const Array& y,
                                const Array& x_new) {
  const Array factor = linalg::cholesky(noisy_covariance(k, x));
  const Array cross = covariance(k, x, x_new);
  const Array v = linalg::solve_triangular(factor, cross, {.lower = true});
  const Array mean = matmul(cross.T(), linalg::cho_solve(factor, true, y));
  return {mean, exp(2 * k.log_amplitude) - sum(square(v), 0)};
}

Array truth(const Array& x) { return sin(3 * x) + 0.5 * x; }

void fit(const example::Options& options) {
  const std::int64_t n = options.integer("points", 2, 2000);
  const double noise = 0.2;
  const Array x = random::uniform(random::key(0), {n}, DType::kF64, -2.0, 2.0);
  const Array y = truth(x) + noise * random::normal(random::key(1), {n}, DType::kF64);

  // A gradient step scaled by the curvature: Newton's, with eigenvalues made positive so that it
  // goes downhill where the function is not convex, halved until the likelihood rises.
  auto loss = [&](const Array& v) { return negative_log_likelihood({v(0), v(1), v(2)}, x, y); };
  auto direction = jit([&](const Array& v) {
    const auto [value, gradient] = value_and_grad(loss)(v);
    const auto [w, q] = linalg::eigh(hessian(loss)(v));
    return std::tuple{value, gradient, matmul(q, matmul(q.T(), gradient) / maximum(abs(w), 1e-3))};
  });
  auto value_at = jit(loss);
  Array v = zeros({3}, DType::kF64);
  for (int step = 0; step < 50; ++step) {
    const auto [value, gradient, d] = direction(v);
    const double size = linalg::norm(gradient).item<double>();
    std::printf("step %2d  -log likelihood %.6f  gradient %.1e\n", step, value.item<double>(),
                size);
    if (size < 1e-8 * static_cast<double>(n)) break;
    double rate = 1;
    while (rate > 1e-6 && !(value_at(v - rate * d).item<double>() <= value.item<double>()))
      rate /= 2;
    v = v - rate * d;
  }
  const Kernel kernel{v(0), v(1), v(2)};

  const Array x_new = linspace(-1.8, 1.8, 50).astype(DType::kF64);
  const auto [mean_new, variance] = jit(predict)(kernel, x, y, x_new);
  const Array error = mean_new - truth(x_new);
  std::printf("-log likelihood %.6f\n", value_at(v).item<double>());
  std::printf("amplitude %.4f  length %.4f  noise %.4f\n", exp(kernel.log_amplitude).item<double>(),
              exp(kernel.log_length).item<double>(), exp(kernel.log_noise).item<double>());
  std::printf("root mean square error of the prediction %.4f\n",
              sqrt(mean(square(error))).item<double>());
  std::printf("share of the truth within two deviations %.2f\n",
              mean(abs(error) < 2 * sqrt(variance)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Fits a Gaussian process by its marginal likelihood.",
                      {{"points", "60", "number of observations"}}, fit);
}
