// Model-agnostic meta-learning: parameters from which one gradient step fits a new sine.
//
// Shows: grad through a gradient step (second derivatives of a struct), vmap over tasks, a function
// that returns an adapted model. Finn, Abbeel, Levine, "Model-agnostic meta-learning" (2017).
// Tasks are y = A sin(x + φ) with A in [0.1, 5] and φ in [0, π], ten points each.
// Run:    build/examples/maml [--updates 2000]
// Expect: after one step on ten points the error on others is several times smaller than before
//         it, and than that of a network which learned all sines at once and takes the same step.

#include <cstdio>
#include <numbers>
#include <tuple>
#include <utility>

#include "common/example.h"
#include "xylem/core/core.h"
#include "xylem/nn/nn.h"
#include "xylem/optim/optim.h"
using namespace xylem;

namespace {

struct Mlp {
  nn::Linear in, hidden, out;

  static Mlp make(nn::Rngs& rngs) {
    return {.in = nn::Linear::make(1, 40, rngs),
            .hidden = nn::Linear::make(40, 40, rngs),
            .out = nn::Linear::make(40, 1, rngs)};
  }
  Array operator()(const Array& x) const { return out(nn::relu(hidden(nn::relu(in(x))))); }
};

struct Points {
  Array x, y;  // [n, 1]
};
struct Task {
  Points seen, unseen;
};

Task draw_task(const random::Key& key) {
  const auto [amplitude_key, phase_key, seen, unseen] = random::split<4>(key);
  const Array amplitude = random::uniform(amplitude_key, {}, DType::kF32, 0.1, 5.0);
  const Array phase = random::uniform(phase_key, {}, DType::kF32, 0.0, std::numbers::pi);
  auto points = [&](const random::Key& k) {
    const Array x = random::uniform(k, {10, 1}, DType::kF32, -5.0, 5.0);
    return Points{x, amplitude * sin(x + phase)};
  };
  return {points(seen), points(unseen)};
}

Array loss(const Mlp& model, const Points& p) { return mean(square(model(p.x) - p.y)); }

Mlp adapt(const Mlp& model, const Points& p) {
  return tree::map<Array>([](const Array& w, const Array& g) { return w - 0.01 * g; }, model,
                          grad(loss)(model, p));
}

// Mean over tasks of the error after one step.
Array meta_loss(const Mlp& model, const random::Key& keys) {
  return mean(vmap([&](const random::Key& k) {
    const Task task = draw_task(k);
    return loss(adapt(model, task.seen), task.unseen);
  })(keys));
}
// The same without the step: what joint training minimises.
Array joint_loss(const Mlp& model, const random::Key& keys) {
  return mean(vmap([&](const random::Key& k) { return loss(model, draw_task(k).unseen); })(keys));
}

template <class Loss>
Mlp train(const char* name, Loss objective, std::int64_t updates) {
  nn::Rngs rngs(0);
  Mlp model = Mlp::make(rngs);
  const auto tx = optim::adam(2e-3);
  auto state = tx.init(model);
  auto step = jit([&](Mlp m, auto s, const random::Key& key) {
    auto [value, gradient] = value_and_grad(objective)(m, random::split(key, 25));
    auto [u, next] = tx.update(gradient, s, m);
    return std::tuple{optim::apply_updates(m, u), next, value};
  });
  Array value;
  for (std::int64_t i = 0; i < updates; ++i) {
    std::tie(model, state, value) = step(std::move(model), std::move(state), rngs("tasks"));
    if (i % 500 == 499)
      std::printf("%s: update %5d  loss %.3f\n", name, static_cast<int>(i + 1),
                  value.item<double>());
  }
  return model;
}

void compare(const example::Options& options) {
  const std::int64_t updates = options.integer("updates", 1, 1e6);
  const random::Key test = random::split(random::key(1), 500);
  const Mlp meta = train("meta-learning", meta_loss, updates);
  const Mlp joint = train("joint training", joint_loss, updates);
  auto before = jit(joint_loss), after = jit(meta_loss);
  std::printf("meta-learned: error %.3f before the step, %.3f after\n",
              before(meta, test).item<double>(), after(meta, test).item<double>());
  std::printf("joint: error %.3f before the step, %.3f after\n", before(joint, test).item<double>(),
              after(joint, test).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Meta-learns sines.", {{"updates", "2000", "of each training"}},
                      compare);
}
