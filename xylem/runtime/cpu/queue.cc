#include "xylem/runtime/cpu/queue.h"

#include <system_error>

#include "xylem/base/error.h"

namespace xylem::runtime::cpu {
namespace {

thread_local bool worker = false;

}  // namespace

bool Queue::on_worker() { return worker; }

Queue::~Queue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::thread Queue::start_thread() {
  try {
    return std::thread([this] { work(); });
  } catch (const std::system_error& e) {
    throw EnvironmentError(ErrorParts{"start the device's thread", "one more thread of the process",
                                      e.what(), "Raise the limit of threads (ulimit -u)."});
  }
}

void Queue::push(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  // First, as it may fail: then nothing was queued.
  if (!thread_.joinable()) thread_ = start_thread();
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

bool Queue::idle() const {
  std::lock_guard lock(mutex_);
  return tasks_.empty() && !running_;
}

void Queue::work() {
  worker = true;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = true;
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the queue looks idle
    lock.lock();
    running_ = false;
  }
}

}  // namespace xylem::runtime::cpu
