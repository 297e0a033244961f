#pragma once

#include <string>

namespace xylem::jit {

// What emitters ask of the processor that code is made for.
struct Target {
  std::string cpu;       // LLVM's name
  std::string features;  // "+avx2,-avx512f,…"
  int vector_bytes = 16;
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ and VL together
  bool fma = false;
  bool f16c = false;
};

// The host, or the processor that XYLEM_JIT_CPU names (for tests of other code paths).
const Target& host_target();

}  // namespace xylem::jit
