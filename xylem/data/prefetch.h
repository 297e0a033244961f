#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

// Threads behind pipelines. Results never depend on them.

namespace xylem::data::internal {

struct GroupState;

// A piece of work. `run` must not throw.
class Task {
 public:
  virtual ~Task() = default;
  virtual void run() = 0;

 private:
  friend class TaskGroup;
  friend struct GroupState;
  enum class Stage : std::uint8_t { kQueued, kRunning, kDone } stage_ = Stage::kQueued;
};

// Tasks of one iterator, run by at most `limit` threads at once, in order of submission. Threads
// belong to one pool of the process, which grows to the number of tasks that can run (at most 64)
// and ends with the last group that has used it. One owner at a time.
class TaskGroup {
 public:
  explicit TaskGroup(int limit);
  // Drops the tasks that have not begun and waits for those that run.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void submit(std::shared_ptr<Task> task);
  // Returns once the task has run; runs it here if no thread has begun it.
  void wait(const std::shared_ptr<Task>& task);
  // Drops the tasks that have not begun. Those that run are left to themselves.
  void cancel();

 private:
  std::shared_ptr<GroupState> state_;
};

// A thread that fills numbered slots ahead of their use, at most `capacity` at a time.
class Ring {
 public:
  // `produce(slot)` fills slot 0 ... capacity - 1, and returns false if it was the last. Must not
  // throw.
  Ring(std::size_t capacity, std::function<bool(std::size_t)> produce);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void start();  // idempotent
  // Waits for `produce` to return, and for the thread to end. What was filled is dropped.
  void stop();
  bool running() const;
  // The next filled slot; nothing if the last has been released. Waits.
  std::optional<std::size_t> take();
  void release();
  std::size_t filled() const;

 private:
  struct State;
  std::unique_ptr<State> s_;
};

}  // namespace xylem::data::internal
