// A variational autoencoder of handwritten digits, which then draws new ones.
//
// Shows: random numbers inside a differentiated function (the reparametrisation trick), keys as
// arguments, modules made of modules, sampling from a trained model.
// Kingma and Welling, "Auto-encoding variational Bayes" (2014).
// Run:    build/examples/vae [--epochs 60]
// Expect: a bound of 24.5 nats a digit on held-out digits, where independent pixels need 26.8 and
//         the grey values themselves 13.3; twelve drawn digits, most of which can be read.

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

constexpr std::int64_t kLatent = 8, kHidden = 128;

struct Encoder {
  nn::Linear hidden, mean, log_variance;

  std::pair<Array, Array> operator()(const Array& x) const {
    const Array h = nn::relu(hidden(x));
    return {mean(h), log_variance(h)};
  }
};
struct Decoder {
  nn::Linear hidden, out;

  Array operator()(const Array& z) const { return out(nn::relu(hidden(z))); }  // logits of pixels
};
struct Vae {
  Encoder encoder;
  Decoder decoder;

  static Vae make(nn::Rngs& rngs) {
    return {.encoder = {.hidden = nn::Linear::make(64, kHidden, rngs),
                        .mean = nn::Linear::make(kHidden, kLatent, rngs),
                        .log_variance = nn::Linear::make(kHidden, kLatent, rngs)},
            .decoder = {.hidden = nn::Linear::make(kLatent, kHidden, rngs),
                        .out = nn::Linear::make(kHidden, 64, rngs)}};
  }
};

// Cross entropy of pixels with grey values as probabilities, in nats a digit.
Array pixel_loss(const Array& logits, const Array& x) {
  return sum(optim::sigmoid_binary_cross_entropy(logits, x), -1);
}

// Minus the evidence lower bound: cross entropy of the reconstruction plus KL(q(z|x) | N(0, I)).
Array loss(const Vae& model, const Array& x, const random::Key& key) {
  const auto [mu, log_variance] = model.encoder(x);
  const Array z = mu + exp(0.5 * log_variance) * random::normal(key, mu.shape());
  const Array kl = 0.5 * sum(exp(log_variance) + square(mu) - 1 - log_variance, -1);
  return mean(pixel_loss(model.decoder(z), x) + kl);
}

void train(const example::Options& options) {
  const std::int64_t epochs = options.integer("epochs", 1, 10000);
  const example::Split digits = example::read_digits(options.text("data"));
  const Array train_images(example::batch_of(digits.train).image);
  const Array test_images(example::batch_of(digits.test).image);

  nn::Rngs rngs(0);
  Vae model = Vae::make(rngs);
  const auto tx = optim::adam(3e-3);
  auto state = tx.init(model);
  auto step = jit([&](Vae m, auto s, const Array& x, const random::Key& key) {
    auto [value, gradient] = value_and_grad(loss)(m, x, key);
    auto [updates, next] = tx.update(gradient, s, m);
    return std::tuple{optim::apply_updates(m, updates), next, value};
  });
  auto bound = jit(loss);

  const auto batches =
      data::source(digits.train).seed(1).shuffle().batch<example::Digits>(128, true);
  Array value;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t i = 0; i < batches.size(); ++i)
      std::tie(model, state, value) =
          step(std::move(model), std::move(state), batches[epoch * batches.size() + i].image,
               rngs("noise"));
    if (epoch % 10 == 9)
      std::printf("epoch %3d  training bound %.2f nats  held out %.2f nats\n",
                  static_cast<int>(epoch + 1), value.item<double>(),
                  bound(model, test_images, rngs("noise")).item<double>());
  }

  // What pixels cost that know nothing of each other: each at its mean over the training digits.
  const Array p = clip(mean(train_images, 0), 1e-3, 1 - 1e-3);
  std::printf("independent pixels %.2f nats a digit\n",
              mean(pixel_loss(log(p / (1 - p)), test_images)).item<double>());
  // What no model can go below: the entropy of the grey values themselves.
  const Array entropy = special::entr(test_images) + special::entr(1 - test_images);
  std::printf("entropy of the grey values %.2f nats a digit\n",
              mean(sum(entropy, -1)).item<double>());
  std::printf("held-out bound %.2f nats a digit\n",
              bound(model, test_images, rngs("noise")).item<double>());
  const auto [mu, log_variance] = model.encoder(test_images);
  const Array redrawn = nn::sigmoid(model.decoder(mu));
  std::printf("held-out digits, and what is left of them after %d numbers:\n%s%s",
              static_cast<int>(kLatent), example::draw(test_images.to_host(), 6).c_str(),
              example::draw(redrawn.to_host(), 6).c_str());
  const Array drawn = nn::sigmoid(model.decoder(random::normal(rngs("draw"), {12, kLatent})));
  const HostArray pictures = drawn.to_host();
  std::printf("new digits:\n%s%s", example::draw(pictures, 6).c_str(),
              example::draw(drawn(idx::slice(6, 12)).to_host(), 6).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Trains a variational autoencoder on handwritten digits.",
                      {{"epochs", "60", "passes over the training digits"},
                       {"data", "examples/data/digits.csv.gz", "file of digits"}},
                      train);
}
