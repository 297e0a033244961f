#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace xylem {

// For its lifetime the calling thread rounds to nearest even, keeps subnormals and traps nothing,
// whatever mode a library has left behind. The former mode returns at the end.
class DefaultFpEnvironment {
 public:
  DefaultFpEnvironment() { saved_ = exchange(kDefault); }
  ~DefaultFpEnvironment() { exchange(saved_); }
  DefaultFpEnvironment(const DefaultFpEnvironment&) = delete;
  DefaultFpEnvironment& operator=(const DefaultFpEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr std::uint64_t kDefault = 0x1f80;
  static std::uint64_t exchange(std::uint64_t mode) {
    const unsigned old = _mm_getcsr();
    if (old != mode) _mm_setcsr(static_cast<unsigned>(mode));
    return old;
  }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t exchange(std::uint64_t mode) {
    std::uint64_t old;
    asm volatile("mrs %0, fpcr" : "=r"(old));
    if (old != mode) asm volatile("msr fpcr, %0" : : "r"(mode));
    return old;
  }
#else
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t exchange(std::uint64_t mode) { return mode; }
#endif
  std::uint64_t saved_;
};

}  // namespace xylem
