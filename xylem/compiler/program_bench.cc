// Compiled programs: matrix products, softmax and layer norm rows.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "xylem/compiler/compile.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Builder;
using ir::Expr;
using ir::Type;

struct Memory {
  explicit Memory(std::int64_t bytes)
      : data(std::aligned_alloc(64, static_cast<std::size_t>(bytes / 64 + 1) * 64)) {
    std::memset(data, 0, static_cast<std::size_t>(bytes));
  }
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data;
};

// Runs the program on arrays of ones.
void run(benchmark::State& state, const ir::GraphPtr& graph, double flops, double bytes) {
  const auto program = compile(graph);
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<void*> params, results;
  for (const Type& t : program->param_types()) {
    memory.push_back(std::make_unique<Memory>(t.nbytes()));
    auto* p = static_cast<float*>(memory.back()->data);
    for (std::int64_t i = 0; i < t.size(); ++i) p[i] = 1;
    params.push_back(p);
  }
  for (const Type& t : program->result_types()) {
    memory.push_back(std::make_unique<Memory>(t.nbytes()));
    results.push_back(memory.back()->data);
  }
  const Memory arena(program->arena_bytes());
  for (auto _ : state) program->run(params, results, arena.data);
  const auto n = static_cast<double>(state.iterations());
  if (flops > 0)
    state.counters["flop/s"] = benchmark::Counter(flops * n, benchmark::Counter::kIsRate);
  if (bytes > 0) state.counters["B/s"] = benchmark::Counter(bytes * n, benchmark::Counter::kIsRate);
}

void product(benchmark::State& state) {
  const std::int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  Builder b("product");
  const Expr x{&b, b.param(Type::tensor(DType::kF32, {m, k}))};
  const Expr y{&b, b.param(Type::tensor(DType::kF32, {k, n}))};
  const Expr z = ir::dot_general(x, y, {}, {}, {1}, {0});
  run(state, b.finish({z.v}), 2.0 * static_cast<double>(m * k * n), 0);
}
BENCHMARK(product)
    ->Args({64, 64, 64})
    ->Args({256, 256, 256})
    ->Args({512, 512, 512})
    ->Args({1024, 1024, 1024})
    ->Args({2048, 2048, 2048})
    ->Args({1024, 128, 512})
    ->Args({1024, 768, 3072})
    ->Args({8, 768, 768})
    ->Args({65, 65, 65})
    ->UseRealTime();

void softmax(benchmark::State& state) {
  const std::int64_t rows = state.range(0), n = state.range(1);
  Builder b("softmax");
  const Expr x{&b, b.param(Type::tensor(DType::kF32, {rows, n}))};
  const auto spread = [&](Expr r) { return ir::broadcast_in_dim(r, {rows, n}, {0}); };
  const Expr e = ir::unary(o::kExponential, x - spread(ir::reduce(o::kMaximum, x, {1})));
  const Expr y = e / spread(ir::reduce(o::kAdd, e, {1}));
  run(state, b.finish({y.v}), 0, 8.0 * static_cast<double>(rows * n));
}
BENCHMARK(softmax)->Args({1024, 128})->Args({4096, 1024})->Args({1024, 4096})->UseRealTime();

void layer_norm(benchmark::State& state) {
  const std::int64_t rows = state.range(0), n = state.range(1);
  Builder b("layer_norm");
  const Expr x{&b, b.param(Type::tensor(DType::kF32, {rows, n}))};
  const Expr g{&b, b.param(Type::tensor(DType::kF32, {n}))};
  const auto spread = [&](Expr r) { return ir::broadcast_in_dim(r, {rows, n}, {0}); };
  const auto scale = 1.0 / static_cast<double>(n);
  const Expr d = x - spread(ir::reduce(o::kAdd, x, {1}) * scale);
  const Expr v = ir::reduce(o::kAdd, d * d, {1}) * scale;
  const Expr y =
      d * spread(ir::unary(o::kRsqrt, v + 1e-6)) * ir::broadcast_in_dim(g, {rows, n}, {1});
  run(state, b.finish({y.v}), 0, 8.0 * static_cast<double>(rows * n));
}
BENCHMARK(layer_norm)->Args({1024, 128})->Args({4096, 768})->UseRealTime();

}  // namespace
}  // namespace xylem::compiler
