#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/trace_mark.h"
#include "xylem/data/element.h"
#include "xylem/data/shuffle.h"
#include "xylem/data/state.h"

// What pipelines are made of. A node is immutable; datasets (dataset.h) are handles to nodes. Map
// nodes compute elements at any indices, iter nodes make iterators.

namespace xylem::data {

// Length of what has no end.
inline constexpr std::int64_t kInfinite = INT64_MAX;

enum class OnError : std::uint8_t {
  raise,  // the error reaches the caller of next(), at the position of the failing element
  skip,   // the element is left out and counted (DatasetIterator::skipped)
};

// Options of a whole pipeline. What is not set is decided by options nearer to the source, then by
// the default.
struct PipelineOptions {
  // Share of elements that a filter may reject, of 1,000 in a row: a warning (default 0.9, at most
  // one a minute), an error (default none).
  std::optional<double> filter_warn_threshold;
  std::optional<double> filter_raise_threshold;
  std::optional<OnError> on_error;
  // Measure each node: see NodeStats.
  std::optional<bool> timing;
  // One thread, every node's elements reported to `debug_sink` (standard error if empty).
  std::optional<bool> debug;
  std::function<void(const std::string&)> debug_sink;

  // What is set here, else what `other` sets.
  PipelineOptions or_else(const PipelineOptions& other) const;
};

// How elements are computed.
struct EvalContext {
  bool timing = false;
  bool debug = false;
  bool first_epoch_order = false;  // shuffles keep the order of epoch 0
  std::shared_ptr<const std::function<void(const std::string&)>> sink;
};

// What iterators of one pipeline share.
struct IteratorContext {
  PipelineOptions options;
  // Which of how many workers this is: indices of per-record generators are strided by it.
  std::int64_t process_index = 0, process_count = 1;

  EvalContext eval() const;
};

// Counts of a node, over all iterators of a pipeline. Times and bytes are taken only with
// PipelineOptions::timing.
struct NodeStats {
  std::atomic<std::int64_t> elements{0};
  std::atomic<std::int64_t> self_ns{0};  // without the parents
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> skipped{0};
  std::atomic<std::int64_t> wait_ns{0};  // prefetching nodes: what their consumer waited
  std::atomic<std::int64_t> buffered{0}, capacity{0};
  // Output nodes: time inside next(), and from the first call to the end of the last.
  std::atomic<std::int64_t> next_ns{0}, first_ns{0}, last_ns{0};
};

class Node {
 public:
  Node() : stats_(std::make_shared<NodeStats>()) {}
  virtual ~Node() = default;

  virtual std::shared_ptr<Node> clone() const = 0;
  // "batch", and its arguments: "32, drop_remainder".
  virtual std::string_view kind() const = 0;
  virtual std::string arguments() const { return ""; }
  virtual std::string_view element_type() const = 0;
  // Type and shape of its first element; computes it.
  virtual std::string first_element_spec() const = 0;
  virtual bool is_map_style() const = 0;
  virtual std::int64_t length() const { return -1; }  // map style
  // Elements may be absent: filters and flat maps, and what stands on them.
  virtual bool sparse() const;
  // Computes ahead on other threads.
  virtual bool prefetches() const { return false; }
  // The record that element `index` comes from, for messages: "record 5 of list".
  virtual std::string origin(std::int64_t index) const;
  // This node's part for one of several workers, if it can be cut itself. `sequential`: a block of
  // consecutive elements.
  virtual std::shared_ptr<Node> worker_part(std::int64_t /*index*/, std::int64_t /*count*/,
                                            bool /*sequential*/) const {
    return nullptr;
  }
  virtual const PipelineOptions* options() const { return nullptr; }
  // Marks are transparent: they hold a default seed or a mode for the nodes above.
  virtual bool is_mark() const { return false; }
  virtual std::optional<std::uint64_t> seed_mark() const { return std::nullopt; }
  // Of shuffles: the seed of the first epoch.
  virtual std::optional<std::uint32_t> shuffle_seed() const { return std::nullopt; }
  // One epoch holds other than one epoch of each parent.
  virtual bool changes_epochs() const { return false; }
  // Default seeds of the parents do not reach the nodes above.
  virtual bool hides_seeds() const { return false; }

  const std::vector<std::shared_ptr<const Node>>& parents() const { return parents_; }
  Compat compat() const { return compat_; }
  NodeStats& stats() const { return *stats_; }
  const std::string& name() const { return name_; }
  // "map:tokenize", "batch(32)".
  std::string title() const;
  // From the source to this node: "source > shuffle > map:tokenize".
  std::string path() const;

  // The seed of a random node with these parents: that given, or one derived from marks above
  // (breadth first; see derive_seed). UserError if there is neither.
  std::uint64_t resolve_seed(std::optional<std::int64_t> given, bool bits32) const;

  // Used while a node is made.
  void set_parents(std::vector<std::shared_ptr<const Node>> parents);
  void set_name(std::string name) { name_ = std::move(name); }
  void set_compat(Compat c) { compat_ = c; }

 protected:
  Node(const Node&) = default;

  template <class N>
  const N& parent_as(std::size_t i = 0) const {
    return static_cast<const N&>(*parents_[i]);
  }

 private:
  std::vector<std::shared_ptr<const Node>> parents_;
  std::shared_ptr<NodeStats> stats_;
  std::string name_;
  Compat compat_ = Compat::fixed;
};

namespace internal {

std::int64_t now_ns();

// Time spent in a node without what its parents take: the sum over the calling thread's nested
// scopes is what passes.
class SelfTimer {
 public:
  explicit SelfTimer(const Node& node);
  ~SelfTimer();
  void add(std::int64_t elements, std::int64_t bytes) {
    elements_ += elements;
    bytes_ += bytes;
  }

 private:
  const Node& node_;
  std::int64_t start_, outer_children_;
  std::int64_t elements_ = 0, bytes_ = 0;
};

void record_next(const Node& node, std::int64_t begin_ns, std::int64_t end_ns);

void debug_report(const EvalContext& c, const Node& node, std::int64_t index,
                  const std::string& spec, const std::string& preview);

// In a catch block: rethrows what is in flight with the node and the record named. A xylem::Error
// keeps its type; another exception becomes a UserError. No index is named if it is negative.
[[noreturn]] void rethrow_with_place(const Node& node, std::int64_t index,
                                     const std::string& origin);

// A copy of the graph below `node` in which the source part is cut for one of `count` workers.
std::shared_ptr<const Node> cut_for_worker(const std::shared_ptr<const Node>& node,
                                           std::int64_t index, std::int64_t count, bool sequential);

// Options of all nodes reachable from here; those nearer to the output win.
PipelineOptions collect_options(const Node& node);

// Watches the share of elements that pass, by windows of 1,000.
class FilterWatch {
 public:
  FilterWatch(const Node& node, const PipelineOptions& options);
  void check(bool passed) {
    passed_ += passed;
    if (++seen_ == 1000) window_full();
  }

 private:
  void window_full();
  const Node& node_;
  double warn_, raise_;
  int seen_ = 0, passed_ = 0;
};

}  // namespace internal

// ---- map nodes

// Elements at any index from 0 on; `length` is one epoch. Thread-safe.
template <class T>
class MapNode : public Node {
 public:
  // The elements at the indices, absent ones as nullopt. Exceptions leave `out` unspecified.
  void get(const EvalContext& c, std::span<const std::int64_t> indices,
           std::span<std::optional<T>> out) const {
    TraceMark mark(kind());
    if (!c.timing && !c.debug) [[likely]]
      return do_get(c, indices, out);
    {
      internal::SelfTimer timer(*this);
      do_get(c, indices, out);
      std::int64_t bytes = 0, n = 0;
      for (const auto& e : out)
        if (e) bytes += static_cast<std::int64_t>(element_bytes(*e)), ++n;
      timer.add(n, bytes);
    }
    if (c.debug)
      for (std::size_t i = 0; i < out.size(); ++i)
        internal::debug_report(c, *this, indices[i], out[i] ? element_spec(*out[i]) : "absent",
                               out[i] ? element_preview(*out[i]) : "");
  }
  std::optional<T> get(const EvalContext& c, std::int64_t index) const {
    std::optional<T> out;
    get(c, std::span(&index, 1), std::span(&out, 1));
    return out;
  }

  std::string_view element_type() const override { return reflect::type_name<T>(); }
  bool is_map_style() const override { return true; }
  std::string first_element_spec() const override {
    for (std::int64_t i = 0; i < length() && i < 100; ++i)
      if (const std::optional<T> e = get(EvalContext(), i)) return element_spec(*e);
    return "";
  }

 protected:
  virtual void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
                      std::span<std::optional<T>> out) const = 0;
};

// ---- iterators

// The position in a pipeline. One thread at a time.
class IteratorBase {
 public:
  explicit IteratorBase(std::shared_ptr<const Node> node, const IteratorContext& c)
      : node_(std::move(node)), eval_(c.eval()) {}
  virtual ~IteratorBase() = default;
  IteratorBase(const IteratorBase&) = delete;
  IteratorBase& operator=(const IteratorBase&) = delete;

  // The position after the last element returned.
  virtual void save(StateWriter& w) = 0;
  virtual void restore(const StateView& s) = 0;
  // Begins work in the background, if there is any to begin. Idempotent.
  virtual void start_prefetch() {}

  void save_to(State& s) {
    StateWriter w(s);
    save(w);
  }
  // The record that the last element came from, for messages.
  virtual std::string origin() const { return ""; }
  const Node& node() const { return *node_; }

 protected:
  std::shared_ptr<const Node> node_;
  EvalContext eval_;
};

template <class T>
class Iterator : public IteratorBase {
 public:
  using IteratorBase::IteratorBase;

  // The next element, nullopt at the end (again and again).
  std::optional<T> next() {
    if (!eval_.timing && !eval_.debug) [[likely]]
      return do_next();
    std::optional<T> e;
    {
      internal::SelfTimer timer(*node_);
      e = do_next();
      if (e) timer.add(1, static_cast<std::int64_t>(element_bytes(*e)));
    }
    if (eval_.debug && e)
      internal::debug_report(eval_, *node_, count_++, element_spec(*e), element_preview(*e));
    return e;
  }

 protected:
  virtual std::optional<T> do_next() = 0;

 private:
  std::int64_t count_ = 0;
};

template <class T>
class IterNode : public Node {
 public:
  virtual std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                               const IteratorContext& c) const = 0;

  std::string_view element_type() const override { return reflect::type_name<T>(); }
  bool is_map_style() const override { return false; }
  std::string first_element_spec() const override {
    const std::shared_ptr<const Node> self = clone();
    const std::optional<T> e =
        static_cast<const IterNode<T>&>(*self).iterate(self, IteratorContext())->next();
    return e ? element_spec(*e) : "";
  }

 protected:
  template <class P>
  std::unique_ptr<Iterator<P>> iterate_parent(const IteratorContext& c, std::size_t i = 0) const {
    return static_cast<const IterNode<P>&>(*parents()[i]).iterate(parents()[i], c);
  }
};

// Defines what every node class has.
#define XYLEM_DATA_NODE(Class, Kind)                                                      \
  std::shared_ptr<Node> clone() const override { return std::make_shared<Class>(*this); } \
  std::string_view kind() const override { return Kind; }

// Makes a node above the parents.
template <class N, class... Args>
std::shared_ptr<N> make_node(std::vector<std::shared_ptr<const Node>> parents, std::string name,
                             Args&&... args) {
  auto n = std::make_shared<N>(std::forward<Args>(args)...);
  n->set_name(std::move(name));
  n->set_parents(std::move(parents));
  return n;
}

}  // namespace xylem::data
