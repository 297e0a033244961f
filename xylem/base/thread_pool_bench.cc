#include <benchmark/benchmark.h>

#include "xylem/base/thread_pool.h"

namespace xylem {
namespace {

void nothing(void*, std::int64_t, std::int64_t) {}

// Time of a call whose chunks do nothing, while the workers are awake.
void BM_Dispatch(benchmark::State& state) {
  ThreadPool& pool = ThreadPool::global();
  for (auto _ : state) pool.parallel_for_raw(state.range(0), nothing, nullptr);
}
BENCHMARK(BM_Dispatch)->Arg(1)->Arg(2)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace xylem
