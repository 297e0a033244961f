#pragma once

#include <cstddef>
#include <new>

namespace xylem {
namespace internal {

// Blocks of one size that the calling thread has freed and will hand out again, as a list through
// the blocks themselves. `limit` blocks are kept at most; the rest, and all when the thread ends,
// go back to the system.
template <std::size_t kBytes>
class ThreadBlocks {
 public:
  static constexpr int kLimit = 4096;

  static void* take() {
    Head& h = head();
    if (h.first == nullptr) return ::operator new(kBytes);
    Block* b = h.first;
    h.first = b->next;
    --h.count;
    return b;
  }
  static void give(void* p) {
    Head& h = head();
    if (h.ended || h.count >= kLimit) return ::operator delete(p);
    h.first = ::new (p) Block{h.first};
    ++h.count;
    // The first block of a thread makes it remember to free them.
    if (!h.guarded) guard(h);
  }

 private:
  struct Block {
    Block* next;
  };
  // Trivially destructible, so that objects that outlive the thread's locals can still be freed.
  struct Head {
    Block* first = nullptr;
    int count = 0;
    bool guarded = false;
    bool ended = false;
  };
  struct Guard {
    Head& head;
    ~Guard() {
      head.ended = true;
      while (head.first) {
        Block* b = head.first;
        head.first = b->next;
        ::operator delete(b);
      }
      head.count = 0;
    }
  };
  static Head& head() {
    static thread_local constinit Head h;
    return h;
  }
  static void guard(Head& h) {
    h.guarded = true;
    static thread_local Guard g{h};
    (void)g;
  }
  static_assert(kBytes >= sizeof(Block));
};

}  // namespace internal

// An allocator for std::allocate_shared of small objects that are made and dropped all the time: a
// block is reused by the thread that freed it, for a few nanoseconds instead of malloc's tens.
// Thread safe. Under the address sanitizer it is malloc, so that errors are still found.
template <class T>
struct PoolAllocator {
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (kPooled && n == 1) return static_cast<T*>(internal::ThreadBlocks<kBytes>::take());
    return static_cast<T*>(::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) {
    if (kPooled && n == 1) return internal::ThreadBlocks<kBytes>::give(p);
    ::operator delete(p);
  }

  template <class U>
  friend bool operator==(const PoolAllocator&, const PoolAllocator<U>&) {
    return true;
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr bool kPooled = false;
#elif defined(__has_feature)
  static constexpr bool kPooled = !__has_feature(address_sanitizer);
#else
  static constexpr bool kPooled = true;
#endif
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  // Sizes are rounded, so that types share blocks.
  static constexpr std::size_t kBytes = (sizeof(T) + 31) / 32 * 32;
};

}  // namespace xylem
