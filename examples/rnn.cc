// A recurrent network (GRU) learns to count modulo two, and does so far beyond what it has seen.
//
// Shows: a cell as a plain struct, scan over time under value_and_grad, a program that is compiled
// once for each length. At every step the network says whether the number of ones so far is odd.
// Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014).
// Run:    build/examples/rnn [--updates 600]
// Expect: all steps right on sequences of 200 bits after training on sequences of 12.

#include <cstdio>
#include <tuple>
#include <utility>

#include "common/example.h"
#include "xylem/core/core.h"
#include "xylem/nn/nn.h"
#include "xylem/optim/optim.h"
using namespace xylem;

namespace {

struct GruCell {
  nn::Linear input, gates, candidate;  // input feeds the two gates and the candidate

  static GruCell make(std::int64_t in, std::int64_t hidden, nn::Rngs& rngs) {
    return {.input = nn::Linear::make(in, 3 * hidden, rngs),
            .gates = nn::Linear::make(hidden, 2 * hidden, rngs, {.use_bias = false}),
            .candidate = nn::Linear::make(hidden, hidden, rngs)};
  }
  // h [B, hidden], x [B, in].
  Array operator()(const Array& h, const Array& x) const {
    const auto from_x = split(input(x), 3, -1);
    const auto from_h = split(gates(h), 2, -1);
    const Array reset = nn::sigmoid(from_x[0] + from_h[0]);
    const Array update = nn::sigmoid(from_x[1] + from_h[1]);
    const Array proposal = tanh(from_x[2] + reset * candidate(h));
    return (1 - update) * proposal + update * h;
  }
};

struct Parity {
  GruCell cell;
  nn::Linear head;

  // bits [T, B] -> logits [T, B] that the count so far is odd.
  Array operator()(const Array& bits) const {
    const Array start = zeros({bits.dim(1), cell.candidate.kernel.dim(0)});
    auto step = [&](const Array& h, const Array& x) {
      const Array next = cell(h, x);
      return std::pair{next, next};
    };
    const Array states = scan(step, start, expand_dims(2 * bits - 1, -1)).second;
    return squeeze(head(states), -1);
  }
};

Array odd_so_far(const Array& bits) { return cumsum(bits, 0) % 2; }

Array loss(const Parity& model, const Array& bits) {
  return mean(optim::sigmoid_binary_cross_entropy(model(bits), odd_so_far(bits)));
}
Array accuracy(const Parity& model, const Array& bits) {
  return mean((model(bits) > 0) == (odd_so_far(bits) > 0));
}
Array random_bits(const random::Key& key, std::int64_t length, std::int64_t batch) {
  return random::bernoulli(key, 0.5, {length, batch}).astype(DType::kF32);
}

void train(const example::Options& options) {
  const std::int64_t updates = options.integer("updates", 1, 1e6), hidden = 16;
  const std::int64_t length = options.integer("length", 1, 1000);
  nn::Rngs rngs(options.integer("seed", 0));
  Parity model{.cell = GruCell::make(1, hidden, rngs), .head = nn::Linear::make(hidden, 1, rngs)};
  const auto tx = optim::chain(optim::clip_by_global_norm(1.0), optim::adam(1e-2));
  auto state = tx.init(model);
  auto step = jit([&](Parity m, auto s, const random::Key& key) {
    auto [value, gradient] = value_and_grad(loss)(m, random_bits(key, length, 128));
    auto [u, next] = tx.update(gradient, s, m);
    return std::tuple{optim::apply_updates(m, u), next, value};
  });
  Array value;
  for (std::int64_t i = 0; i < updates; ++i) {
    std::tie(model, state, value) = step(std::move(model), std::move(state), rngs("bits"));
    if (i % 100 == 0 || i + 1 == updates)
      std::printf("update %4d  loss %.4f\n", static_cast<int>(i), value.item<double>());
  }
  auto score = jit(accuracy);
  for (const std::int64_t t : {length, std::int64_t{200}})
    std::printf("accuracy on sequences of %d bits %.4f\n", static_cast<int>(t),
                score(model, random_bits(rngs("test"), t, 500)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run(argc, argv, "Trains a recurrent network to tell odd from even.",
                      {{"updates", "600", "of the parameters"},
                       {"length", "12", "of the training sequences"},
                       {"seed", "0", "of parameters and sequences"}},
                      train);
}
