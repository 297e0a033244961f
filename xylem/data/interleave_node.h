#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xylem/data/node.h"
#include "xylem/data/prefetch.h"
#include "xylem/data/read_node.h"

namespace xylem::data {

// What stands for Grain's worker processes: threads, each with a part of the source.
struct WorkerOptions {
  int num_workers = 10;            // 0: none, the data set is handed through
  int per_worker_buffer_size = 1;  // elements a worker computes ahead
  // Blocks of consecutive records for each worker instead of every num_workers-th record.
  bool sequential_slice = false;
};

struct InterleaveOptions {
  std::int64_t cycle_length = 1;  // data sets read at the same time
  int iter_buffer_size = 1;       // elements each of them computes ahead
};

namespace internal {

// Computes `buffer` elements of the parent ahead, on a thread of its own; elements that cost less
// than handing them over are computed by the caller, as long as they do.
template <class T>
class ThreadPrefetchIterator final : public Iterator<T> {
 public:
  ThreadPrefetchIterator(std::shared_ptr<const Node> node, const IteratorContext& c,
                         std::unique_ptr<Iterator<T>> parent, int buffer)
      : Iterator<T>(std::move(node), c), parent_(std::move(parent)), always_direct_(buffer == 0) {
    if (this->eval_.debug) always_direct_ = true;
    direct_ = always_direct_;
    parent_->save_to(state_);
    if (!always_direct_) {
      slots_.resize(static_cast<std::size_t>(buffer));
      ring_ = std::make_unique<Ring>(slots_.size(), [this](std::size_t k) { return fill(k); });
    }
  }
  ~ThreadPrefetchIterator() override { stop(); }

  std::optional<T> do_next() override {
    if (direct_) {
      const std::int64_t begin = always_direct_ ? 0 : now_ns();
      std::optional<T> e = parent_->next();
      if (e) parent_->save_to(state_);
      if (!always_direct_ && measure(begin) == Cost::dear) {
        origin_ = parent_->origin();
        direct_ = false;
      }
      return e;
    }
    if (ended_) return std::nullopt;
    const std::int64_t begin = this->eval_.timing ? now_ns() : 0;
    ring_->start();
    const std::optional<std::size_t> k = ring_->take();
    if (this->eval_.timing) {
      NodeStats& s = this->node_->stats();
      s.wait_ns.fetch_add(now_ns() - begin, std::memory_order_relaxed);
      s.buffered = static_cast<std::int64_t>(ring_->filled());
      s.capacity = static_cast<std::int64_t>(slots_.size());
    }
    XYLEM_CHECK(k.has_value(), "a ring that ended twice");
    Slot& slot = slots_[*k];
    if (slot.error) {
      const std::exception_ptr error = std::exchange(slot.error, nullptr);
      // The thread has ended; the next call tries the parent again.
      ring_->stop();
      std::rethrow_exception(error);
    }
    if (!slot.element) {
      ended_ = true;
      ring_->stop();
      return std::nullopt;
    }
    std::optional<T> e = std::move(slot.element);
    slot.element.reset();
    std::swap(state_, slot.state);
    origin_ = std::move(slot.origin);
    const bool cheap = slot.last;
    ring_->release();
    if (cheap) {
      ring_->stop();  // it has ended, behind this element
      direct_ = true;
    }
    return e;
  }
  void save(StateWriter& w) override { w.copy(state_); }
  void restore(const StateView& s) override {
    stop();
    ended_ = false;
    parent_->restore(s);
    parent_->save_to(state_);
  }
  void start_prefetch() override {
    if (direct_)
      parent_->start_prefetch();
    else if (!ended_)
      ring_->start();
  }
  std::string origin() const override { return direct_ ? parent_->origin() : origin_; }

 private:
  struct Slot {
    std::optional<T> element;
    State state;  // of the parent, after the element
    std::string origin;
    std::exception_ptr error;
    bool last = false;  // the caller computes what follows
  };

  enum class Cost : std::uint8_t { unknown, cheap, dear };
  // Called after each element by whoever computes them; an opinion every so many elements.
  Cost measure(std::int64_t begin) {
    constexpr int kElements = 64;
    constexpr std::int64_t kCheap = 1000, kDear = 4000;  // ns an element
    spent_ += now_ns() - begin;
    if (++measured_ < kElements) return Cost::unknown;
    const std::int64_t each = spent_ / kElements;
    spent_ = measured_ = 0;
    return each < kCheap ? Cost::cheap : each > kDear ? Cost::dear : Cost::unknown;
  }

  bool fill(std::size_t k) {
    Slot& slot = slots_[k];
    slot.error = nullptr;
    slot.element.reset();
    slot.last = false;
    const std::int64_t begin = now_ns();
    try {
      slot.element = parent_->next();
      if (slot.element) parent_->save_to(slot.state);
    } catch (...) {
      slot.error = std::current_exception();
    }
    if (!slot.element) return false;
    slot.last = measure(begin) == Cost::cheap;
    return !slot.last;
  }
  void stop() {
    if (ring_) ring_->stop();
  }

  std::unique_ptr<Iterator<T>> parent_;
  bool always_direct_, direct_ = false, ended_ = false;
  std::int64_t spent_ = 0;
  int measured_ = 0;
  State state_;
  std::string origin_;
  std::vector<Slot> slots_;
  std::unique_ptr<Ring> ring_;
};

void check_buffer(int buffer);

template <class T>
class ThreadPrefetchNode final : public IterNode<T> {
 public:
  explicit ThreadPrefetchNode(int buffer) : buffer_(buffer) { check_buffer(buffer); }
  XYLEM_DATA_NODE(ThreadPrefetchNode, "thread_prefetch")
  std::string arguments() const override { return std::to_string(buffer_); }
  bool prefetches() const override { return buffer_ > 0; }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<ThreadPrefetchIterator<T>>(self, c, this->template iterate_parent<T>(c),
                                                       buffer_);
  }

 private:
  int buffer_;
};

// Iterators by number, made when they are needed.
template <class T>
struct IteratorFactory {
  std::int64_t count = 0;
  std::function<std::unique_ptr<Iterator<T>>(std::int64_t)> make;
};

// Visits a ring of iterators in turn; one that ends makes room for the next.
template <class T>
class InterleaveIterator final : public Iterator<T> {
 public:
  InterleaveIterator(std::shared_ptr<const Node> node, const IteratorContext& c,
                     IteratorFactory<T> factory, std::int64_t cycle_length)
      : Iterator<T>(std::move(node), c),
        factory_(std::move(factory)),
        slots_(static_cast<std::size_t>(std::min(cycle_length, factory_.count))) {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      slots_[i].data_set = static_cast<std::int64_t>(i);
  }

  std::optional<T> do_next() override {
    if (slots_.empty()) return std::nullopt;
    while (true) {
      Slot& s = slots_[static_cast<std::size_t>(at_)];
      if (s.iterator) {
        std::optional<T> e = s.iterator->next();
        if (e) {
          last_ = s.data_set;
          advance();
          return e;
        }
        s.iterator->save_to(s.final_state);
        s.exhausted = true;
        s.iterator.reset();
        advance();
      } else if (next_data_set_ < factory_.count) {
        open(s);
      } else if (std::none_of(slots_.begin(), slots_.end(),
                              [](const Slot& o) { return o.iterator != nullptr; })) {
        return std::nullopt;
      } else {
        advance();
      }
    }
  }

  // Opens what can be opened, so that a fresh iterator reports its first ring.
  void save(StateWriter& w) override {
    std::vector<State> states(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& s = slots_[i];
      if (!s.iterator && !s.exhausted) {
        if (next_data_set_ >= factory_.count) break;
        open(s);
      }
      if (s.iterator)
        s.iterator->save_to(states[i]);
      else
        states[i] = s.final_state;
    }
    w.begin_object();
    w.field("next_index_in_cycle", at_);
    w.field("next_index_in_datasets", next_data_set_);
    w.key("iterators_in_use_indices");
    w.begin_array();
    for (const Slot& s : slots_) w.integer(s.data_set);
    w.end();
    w.key("iterators_in_use_states");
    w.begin_array();
    for (const State& s : states) w.copy(s);
    w.end();
    w.key("exhausted");
    w.begin_array();
    for (const Slot& s : slots_) w.integer(s.exhausted ? 1 : 0);
    w.end();
    w.key("future_states");
    w.begin_object();
    for (const auto& [i, s] : future_) {
      w.key(std::to_string(i));
      w.copy(s);
    }
    w.end();
    w.end();
  }

  void restore(const StateView& s) override {
    const auto indices = s.at("iterators_in_use_indices").items();
    const auto states = s.at("iterators_in_use_states").items();
    const auto exhausted = s.at("exhausted").items();
    const std::int64_t at = s.integer("next_index_in_cycle");
    const std::int64_t next = s.integer("next_index_in_datasets");
    const bool ring = indices.size() == slots_.size() && states.size() == slots_.size() &&
                      exhausted.size() == slots_.size();
    if (!ring || at < 0 ||
        at >= std::max<std::int64_t>(1, static_cast<std::int64_t>(slots_.size())) || next < 0 ||
        next > factory_.count)
      throw_user_error({"interleave: state",
                        "a ring of " + std::to_string(slots_.size()) + " of " +
                            std::to_string(factory_.count) + " data sets",
                        "one of " + std::to_string(indices.size()) + ", next " +
                            std::to_string(next) + ", at " + std::to_string(at),
                        "Restore with as many data sets (or workers) and the cycle_length that the "
                        "state was saved with"});
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      const std::int64_t d = indices[i].integer();
      if (d < 0 || d >= factory_.count)
        throw_user_error({"interleave: state",
                          "data sets from 0 to " + std::to_string(factory_.count - 1),
                          std::to_string(d), "Restore with the data sets of the saved state"});
      if (states[i].is_null()) {
        slot.iterator.reset();
        slot.exhausted = false;
      } else if (exhausted[i].integer() == 0) {
        if (!slot.iterator || slot.data_set != d) {
          slot.iterator = factory_.make(d);
          // At once: the state that follows may be refused.
          slot.data_set = d;
        }
        slot.iterator->restore(states[i]);
        slot.exhausted = false;
      } else {
        states[i].extract(slot.final_state);
        slot.exhausted = true;
        slot.iterator.reset();
      }
      slot.data_set = d;
    }
    at_ = at;
    next_data_set_ = next;
    future_.clear();
    if (const StateView f = s.find("future_states"); f.valid() && f.is_object())
      for (const StateView& v : f.items()) future_[std::stoll(std::string(v.key()))] = v.extract();
  }

  void start_prefetch() override {
    for (Slot& s : slots_)
      if (s.iterator) s.iterator->start_prefetch();
  }
  std::string origin() const override { return "data set " + std::to_string(last_); }

 private:
  struct Slot {
    std::unique_ptr<Iterator<T>> iterator;
    std::int64_t data_set = 0;
    bool exhausted = false;
    State final_state;
  };

  void advance() { at_ = (at_ + 1) % static_cast<std::int64_t>(slots_.size()); }
  void open(Slot& s) {
    s.iterator = factory_.make(next_data_set_);
    s.exhausted = false;
    s.data_set = next_data_set_;
    if (const auto f = future_.find(next_data_set_); f != future_.end()) {
      s.iterator->restore(f->second.view());
      future_.erase(f);
    } else {
      s.iterator->start_prefetch();
    }
    ++next_data_set_;
  }

  IteratorFactory<T> factory_;
  std::vector<Slot> slots_;
  std::int64_t at_ = 0, next_data_set_ = 0, last_ = 0;
  std::map<std::int64_t, State> future_;
};

void check_cycle_length(std::int64_t cycle_length, std::int64_t count);

// Interleaves the parents, or the data sets that a map-style parent gives.
template <class T>
class InterleaveNode final : public IterNode<T> {
 public:
  using Lazy = std::function<std::shared_ptr<const Node>(const Node& parent, std::int64_t i)>;

  InterleaveNode(InterleaveOptions options, Lazy lazy) : options_(options), lazy_(std::move(lazy)) {
    check_buffer(options.iter_buffer_size);
  }
  void bind() {
    count_ =
        lazy_ ? this->parents()[0]->length() : static_cast<std::int64_t>(this->parents().size());
    check_cycle_length(options_.cycle_length, count_);
  }
  XYLEM_DATA_NODE(InterleaveNode, "interleave")
  std::string arguments() const override {
    return std::to_string(count_) +
           " data sets, cycle_length=" + std::to_string(options_.cycle_length);
  }
  bool prefetches() const override { return true; }
  bool hides_seeds() const override { return true; }
  bool sparse() const override { return false; }
  std::shared_ptr<Node> worker_part(std::int64_t i, std::int64_t n, bool) const override {
    auto copy = std::make_shared<InterleaveNode>(*this);
    copy->first_ = first_ + i * stride_;
    copy->stride_ = stride_ * n;
    copy->count_ = i < count_ ? (count_ - i - 1) / n + 1 : 0;
    return copy;
  }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    IteratorFactory<T> f;
    f.count = count_;
    f.make = [this, self, c](std::int64_t i) { return make(self, c, first_ + i * stride_); };
    return std::make_unique<InterleaveIterator<T>>(self, c, std::move(f), options_.cycle_length);
  }

 private:
  std::unique_ptr<Iterator<T>> make(const std::shared_ptr<const Node>& self,
                                    const IteratorContext& outer, std::int64_t i) const {
    std::shared_ptr<const Node> node =
        lazy_ ? lazy_(*this->parents()[0], i) : this->parents()[static_cast<std::size_t>(i)];
    IteratorContext c = outer;
    if (lazy_) c.options = outer.options.or_else(collect_options(*node));
    if (node->is_map_style()) {
      node = make_node<ReadNode<T>>({node}, "", ReadAheadOptions());
      return static_cast<const IterNode<T>&>(*node).iterate(node, c);
    }
    return std::make_unique<ThreadPrefetchIterator<T>>(
        self, c, static_cast<const IterNode<T>&>(*node).iterate(node, c),
        options_.iter_buffer_size);
  }

  InterleaveOptions options_;
  Lazy lazy_;
  std::int64_t count_ = 0, first_ = 0, stride_ = 1;
};

// The parent's elements, computed by several workers with a part of the source each.
template <class T>
class WorkersNode final : public IterNode<T> {
 public:
  explicit WorkersNode(WorkerOptions options) : options_(options) {
    check_buffer(options.num_workers);
    check_buffer(options.per_worker_buffer_size);
  }
  XYLEM_DATA_NODE(WorkersNode, "mp_prefetch")
  std::string arguments() const override {
    return "num_workers=" + std::to_string(options_.num_workers) +
           (options_.sequential_slice ? ", sequential_slice" : "");
  }
  bool prefetches() const override { return options_.num_workers > 0; }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    if (options_.num_workers == 0) return this->template iterate_parent<T>(c);
    IteratorFactory<T> f;
    f.count = options_.num_workers;
    f.make = [this, self, c](std::int64_t i) -> std::unique_ptr<Iterator<T>> {
      std::shared_ptr<const Node> part = this->parents()[0];
      if (options_.num_workers > 1)
        part = cut_for_worker(part, i, options_.num_workers, options_.sequential_slice);
      IteratorContext own = c;
      own.process_index = i;
      own.process_count = options_.num_workers;
      return std::make_unique<ThreadPrefetchIterator<T>>(
          self, own, static_cast<const IterNode<T>&>(*part).iterate(part, own),
          options_.per_worker_buffer_size);
    };
    return std::make_unique<InterleaveIterator<T>>(self, c, std::move(f), options_.num_workers);
  }

 private:
  WorkerOptions options_;
};

}  // namespace internal
}  // namespace xylem::data
