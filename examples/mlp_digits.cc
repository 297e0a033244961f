// A multilayer perceptron learns to read handwritten digits.
//
// Shows: a model as a plain struct, the data pipeline (records, shuffling, batches), value_and_grad
// and an optimizer inside jit, donation of what is moved in.
// Run:    build/examples/mlp_digits [--epochs 30]
// Expect: 91 % of the held-out digits read right, the last fifth of the file; nearly all others.

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
  nn::Linear in, hidden, out;

  static Mlp make(nn::Rngs& rngs) {
    return {.in = nn::Linear::make(64, 128, rngs),
            .hidden = nn::Linear::make(128, 64, rngs),
            .out = nn::Linear::make(64, 10, rngs)};
  }
  Array operator()(const Array& x) const { return out(nn::relu(hidden(nn::relu(in(x))))); }
};

Array loss(const Mlp& model, const Array& image, const Array& label) {
  return mean(optim::softmax_cross_entropy_with_integer_labels(model(image), label));
}
Array accuracy(const Mlp& model, const Array& image, const Array& label) {
  return mean(argmax(model(image), -1) == label);
}

void train(const example::Options& options) {
  const std::int64_t epochs = options.integer("epochs", 1, 10000);
  const example::Split digits = example::read_digits(options.text("data"));
  const example::Digits test = example::batch_of(digits.test);

  nn::Rngs rngs(options.integer("seed", 0));
  Mlp model = Mlp::make(rngs);
  const auto tx = optim::adamw(2e-3, {.weight_decay = 0.02});
  auto state = tx.init(model);
  auto step = jit([&](Mlp m, auto s, const Array& image, const Array& label) {
    auto [value, gradient] = value_and_grad(loss)(m, image, label);
    auto [updates, next] = tx.update(gradient, s, m);
    return std::tuple{optim::apply_updates(m, updates), next, value};
  });
  auto score = jit(accuracy);

  const auto batches =
      data::source(digits.train).seed(1).shuffle().batch<example::Digits>(128, true);
  Array value;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t i = 0; i < batches.size(); ++i) {
      // Indices beyond the data set continue in its next epoch, in another order.
      const example::Digits batch = batches[epoch * batches.size() + i];
      std::tie(model, state, value) =
          step(std::move(model), std::move(state), batch.image, batch.label);
    }
    if (epoch % 5 == 4)
      std::printf("epoch %3d  loss %.4f  held out %.4f\n", static_cast<int>(epoch + 1),
                  value.item<double>(), score(model, test.image, test.label).item<double>());
  }
  std::printf(
      "accuracy on training digits %.4f\n",
      score(model, example::batch_of(digits.train).image, example::batch_of(digits.train).label)
          .item<double>());
  std::printf("accuracy on held-out digits %.4f\n",
              score(model, test.image, test.label).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Trains a multilayer perceptron on handwritten digits.",
                      {{"epochs", "30", "passes over the training digits"},
                       {"seed", "0", "of the parameters"},
                       {"data", "examples/data/digits.csv.gz", "file of digits"}},
                      train);
}
