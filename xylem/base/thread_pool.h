#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>

namespace xylem {

// Threads that exist for the life of the process and split loops between them.
//
//   ThreadPool::global().parallel_for(n, 1024, [&](std::int64_t begin, std::int64_t end) { ... });
//
// The calling thread takes part, so a pool of one thread has no worker. Idle workers spin for some
// 50 µs and then sleep. Chunks are fixed by the caller and do not depend on the number of threads;
// which thread runs which chunk, and in which order, is open. A call from inside a chunk runs
// inline. Several threads may call at once; the workers are shared between them. All calls return
// after every chunk has ended, and what the chunks wrote is visible to the caller.
class ThreadPool {
 public:
  using Function = void (*)(void* context, std::int64_t begin, std::int64_t end);

  // `num_threads` >= 1 counts the caller.
  explicit ThreadPool(int num_threads);
  // Waits for the workers to end. No call may be in progress.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The pool of the process: XYLEM_NUM_THREADS threads, or default_num_threads(). Made at the
  // first call, never destroyed.
  static ThreadPool& global();
  // The cores this process may run on: its affinity mask, limited by its control group's quota.
  static int default_num_threads();
  // Whether the calling thread is running a chunk of some pool.
  static bool in_parallel();

  int num_threads() const { return num_workers_ + 1; }

  // Calls fn(context, begin, end) for disjoint ranges that together are [0, num_chunks). fn must
  // not throw. Costs about a microsecond while the workers are awake.
  void parallel_for_raw(std::int64_t num_chunks, Function fn, void* context);

  // Calls f(begin, end) for the chunks [0, grain), [grain, 2 grain), ... of [0, n); grain >= 1.
  // If chunks throw, those not yet begun are dropped and the exception of the first chunk that
  // threw reaches the caller.
  template <class F>
  void parallel_for(std::int64_t n, std::int64_t grain, F&& f);

 private:
  struct Slot;
  struct State;

  void work(int share);
  static void run_slot(Slot& slot, int share);

  int num_workers_;
  std::unique_ptr<State> state_;
};

namespace internal {

// The first exception by chunk index.
class FirstException {
 public:
  FirstException();
  ~FirstException();
  bool any() const { return any_.load(std::memory_order_relaxed); }
  // To be called in a catch block.
  void capture(std::int64_t chunk) noexcept;
  void rethrow_if_any();

 private:
  std::atomic<bool> any_{false};
  std::atomic<bool> locked_{false};
  std::int64_t chunk_ = 0;
  std::exception_ptr error_;
};

}  // namespace internal

template <class F>
void ThreadPool::parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  const std::int64_t chunks = (n - 1) / grain + 1;
  if (chunks == 1) {
    f(std::int64_t{0}, n);
    return;
  }
  struct Context {
    std::remove_reference_t<F>* f;
    std::int64_t n;
    std::int64_t grain;
    internal::FirstException error;
  };
  Context context{&f, n, grain, {}};
  parallel_for_raw(
      chunks,
      [](void* p, std::int64_t begin, std::int64_t end) {
        auto& c = *static_cast<Context*>(p);
        for (std::int64_t i = begin; i < end && !c.error.any(); ++i) {
          const std::int64_t first = i * c.grain;
          try {
            (*c.f)(first, c.n - first > c.grain ? first + c.grain : c.n);
          } catch (...) {
            c.error.capture(i);
          }
        }
      },
      &context);
  context.error.rethrow_if_any();
}

}  // namespace xylem
