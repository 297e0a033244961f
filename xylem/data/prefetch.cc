#include "xylem/data/prefetch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace xylem::data::internal {

// ---- tasks

namespace {
class Pool;
}

struct GroupState {
  std::mutex mutex;
  std::condition_variable done;
  std::deque<std::shared_ptr<Task>> queued;
  int active = 0;   // running
  int waiting = 0;  // entries in the pool's queue
  const int limit;
  std::shared_ptr<Pool> pool;

  explicit GroupState(int l) : limit(std::max(l, 1)) {}

  // The next task, marked as running; null if there is none or the limit is reached.
  std::shared_ptr<Task> begin_locked() {
    if (queued.empty() || active >= limit) return nullptr;
    std::shared_ptr<Task> t = std::move(queued.front());
    queued.pop_front();
    t->stage_ = Task::Stage::kRunning;
    ++active;
    return t;
  }
  void run(const std::shared_ptr<Task>& t) {
    t->run();
    {
      std::lock_guard lock(mutex);
      t->stage_ = Task::Stage::kDone;
      --active;
    }
    done.notify_all();
  }
};

namespace {

class Pool {
 public:
  static std::shared_ptr<Pool> get() {
    static std::mutex mutex;
    static std::weak_ptr<Pool> current;
    std::lock_guard lock(mutex);
    std::shared_ptr<Pool> p = current.lock();
    if (!p) {
      p = std::make_shared<Pool>();
      current = p;
    }
    return p;
  }

  ~Pool() {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->stopping = true;
    }
    shared_->changed.notify_all();
    for (std::thread& t : threads_)
      // The last group may have been dropped by a task.
      t.get_id() == std::this_thread::get_id() ? t.detach() : t.join();
  }

  void push(std::shared_ptr<GroupState> g) {
    bool grow = false;
    {
      std::lock_guard lock(shared_->mutex);
      shared_->queue.push_back(std::move(g));
      grow = shared_->idle < shared_->queue.size() && threads_.size() < kMaxThreads;
      if (grow) threads_.emplace_back([s = shared_] { work(*s); });
    }
    shared_->changed.notify_one();
  }

 private:
  static constexpr std::size_t kMaxThreads = 64;
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<GroupState>> queue;
    std::size_t idle = 0;
    bool stopping = false;
  };

  static void work(Shared& s) {
    while (true) {
      std::shared_ptr<GroupState> g;
      {
        std::unique_lock lock(s.mutex);
        ++s.idle;
        s.changed.wait(lock, [&] { return s.stopping || !s.queue.empty(); });
        --s.idle;
        if (s.stopping) return;
        g = std::move(s.queue.front());
        s.queue.pop_front();
      }
      std::shared_ptr<Task> t;
      {
        std::lock_guard lock(g->mutex);
        --g->waiting;
        t = g->begin_locked();
      }
      if (!t) continue;
      g->run(t);
      t.reset();
      // One task at a time, so that groups take turns.
      bool more = false;
      {
        std::lock_guard lock(g->mutex);
        more = static_cast<int>(g->queued.size()) > g->waiting && g->active + g->waiting < g->limit;
        if (more) ++g->waiting;
      }
      if (more) {
        std::lock_guard lock(s.mutex);
        s.queue.push_back(std::move(g));
      }
    }
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<std::thread> threads_;
};

}  // namespace

TaskGroup::TaskGroup(int limit) : state_(std::make_shared<GroupState>(limit)) {}

TaskGroup::~TaskGroup() {
  std::unique_lock lock(state_->mutex);
  state_->queued.clear();
  state_->done.wait(lock, [&] { return state_->active == 0; });
  std::shared_ptr<Pool> pool = std::move(state_->pool);
  lock.unlock();
}

void TaskGroup::submit(std::shared_ptr<Task> task) {
  std::shared_ptr<Pool> pool;
  {
    std::lock_guard lock(state_->mutex);
    state_->queued.push_back(std::move(task));
    if (state_->active + state_->waiting >= state_->limit) return;
    ++state_->waiting;
    if (!state_->pool) state_->pool = Pool::get();
    pool = state_->pool;
  }
  pool->push(state_);
}

void TaskGroup::wait(const std::shared_ptr<Task>& task) {
  std::unique_lock lock(state_->mutex);
  while (task->stage_ != Task::Stage::kDone) {
    // Only the first in the queue: what stands before it is wanted earlier.
    if (!state_->queued.empty() && state_->queued.front() == task) {
      if (const std::shared_ptr<Task> t = state_->begin_locked()) {
        lock.unlock();
        state_->run(t);
        lock.lock();
        continue;
      }
    }
    state_->done.wait(lock);
  }
}

void TaskGroup::cancel() {
  std::lock_guard lock(state_->mutex);
  state_->queued.clear();
}

// ---- Ring

struct Ring::State {
  std::size_t capacity;
  std::function<bool(std::size_t)> produce;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  // Slots filled and released since the start.
  std::atomic<std::uint64_t> head{0}, tail{0};
  std::atomic<bool> stopping{false}, ended{false}, producer_waits{false}, consumer_waits{false};

  void work() {
    while (true) {
      const std::uint64_t h = head.load();
      if (h - tail.load() == capacity) {
        std::unique_lock lock(mutex);
        producer_waits = true;
        changed.wait(lock, [&] { return stopping || h - tail.load() < capacity; });
        producer_waits = false;
      }
      if (stopping) return;
      const bool more = produce(static_cast<std::size_t>(h % capacity));
      // Who sees the end sees the last slot as well.
      head.store(h + 1);
      if (!more) ended = true;
      if (consumer_waits.load()) {
        std::lock_guard lock(mutex);
        changed.notify_all();
      }
      if (!more) return;
    }
  }
};

Ring::Ring(std::size_t capacity, std::function<bool(std::size_t)> produce)
    : s_(std::make_unique<State>()) {
  s_->capacity = std::max<std::size_t>(capacity, 1);
  s_->produce = std::move(produce);
}

Ring::~Ring() { stop(); }

void Ring::start() {
  if (s_->thread.joinable()) return;
  s_->stopping = s_->ended = false;
  s_->head = s_->tail = 0;
  s_->thread = std::thread([s = s_.get()] { s->work(); });
}

void Ring::stop() {
  if (!s_->thread.joinable()) return;
  {
    std::lock_guard lock(s_->mutex);
    s_->stopping = true;
  }
  s_->changed.notify_all();
  s_->thread.join();
}

bool Ring::running() const { return s_->thread.joinable(); }

std::optional<std::size_t> Ring::take() {
  const std::uint64_t t = s_->tail.load();
  if (s_->head.load() == t) {
    if (s_->ended && s_->head.load() == t) return std::nullopt;
    std::unique_lock lock(s_->mutex);
    s_->consumer_waits = true;
    s_->changed.wait(lock, [&] { return s_->head.load() != t || s_->ended; });
    s_->consumer_waits = false;
    if (s_->head.load() == t) return std::nullopt;
  }
  return static_cast<std::size_t>(t % s_->capacity);
}

void Ring::release() {
  const std::uint64_t t = s_->tail.load() + 1;
  s_->tail.store(t);
  // Not at every slot: the producer is woken to fill half of the ring.
  if (s_->producer_waits.load() && s_->head.load() - t <= s_->capacity / 2) {
    std::lock_guard lock(s_->mutex);
    s_->changed.notify_all();
  }
}

std::size_t Ring::filled() const {
  return static_cast<std::size_t>(s_->head.load() - s_->tail.load());
}

}  // namespace xylem::data::internal
