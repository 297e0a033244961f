// Parameters of a differential equation from observations, with gradients by the adjoint method.
//
// Shows: an ODE solver by scan, its continuous adjoint as a custom_vjp, and grad through the
// solver's own steps to hold it against. Predators and prey: x' = a x - b x y, y' = d x y - c y.
// Run:    build/examples/ode_adjoint
// Expect: both gradients agree to seven digits; the fit finds a, b, c, d = 1.5, 1, 3, 1.
//         The adjoint keeps one state where grad through the steps keeps them all.

#include <cstdio>
#include <tuple>
#include <utility>

#include "common/example.h"
#include "xylem/core/core.h"
#include "xylem/optim/optim.h"
using namespace xylem;

namespace {

Array rates(const Array& state, const Array& p) {
  const Array x = state(0), y = state(1);
  return stack({p(0) * x - p(1) * x * y, p(3) * x * y - p(2) * y});
}

// One step of the classical Runge-Kutta scheme of y' = f(y), for any tree y given as a vector.
template <class F>
Array rk4(const F& f, const Array& y, const Array& dt) {
  const Array k1 = f(y), k2 = f(y + 0.5 * dt * k1), k3 = f(y + 0.5 * dt * k2), k4 = f(y + dt * k3);
  return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

template <class F>
Array integrate(const F& f, const Array& start, const Array& dt, std::int64_t steps) {
  return fori_loop(
      0, steps, [&](const Array&, const Array& y) { return rk4(f, y, dt); }, start);
}

Array flow(const Array& state, const Array& p, double span, std::int64_t steps) {
  const Array dt = full_like(state(0), span / static_cast<double>(steps));
  return integrate([&](const Array& y) { return rates(y, p); }, state, dt, steps);
}

// flow with derivatives by the adjoint equation (Pontryagin; Chen et al., "Neural ordinary
// differential equations", 2018): state, adjoint a and dL/dp run backwards together,
//   y' = f(y, p),  a' = -aᵀ ∂f/∂y,  g' = -aᵀ ∂f/∂p.
auto adjoint_flow(double span, std::int64_t steps) {
  auto forward = [=](const Array& state, const Array& p) {
    const Array end = flow(state, p, span, steps);
    return std::pair{end, std::pair{end, p}};
  };
  auto backward = [=](const std::pair<Array, Array>& kept, const Array& cotangent) {
    const auto& [end, p] = kept;
    auto augmented = [&p = p](const Array& all) {
      const auto [value, pull] = vjp(rates, all(idx::slice(0, 2)), p);
      const auto [da, dg] = pull(all(idx::slice(2, 4)));
      return concatenate({value, -da, -dg});
    };
    const Array dt = full_like(end(0), -span / static_cast<double>(steps));
    const Array all = integrate(augmented, concatenate({end, cotangent, zeros_like(p)}), dt, steps);
    return std::tuple{all(idx::slice(2, 4)), all(idx::slice(4, 8))};
  };
  return custom_vjp([=](const Array& s, const Array& p) { return flow(s, p, span, steps); },
                    forward, backward);
}

// States at `count` times, `span` apart.
template <class Flow>
Array trajectory(Flow flow, const Array& start, const Array& p, std::int64_t count) {
  return scan(
             [&](const Array& state, const Array&) {
               const Array next = flow(state, p);
               return std::pair{next, next};
             },
             start, arange(count))
      .second;
}

void fit(const example::Options& options) {
  const std::int64_t steps = options.integer("steps", 1, 10000), count = 20;
  const double span = 0.25;
  const Array start = array({1, 1}, DType::kF64), truth = array({1.5, 1, 3, 1}, DType::kF64);
  auto by_steps = [=](const Array& s, const Array& p) { return flow(s, p, span, steps); };
  auto by_adjoint = adjoint_flow(span, steps);
  const Array observed = trajectory(by_steps, start, truth, count);

  auto loss_by = [&](auto flow) {
    return [&, flow](const Array& p) {
      return mean(square(trajectory(flow, start, p, count) - observed));
    };
  };
  Array p = array({1.3, 1.1, 2.8, 1.1}, DType::kF64);
  const Array g1 = jit(grad(loss_by(by_steps)))(p), g2 = jit(grad(loss_by(by_adjoint)))(p);
  std::printf("gradient through the steps %s\n", g1.to_string().c_str());
  std::printf("gradient by the adjoint    %s\n", g2.to_string().c_str());
  std::printf("they differ by %.1e of their size\n",
              (linalg::norm(g1 - g2) / linalg::norm(g1)).item<double>());

  const std::int64_t updates = options.integer("updates", 1, 1e6);
  const auto tx = optim::adam(optim::cosine_decay_schedule(0.03, updates));
  auto state = tx.init(p);
  auto step = jit([&](const Array& q, auto s) {
    auto [value, gradient] = value_and_grad(loss_by(by_adjoint))(q);
    auto [u, next] = tx.update(gradient, s, q);
    return std::tuple{optim::apply_updates(q, u), next, value};
  });
  Array value;
  for (std::int64_t i = 0; i < updates; ++i) {
    std::tie(p, state, value) = step(p, std::move(state));
    if (i % 250 == 0)
      std::printf("update %4d  loss %.2e\n", static_cast<int>(i), value.item<double>());
  }
  std::printf("parameters found %s\n", p.to_string().c_str());
  std::printf("largest error of a parameter %.1e\n", max(abs(p - truth)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Fits predator-prey equations by the adjoint method.",
                      {{"steps", "20", "of the solver between two observations"},
                       {"updates", "1500", "of the parameters"}},
                      fit);
}
