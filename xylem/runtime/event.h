#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "xylem/runtime/client.h"

namespace xylem::runtime {

// What the copies of an event share. `done` is set under the mutex after `error`.
struct Event::State {
  std::atomic<bool> done{false};
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<void (*)(void*), void*>> callbacks;
};

// An event that is complete with this error.
Event failed_event(std::exception_ptr error);

}  // namespace xylem::runtime
