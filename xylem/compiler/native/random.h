#pragma once

#include <cstdint>

#include "xylem/base/dtype.h"

namespace xylem::compiler {

// rng_bit_generator's PHILOX: Philox-4x32 with 10 rounds over a 128-bit counter, as XLA orders its
// words. `state` is (key, counter) or (key, counter low, counter high); `next` gets the state
// behind. Writes n integers of `dtype` (8 to 64 bits).
void philox_bits(const std::uint64_t* state, std::int64_t words, std::uint64_t* next, DType dtype,
                 void* out, std::int64_t n);

// rng: n numbers from [a, b) or of the normal distribution with mean a and deviation b; a stream of
// its own for every call. `a` and `b` point to one element of `dtype`.
void random_numbers(bool normal, DType dtype, const void* a, const void* b, void* out,
                    std::int64_t n);

}  // namespace xylem::compiler
