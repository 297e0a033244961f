#pragma once

#include <cstdint>

namespace xylem::compiler {

// Runs fn(context, begin, end) over pieces of [0, n) of at least `grain`, on the process's pool
// and the calling thread. Returns when all are done.
void parallel(std::int64_t n, std::int64_t grain, void (*fn)(void*, std::int64_t, std::int64_t),
              void* context);

}  // namespace xylem::compiler
