#include "xylem/runtime/cpu/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "xylem/base/env.h"
#include "xylem/base/error.h"
#include "xylem/base/pool_allocator.h"

namespace xylem::runtime::cpu {
namespace {

constexpr std::size_t kHuge = 2u << 20;
// What the pool keeps at most for later.
constexpr std::size_t kMaxKept = std::size_t{2} << 30;
constexpr int kClasses = 4 * 48;

// Four classes per power of two from 64 bytes up: at most a quarter is wasted.
int class_of(std::size_t bytes, std::size_t* capacity) {
  const std::size_t n = std::max<std::size_t>(bytes, 64);
  const int top = std::bit_width(n - 1);  // n <= 2^top
  const std::size_t quarter = std::max<std::size_t>((std::size_t{1} << top) / 8, 16);
  const std::size_t low = (std::size_t{1} << top) / 2;
  const std::size_t steps = n > low ? (n - low + quarter - 1) / quarter : 0;
  *capacity = low + steps * quarter;
  if (*capacity % 64 != 0) *capacity += 64 - *capacity % 64;
  return top * 4 + static_cast<int>(steps) - 1;
}

// The capacity of the blocks of a class.
std::size_t capacity_of(int c) {
  const std::size_t low = (std::size_t{1} << (c / 4)) / 2;
  const std::size_t quarter = std::max<std::size_t>((std::size_t{1} << (c / 4)) / 8, 16);
  const std::size_t capacity = low + static_cast<std::size_t>(c % 4 + 1) * quarter;
  return (capacity + 63) / 64 * 64;
}

[[noreturn]] void out_of_memory(std::size_t bytes) {
  throw EnvironmentError(ErrorParts{"allocate device memory", fmt::format("{} free bytes", bytes),
                                    "the system has no memory left",
                                    "Free arrays, or use a smaller batch."});
}

// Blocks of the small classes that a thread has freed and will take again, as lists through the
// blocks: most results are small, and the pool's lock would cost as much as they do.
struct ThreadBlocks {
  static constexpr int kClasses = 4 * 13;           // up to 4 KB
  static constexpr std::size_t kMaxKept = 1 << 18;  // bytes of one class

  struct Block {
    Block* next;
  };
  Block* first[kClasses] = {};
  std::uint32_t kept[kClasses] = {};
  bool guarded = false, ended = false;
};
thread_local constinit ThreadBlocks thread_blocks;

class Pool {
 public:
  std::byte* take(std::size_t bytes, std::size_t* capacity) {
    const int c = class_of(bytes, capacity);
    if (c < ThreadBlocks::kClasses) {
      ThreadBlocks& mine = thread_blocks;
      if (ThreadBlocks::Block* b = mine.first[c]) {
        mine.first[c] = b->next;
        mine.kept[c] -= static_cast<std::uint32_t>(*capacity);
        return reinterpret_cast<std::byte*>(b);
      }
    }
    {
      std::lock_guard lock(mutex_);
      auto& list = free_[c];
      if (!list.empty()) {
        std::byte* p = list.back();
        list.pop_back();
        kept_ -= *capacity;
        return p;
      }
    }
    const bool huge = *capacity >= kHuge;
    const std::size_t align = huge ? kHuge : 64;
    const std::size_t size = (*capacity + align - 1) / align * align;
    void* p = std::aligned_alloc(align, size);
    if (!p) out_of_memory(bytes);
    if (huge) madvise(p, size, MADV_HUGEPAGE);
    return static_cast<std::byte*>(p);
  }
  void give(std::byte* p, std::size_t bytes) {
    std::size_t capacity = 0;
    const int c = class_of(bytes, &capacity);
    if (c < ThreadBlocks::kClasses) {
      ThreadBlocks& mine = thread_blocks;
      if (!mine.ended && mine.kept[c] + capacity <= ThreadBlocks::kMaxKept) {
        mine.first[c] = ::new (p) ThreadBlocks::Block{mine.first[c]};
        mine.kept[c] += static_cast<std::uint32_t>(capacity);
        if (!mine.guarded) guard(mine);
        return;
      }
    }
    give_shared(p, c, capacity);
  }

 private:
  struct Guard {
    ~Guard();
  };
  // Makes the thread give its blocks to the others when it ends.
  static void guard(ThreadBlocks& mine) {
    mine.guarded = true;
    static thread_local Guard g;
    static_cast<void>(&g);
  }
  void give_shared(std::byte* p, int c, std::size_t capacity) {
    {
      std::lock_guard lock(mutex_);
      if (kept_ + capacity <= kMaxKept) {
        free_[c].push_back(p);
        kept_ += capacity;
        return;
      }
    }
    std::free(p);
  }

  std::mutex mutex_;
  std::vector<std::byte*> free_[kClasses];
  std::size_t kept_ = 0;
};

Pool& pool() {
  static Pool* p = new Pool;  // buffers in static storage may outlive it otherwise
  return *p;
}

Pool::Guard::~Guard() {
  ThreadBlocks& mine = thread_blocks;
  mine.ended = true;
  for (int c = 0; c < ThreadBlocks::kClasses; ++c) {
    while (ThreadBlocks::Block* b = mine.first[c]) {
      mine.first[c] = b->next;
      pool().give_shared(reinterpret_cast<std::byte*>(b), c, capacity_of(c));
    }
    mine.kept[c] = 0;
  }
}

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t guarded_size(std::size_t bytes) {
  const std::size_t p = page();
  return (bytes + 63 + p - 1) / p * p + p;
}

// The block ends (up to alignment) where an inaccessible page begins.
std::byte* guarded(std::size_t bytes) {
  const std::size_t size = guarded_size(bytes);
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) out_of_memory(bytes);
  auto* end = static_cast<std::byte*>(base) + size - page();
  mprotect(end, page(), PROT_NONE);
  std::byte* p = end - (bytes + 63) / 64 * 64;
  const std::uint32_t signalling = 0x7FA5A5A5u;
  for (std::byte* q = p; q < end; q += 4) std::memcpy(q, &signalling, 4);
  return p;
}

void free_guarded(std::byte* p, std::size_t bytes) {
  std::byte* end = p + (bytes + 63) / 64 * 64;
  munmap(end + page() - guarded_size(bytes), guarded_size(bytes));
}

}  // namespace

bool guard_enabled() {
  static const bool yes = env_flag("XYLEM_GUARD");
  return yes;
}

Storage::~Storage() {
  if (array.defined() || !data) return;
  if (guard_enabled())
    free_guarded(data, bytes);
  else
    pool().give(data, bytes);
}

StoragePtr allocate(std::size_t bytes) {
  auto s = std::allocate_shared<Storage>(PoolAllocator<Storage>());
  s->bytes = std::max<std::size_t>(bytes, 1);
  s->data = guard_enabled() ? guarded(s->bytes) : pool().take(s->bytes, &s->capacity);
  return s;
}

StoragePtr share(const HostArray& array) {
  auto s = std::allocate_shared<Storage>(PoolAllocator<Storage>());
  s->array = array;
  s->data = s->array.data();
  s->bytes = array.nbytes();
  return s;
}

bool only_handle(const StoragePtr& storage) {
  // Memory shared with an array is not taken while somebody else has the array, nor where the array
  // does not own it: it may be read-only, or belong to another library.
  const HostArray& array = storage->array;
  if (array.defined() && (!array.owns_memory() || array.owner().use_count() > 1)) return false;
  // Read first: an execution that ends in between makes the answer no, never a wrong yes.
  const int pins = storage->pins.load(std::memory_order_acquire);
  if (storage.use_count() != 1 + pins) return false;
    // What former holders read, they read before the memory is written anew.
#ifdef __SANITIZE_THREAD__
  { const StoragePtr synchronized = storage; }  // the sanitizer does not know fences
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
  return true;
}

}  // namespace xylem::runtime::cpu
