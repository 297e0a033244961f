// A neural network that solves a differential equation (a physics-informed network).
//
// Shows: derivatives of a network by its inputs, up to the second order, inside a loss that is
// itself differentiated by the parameters; vmap over points of collocation.
// The equation: u_t = u_xx on 0 <= x <= 1, 0 <= t <= 0.2 with u(x, 0) = sin πx and u = 0 at both
// ends, whose solution is exp(-π² t) sin πx. Raissi, Perdikaris, Karniadakis (2019).
// Run:    build/examples/pinn [--updates 1500]
// Expect: less than 1 % relative error over the whole domain.

#include <cstdio>
#include <numbers>
#include <tuple>

#include "common/example.h"
#include "xylem/core/core.h"
#include "xylem/nn/nn.h"
#include "xylem/optim/optim.h"
using namespace xylem;

namespace {

constexpr double kPi = std::numbers::pi, kEnd = 0.2;

struct Network {
  nn::Linear in, hidden, out;

  static Network make(nn::Rngs& rngs) {
    return {.in = nn::Linear::make(2, 32, rngs),
            .hidden = nn::Linear::make(32, 32, rngs),
            .out = nn::Linear::make(32, 1, rngs)};
  }
  // u at one point. The factors meet the conditions at t = 0 and at both ends for any parameters.
  Array operator()(const Array& x, const Array& t) const {
    const Array h = tanh(hidden(tanh(in(stack({2 * x - 1, t / kEnd})))));
    return sin(kPi * x) + x * (1 - x) * t / kEnd * out(h)(0);
  }
};

Array residual(const Network& u, const Array& x, const Array& t) {
  const Array u_t = grad(u, argnums<1>)(x, t);
  const Array u_xx = grad(grad(u))(x, t);
  return u_t - u_xx;
}

Array loss(const Network& u, const Array& x, const Array& t) {
  auto at = [&](const Array& xi, const Array& ti) { return residual(u, xi, ti); };
  return mean(square(vmap(at)(x, t)));
}

void solve(const example::Options& options) {
  const std::int64_t updates = options.integer("updates", 1, 1e6);
  const std::int64_t points = options.integer("points", 1, 100000);
  nn::Rngs rngs(0);
  Network u = Network::make(rngs);
  const auto tx = optim::adam(optim::cosine_decay_schedule(1e-2, updates));
  auto state = tx.init(u);
  auto step = jit([&](Network net, auto s, const random::Key& key) {
    const auto [x_key, t_key] = random::split<2>(key);
    const Array x = random::uniform(x_key, {points});
    const Array t = kEnd * random::uniform(t_key, {points});
    auto [value, gradient] = value_and_grad(loss)(net, x, t);
    auto [updates_now, next] = tx.update(gradient, s, net);
    return std::tuple{optim::apply_updates(net, updates_now), next, value};
  });
  Array value;
  for (std::int64_t i = 0; i < updates; ++i) {
    std::tie(u, state, value) = step(std::move(u), std::move(state), rngs());
    if (i % 250 == 0 || i + 1 == updates)
      std::printf("update %5d  residual %.2e\n", static_cast<int>(i), value.item<double>());
  }

  const auto grid = meshgrid({linspace(0, 1, 41), linspace(0, kEnd, 41)});
  const Array x = ravel(grid[0]), t = ravel(grid[1]);
  const Array exact = exp(-kPi * kPi * t) * sin(kPi * x);
  const Array found = jit([](const Network& net, const Array& a, const Array& b) {
    return vmap([&](const Array& xi, const Array& ti) { return net(xi, ti); })(a, b);
  })(u, x, t);
  std::printf("relative error %.2e\n",
              (linalg::norm(found - exact) / linalg::norm(exact)).item<double>());
  std::printf("largest error  %.2e\n", max(abs(found - exact)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Solves the heat equation with a neural network.",
                      {{"updates", "1500", "of the parameters"},
                       {"points", "128", "where the equation is held, anew in each update"}},
                      solve);
}
