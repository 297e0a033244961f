// A gradient for every example of a batch, and private training with them.
//
// Shows: vmap(grad(...)) over a batch with shared parameters, trees of such gradients, norms and
// clipping per example. Training is DP-SGD: each example's gradient is clipped to a norm, then
// noise hides any single one. Abadi et al., "Deep learning with differential privacy" (2016).
// Run:    build/examples/per_example_gradients [--noise 1]
// Expect: the mean of the per-example gradients is the gradient of the mean, to rounding; private
//         training still reads about nine of ten held-out digits.

#include <cstdio>
#include <tuple>
#include <utility>

#include "common/digits.h"
#include "common/example.h"
#include "xylem/core/core.h"
#include "xylem/nn/nn.h"
#include "xylem/optim/optim.h"
using namespace xylem;

namespace {

struct Mlp {
  nn::Linear in, out;
  Array operator()(const Array& x) const { return out(nn::relu(in(x))); }
};

Array loss(const Mlp& model, const Array& image, const Array& label) {
  return optim::softmax_cross_entropy_with_integer_labels(model(image), label);
}
Array batch_loss(const Mlp& model, const Array& image, const Array& label) {
  return mean(loss(model, image, label));
}

// An Mlp whose arrays have a leading axis of examples.
Mlp per_example_gradients(const Mlp& model, const Array& image, const Array& label) {
  return vmap(grad(loss), {.in_axes = {no_axis, 0, 0}})(model, image, label);
}

// The norm of each example's gradient over all parameters, [batch].
Array norms(const Mlp& gradients) {
  return vmap([](const Mlp& g) { return optim::global_norm(g); })(gradients);
}

// Sum of clipped gradients with noise of `noise` times the clipping norm, over the batch size.
Mlp private_gradient(const Mlp& gradients, double clip_norm, double noise, const random::Key& key) {
  const Array scale = minimum(1.0, clip_norm / norms(gradients));
  int leaf = 0;
  return tree::map<Array>(
      [&](const Array& g) {
        const Array total = tensordot(scale, g, 1);
        const Array hidden = random::normal(random::fold_in(key, leaf++), total.shape());
        return (total + noise * clip_norm * hidden) / static_cast<double>(scale.size());
      },
      gradients);
}

void train(const example::Options& options) {
  const double clip_norm = options.number("clip", 1e-6), noise = options.number("noise");
  const example::Split digits = example::read_digits(options.text("data"));
  const example::Digits test = example::batch_of(digits.test);
  nn::Rngs rngs(0);
  Mlp model{.in = nn::Linear::make(64, 64, rngs), .out = nn::Linear::make(64, 10, rngs)};

  const auto batches =
      data::source(digits.train).seed(1).shuffle().batch<example::Digits>(256, true);
  const Array image(batches[0].image), label(batches[0].label);
  const Mlp each = jit(per_example_gradients)(model, image, label);
  const Mlp whole = jit(grad(batch_loss))(model, image, label);
  const Mlp difference =
      tree::map<Array>([](const Array& g, const Array& w) { return mean(g, 0) - w; }, each, whole);
  const Array sizes = norms(each);
  std::printf("norms of the gradients of single examples: %.3f to %.3f; of the batch: %.3f\n",
              min(sizes).item<double>(), max(sizes).item<double>(),
              optim::global_norm(whole).item<double>());
  std::printf("mean of the gradients is off by %.1e of the gradient of the mean\n",
              (optim::global_norm(difference) / optim::global_norm(whole)).item<double>());

  const auto tx = optim::sgd(0.5, 0.9);
  auto state = tx.init(model);
  auto step = jit([&](Mlp m, auto s, const Array& x, const Array& y, const random::Key& key) {
    const Mlp gradient = private_gradient(per_example_gradients(m, x, y), clip_norm, noise, key);
    auto [updates, next] = tx.update(gradient, s, m);
    return std::tuple{optim::apply_updates(m, updates), next};
  });
  auto accuracy =
      jit([](const Mlp& m, const Array& x, const Array& y) { return mean(argmax(m(x), -1) == y); });
  const std::int64_t updates = options.integer("updates", 1, 1e6);
  for (std::int64_t i = 0; i < updates; ++i) {
    const example::Digits batch = batches[i];
    std::tie(model, state) =
        step(std::move(model), std::move(state), batch.image, batch.label, rngs("noise"));
    if (i % 50 == 49)
      std::printf("update %4d  held out %.4f\n", static_cast<int>(i + 1),
                  accuracy(model, test.image, test.label).item<double>());
  }
  std::printf("accuracy on held-out digits %.4f\n",
              accuracy(model, test.image, test.label).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Trains on digits with a clipped, noisy gradient per example.",
                      {{"clip", "1", "largest norm of one example's gradient"},
                       {"noise", "1", "deviation of the noise, in clipping norms"},
                       {"updates", "200", "of the parameters"},
                       {"data", "examples/data/digits.csv.gz", "file of digits"}},
                      train);
}
