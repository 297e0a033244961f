#include "xylem/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "xylem/base/env.h"
#include "xylem/base/error.h"

namespace xylem {
namespace {

// Loops that wait: 50 µs of spinning pays for itself, since waking a sleeping thread takes about as
// long.
constexpr int kSpins = 1500;
// Callers that share the workers at one time; more run inline.
constexpr int kSlots = 8;

thread_local bool t_in_parallel = false;

void pause() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins, then sleeps, until a differs from `value`.
template <class T>
void wait_while(const std::atomic<T>& a, T value) {
  for (int i = 0; i < kSpins; ++i) {
    if (a.load(std::memory_order_acquire) != value) return;
    pause();
  }
  a.wait(value, std::memory_order_acquire);
}

// Cores granted by the control group ("max 100000" or "200000 100000"); 0 if unlimited.
int cgroup_cores() {
  std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (f == nullptr) return 0;
  long quota = 0;
  long period = 0;
  const int n = std::fscanf(f, "%ld %ld", &quota, &period);
  std::fclose(f);
  if (n != 2 || quota <= 0 || period <= 0) return 0;
  return static_cast<int>((quota + period - 1) / period);
}

}  // namespace

// One call in progress. `remaining` chunks are still to be claimed; claims go from the front. The
// other fields are written while remaining is 0 and read after a claim only. A worker counts itself
// in `users` before it claims; so when remaining is 0 and users is 0, all chunks have ended and
// nobody looks at the fields.
struct alignas(128) ThreadPool::Slot {
  std::atomic<std::int64_t> remaining{0};
  std::atomic<int> users{0};
  std::atomic<bool> taken{false};
  Function fn = nullptr;
  void* context = nullptr;
  std::int64_t chunks = 0;
};

struct ThreadPool::State {
  Slot slots[kSlots];
  // Counts calls and the end of the pool: what idle workers wait on.
  alignas(128) std::atomic<std::uint32_t> epoch{0};
  std::atomic<int> asleep{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
};

ThreadPool::ThreadPool(int num_threads) : num_workers_(0), state_(std::make_unique<State>()) {
  XYLEM_CHECK(num_threads >= 1, "a pool counts its caller");
  const int share = 4 * num_threads;
  for (int i = 1; i < num_threads; ++i) {
    try {
      state_->threads.emplace_back([this, share] { work(share); });
    } catch (const std::exception&) {
      break;  // no more threads to be had: fewer do as well
    }
    ++num_workers_;
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->epoch.fetch_add(1);
  state_->epoch.notify_all();
  for (std::thread& t : state_->threads) t.join();
}

ThreadPool& ThreadPool::global() {
  static ThreadPool* pool = new ThreadPool(
      static_cast<int>(env_int("XYLEM_NUM_THREADS", 1, 4096).value_or(default_num_threads())));
  return *pool;
}

int ThreadPool::default_num_threads() {
  int cores = 0;
  // The fixed-size set covers 1,024 processors; larger machines report an error.
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
  if (cores <= 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  if (const int quota = cgroup_cores(); quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

bool ThreadPool::in_parallel() { return t_in_parallel; }

// Claims and runs chunks until none is left. A claim takes a part of what remains, so that many
// small chunks cost few atomic operations, and single chunks near the end for balance.
void ThreadPool::run_slot(Slot& slot, int share) {
  std::int64_t r = slot.remaining.load(std::memory_order_relaxed);
  while (r > 0) {
    const std::int64_t take = std::max<std::int64_t>(1, r / share);
    if (!slot.remaining.compare_exchange_weak(r, r - take, std::memory_order_acq_rel,
                                              std::memory_order_relaxed))
      continue;
    const std::int64_t begin = slot.chunks - r;
    slot.fn(slot.context, begin, begin + take);
    r = slot.remaining.load(std::memory_order_relaxed);
  }
}

void ThreadPool::work(int share) {
  State& s = *state_;
  t_in_parallel = true;
  while (true) {
    const std::uint32_t epoch = s.epoch.load(std::memory_order_acquire);
    if (s.stop.load(std::memory_order_acquire)) return;
    for (Slot& slot : s.slots) {
      if (slot.remaining.load(std::memory_order_acquire) == 0) continue;
      slot.users.fetch_add(1, std::memory_order_acq_rel);
      run_slot(slot, share);
      if (slot.users.fetch_sub(1, std::memory_order_acq_rel) == 1) slot.users.notify_all();
    }
    for (int i = 0; i < kSpins && s.epoch.load(std::memory_order_acquire) == epoch; ++i) pause();
    if (s.epoch.load(std::memory_order_acquire) != epoch) continue;
    // Announced before the last look at the epoch, so that a caller either sees a sleeper or is
    // seen.
    s.asleep.fetch_add(1);
    if (s.epoch.load() == epoch) s.epoch.wait(epoch);
    s.asleep.fetch_sub(1);
  }
}

void ThreadPool::parallel_for_raw(std::int64_t num_chunks, Function fn, void* context) {
  if (num_chunks <= 0) return;
  Slot* slot = nullptr;
  if (num_chunks > 1 && num_workers_ > 0 && !t_in_parallel) {
    for (Slot& candidate : state_->slots) {
      if (!candidate.taken.load(std::memory_order_relaxed) &&
          !candidate.taken.exchange(true, std::memory_order_acquire)) {
        slot = &candidate;
        break;
      }
    }
  }
  const bool outer = t_in_parallel;
  t_in_parallel = true;
  if (slot == nullptr) {
    fn(context, 0, num_chunks);
    t_in_parallel = outer;
    return;
  }
  slot->fn = fn;
  slot->context = context;
  slot->chunks = num_chunks;
  slot->remaining.store(num_chunks, std::memory_order_release);
  State& s = *state_;
  s.epoch.fetch_add(1);
  if (const int asleep = s.asleep.load(); asleep > 0) {
    if (num_chunks - 1 >= asleep)
      s.epoch.notify_all();
    else
      for (std::int64_t i = 1; i < num_chunks; ++i) s.epoch.notify_one();
  }
  run_slot(*slot, 4 * num_threads());
  // Chunks claimed by workers may still run.
  while (const int users = slot->users.load(std::memory_order_acquire))
    wait_while(slot->users, users);
  slot->taken.store(false, std::memory_order_release);
  t_in_parallel = outer;
}

namespace internal {

FirstException::FirstException() = default;
FirstException::~FirstException() = default;

void FirstException::capture(std::int64_t chunk) noexcept {
  while (locked_.exchange(true, std::memory_order_acquire)) pause();
  if (!any_.load(std::memory_order_relaxed) || chunk < chunk_) {
    chunk_ = chunk;
    error_ = std::current_exception();
  }
  any_.store(true, std::memory_order_relaxed);
  locked_.store(false, std::memory_order_release);
}

void FirstException::rethrow_if_any() {
  if (error_) std::rethrow_exception(error_);
}

}  // namespace internal
}  // namespace xylem
