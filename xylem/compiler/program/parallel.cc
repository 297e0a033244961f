#include "xylem/compiler/program/parallel.h"

#include "xylem/base/thread_pool.h"

namespace xylem::compiler {

void parallel(std::int64_t n, std::int64_t grain, void (*fn)(void*, std::int64_t, std::int64_t),
              void* context) {
  ThreadPool& pool = ThreadPool::global();
  if (pool.num_threads() == 1 || n <= grain) return fn(context, 0, n);
  pool.parallel_for(n, grain,
                    [&](std::int64_t begin, std::int64_t end) { fn(context, begin, end); });
}

}  // namespace xylem::compiler
