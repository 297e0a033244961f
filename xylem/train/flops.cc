#include "xylem/train/flops.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "xylem/base/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xylem::train {
namespace {

using Clock = std::chrono::steady_clock;

// Each kernel does kChains independent multiply-adds per round, enough to hide the latency of four
// cycles on two ports, and returns the operations done. The result is kept alive through `sink`.
constexpr int kChains = 12;

#if defined(__clang__)
#define XYLEM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define XYLEM_UNROLL _Pragma("GCC unroll 12")
#endif

#if defined(__x86_64__)
#define XYLEM_FMA_KERNEL(NAME, TARGET, VECTOR, SET, FMA)                                          \
  __attribute__((target(TARGET))) double NAME(std::int64_t rounds, float* sink) {                 \
    VECTOR acc[kChains];                                                                          \
    for (int i = 0; i < kChains; ++i) acc[i] = SET(static_cast<float>(i));                        \
    const VECTOR a = SET(0.999f), b = SET(0.001f);                                                \
    for (std::int64_t r = 0; r < rounds; ++r) {                                                   \
      XYLEM_UNROLL for (int i = 0; i < kChains; ++i) acc[i] = FMA(acc[i], a, b);                  \
    }                                                                                             \
    for (int i = 1; i < kChains; ++i) acc[0] = FMA(acc[0], a, acc[i]);                            \
    __builtin_memcpy(sink, &acc[0], sizeof(float));                                               \
    return 2.0 * kChains * static_cast<double>(sizeof(VECTOR) / 4) * static_cast<double>(rounds); \
  }
XYLEM_FMA_KERNEL(fma_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)
XYLEM_FMA_KERNEL(fma_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
#undef XYLEM_FMA_KERNEL
#endif

double multiply_add(std::int64_t rounds, float* sink) {
  typedef float Vector __attribute__((vector_size(16)));
  Vector acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = Vector{} + static_cast<float>(i);
  for (std::int64_t r = 0; r < rounds; ++r)
    for (int i = 0; i < kChains; ++i) acc[i] = acc[i] * 0.999f + 0.001f;
  for (int i = 1; i < kChains; ++i) acc[0] += acc[i];
  *sink = acc[0][0];
  return 2.0 * kChains * 4 * static_cast<double>(rounds);
}

double (*best_kernel())(std::int64_t, float*) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return fma_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return fma_avx2;
#endif
  return multiply_add;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

double training_step_flops(const Config& c) {
  const auto d = [](std::int64_t v) { return static_cast<double>(v); };
  const double D = d(c.base_emb_dim), F = d(c.base_mlp_dim), T = d(c.max_target_length);
  const double HK = d(c.base_num_query_heads) * d(c.head_dim);
  const double layer = 4 * D * F + 2 * D * 3 * HK + 2 * T * HK + 2 * HK * D;
  const double token = d(c.base_num_decoder_layers) * layer + 2 * D * d(c.vocab_size);
  return 3 * token * d(c.per_device_batch_size) * T;
}

double measure_peak_flops() {
  // Short and many: on a busy machine some find all cores free.
  constexpr int kTrials = 50;
  const auto kernel = best_kernel();
  ThreadPool& pool = ThreadPool::global();
  std::vector<float> sinks(static_cast<std::size_t>(pool.num_threads()) * 64);
  std::int64_t rounds = 1 << 16;
  float sink = 0;
  // So many rounds that one trial takes about a millisecond.
  Clock::time_point begin = Clock::now();
  kernel(rounds, &sink);
  rounds =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(rounds) * 1e-3 /
                                                          std::max(seconds_since(begin), 1e-6)));
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    begin = Clock::now();
    double operations = kernel(1, &sink);
    pool.parallel_for(pool.num_threads(), 1, [&](std::int64_t i, std::int64_t) {
      kernel(rounds, &sinks[static_cast<std::size_t>(i) * 64]);
    });
    operations *= static_cast<double>(rounds) * pool.num_threads();
    best = std::max(best, operations / seconds_since(begin));
  }
  return best;
}

}  // namespace xylem::train
