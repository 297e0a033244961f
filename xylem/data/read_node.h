#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xylem/data/map_nodes.h"
#include "xylem/data/node.h"
#include "xylem/data/prefetch.h"

namespace xylem::data {

// How elements of a map-style data set are computed ahead. Results do not depend on it.
struct ReadAheadOptions {
  int num_threads = 16;            // at most; 0: none but the caller's
  int prefetch_buffer_size = 500;  // elements computed but not yet given out; 0: no threads
  OnError on_error = OnError::raise;
};

namespace internal {

void check_read_options(const ReadAheadOptions& o);
[[noreturn]] void throw_index_outside(std::int64_t index, std::int64_t length);

// Where a map-style data set becomes an iterator: elements 0, 1, ... of one pass, absent ones left
// out. Runs of elements are computed at once, by threads if an element takes long enough to be
// worth it; how long runs are depends on times measured, what comes out does not.
template <class T>
class ReadNode final : public IterNode<T> {
 public:
  explicit ReadNode(ReadAheadOptions options) : options_(options) { check_read_options(options); }
  XYLEM_DATA_NODE(ReadNode, "to_iter_dataset")
  std::string arguments() const override {
    return "num_threads=" + std::to_string(options_.num_threads) +
           ", prefetch_buffer_size=" + std::to_string(options_.prefetch_buffer_size);
  }
  bool prefetches() const override {
    return options_.num_threads > 0 && options_.prefetch_buffer_size > 0;
  }
  bool sparse() const override { return false; }
  std::shared_ptr<Node> worker_part(std::int64_t i, std::int64_t n,
                                    bool sequential) const override {
    auto copy = std::make_shared<ReadNode>(*this);
    if (sequential) {
      copy->set_parents({cut_for_worker(this->parents()[0], i, n, true)});
    } else {
      auto slice = make_node<SliceNode<T>>(
          {this->parents()[0]}, "", Slice{.start = i, .stop = std::nullopt, .step = n}, true);
      slice->bind();
      copy->set_parents({slice});
    }
    return copy;
  }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, options_);
  }

 private:
  // Elements first, first + 1, ...
  struct Run final : Task {
    std::shared_ptr<const Node> owner;
    const MapNode<T>* source = nullptr;
    EvalContext eval;
    bool skip_errors = false;
    std::int64_t first = 0;
    std::size_t count = 0;
    std::vector<std::optional<T>> out;
    std::vector<std::size_t> failed;  // positions skipped
    std::exception_ptr error;         // of position error_at; those before are there
    std::size_t error_at = 0;
    std::int64_t ns = 0;

    void run() override {
      const std::int64_t begin = now_ns();
      out.resize(count);
      std::vector<std::int64_t> indices(count);
      for (std::size_t k = 0; k < count; ++k) indices[k] = first + static_cast<std::int64_t>(k);
      try {
        source->get(eval, indices, std::span(out));
      } catch (...) {
        one_by_one(indices);
      }
      ns = now_ns() - begin;
    }
    // After a failure: finds the element at fault.
    void one_by_one(std::span<const std::int64_t> indices) {
      for (std::size_t k = 0; k < count; ++k) {
        try {
          source->get(eval, indices.subspan(k, 1), std::span(out).subspan(k, 1));
        } catch (...) {
          out[k].reset();
          if (skip_errors) {
            failed.push_back(k);
          } else {
            error = std::current_exception();
            error_at = k;
            return;
          }
        }
      }
    }
  };

  struct It final : Iterator<T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c, const ReadAheadOptions& o)
        : Iterator<T>(std::move(node), c),
          source(static_cast<const MapNode<T>*>(this->node_->parents()[0].get())),
          length(source->length()),
          options(o),
          watch(*this->node_, c.options),
          watched(source->sparse()),
          skip_errors(c.options.on_error.value_or(o.on_error) == OnError::skip) {
      if (this->eval_.debug) options.num_threads = 0;
      if (options.num_threads == 0 || options.prefetch_buffer_size == 0)
        options.num_threads = options.prefetch_buffer_size = 0;
    }

    std::optional<T> do_next() override {
      while (true) {
        if (!current || at == current->count) {
          if (index >= length) return std::nullopt;
          advance();
        }
        if (current->error && at == current->error_at) {
          // The position stays: the same call fails again.
          const std::exception_ptr error = current->error;
          std::rethrow_exception(error);
        }
        std::optional<T> e = std::move(current->out[at]);
        if (!current->failed.empty() &&
            std::find(current->failed.begin(), current->failed.end(), at) != current->failed.end())
          this->node_->stats().skipped.fetch_add(1, std::memory_order_relaxed);
        ++at;
        ++index;
        if (watched) watch.check(e.has_value());
        if (e) return e;
      }
    }

    // The run that begins at `index`.
    void advance() {
      at = 0;
      if (runs.empty()) {
        current = make_run(index);
        next_read = index + static_cast<std::int64_t>(current->count);
        current->run();
      } else {
        current = std::move(runs.front());
        runs.pop_front();
        ahead -= current->count;
        if (this->eval_.timing) {
          const std::int64_t begin = now_ns();
          group->wait(current);
          this->node_->stats().wait_ns.fetch_add(now_ns() - begin, std::memory_order_relaxed);
        } else {
          group->wait(current);
        }
      }
      learn(*current);
      // Elements that take no time are not worth a thread's attention.
      if (options.num_threads > 0 && ns_per_element >= kWorthAThread) read_ahead();
      if (this->eval_.timing) {
        this->node_->stats().buffered = static_cast<std::int64_t>(ahead);
        this->node_->stats().capacity = options.prefetch_buffer_size;
      }
    }

    std::shared_ptr<Run> make_run(std::int64_t first) {
      auto r = std::make_shared<Run>();
      r->owner = this->node_->parents()[0];
      r->source = source;
      r->eval = this->eval_;
      r->skip_errors = skip_errors;
      r->first = first;
      r->count = static_cast<std::size_t>(std::min<std::int64_t>(run_length, length - first));
      return r;
    }

    void learn(const Run& r) {
      const auto n = static_cast<std::int64_t>(r.count);
      ns_per_element = known ? (ns_per_element * 3 + r.ns / n) / 4 : r.ns / n;
      known = true;
      std::int64_t most = kLongestRun;
      // Large elements come singly, so that their memory can be used again.
      for (const std::optional<T>& e : r.out)
        if (e) {
          const auto bytes = static_cast<std::int64_t>(element_bytes(*e));
          most = std::clamp<std::int64_t>(kRunBytes / std::max<std::int64_t>(bytes, 1), 1, most);
          break;
        }
      if (options.num_threads > 0)
        most = ns_per_element < kWorthAThread
                   ? std::min<std::int64_t>(most, options.prefetch_buffer_size)
                   : std::min<std::int64_t>(most, std::max(1, options.prefetch_buffer_size /
                                                                  (2 * options.num_threads)));
      const std::int64_t fitting = kRunNs / std::max<std::int64_t>(ns_per_element, 1);
      run_length = std::clamp<std::int64_t>(fitting, 1, std::min(most, run_length * 2));
    }

    void read_ahead() {
      if (!group) group = std::make_unique<TaskGroup>(options.num_threads);
      while (next_read < length) {
        std::shared_ptr<Run> r = make_run(next_read);
        const std::size_t room = static_cast<std::size_t>(options.prefetch_buffer_size) - ahead;
        if (room == 0) break;
        r->count = std::min(r->count, room);
        next_read += static_cast<std::int64_t>(r->count);
        ahead += r->count;
        runs.push_back(r);
        group->submit(std::move(r));
      }
    }

    void start_prefetch() override {
      if (options.num_threads == 0 || !runs.empty()) return;
      if (!current) next_read = index;
      read_ahead();
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.field("next_index", index);
      w.end();
    }
    void restore(const StateView& s) override {
      const std::int64_t i = s.integer("next_index");
      if (i < 0 || i > length) throw_index_outside(i, length);
      index = i;
      if (group) group->cancel();
      runs.clear();
      ahead = 0;
      current.reset();
      at = 0;
    }
    std::string origin() const override { return index > 0 ? source->origin(index - 1) : ""; }

    // A run takes about this long; from which time per element threads help.
    static constexpr std::int64_t kRunNs = 100'000, kWorthAThread = 2'000, kLongestRun = 256;
    static constexpr std::int64_t kRunBytes = 1 << 16;

    const MapNode<T>* source;
    std::int64_t length;
    ReadAheadOptions options;
    FilterWatch watch;
    bool watched, skip_errors;
    std::int64_t index = 0;      // of the next element to give out
    std::int64_t next_read = 0;  // the next to compute
    std::shared_ptr<Run> current;
    std::size_t at = 0;
    std::deque<std::shared_ptr<Run>> runs;
    std::size_t ahead = 0;  // elements in runs
    std::int64_t run_length = 1, ns_per_element = 0;
    bool known = false;
    std::unique_ptr<TaskGroup> group;  // last: ends before what its tasks use
  };

  ReadAheadOptions options_;
};

}  // namespace internal
}  // namespace xylem::data
