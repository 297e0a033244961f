// Speed of generated code and of compilation: printed, never judged.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "xylem/compiler/jit/jit_test_util.h"
#include "xylem/ir/kernel/kernel_builder.h"
#include "xylem/ir/ops/all.h"

namespace xylem {
namespace {

using ir::Kernel;
using ir::KernelBuilder;
using ir::KernelValue;
using jit_test::Module;
using Values = std::vector<KernelValue>;
namespace ops = ir::ops;

double seconds(const std::function<void()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best_of(int n, const std::function<void()>& fn) {
  double best = 1e9;
  for (int i = 0; i < n; ++i) best = std::min(best, seconds(fn));
  return best;
}

// Independent multiply-adds in registers: what the core can do.
Kernel peak_kernel(std::int64_t steps) {
  KernelBuilder k("peak");
  k.parallel(1);
  const KernelValue x = k.read_write(DType::kF32, {512});
  Values carries;
  for (int i = 0; i < 12; ++i) carries.push_back(k.load(x, {k.index(16 * i)}, {0}, {16}));
  const KernelValue a = k.load(x, {k.index(320)}, {0}, {16});
  const Values r = k.for_(k.index(0), k.index(steps), 1, carries,
                          [&](KernelValue, std::span<const KernelValue> c) {
                            Values next;
                            for (int i = 0; i < 2; ++i) {
                              Values from = i == 0 ? Values(c.begin(), c.end()) : next;
                              next.clear();
                              for (const KernelValue& v : from) next.push_back(k.fma(v, a, a));
                            }
                            return next;
                          });
  for (int i = 0; i < 12; ++i) k.store(x, r[static_cast<std::size_t>(i)], {k.index(16 * i)}, {0});
  return k.finish();
}

// C[8, 32] += A[8, depth] * B[depth, 32].
Kernel gemm_kernel(std::int64_t m, std::int64_t n, std::int64_t depth) {
  KernelBuilder k("gemm");
  k.parallel(1);
  const KernelValue a = k.read(DType::kF32, {m, depth}), b = k.read(DType::kF32, {depth, n});
  const KernelValue c = k.read_write(DType::kF32, {m, n});
  const KernelValue zero = k.index(0);
  const Values r = k.for_(
      zero, k.index(depth), 1, {k.load(c, {zero, zero}, {0, 1}, {m, n})},
      [&](KernelValue p, std::span<const KernelValue> acc) {
        const KernelValue x = k.load(a, {zero, p}, {0}, {m});
        const KernelValue y = k.load(b, {p, zero}, {1}, {n});
        return Values{k.fma(k.broadcast(x, {m, n}, {0}), k.broadcast(y, {m, n}, {1}), acc[0])};
      });
  k.store(c, r[0], {zero, zero}, {0, 1});
  return k.finish();
}

Kernel add_kernel(std::int64_t n) {
  KernelBuilder k("add");
  const KernelValue i = k.parallel(n / 2048);
  const KernelValue x = k.read(DType::kF32, {n}), y = k.write(DType::kF32, {n});
  k.for_(k.index(0), k.index(2048), 32, {}, [&](KernelValue j, std::span<const KernelValue>) {
    const KernelValue at = k.add(k.mul(i, 2048), j);
    k.store(y, k.one(ops::kAdd, {k.load(x, {at}, {0}, {32}), k.splat(DType::kF32, {32}, 1)}), {at},
            {0});
    return Values{};
  });
  return k.finish();
}

// exp by a polynomial and ldexp, as an elementwise kernel of about 20 ops.
Kernel exp_kernel(std::int64_t n) {
  KernelBuilder k("exp");
  const KernelValue i = k.parallel(n / 2048);
  const KernelValue x = k.read(DType::kF32, {n}), y = k.write(DType::kF32, {n});
  const Dims d = {32};
  const auto c = [&](double v) { return k.splat(DType::kF32, d, v); };
  k.for_(k.index(0), k.index(2048), 32, {}, [&](KernelValue j, std::span<const KernelValue>) {
    const KernelValue at = k.add(k.mul(i, 2048), j);
    const KernelValue v = k.load(x, {at}, {0}, d);
    const KernelValue f =
        k.one(ops::kRoundNearestEven, {k.one(ops::kMultiply, {v, c(1.44269504)})});
    const KernelValue r = k.fma(f, c(2.12194440e-4), k.fma(f, c(-0.693359375), v));
    KernelValue q = c(1.9875691500e-4);
    for (double a :
         {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1})
      q = k.fma(q, r, c(a));
    const KernelValue p = k.one(ops::kAdd, {k.fma(k.one(ops::kMultiply, {r, r}), q, r), c(1)});
    k.store(y, k.ldexp(p, k.one(ops::kConvert, {f}, {{"result_dtype", DType::kI32}})), {at}, {0});
    return Values{};
  });
  return k.finish();
}

Kernel relu_bf16_kernel(std::int64_t n) {
  KernelBuilder k("bf16");
  const KernelValue i = k.parallel(n / 2048);
  const KernelValue x = k.read(DType::kBF16, {n}), y = k.write(DType::kBF16, {n});
  k.for_(k.index(0), k.index(2048), 32, {}, [&](KernelValue j, std::span<const KernelValue>) {
    const KernelValue at = k.add(k.mul(i, 2048), j);
    k.store(y, k.one(ops::kAdd, {k.load(x, {at}, {0}, {32}), k.splat(DType::kBF16, {32}, 1)}), {at},
            {0});
    return Values{};
  });
  return k.finish();
}

TEST(JitSpeed, GemmTilesAndCompileTimes) {
  struct Row {
    Kernel kernel;
    double flops = 0, elements = 0;
  };
  std::vector<Row> rows;
  rows.push_back({peak_kernel(20000), 20000.0 * 24 * 32, 0});
  rows.push_back({gemm_kernel(8, 32, 256), 2.0 * 8 * 32 * 256, 0});
  rows.push_back({gemm_kernel(12, 32, 256), 2.0 * 12 * 32 * 256, 0});
  rows.push_back({gemm_kernel(8, 48, 256), 2.0 * 8 * 48 * 256, 0});
  rows.push_back({add_kernel(2048), 0, 2048});
  rows.push_back({exp_kernel(2048), 0, 2048});
  rows.push_back({relu_bf16_kernel(2048), 0, 2048});
  for (const Row& row : rows) {
    std::vector<HostArray> buffers;
    for (const auto& p : row.kernel.params) buffers.push_back(HostArray::zeros(p.dtype, p.dims));
    for (int tier : {XYLEM_JIT_TIER_QUICK, XYLEM_JIT_TIER_BEST}) {
      const double compile = best_of(5, [&] { Module({row.kernel}, tier); });
      const Module m({row.kernel}, tier);
      std::vector<void*> pointers;
      for (HostArray& b : buffers) pointers.push_back(b.data());
      const int repeat = row.flops > 1e6 ? 20 : 500;
      const double time = best_of(9,
                                  [&] {
                                    for (int i = 0; i < repeat; ++i)
                                      m.entry()(pointers.data(), nullptr, 0, 1);
                                  }) /
                          repeat;
      const Dims d = row.kernel.params.back().dims;
      std::printf("%-6s %-9s %-5s compile %6.2f ms  ", row.kernel.name.c_str(),
                  to_string(d).c_str(), tier ? "best" : "quick", compile * 1e3);
      if (row.flops > 0)
        std::printf("%8.1f GFLOP/s\n", row.flops / time * 1e-9);
      else
        std::printf("%8.3f ns/element\n", time / row.elements * 1e9);
    }
  }
}

}  // namespace
}  // namespace xylem
