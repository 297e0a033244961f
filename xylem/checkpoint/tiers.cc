#include "xylem/checkpoint/tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "xylem/base/error.h"
#include "xylem/checkpoint/verify.h"

namespace xylem::checkpoint {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// The thread that copies, and the steps that wait for it.
struct TieredCheckpointManager::Promoter {
  Promoter(const TierOptions& options, std::string fast_directory, std::string slow_directory,
           std::unique_ptr<StepFormat> fast_format, std::unique_ptr<StepFormat> slow_format)
      : options(options),
        fast(std::move(fast_directory), options.fast, std::move(fast_format)),
        slow(std::move(slow_directory), options.slow, std::move(slow_format)),
        thread([this] { work(); }) {}

  ~Promoter() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    thread.join();
  }

  void offer(std::int64_t step) {
    if (options.should_promote) {
      SaveContext c;
      c.step = step;
      c.latest_step = last;
      c.latest_time_ns = last_ns;
      c.now_ns = now_ns();
      if (!options.should_promote(c)) return;
    }
    {
      const std::lock_guard lock(mutex);
      if (!options.should_promote) queue.clear();
      queue.push_back(step);
      last = step;
      last_ns = now_ns();
    }
    changed.notify_all();
  }

  // Whether the fast tier must keep the step.
  bool needs(std::int64_t step) const {
    const std::lock_guard lock(mutex);
    return current == step || std::find(queue.begin(), queue.end(), step) != queue.end();
  }

  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.empty() && !current; });
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || !queue.empty(); });
      if (stop) return;
      current = queue.front();
      queue.pop_front();
      lock.unlock();
      std::exception_ptr failed;
      try {
        promote(*current);
      } catch (const std::exception& e) {
        failed = std::current_exception();
        if (options.on_error) options.on_error(*current, e.what());
      }
      lock.lock();
      if (failed && !error) error = failed;
      current.reset();
      changed.notify_all();
    }
  }

  void promote(std::int64_t step) {
    const std::vector<std::int64_t> there = slow.steps();
    if (!there.empty() && there.back() >= step) return;
    const std::string from = fast.step_directory(step);
    // What is damaged must not become the durable copy.
    verify(options.fast.fs, from, [&](std::string_view where, std::string_view reason) {
      throw_user_error({fmt::format("copy step {} to {}", step, slow.step_directory(step)),
                        fmt::format("a whole step in {}", from),
                        fmt::format("{}: {}", where, reason), "Save another step"});
    });
    slow.copy_step(step, options.fast.fs, from);
  }

  const TierOptions& options;
  CheckpointManager fast, slow;  // of this thread
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::int64_t> queue;
  std::optional<std::int64_t> current, last, last_ns;
  std::exception_ptr error;
  bool stop = false;
  std::thread thread;
};

TieredCheckpointManager::TieredCheckpointManager(std::string fast_directory,
                                                 std::string slow_directory, TierOptions options,
                                                 MakeFormat make_format)
    : options_(std::move(options)) {
  if (options_.fast.coordinator || options_.slow.coordinator)
    throw_user_error(
        {"save in two tiers", "one process", "several", "Give each process two tiers of its own"});
  promoter_ = std::make_unique<Promoter>(options_, fast_directory, slow_directory, make_format(),
                                         make_format());
  ManagerOptions fast = options_.fast;
  fast.preserve = [p = promoter_.get(),
                   inner = fast.preserve ? fast.preserve : keep_latest(fast.max_to_keep)](
                      const std::vector<CheckpointInfo>& all, std::int64_t now) {
    std::vector<bool> keep = inner(all, now);
    for (std::size_t i = 0; i < all.size(); ++i) keep[i] = keep[i] || p->needs(all[i].step);
    return keep;
  };
  fast.on_commit = [p = promoter_.get(), then = fast.on_commit](std::int64_t step) {
    p->offer(step);
    if (then) then(step);
  };
  fast_ = std::make_unique<CheckpointManager>(std::move(fast_directory), std::move(fast),
                                              make_format());
  slow_ =
      std::make_unique<CheckpointManager>(std::move(slow_directory), options_.slow, make_format());
}

TieredCheckpointManager::~TieredCheckpointManager() {
  // A save in progress may still offer its step.
  fast_.reset();
}

void TieredCheckpointManager::prepare() {
  fast_->prepare();
  slow_->prepare();
  const auto newest = fast_->latest_step();
  const auto there = slow_->latest_step();
  if (newest && (!there || *there < *newest)) promoter_->offer(*newest);
}

bool TieredCheckpointManager::should_save(std::int64_t step) const {
  const std::vector<std::int64_t> there = slow_->steps();
  return (there.empty() || step > there.back()) && fast_->should_save(step);
}

void TieredCheckpointManager::save(std::int64_t step, StepContents contents) {
  fast_->wait();
  const std::vector<std::int64_t> there = slow_->steps();
  if (!there.empty() && step <= there.back())
    throw_user_error({fmt::format("save the checkpoint of step {}", step),
                      fmt::format("a step above the latest of the slow tier, {}", there.back()),
                      fmt::format("{}", step), "Remove the later steps, or save elsewhere"});
  fast_->save(step, std::move(contents));
}

void TieredCheckpointManager::wait() { fast_->wait(); }

void TieredCheckpointManager::wait_promoted() {
  fast_->wait();
  promoter_->wait();
}

std::vector<std::int64_t> TieredCheckpointManager::steps() const {
  std::set<std::int64_t> all;
  for (const CheckpointManager* m : {fast_.get(), slow_.get()})
    for (const std::int64_t s : m->steps()) all.insert(s);
  return {all.begin(), all.end()};
}

std::optional<std::int64_t> TieredCheckpointManager::latest_step() const {
  const auto a = fast_->latest_step(), b = slow_->latest_step();
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

StepContents TieredCheckpointManager::restore(std::int64_t step,
                                              const std::vector<std::string>& items) const {
  const std::vector<std::int64_t> there = slow_->steps();
  const bool in_slow = std::find(there.begin(), there.end(), step) != there.end();
  if (!in_slow) return fast_->restore(step, items);
  try {
    return fast_->restore(step, items);
  } catch (const Error&) {
    return slow_->restore(step, items);
  }
}

}  // namespace xylem::checkpoint
