// Bodies that attract each other, with forces that nobody derived.
//
// Shows: grad of a potential as a physics engine, scan over time with a struct as carry, f64.
// Forces are minus the gradient of the potential; the leapfrog scheme is symplectic and reversible.
// Run:    build/examples/n_body [--bodies 64]
// Expect: three bodies follow each other around a figure of eight and are back after one period;
//         the cluster keeps its energy to some parts in 10^5, and its momentum to rounding.

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "common/example.h"
#include "xylem/core/core.h"
using namespace xylem;

namespace {

struct System {
  Array position, velocity;  // [bodies, dimensions]
};

// -G Σ_{i<j} m_i m_j / sqrt(|x_i - x_j|² + softening²) with G = 1; `softening` keeps near passes
// tame.
Array potential(const Array& x, const Array& mass, double softening) {
  const Array d = expand_dims(x, 0) - expand_dims(x, 1);
  const Array r2 = sum(square(d), -1) + softening * softening;
  // The diagonal, a body with itself, is masked before the root, so that no 1/0 is differentiated.
  const Array self = eye(mass.size()) > 0;
  const Array inverse = where(self, 0.0, lax::rsqrt(where(self, 1.0, r2)));
  return -0.5 * sum(outer(mass, mass) * inverse);
}

Array energy(const System& s, const Array& mass, double softening) {
  return 0.5 * sum(mass * sum(square(s.velocity), -1)) + potential(s.position, mass, softening);
}

// `steps` steps of length dt: half a kick, a drift, half a kick. Gives the last state and the
// energy after each step.
auto simulate(const System& start, const Array& mass, const Array& dt, std::int64_t steps,
              double softening) {
  auto acceleration = [&](const Array& x) {
    const Array force = -grad([&](const Array& p) { return potential(p, mass, softening); })(x);
    return force / expand_dims(mass, 1);
  };
  auto step = [&](const System& s, const Array&) {
    System next = s;
    next.velocity = s.velocity + 0.5 * dt * acceleration(s.position);
    next.position = s.position + dt * next.velocity;
    next.velocity = next.velocity + 0.5 * dt * acceleration(next.position);
    return std::pair{next, energy(next, mass, softening)};
  };
  return scan(step, start, arange(steps));
}

double largest(const Array& x) { return max(abs(x)).item<double>(); }

// Chenciner and Montgomery, "A remarkable periodic solution of the three-body problem" (2000).
void figure_of_eight(std::int64_t steps) {
  const double x = 0.97000436, y = -0.24308753, vx = -0.93240737, vy = -0.86473146;
  const System start{
      .position = array({x, y, -x, -y, 0, 0}, DType::kF64).reshape({3, 2}),
      .velocity = array({-vx / 2, -vy / 2, -vx / 2, -vy / 2, vx, vy}, DType::kF64).reshape({3, 2})};
  const Array mass = ones({3}, DType::kF64);
  const double period = 6.32591398;
  auto run = jit([steps](const System& s, const Array& m, const Array& dt) {
    return simulate(s, m, dt, steps, 0).first;
  });
  const Array dt = full({}, period / static_cast<double>(steps), DType::kF64);
  const System end = run(start, mass, dt);
  std::printf("figure of eight: off by %.1e after one period\n",
              largest(end.position - start.position));
  // Run backwards in time, it ends where it began.
  std::printf("figure of eight: off by %.1e after as long a way back\n",
              largest(run(end, mass, -dt).position - start.position));
}

void cluster(std::int64_t bodies, std::int64_t steps) {
  auto [k1, k2] = std::pair{random::key(1), random::key(2)};
  System start{.position = random::normal(k1, {bodies, 3}, DType::kF64),
               .velocity = 0.5 * random::normal(k2, {bodies, 3}, DType::kF64)};
  start.velocity -= mean(start.velocity, 0, true);
  const Array mass = full({bodies}, 1.0 / static_cast<double>(bodies), DType::kF64);
  const double softening = 0.1;
  auto run = jit([&](const System& s, const Array& m) {
    return simulate(s, m, full({}, 0.005, DType::kF64), steps, softening);
  });
  const double before = energy(start, mass, softening).item<double>();
  const auto [end, energies] = run(start, mass);
  const Array momentum = sum(expand_dims(mass, 1) * end.velocity, 0);
  std::printf("cluster of %d: energy %.6f, at most %.1e of it lost or won\n",
              static_cast<int>(bodies), before, largest(energies - before) / std::abs(before));
  std::printf("cluster of %d: momentum %.1e\n", static_cast<int>(bodies), largest(momentum));
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Moves bodies by the gradient of their potential.",
                      {{"bodies", "64", "in the cluster"}, {"steps", "2000", "of each simulation"}},
                      [](const example::Options& options) {
                        figure_of_eight(options.integer("steps", 10, 1e6));
                        cluster(options.integer("bodies", 2, 2000),
                                options.integer("steps", 10, 1e6));
                      });
}
