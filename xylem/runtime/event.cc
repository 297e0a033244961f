#include "xylem/runtime/event.h"

#include "xylem/base/error.h"

namespace xylem::runtime {

Event Event::make() { return Event(std::make_shared<State>()); }

bool Event::ready() const { return !state_ || state_->done.load(std::memory_order_acquire); }

bool Event::succeeded() const { return !state_ || (ready() && !state_->error); }

void Event::wait() const {
  if (!state_) return;
  if (!state_->done.load(std::memory_order_acquire)) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->done.load(std::memory_order_relaxed); });
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

void Event::complete(std::exception_ptr error) {
  XYLEM_CHECK(state_ != nullptr, "an event that is complete from the start was completed");
  std::vector<std::pair<void (*)(void*), void*>> callbacks;
  {
    std::lock_guard lock(state_->mutex);
    XYLEM_CHECK(!state_->done.load(std::memory_order_relaxed), "an event was completed twice");
    state_->error = std::move(error);
    state_->done.store(true, std::memory_order_release);
    callbacks.swap(state_->callbacks);
    state_->changed.notify_all();
  }
  for (auto& [fn, context] : callbacks) fn(context);
}

void Event::on_ready(void (*fn)(void* context), void* context) const {
  if (state_ && !state_->done.load(std::memory_order_acquire)) {
    std::lock_guard lock(state_->mutex);
    if (!state_->done.load(std::memory_order_relaxed)) {
      state_->callbacks.emplace_back(fn, context);
      return;
    }
  }
  fn(context);
}

Event failed_event(std::exception_ptr error) {
  Event event = Event::make();
  event.complete(std::move(error));
  return event;
}

}  // namespace xylem::runtime
