#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/data/elastic_node.h"
#include "xylem/data/interleave_node.h"
#include "xylem/data/iter_nodes.h"
#include "xylem/data/map_nodes.h"
#include "xylem/data/packing.h"
#include "xylem/data/read_node.h"

// Pipelines, as Grain's Dataset API.
//
//   auto ds = data::source(records)                  // MapDataset<Record>: element i at any time
//                 .seed(42)
//                 .shuffle()
//                 .map(decode)                       // Record -> Example
//                 .batch(32)                         // Example -> Example of [32, ...] arrays
//                 .repeat()
//                 .to_iter_dataset();                // IterDataset<Example>
//   auto it = ds.iterator();
//   while (auto batch = it.next()) train(*batch);
//   std::string place = it.get_state();              // {"next_index": 17}, Grain's own layout
//   it.set_state(place);
//
// Data sets are values: handles to immutable graphs. Element types are checked at compile time.
// Functions given to map, filter, ... must be safe to call from several threads at once unless
// num_threads is 0, and give the same result for the same arguments.

namespace xylem::data {

template <class T>
class MapDataset;
template <class T>
class IterDataset;

template <class T>
class DatasetIterator;

namespace internal {

template <class T>
struct IsDataset : std::false_type {};
template <class T>
struct IsDataset<MapDataset<T>> : std::true_type {
  using Element = T;
};
template <class T>
struct IsDataset<IterDataset<T>> : std::true_type {
  using Element = T;
};

void check_count(std::string_view what, std::int64_t given);
void check_finite(std::int64_t length);
void check_dense(const Node& node);
void check_equal_lengths(std::span<const std::int64_t> lengths);
void check_some(std::string_view what, std::size_t n);
void check_index(std::int64_t i, std::int64_t length);
void check_open(bool open);

template <class F, class T>
using MapResult = std::remove_cvref_t<std::invoke_result_t<const F&, T>>;

}  // namespace internal

struct DescribeOptions {
  bool elements = true;  // computes the first element of every node, to tell shapes
};

// What map-style and iterator-style data sets have in common.
class DatasetBase {
 public:
  const std::shared_ptr<const Node>& node() const { return node_; }
  // The graph as an indented tree, from the output down to the sources: nodes, element types,
  // shapes, and counts and times where they were measured (PipelineOptions::timing).
  std::string describe(const DescribeOptions& o = {}) const;
  // The same for Graphviz, and as a page with the picture and a table; a browser loads the page
  // again every `refresh_seconds`, if that is positive.
  std::string dot() const;
  std::string html(int refresh_seconds = 0) const;
  // In one line, what limits the pipeline and what to do.
  std::string verdict() const;

 protected:
  explicit DatasetBase(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// A position in an IterDataset. One thread at a time. Moved, not copied.
template <class T>
class DatasetIterator {
 public:
  explicit DatasetIterator(std::shared_ptr<const Node> node) : node_(std::move(node)) {
    context_.options = internal::collect_options(*node_);
    it_ = static_cast<const IterNode<T>&>(*node_).iterate(node_, context_);
  }

  // The next element; nullopt at the end. UserError after close(). An error of the pipeline's
  // functions names the node and the record; the position stays before the element at fault.
  std::optional<T> next() {
    internal::check_open(it_ != nullptr);
    if (!context_.options.timing.value_or(false)) return it_->next();
    return timed_next();
  }

  // The place behind the last element returned, as JSON; Grain's layout. Any number of times.
  std::string get_state(int indent = 0) const {
    internal::check_open(it_ != nullptr);
    State s;
    it_->save_to(s);
    return s.to_json(indent);
  }
  // Continues where the state was taken, on this or another iterator of the same pipeline.
  // UserError if it is none; the position is then unspecified until another set_state.
  void set_state(std::string_view json) {
    internal::check_open(it_ != nullptr);
    const State s = State::parse(json);
    it_->restore(s.view());
  }
  void save(State& s) const {
    internal::check_open(it_ != nullptr);
    it_->save_to(s);
  }
  void restore(const State& s) {
    internal::check_open(it_ != nullptr);
    it_->restore(s.view());
  }

  // Begins to compute in the background. Idempotent.
  void start_prefetch() {
    internal::check_open(it_ != nullptr);
    it_->start_prefetch();
  }
  // Ends all threads. Idempotent; the destructor does it, too.
  void close() { it_.reset(); }

  // for (auto& batch : iterator) ...
  class Cursor {
   public:
    explicit Cursor(DatasetIterator* it) : it_(it) { ++*this; }
    Cursor() = default;
    T& operator*() { return *element_; }
    Cursor& operator++() {
      element_ = it_->next();
      if (!element_) it_ = nullptr;
      return *this;
    }
    bool operator!=(const Cursor& o) const { return it_ != o.it_; }

   private:
    DatasetIterator* it_ = nullptr;
    std::optional<T> element_;
  };
  Cursor begin() { return Cursor(this); }
  Cursor end() { return Cursor(); }

 private:
  std::optional<T> timed_next() {
    const std::int64_t begin = internal::now_ns();
    std::optional<T> e = it_->next();
    internal::record_next(*node_, begin, internal::now_ns());
    return e;
  }

  std::shared_ptr<const Node> node_;
  IteratorContext context_;
  std::unique_ptr<Iterator<T>> it_;
};

// ---- random access

template <class T>
class MapDataset : public DatasetBase {
 public:
  using Element = T;
  explicit MapDataset(std::shared_ptr<const MapNode<T>> node) : DatasetBase(std::move(node)) {}

  // Length of one epoch.
  std::int64_t size() const { return node_->length(); }
  // Element i >= 0, which may lie in a later epoch; nullopt if it is absent.
  std::optional<T> at(std::int64_t i) const {
    internal::check_index(i, size());
    return map_node().get(EvalContext(), i);
  }
  // An element that must be present.
  T operator[](std::int64_t i) const {
    std::optional<T> e = at(i);
    if (!e)
      throw_user_error({"MapDataset[]", "a present element",
                        "element " + std::to_string(i) + " is absent",
                        "Use at(), which says so, or to_iter_dataset()"});
    return std::move(*e);
  }
  // Several elements with one call.
  std::vector<std::optional<T>> get(std::span<const std::int64_t> indices) const {
    for (const std::int64_t i : indices) internal::check_index(i, size());
    std::vector<std::optional<T>> out(indices.size());
    map_node().get(EvalContext(), indices, std::span(out));
    return out;
  }

  // f(element).
  template <class F>
  requires std::invocable<const F&, T>
  auto map(F f, std::string name = "") const {
    using U = internal::MapResult<F, T>;
    return make<internal::MapMapNode<T, U, F>, U>(std::move(name), std::move(f));
  }
  // f(index, element); the index runs on over epochs.
  template <class F>
  requires std::invocable<const F&, std::int64_t, T>
  auto map_with_index(F f, std::string name = "") const {
    using U = std::remove_cvref_t<std::invoke_result_t<const F&, std::int64_t, T>>;
    return make<internal::MapWithIndexMapNode<T, U, F>, U>(std::move(name), std::move(f));
  }
  // f(element, generator): Grain's generator for this seed and index.
  template <class F>
  requires std::invocable<const F&, T, Generator&>
  auto random_map(F f, std::optional<std::int64_t> seed = std::nullopt,
                  std::string name = "") const {
    using U = std::remove_cvref_t<std::invoke_result_t<const F&, T, Generator&>>;
    auto n = make_node<internal::RandomMapMapNode<T, U, F>>({node_}, std::move(name), std::move(f));
    n->set_seed(n->resolve_seed(seed, false));
    return MapDataset<U>(std::move(n));
  }
  // Elements that f rejects become absent; indices and length stay.
  template <class F>
  requires std::predicate<const F&, const T&> MapDataset filter(F f, std::string name = "")
  const { return make<internal::FilterMapNode<T, F>, T>(std::move(name), std::move(f)); }
  // f(element) gives at most max_fan_out pieces; the rest of each group of max_fan_out is absent.
  template <class F>
  requires std::invocable<const F&, T>
  auto flat_map(F f, std::int64_t max_fan_out, std::string name = "") const {
    internal::check_count("flat_map: max_fan_out", max_fan_out);
    using U =
        std::remove_cvref_t<decltype(*std::begin(std::declval<internal::MapResult<F, T>&>()))>;
    return make<internal::FlatMapMapNode<T, U, F>, U>(std::move(name), std::move(f), max_fan_out);
  }

  // The default seed of the random nodes that follow.
  MapDataset seed(std::uint64_t s) const {
    return make<internal::MarkMapNode<T>, T>("", std::optional<std::uint64_t>(s));
  }
  // See Compat; of the nodes that follow.
  MapDataset compat(Compat c) const {
    auto n = std::make_shared<internal::MarkMapNode<T>>(std::nullopt);
    n->set_parents({node_});
    n->set_compat(c);
    return MapDataset(std::move(n));
  }
  // Another order in every epoch: that of epoch e is IndexShuffle(size, seed + e).
  MapDataset shuffle(std::optional<std::int64_t> seed = std::nullopt) const {
    auto n = make_node<internal::ShuffleMapNode<T>>({node_}, "");
    n->set_seed(n->resolve_seed(seed, true));
    return MapDataset(std::move(n));
  }
  // Shuffles within windows of `window_size` elements.
  MapDataset window_shuffle(std::int64_t window_size, std::int64_t seed) const {
    internal::check_count("window_shuffle: window_size", window_size);
    auto n =
        make_node<internal::WindowShuffleMapNode<T>>({node_}, "", window_size, std::uint64_t{0});
    const std::uint64_t s = n->resolve_seed(seed, true);
    return make<internal::WindowShuffleMapNode<T>, T>("", window_size, s);
  }
  // Positions of one epoch, as Python's [start:stop:step]. After a shuffle later epochs give the
  // records of the first epoch's slice in new orders (Compat::grain: whatever stands there then).
  MapDataset slice(Slice s) const {
    s.resolve(0);
    auto n = make_node<internal::SliceNode<T>>({node_}, "", s, false);
    n->bind();
    return MapDataset(std::move(n));
  }
  MapDataset slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                   std::int64_t step = 1) const {
    return slice(Slice{start, stop, step});
  }
  MapDataset slice(std::vector<std::int64_t> positions) const {
    auto n = make_node<internal::SliceNode<T>>({node_}, "", std::move(positions));
    n->bind();
    return MapDataset(std::move(n));
  }
  // The part of host `shard_index` of `shard_count`: every shard_count-th element.
  MapDataset shard(std::int64_t shard_index, std::int64_t shard_count) const {
    return slice(Slice{shard_index, std::nullopt, shard_count});
  }
  // num_epochs passes in one epoch; without a number, no end. reseed_each_epoch = false: all equal
  // to the first.
  MapDataset repeat(std::optional<std::int64_t> num_epochs = std::nullopt,
                    bool reseed_each_epoch = true) const {
    if (num_epochs) internal::check_count("repeat: num_epochs", *num_epochs);
    internal::check_finite(size());
    return make<internal::RepeatMapNode<T>, T>("", num_epochs, reseed_each_epoch);
  }

  // Stacks batch_size elements (see Arrays). Batches do not straddle epochs.
  auto batch(std::int64_t batch_size, bool drop_remainder = false) const {
    static_assert(HasArrays<T>,
                  "batch: a struct with fields that are not HostArrays has no array form; name a "
                  "struct of HostArrays with the same field names: batch<Batch>(n)");
    return batch_as<Arrays<T>>(batch_size, drop_remainder, internal::DefaultBatch<T, Arrays<T>>{});
  }
  // Into a struct whose fields have names of the element's.
  template <class Out>
  MapDataset<Out> batch(std::int64_t batch_size, bool drop_remainder = false) const {
    return batch_as<Out>(batch_size, drop_remainder, internal::DefaultBatch<T, Out>{});
  }
  // f(std::vector<T>) makes the batch.
  template <class F>
  requires std::invocable<const F&, std::vector<T>>
  auto batch(std::int64_t batch_size, F f, bool drop_remainder = false) const {
    return batch_as<internal::MapResult<F, std::vector<T>>>(
        batch_size, drop_remainder, internal::CustomBatch<T, F>{std::move(f)});
  }
  // The last batch is filled up with rows of pad_value.
  auto batch_and_pad(std::int64_t batch_size, double pad_value = 0) const {
    return batch_as<Arrays<T>>(batch_size, false,
                               internal::DefaultBatch<T, Arrays<T>>{batch_size, pad_value});
  }

  // Elements 0, 1, ... of one epoch in order, absent ones left out.
  IterDataset<T> to_iter_dataset(ReadAheadOptions options) const;
  // With the default options; numbers of range() are not worth threads.
  IterDataset<T> to_iter_dataset() const;
  // Each element or its absence.
  IterDataset<std::optional<T>> to_iter_dataset_with_absent(ReadAheadOptions options = {}) const;
  DatasetIterator<T> iterator() const { return to_iter_dataset().iterator(); }

  const MapNode<T>& map_node() const { return static_cast<const MapNode<T>&>(*node_); }

 private:
  template <class N, class U, class... Args>
  MapDataset<U> make(std::string name, Args&&... args) const {
    return MapDataset<U>(make_node<N>({node_}, std::move(name), std::forward<Args>(args)...));
  }
  template <class Out, class F>
  MapDataset<Out> batch_as(std::int64_t batch_size, bool drop, F f) const {
    internal::check_count("batch: batch_size", batch_size);
    internal::check_dense(*node_);
    return make<internal::BatchMapNode<T, Out, F>, Out>("", batch_size, drop, std::move(f));
  }
};

// ---- one element after the other

template <class T>
class IterDataset : public DatasetBase {
 public:
  using Element = T;
  explicit IterDataset(std::shared_ptr<const IterNode<T>> node) : DatasetBase(std::move(node)) {}

  DatasetIterator<T> iterator() const { return DatasetIterator<T>(node_); }

  template <class F>
  requires std::invocable<const F&, T>
  auto map(F f, std::string name = "") const {
    using U = internal::MapResult<F, T>;
    return make<internal::MapIterNode<T, U, F>, U>(std::move(name), std::move(f));
  }
  // f(count, element), from 0.
  template <class F>
  requires std::invocable<const F&, std::int64_t, T>
  auto map_with_index(F f, std::string name = "") const {
    using U = std::remove_cvref_t<std::invoke_result_t<const F&, std::int64_t, T>>;
    return make<internal::CountedMapIterNode<T, U, F>, U>(std::move(name), std::move(f), false);
  }
  template <class F>
  requires std::invocable<const F&, T, Generator&>
  auto random_map(F f, std::optional<std::int64_t> seed = std::nullopt,
                  std::string name = "") const {
    using U = std::remove_cvref_t<std::invoke_result_t<const F&, T, Generator&>>;
    auto n = make_node<internal::CountedMapIterNode<T, U, F>>({node_}, std::move(name),
                                                              std::move(f), true);
    n->set_seed(n->resolve_seed(seed, false));
    return IterDataset<U>(std::move(n));
  }
  template <class F>
  requires std::predicate<const F&, const T&> IterDataset filter(F f, std::string name = "")
  const { return make<internal::FilterIterNode<T, F>, T>(std::move(name), std::move(f)); }
  template <class F>
  requires std::invocable<const F&, T>
  auto flat_map(F f, std::string name = "") const {
    using U =
        std::remove_cvref_t<decltype(*std::begin(std::declval<internal::MapResult<F, T>&>()))>;
    return make<internal::FlatMapIterNode<T, U, F>, U>(std::move(name), std::move(f));
  }

  IterDataset seed(std::uint64_t s) const {
    return make<internal::MarkIterNode<T>, T>("", std::optional<std::uint64_t>(s),
                                              PipelineOptions(), false);
  }
  IterDataset compat(Compat c) const {
    auto n = std::make_shared<internal::MarkIterNode<T>>(std::nullopt, PipelineOptions(), false);
    n->set_parents({node_});
    n->set_compat(c);
    return IterDataset(std::move(n));
  }
  // Options of the whole pipeline; those nearer to the output win.
  IterDataset with_options(PipelineOptions o) const {
    return make<internal::MarkIterNode<T>, T>("", std::optional<std::uint64_t>(), std::move(o),
                                              true);
  }

  auto batch(std::int64_t batch_size, bool drop_remainder = false) const {
    static_assert(HasArrays<T>,
                  "batch: a struct with fields that are not HostArrays has no array form; name a "
                  "struct of HostArrays with the same field names: batch<Batch>(n)");
    return batch_as<Arrays<T>>(batch_size, drop_remainder, internal::DefaultBatch<T, Arrays<T>>{});
  }
  template <class Out>
  IterDataset<Out> batch(std::int64_t batch_size, bool drop_remainder = false) const {
    return batch_as<Out>(batch_size, drop_remainder, internal::DefaultBatch<T, Out>{});
  }
  template <class F>
  requires std::invocable<const F&, std::vector<T>>
  auto batch(std::int64_t batch_size, F f, bool drop_remainder = false) const {
    return batch_as<internal::MapResult<F, std::vector<T>>>(
        batch_size, drop_remainder, internal::CustomBatch<T, F>{std::move(f)});
  }
  auto batch_and_pad(std::int64_t batch_size, double pad_value = 0) const {
    return batch_as<Arrays<T>>(batch_size, false,
                               internal::DefaultBatch<T, Arrays<T>>{batch_size, pad_value});
  }
  // Batches cut anew to batch_size rows.
  IterDataset rebatch(std::int64_t batch_size, bool drop_remainder = false) const {
    internal::check_count("rebatch: batch_size", batch_size);
    return make<internal::RebatchNode<T>, T>("", batch_size, drop_remainder);
  }

  IterDataset limit(std::int64_t count) const {
    internal::check_count("limit: count", count);
    return make<internal::LimitNode<T>, T>("", count);
  }
  // Equal epochs; without a number, no end.
  IterDataset repeat(std::optional<std::int64_t> num_epochs = std::nullopt) const {
    if (num_epochs) internal::check_count("repeat: num_epochs", *num_epochs);
    return make<internal::RepeatIterNode<T>, T>("", num_epochs);
  }
  // Keeps the elements of the first pass in memory.
  IterDataset cache() const { return make<internal::CacheNode<T>, T>(""); }
  IterDataset window_shuffle(std::int64_t window_size, std::int64_t seed) const {
    internal::check_count("window_shuffle: window_size", window_size);
    const std::uint64_t s = node_->resolve_seed(seed, true);
    return make<internal::WindowShuffleIterNode<T>, T>("", window_size, s);
  }

  // See PackOptions. Rows come out as Packed<Arrays<T>>.
  IterDataset<Packed<Arrays<T>>> first_fit_pack(PackOptions o) const {
    return make<internal::PackNode<T>, Packed<Arrays<T>>>("", std::move(o), FitStrategy::first_fit);
  }
  IterDataset<Packed<Arrays<T>>> best_fit_pack(PackOptions o) const {
    return make<internal::PackNode<T>, Packed<Arrays<T>>>("", std::move(o), FitStrategy::best_fit);
  }
  IterDataset<Packed<Arrays<T>>> concat_then_split(ConcatThenSplitOptions o) const {
    return make<internal::ConcatThenSplitNode<T>, Packed<Arrays<T>>>("", std::move(o));
  }

  // Computes `buffer_size` elements ahead on one thread.
  IterDataset thread_prefetch(int buffer_size) const {
    return make<internal::ThreadPrefetchNode<T>, T>("", buffer_size);
  }
  // By several threads, each with a part of the source; Grain's mp_prefetch and
  // multithread_prefetch. What combines records (batch, filter, pack) before this depends on their
  // number.
  IterDataset mp_prefetch(WorkerOptions o) const {
    return make<internal::WorkersNode<T>, T>("", o);
  }
  IterDataset multithread_prefetch(int num_threads, int buffer_size = 1,
                                   bool sequential_slice = false) const {
    return mp_prefetch({num_threads, buffer_size, sequential_slice});
  }
  // Host elements ahead, `place` (which puts an element on a device), placed elements ahead:
  // Grain's device_put.
  template <class F>
  requires std::invocable<const F&, T>
  auto device_put(F place, int cpu_buffer_size = 4, int device_buffer_size = 2) const {
    return thread_prefetch(cpu_buffer_size)
        .map(std::move(place), "place")
        .thread_prefetch(device_buffer_size);
  }

 private:
  template <class N, class U, class... Args>
  IterDataset<U> make(std::string name, Args&&... args) const {
    return IterDataset<U>(make_node<N>({node_}, std::move(name), std::forward<Args>(args)...));
  }
  template <class Out, class F>
  IterDataset<Out> batch_as(std::int64_t batch_size, bool drop, F f) const {
    internal::check_count("batch: batch_size", batch_size);
    return make<internal::BatchIterNode<T, Out, F>, Out>("", batch_size, drop, std::move(f));
  }
};

// ---- sources

// Records of anything with size() and get(i) or [i]: a vector, a reader of a file. Where it has
// get_batch(indices, out), runs of records are read by it, in ascending order.
template <class S>
auto source_of(std::shared_ptr<const S> records, std::string label = "list") {
  using T = internal::SourceElement<S>;
  return MapDataset<T>(
      std::make_shared<internal::SourceNode<T, S>>(std::move(records), std::move(label)));
}
template <class S>
auto source(S records, std::string label = "list") {
  return source_of(std::make_shared<const S>(std::move(records)), std::move(label));
}
template <class T>
MapDataset<T> source(std::initializer_list<T> records) {
  return source(std::vector<T>(records));
}
// Integers as Python's range.
MapDataset<std::int64_t> range(std::int64_t stop);
MapDataset<std::int64_t> range(std::int64_t start, std::int64_t stop, std::int64_t step = 1);

// ---- several data sets

namespace internal {
template <class D>
std::vector<std::shared_ptr<const Node>> nodes_of(const std::vector<D>& data_sets) {
  std::vector<std::shared_ptr<const Node>> n;
  for (const D& d : data_sets) n.push_back(d.node());
  return n;
}
template <class D>
std::vector<std::int64_t> lengths_of(const std::vector<D>& data_sets) {
  std::vector<std::int64_t> n;
  for (const D& d : data_sets) n.push_back(d.size());
  return n;
}
}  // namespace internal

// Elements of all in proportion to the weights (equal without). Weights are scaled so that the
// smallest is 100, then truncated to integers, as Grain does. The length is such that no element
// comes twice.
template <class T>
MapDataset<T> mix(const std::vector<MapDataset<T>>& data_sets, std::vector<double> weights = {}) {
  internal::check_some("mix", data_sets.size());
  return MapDataset<T>(make_node<internal::SelectNode<T>>(
      internal::nodes_of(data_sets), "", "mix",
      internal::mixture(internal::lengths_of(data_sets), weights, !weights.empty())));
}
template <class T>
IterDataset<T> mix(const std::vector<IterDataset<T>>& data_sets, std::vector<double> weights = {}) {
  internal::check_some("mix", data_sets.size());
  return IterDataset<T>(make_node<internal::MixIterNode<T>>(
      internal::nodes_of(data_sets), "", internal::mixing_proportions(weights, data_sets.size()),
      std::vector<std::string>()));
}
template <class T>
MapDataset<T> mix(std::initializer_list<MapDataset<T>> data_sets,
                  std::vector<double> weights = {}) {
  return mix(std::vector<MapDataset<T>>(data_sets), std::move(weights));
}
template <class T>
IterDataset<T> mix(std::initializer_list<IterDataset<T>> data_sets,
                   std::vector<double> weights = {}) {
  return mix(std::vector<IterDataset<T>>(data_sets), std::move(weights));
}
// By name: states are by name, so that data sets can be added and removed and weights changed.
template <class T>
IterDataset<T> mix(const std::map<std::string, IterDataset<T>>& data_sets,
                   const std::map<std::string, double>& weights = {}) {
  internal::check_some("mix", data_sets.size());
  std::vector<IterDataset<T>> list;
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& [name, d] : data_sets) {
    list.push_back(d);
    names.push_back(name);
    if (weights.empty()) continue;
    const auto w = weights.find(name);
    values.push_back(w == weights.end() ? 0 : w->second);
  }
  return IterDataset<T>(make_node<internal::MixIterNode<T>>(
      internal::nodes_of(list), "", internal::mixing_proportions(values, list.size()),
      std::move(names)));
}
// By a map of your own.
template <class T>
MapDataset<T> select_from_datasets(const std::vector<MapDataset<T>>& data_sets,
                                   std::shared_ptr<const Selection> selection) {
  return MapDataset<T>(make_node<internal::SelectNode<T>>(internal::nodes_of(data_sets), "",
                                                          "select", std::move(selection)));
}
// One after the other, epoch by epoch.
template <class T>
MapDataset<T> concatenate(const std::vector<MapDataset<T>>& data_sets) {
  internal::check_some("concatenate", data_sets.size());
  return MapDataset<T>(
      make_node<internal::SelectNode<T>>(internal::nodes_of(data_sets), "", "concatenate",
                                         internal::concatenation(internal::lengths_of(data_sets))));
}
template <class T>
MapDataset<T> concatenate(std::initializer_list<MapDataset<T>> data_sets) {
  return concatenate(std::vector<MapDataset<T>>(data_sets));
}
// Tuples. Map-style: of equal lengths. Iterator-style: strict raises if one ends before another.
template <class T, class... Ts>
MapDataset<std::tuple<T, Ts...>> zip(const MapDataset<T>& first, const MapDataset<Ts>&... rest) {
  const std::int64_t lengths[] = {first.size(), rest.size()...};
  internal::check_equal_lengths(lengths);
  return MapDataset<std::tuple<T, Ts...>>(
      make_node<internal::ZipMapNode<T, Ts...>>({first.node(), rest.node()...}, ""));
}
template <class T>
MapDataset<std::vector<T>> zip(const std::vector<MapDataset<T>>& data_sets) {
  internal::check_some("zip", data_sets.size());
  internal::check_equal_lengths(internal::lengths_of(data_sets));
  return MapDataset<std::vector<T>>(
      make_node<internal::ZipVectorMapNode<T>>(internal::nodes_of(data_sets), ""));
}
template <class T, class... Ts>
IterDataset<std::tuple<T, Ts...>> zip(const IterDataset<T>& first, const IterDataset<Ts>&... rest) {
  using Out = std::tuple<T, Ts...>;
  return IterDataset<Out>(
      make_node<internal::ZipIterNode<Out, T, Ts...>>({first.node(), rest.node()...}, "", true));
}
template <class T>
IterDataset<std::vector<T>> zip(const std::vector<IterDataset<T>>& data_sets, bool strict = true) {
  internal::check_some("zip", data_sets.size());
  return IterDataset<std::vector<T>>(
      make_node<internal::ZipVectorIterNode<T>>(internal::nodes_of(data_sets), "", strict));
}

// Round robin over cycle_length data sets at a time; one that ends makes room for the next.
template <class D>
requires internal::IsDataset<D>::value auto interleave(const std::vector<D>& data_sets,
                                                       InterleaveOptions options) {
  using T = typename internal::IsDataset<D>::Element;
  auto n =
      make_node<internal::InterleaveNode<T>>(internal::nodes_of(data_sets), "", options, nullptr);
  n->bind();
  return IterDataset<T>(std::move(n));
}
// The same over data sets that are made when their turn comes: `data_sets` maps, for instance, the
// names of files to readers.
template <class D>
requires internal::IsDataset<D>::value auto interleave(const MapDataset<D>& data_sets,
                                                       InterleaveOptions options) {
  using T = typename internal::IsDataset<D>::Element;
  auto n = make_node<internal::InterleaveNode<T>>(
      {data_sets.node()}, "", options, [](const Node& parent, std::int64_t i) {
        return static_cast<const MapNode<D>&>(parent).get(EvalContext(), i).value().node();
      });
  n->bind();
  return IterDataset<T>(std::move(n));
}

// Batches of global_batch_size / shard_count for host `shard_index`; the state is one number that
// any number of hosts continues from. `data_set` is unsharded and unbatched.
template <class T>
IterDataset<Arrays<T>> elastic(const MapDataset<T>& data_set, std::int64_t global_batch_size,
                               ShardOptions shard, ReadAheadOptions options = {}) {
  internal::check_dense(*data_set.node());
  return IterDataset<Arrays<T>>(make_node<internal::ElasticNode<T>>(
      {data_set.node()}, "", global_batch_size, shard, options));
}

// ---- implementation

template <class T>
IterDataset<T> MapDataset<T>::to_iter_dataset(ReadAheadOptions options) const {
  return IterDataset<T>(make_node<internal::ReadNode<T>>({node_}, "", options));
}

template <class T>
IterDataset<T> MapDataset<T>::to_iter_dataset() const {
  ReadAheadOptions o;
  if (node_->kind() == "range") o.prefetch_buffer_size = 0;
  return to_iter_dataset(o);
}

namespace internal {
template <class T>
class AbsentNode final : public MapNode<std::optional<T>> {
 public:
  XYLEM_DATA_NODE(AbsentNode, "with_absent")
  std::int64_t length() const override { return this->parents()[0]->length(); }
  bool sparse() const override { return false; }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<std::optional<T>>> out) const override {
    std::vector<std::optional<T>> in(indices.size());
    this->template parent_as<MapNode<T>>().get(c, indices, std::span(in));
    for (std::size_t k = 0; k < in.size(); ++k) out[k].emplace(std::move(in[k]));
  }
};
}  // namespace internal

template <class T>
IterDataset<std::optional<T>> MapDataset<T>::to_iter_dataset_with_absent(
    ReadAheadOptions options) const {
  return MapDataset<std::optional<T>>(make_node<internal::AbsentNode<T>>({node_}, ""))
      .to_iter_dataset(options);
}

}  // namespace xylem::data
