#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace xylem::checkpoint {

// Bytes in flight, shared between threads. A request waits until it fits; one alone always does.
class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit) {}
  void acquire(std::uint64_t n) {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [&] { return used_ == 0 || used_ + n <= limit_; });
    used_ += n;
  }
  void release(std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    used_ -= n;
    free_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  std::uint64_t limit_, used_ = 0;
};

class Held {
 public:
  Held(Budget& budget, std::uint64_t n) : budget_(budget), n_(n) { budget_.acquire(n); }
  ~Held() { budget_.release(n_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Budget& budget_;
  std::uint64_t n_;
};

}  // namespace xylem::checkpoint
