#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "xylem/ir/text.h"

// Bytes of text per second of the readers and writers, on a long chain of layers and on one large
// constant.

namespace xylem::ir {
namespace {

std::string layers(int n) {
  std::string t =
      "module @m {\n  func.func public @main(%x: tensor<64x128xf32>, %w: tensor<128x128xf32>) -> "
      "tensor<64x128xf32> {\n";
  std::string h = "x";
  for (int i = 0; i < n; ++i) {
    t += fmt::format(
        "    %a{0} = stablehlo.dot_general %{1}, %w, contracting_dims = [1] x [0], precision = "
        "[DEFAULT, DEFAULT] : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>\n"
        "    %b{0} = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
        "    %c{0} = stablehlo.broadcast_in_dim %b{0}, dims = [] : (tensor<f32>) -> "
        "tensor<64x128xf32>\n"
        "    %d{0} = stablehlo.maximum %a{0}, %c{0} : tensor<64x128xf32>\n"
        "    %e{0} = stablehlo.add %d{0}, %{1} : tensor<64x128xf32>\n",
        i, h);
    h = fmt::format("e{}", i);
  }
  return t + fmt::format("    return %{} : tensor<64x128xf32>\n  }}\n}}\n", h);
}

std::string large_constant() {
  std::string t =
      "func.func @main() -> tensor<4194304xf32> {\n  %0 = stablehlo.constant dense<\"0x";
  for (int i = 0; i < 4194304; ++i) t += i & 1 ? "0000803F" : "CDCCCC3D";
  return t + "\"> : tensor<4194304xf32>\n  return %0 : tensor<4194304xf32>\n}\n";
}

void set_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

void read_stablehlo(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_stablehlo(text));
  set_bytes(state, text.size());
}
void write_stablehlo(benchmark::State& state, const std::string& text) {
  Module m = parse_stablehlo(text);
  for (auto _ : state) benchmark::DoNotOptimize(print_stablehlo(m));
  set_bytes(state, text.size());
}
void read_native(benchmark::State& state, const std::string& text) {
  std::string native = print(parse_stablehlo(text));
  for (auto _ : state) benchmark::DoNotOptimize(parse_module(native));
  set_bytes(state, native.size());
}
void encoding(benchmark::State& state, const std::string& text) {
  Module m = parse_stablehlo(text);
  std::size_t bytes = 0;
  for (auto _ : state) bytes = encode(*m.functions[0].graph).size();
  set_bytes(state, bytes);
}
void decoding(benchmark::State& state, const std::string& text) {
  std::string bytes = encode(*parse_stablehlo(text).functions[0].graph);
  for (auto _ : state) benchmark::DoNotOptimize(decode(bytes));
  set_bytes(state, bytes.size());
}

BENCHMARK_CAPTURE(read_stablehlo, layers, layers(2000));
BENCHMARK_CAPTURE(read_stablehlo, constant, large_constant());
BENCHMARK_CAPTURE(write_stablehlo, layers, layers(2000));
BENCHMARK_CAPTURE(write_stablehlo, constant, large_constant());
BENCHMARK_CAPTURE(read_native, layers, layers(2000));
BENCHMARK_CAPTURE(encoding, layers, layers(2000));
BENCHMARK_CAPTURE(decoding, layers, layers(2000));

}  // namespace
}  // namespace xylem::ir
