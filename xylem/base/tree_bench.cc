#include "xylem/base/tree.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <vector>

namespace xylem {
namespace {

struct Leaf {
  std::shared_ptr<int> p = std::make_shared<int>(1);
  bool defined() const { return p != nullptr; }
};
struct Linear {
  Leaf kernel;
  std::optional<Leaf> bias = Leaf();
  int features = 8;
};
struct Layer {
  Linear query, key, value, out, up, down;
  float scale = 1;
};
struct Model {
  Leaf embed;
  std::vector<Layer> layers;
};

// A model of 12 n + 1 leaves: what a jit call does before it can look up its cache.
void BM_Flatten(benchmark::State& state) {
  Model m;
  m.layers.resize(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(tree::flatten<Leaf>(m));
}
BENCHMARK(BM_Flatten)->Arg(0)->Arg(1)->Arg(12);

void BM_Equal(benchmark::State& state) {
  Model m;
  m.layers.resize(static_cast<std::size_t>(state.range(0)));
  const Structure a = tree::structure<Leaf>(m);
  const Structure b = tree::structure<Leaf>(m);
  for (auto _ : state) benchmark::DoNotOptimize(a == b);
}
BENCHMARK(BM_Equal)->Arg(12);

}  // namespace
}  // namespace xylem
