#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace xylem::runtime::cpu {

// Runs tasks one after the other, in order, on a thread of its own, which starts with the first
// task. The destructor waits for the tasks given so far.
class Queue {
 public:
  Queue() = default;
  ~Queue();
  // Tasks must not throw. EnvironmentError if the system gives no thread; then nothing is queued.
  void push(std::function<void()> task);
  // Whether nothing is queued or running.
  bool idle() const;
  // Whether the calling thread is that of a queue: it must not wait for one.
  static bool on_worker();

 private:
  std::thread start_thread();
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace xylem::runtime::cpu
