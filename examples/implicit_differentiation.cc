// Hyperparameters by gradient: derivatives of the result of a solver, not of its steps.
//
// Shows: custom_root with a solver that has no derivative of its own (conjugate gradients in a
// while_loop). Ridge regression with a penalty per group of features: w(λ) solves
//   Xᵀ(X w - y)/n + λ w = 0,
// and the error on other data is minimised by λ through dw/dλ of the implicit function theorem.
// Lorraine, Vicol, Duvenaud, "Optimizing millions of hyperparameters" (2020).
// Run:    build/examples/implicit_differentiation
// Expect: the implicit gradient, that of the closed form and finite differences agree; useless
//         features get penalties some hundred times larger than useful ones.

#include <cstdio>
#include <tuple>

#include "common/example.h"
#include "xylem/core/core.h"
#include "xylem/optim/optim.h"
using namespace xylem;

namespace {

struct Data {
  Array x, y;
};

// v with a(v) = b for symmetric positive definite a. Hestenes and Stiefel (1952).
template <class F>
Array conjugate_gradients(const F& a, const Array& b) {
  struct State {
    Array v, residual, direction, count;
  };
  auto unfinished = [&](const State& s) {
    return logical_and(sum(square(s.residual)) > 1e-26 * sum(square(b)), s.count < 1000);
  };
  auto step = [&](const State& s) {
    const Array a_d = a(s.direction), r2 = sum(square(s.residual));
    const Array rate = r2 / sum(s.direction * a_d);
    const Array residual = s.residual - rate * a_d;
    return State{s.v + rate * s.direction, residual,
                 residual + sum(square(residual)) / r2 * s.direction, s.count + 1};
  };
  return while_loop(unfinished, step, State{zeros_like(b), b, b, full({}, 0)}).v;
}

// The two groups: the first half of the features, and the rest.
Array penalties(const Array& log_lambda, std::int64_t d) {
  return repeat(exp(log_lambda), d / 2, 0);
}

Array ridge(const Data& train, const Array& log_lambda) {
  const double n = static_cast<double>(train.y.size());
  auto optimality = [&](const Array& w) {
    return matmul(train.x.T(), matmul(train.x, w) - train.y) / n +
           penalties(log_lambda, train.x.dim(1)) * w;
  };
  // The condition is linear in w, so its root needs one linear solve; so does its derivative.
  auto solve = [](const auto& f, const Array& guess) {
    const Array at_zero = f(zeros_like(guess));
    return conjugate_gradients([&](const Array& w) { return f(w) - at_zero; }, -at_zero);
  };
  auto tangent_solve = [](const auto& g, const Array& b) {
    return custom_linear_solve(
        g, b, [](const auto& m, const Array& rhs) { return conjugate_gradients(m, rhs); },
        symmetric);
  };
  return custom_root(optimality, zeros({train.x.dim(1)}, DType::kF64), solve, tangent_solve);
}

Array closed_form(const Data& train, const Array& log_lambda) {
  const double n = static_cast<double>(train.y.size());
  const Array penalty = penalties(log_lambda, train.x.dim(1));
  return linalg::solve(matmul(train.x.T(), train.x) / n + diag(penalty),
                       matmul(train.x.T(), train.y) / n);
}

Data draw(std::int64_t seed, std::int64_t n, std::int64_t d) {
  const Array x = random::normal(random::key(seed), {n, d}, DType::kF64);
  const Array w = where(arange(d) < d / 2, 1.0, 0.0).astype(DType::kF64);
  return {x, matmul(x, w) + random::normal(random::key(seed + 100), {n}, DType::kF64)};
}

void tune(const example::Options& options) {
  const std::int64_t d = 2 * options.integer("features", 1, 500);
  const Data train = draw(0, 3 * d, d), validation = draw(1, 20 * d, d);
  auto error = [&](auto solver) {
    return [&, solver](const Array& log_lambda) {
      return mean(square(matmul(validation.x, solver(train, log_lambda)) - validation.y));
    };
  };
  auto implicit = error(ridge), exact = error(closed_form);

  Array log_lambda = array({-1, -1}, DType::kF64);
  const Array h = array({1e-4, 0}, DType::kF64), slope = grad(implicit)(log_lambda);
  std::printf("gradient by the implicit function theorem %s\n", slope.to_string().c_str());
  std::printf("gradient of the closed form               %s\n",
              grad(exact)(log_lambda).to_string().c_str());
  std::printf("the two differ by %.1e\n", max(abs(slope - grad(exact)(log_lambda))).item<double>());
  std::printf(
      "first entry against a central difference  %.1e\n",
      abs(slope(0) - (implicit(log_lambda + h) - implicit(log_lambda - h)) / 2e-4).item<double>());

  std::printf("validation error before %.4f\n", implicit(log_lambda).item<double>());
  const auto tx = optim::adam(0.1);
  auto state = tx.init(log_lambda);
  auto step = jit([&](const Array& l, auto s) {
    auto [updates, next] = tx.update(grad(implicit)(l), s, l);
    return std::tuple{optim::apply_updates(l, updates), next};
  });
  const std::int64_t updates = options.integer("updates", 1, 1e6);
  for (std::int64_t i = 0; i < updates; ++i)
    std::tie(log_lambda, state) = step(log_lambda, std::move(state));
  std::printf("validation error after  %.4f\n", implicit(log_lambda).item<double>());
  std::printf("penalty of useful features %.4g, of useless ones %.4g\n",
              exp(log_lambda(0)).item<double>(), exp(log_lambda(1)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(
      argc, argv, "Tunes ridge regression by implicit differentiation.",
      {{"features", "20", "in each of the two groups"}, {"updates", "100", "of the penalties"}},
      tune);
}
