#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xylem/data/map_nodes.h"
#include "xylem/data/node.h"
#include "xylem/data/prefetch.h"

// Iter nodes that work on one element after the other. See read_node.h for where map nodes become
// iterators and interleave_node.h for several threads.

namespace xylem::data::internal {

// An iterator over one parent whose state is the parent's.
template <class P, class T>
class StepIterator : public Iterator<T> {
 public:
  StepIterator(std::shared_ptr<const Node> node, const IteratorContext& c,
               std::unique_ptr<Iterator<P>> parent)
      : Iterator<T>(std::move(node), c),
        parent_(std::move(parent)),
        skip_errors_(c.options.on_error == OnError::skip) {}
  void save(StateWriter& w) override { parent_->save(w); }
  void restore(const StateView& s) override { parent_->restore(s); }
  void start_prefetch() override { parent_->start_prefetch(); }
  std::string origin() const override { return parent_->origin(); }

 protected:
  // Runs f; false if it threw and errors are to be skipped.
  template <class F>
  bool attempt(F&& f) {
    try {
      f();
      return true;
    } catch (...) {
      if (!skip_errors_) rethrow_with_place(*this->node_, -1, parent_->origin());
      this->node_->stats().skipped.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  }

  std::unique_ptr<Iterator<P>> parent_;
  bool skip_errors_;
};

// A number of a state that counts something: from 0 to 2^60. UserError otherwise.
std::int64_t state_count(const StateView& s, std::string_view key);

// The typed node an iterator belongs to.
template <class N>
const N& node_as(const Node& n) {
  return static_cast<const N&>(n);
}

template <class P, class T, class F>
class MapIterNode final : public IterNode<T> {
 public:
  explicit MapIterNode(F f) : f_(std::move(f)) {}
  XYLEM_DATA_NODE(MapIterNode, "map")
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<P>(c));
  }

 private:
  struct It final : StepIterator<P, T> {
    using StepIterator<P, T>::StepIterator;
    std::optional<T> do_next() override {
      const F& f = node_as<MapIterNode>(*this->node_).f_;
      while (std::optional<P> e = this->parent_->next()) {
        std::optional<T> out;
        if (this->attempt([&] { out.emplace(f(std::move(*e))); })) return out;
      }
      return std::nullopt;
    }
  };
  F f_;
};

// map_with_index and random_map: the function's second argument comes from a counter.
template <class P, class T, class F>
class CountedMapIterNode final : public IterNode<T> {
 public:
  CountedMapIterNode(F f, bool random) : f_(std::move(f)), random_(random), generators_(0) {}
  void set_seed(std::uint64_t seed) { generators_ = RecordGenerators(seed); }
  std::shared_ptr<Node> clone() const override {
    return std::make_shared<CountedMapIterNode>(*this);
  }
  std::string_view kind() const override { return random_ ? "random_map" : "map_with_index"; }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<P>(c));
  }

 private:
  struct It final : StepIterator<P, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<P>> parent)
        : StepIterator<P, T>(std::move(node), c, std::move(parent)),
          first(c.process_index),
          stride(c.process_count) {}
    std::optional<T> do_next() override {
      const CountedMapIterNode& n = node_as<CountedMapIterNode>(*this->node_);
      while (std::optional<P> e = this->parent_->next()) {
        std::optional<T> out;
        bool ok;
        if constexpr (std::is_invocable_v<const F&, P, Generator&>) {
          ok = this->attempt([&] {
            Generator g = n.generators_(first + counter * stride);
            out.emplace(n.f_(std::move(*e), g));
          });
        } else {
          ok = this->attempt([&] { out.emplace(n.f_(counter, std::move(*e))); });
        }
        ++counter;
        if (ok) return out;
      }
      return std::nullopt;
    }
    std::string_view key() const {
      return node_as<CountedMapIterNode>(*this->node_).random_ ? "index_for_rng" : "counter";
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      this->parent_->save(w);
      w.field(key(), counter);
      w.end();
    }
    void restore(const StateView& s) override {
      this->parent_->restore(s.at("parent"));
      counter = state_count(s, key());
    }
    std::int64_t counter = 0, first, stride;
  };

  F f_;
  bool random_;
  RecordGenerators generators_;
};

template <class T, class F>
class FilterIterNode final : public IterNode<T> {
 public:
  explicit FilterIterNode(F f) : f_(std::move(f)) {}
  XYLEM_DATA_NODE(FilterIterNode, "filter")
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, T>(std::move(node), c, std::move(parent)),
          watch(*this->node_, c.options) {}
    std::optional<T> do_next() override {
      const F& f = node_as<FilterIterNode>(*this->node_).f_;
      while (std::optional<T> e = this->parent_->next()) {
        bool pass = false;
        if (!this->attempt([&] { pass = f(std::as_const(*e)); })) continue;
        watch.check(pass);
        if (pass) return e;
      }
      return std::nullopt;
    }
    FilterWatch watch;
  };
  F f_;
};

template <class T, class Out, class F>
class BatchIterNode final : public IterNode<Out> {
 public:
  BatchIterNode(std::int64_t size, bool drop, F f) : size_(size), drop_(drop), f_(std::move(f)) {}
  XYLEM_DATA_NODE(BatchIterNode, "batch")
  std::string arguments() const override {
    return std::to_string(size_) + (drop_ ? ", drop_remainder" : "");
  }
  std::unique_ptr<Iterator<Out>> iterate(const std::shared_ptr<const Node>& self,
                                         const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, Out> {
    using StepIterator<T, Out>::StepIterator;
    std::optional<Out> do_next() override {
      const BatchIterNode& n = node_as<BatchIterNode>(*this->node_);
      std::optional<Out> out;
      do {
        elements.clear();
        while (static_cast<std::int64_t>(elements.size()) < n.size_) {
          std::optional<T> e = this->parent_->next();
          if (!e) break;
          elements.push_back(std::move(e));
        }
        if (elements.empty() || (n.drop_ && static_cast<std::int64_t>(elements.size()) < n.size_))
          return std::nullopt;
      } while (!this->attempt([&] { out.emplace(n.f_(std::span(elements))); }));
      return out;
    }
    std::vector<std::optional<T>> elements;
  };
  std::int64_t size_;
  bool drop_;
  F f_;
};

template <class T>
class LimitNode final : public IterNode<T> {
 public:
  explicit LimitNode(std::int64_t count) : count_(count) {}
  XYLEM_DATA_NODE(LimitNode, "limit")
  std::string arguments() const override { return std::to_string(count_); }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    using StepIterator<T, T>::StepIterator;
    std::optional<T> do_next() override {
      if (read >= node_as<LimitNode>(*this->node_).count_) return std::nullopt;
      std::optional<T> e = this->parent_->next();
      if (e) ++read;
      return e;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      this->parent_->save(w);
      w.field("count_elements_read", read);
      w.end();
    }
    void restore(const StateView& s) override {
      this->parent_->restore(s.at("parent"));
      read = state_count(s, "count_elements_read");
    }
    std::int64_t read = 0;
  };
  std::int64_t count_;
};

template <class T>
class RepeatIterNode final : public IterNode<T> {
 public:
  explicit RepeatIterNode(std::optional<std::int64_t> epochs) : epochs_(epochs) {}
  XYLEM_DATA_NODE(RepeatIterNode, "repeat")
  std::string arguments() const override {
    return epochs_ ? std::to_string(*epochs_) : std::string("forever");
  }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, T>(std::move(node), c, std::move(parent)) {
      this->parent_->save_to(start);
    }
    std::optional<T> do_next() override {
      const auto& epochs = node_as<RepeatIterNode>(*this->node_).epochs_;
      bool empty = false;  // an epoch without an element: no other will have one
      while (!(epochs && epoch >= *epochs)) {
        if (std::optional<T> e = this->parent_->next()) return e;
        if (empty) return std::nullopt;
        ++epoch;
        if (epochs && epoch >= *epochs) break;
        this->parent_->restore(start.view());
        empty = true;
      }
      return std::nullopt;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      this->parent_->save(w);
      w.field("epoch", epoch);
      w.end();
    }
    void restore(const StateView& s) override {
      epoch = state_count(s, "epoch");
      this->parent_->restore(s.at("parent"));
    }
    State start;
    std::int64_t epoch = 0;
  };
  std::optional<std::int64_t> epochs_;
};

// Batches cut anew. T is a tree of HostArrays with a first axis in common.
template <class T>
class RebatchNode final : public IterNode<T> {
 public:
  RebatchNode(std::int64_t size, bool drop) : size_(size), drop_(drop) {}
  XYLEM_DATA_NODE(RebatchNode, "rebatch")
  std::string arguments() const override {
    return std::to_string(size_) + (drop_ ? ", drop_remainder" : "");
  }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, T>(std::move(node), c, std::move(parent)) {
      this->parent_->save_to(before);
    }
    std::optional<T> do_next() override {
      const RebatchNode& n = node_as<RebatchNode>(*this->node_);
      std::vector<std::vector<HostArray>> pieces;
      std::int64_t wanted = n.size_;
      while (wanted > 0) {
        if (!batch || used >= rows) {
          const bool first = !batch;
          this->parent_->save_to(before);
          std::optional<T> e = this->parent_->next();
          if (!e) {
            if (n.drop_) return std::nullopt;
            break;
          }
          batch = std::move(e);
          if (!first) used = 0;
          this->attempt_rows();
        }
        const std::int64_t take = std::min(wanted, std::max<std::int64_t>(rows - used, 0));
        if (take > 0) {
          const std::vector<HostArray> leaves = tree::leaves<HostArray>(*batch);
          pieces.resize(leaves.size());
          for (std::size_t k = 0; k < leaves.size(); ++k)
            pieces[k].push_back(slice_rows(leaves[k], used, used + take));
        }
        used += take;
        wanted -= take;
      }
      if (pieces.empty()) return std::nullopt;
      T out = *batch;
      std::size_t k = 0;
      for (HostArray* a : tree::leaf_pointers<HostArray>(out)) *a = concatenate_rows(pieces[k++]);
      return out;
    }
    void attempt_rows() {
      rows = -1;
      for (const HostArray& a : tree::leaves<HostArray>(*batch)) {
        if (a.rank() == 0 || a.dims()[0] == 0 || (rows >= 0 && a.dims()[0] != rows)) {
          batch.reset();
          throw_user_error({"rebatch in " + this->node_->path(),
                            "batches with at least one row, as many in every array",
                            a.type_string(), "Rebatch the output of batch()"});
        }
        rows = a.dims()[0];
      }
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      w.copy(before);
      w.field("batch_idx", used);
      w.end();
    }
    void restore(const StateView& s) override {
      this->parent_->restore(s.at("parent"));
      this->parent_->save_to(before);
      used = state_count(s, "batch_idx");
      batch.reset();
    }
    State before;  // the parent's, before the batch in use
    std::optional<T> batch;
    std::int64_t rows = 0, used = 0;
  };
  std::int64_t size_;
  bool drop_;
};

template <class T>
class CacheNode final : public IterNode<T> {
 public:
  XYLEM_DATA_NODE(CacheNode, "cache")
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, T>(std::move(node), c, std::move(parent)) {
      this->parent_->save_to(start);
    }
    std::optional<T> do_next() override {
      if (filled) {
        if (position >= cache.size()) return std::nullopt;
        return cache[position++];
      }
      if (rebuild) {
        this->parent_->restore(start.view());
        cache.clear();
        while (cache.size() < position) {
          std::optional<T> e = this->parent_->next();
          if (!e)
            throw_user_error({"cache in " + this->node_->path(),
                              "a parent with the elements that the state counts",
                              std::to_string(cache.size()) + " of " + std::to_string(position),
                              "Restore with the data that the state was saved with"});
          cache.push_back(std::move(*e));
        }
        rebuild = false;
      }
      std::optional<T> e = this->parent_->next();
      if (!e) {
        filled = true;
        return std::nullopt;
      }
      if (cache.size() == position) cache.push_back(*e);
      ++position;
      return e;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      this->parent_->save(w);
      w.field("position", static_cast<std::int64_t>(position));
      w.key("cache_filled");
      w.boolean(filled);
      w.end();
    }
    void restore(const StateView& s) override {
      // With a filled cache the parent's place says nothing: it is built again from the start.
      if (s.at("cache_filled").boolean() && !filled) rebuild = true;
      this->parent_->restore(s.at("parent"));
      position = static_cast<std::size_t>(state_count(s, "position"));
      if (position > cache.size() && !filled) rebuild = true;
    }
    State start;
    std::vector<T> cache;
    std::size_t position = 0;
    bool filled = false, rebuild = false;
  };
};

template <class P, class T, class F>
class FlatMapIterNode final : public IterNode<T> {
 public:
  explicit FlatMapIterNode(F f) : f_(std::move(f)) {}
  XYLEM_DATA_NODE(FlatMapIterNode, "flat_map")
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<P>(c));
  }

 private:
  struct It final : StepIterator<P, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<P>> parent)
        : StepIterator<P, T>(std::move(node), c, std::move(parent)) {
      this->parent_->save_to(before);
    }
    std::optional<T> do_next() override {
      while (at >= pieces.size()) {
        this->parent_->save_to(before);
        std::optional<P> e = this->parent_->next();
        if (!e) return std::nullopt;
        at = 0;
        split(std::move(*e));
      }
      return pieces[at++];
    }
    void split(P e) {
      pieces.clear();
      this->attempt([&] {
        for (auto&& piece : node_as<FlatMapIterNode>(*this->node_).f_(std::move(e)))
          pieces.push_back(std::move(piece));
      });
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      w.copy(before);
      w.field("next_index_in_buffer", static_cast<std::int64_t>(at));
      w.end();
    }
    void restore(const StateView& s) override {
      s.at("parent").extract(before);
      this->parent_->restore(before.view());
      at = static_cast<std::size_t>(state_count(s, "next_index_in_buffer"));
      pieces.clear();
      if (std::optional<P> e = this->parent_->next())
        split(std::move(*e));
      else
        at = 0;
    }
    State before;  // the parent's, before the element in pieces
    std::vector<T> pieces;
    std::size_t at = 0;
  };
  F f_;
};

template <class T>
class WindowShuffleIterNode final : public IterNode<T> {
 public:
  WindowShuffleIterNode(std::int64_t window, std::uint64_t seed) : window_(window), seed_(seed) {}
  XYLEM_DATA_NODE(WindowShuffleIterNode, "window_shuffle")
  std::string arguments() const override {
    return std::to_string(window_) + ", seed=" + std::to_string(seed_);
  }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, T>(std::move(node), c, std::move(parent)) {
      this->parent_->save_to(start);
    }
    // The elements of a window in the order in which they leave.
    void fill() {
      const WindowShuffleIterNode& n = node_as<WindowShuffleIterNode>(*this->node_);
      std::vector<T> read;
      while (static_cast<std::int64_t>(read.size()) < n.window_) {
        std::optional<T> e = this->parent_->next();
        if (!e) {
          ended = true;
          break;
        }
        read.push_back(std::move(*e));
      }
      window.clear();
      at = 0;
      if (read.empty()) return;
      std::vector<std::int64_t> from(read.size()), to(read.size());
      std::iota(from.begin(), from.end(), 0);
      internal::window_shuffle(
          static_cast<std::int64_t>(read.size()), static_cast<std::int64_t>(read.size()),
          n.seed_ + static_cast<std::uint64_t>(number), n.compat(), true, from, to);
      for (std::size_t k = read.size(); k-- > 0;)
        window.push_back(std::move(read[static_cast<std::size_t>(to[k])]));
    }
    std::optional<T> do_next() override {
      if (at == window.size()) {
        if (ended) return std::nullopt;
        this->parent_->save_to(start);
        fill();
        taken = 0;
      }
      if (window.empty()) return std::nullopt;
      ++taken;
      std::optional<T> e = std::move(window[at++]);
      if (at == window.size()) ++number;
      return e;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent_window_start_state");
      w.copy(start);
      w.field("window_index", number);
      w.field("pos_in_window", taken);
      w.end();
    }
    void restore(const StateView& s) override {
      s.at("parent_window_start_state").extract(start);
      this->parent_->restore(start.view());
      number = state_count(s, "window_index");
      taken = state_count(s, "pos_in_window");
      ended = false;
      fill();
      at = std::min(static_cast<std::size_t>(taken), window.size());
    }
    State start;  // the parent's, before the window
    std::vector<T> window;
    std::size_t at = 0;
    std::int64_t number = 0, taken = 0;
    bool ended = false;
  };
  std::int64_t window_;
  std::uint64_t seed_;
};

// Hands everything through; holds options, a default seed or a mode.
template <class T>
class MarkIterNode final : public IterNode<T> {
 public:
  MarkIterNode(std::optional<std::uint64_t> seed, PipelineOptions options, bool has_options)
      : seed_(seed), options_(std::move(options)), has_options_(has_options) {}
  XYLEM_DATA_NODE(MarkIterNode, "mark")
  bool is_mark() const override { return !has_options_; }
  std::optional<std::uint64_t> seed_mark() const override { return seed_; }
  const PipelineOptions* options() const override { return has_options_ ? &options_ : nullptr; }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>&,
                                       const IteratorContext& c) const override {
    return this->template iterate_parent<T>(c);
  }

 private:
  std::optional<std::uint64_t> seed_;
  PipelineOptions options_;
  bool has_options_;
};

// ---- several parents

[[noreturn]] void throw_zip_length(std::size_t i, bool shorter);

// Elements of all parents side by side. `Join` makes the element from std::optional's.
template <class Out, class... Ts>
class ZipIterNode final : public IterNode<Out> {
 public:
  explicit ZipIterNode(bool strict) : strict_(strict) {}
  XYLEM_DATA_NODE(ZipIterNode, "zip")
  std::string arguments() const override { return strict_ ? "" : "strict=false"; }
  std::unique_ptr<Iterator<Out>> iterate(const std::shared_ptr<const Node>& self,
                                         const IteratorContext& c) const override {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_unique<It>(
          self, c,
          std::tuple<std::unique_ptr<Iterator<Ts>>...>(this->template iterate_parent<Ts>(c, I)...));
    }
    (std::index_sequence_for<Ts...>());
  }

 private:
  struct It final : Iterator<Out> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::tuple<std::unique_ptr<Iterator<Ts>>...> p)
        : Iterator<Out>(std::move(node), c), parents(std::move(p)) {}
    std::optional<Out> do_next() override {
      return [&]<std::size_t... I>(std::index_sequence<I...>)->std::optional<Out> {
        std::tuple<std::optional<Ts>...> e;
        const bool strict = node_as<ZipIterNode>(*this->node_).strict_;
        std::size_t ended = sizeof...(Ts);
        ((ended == sizeof...(Ts) && !(std::get<I>(e) = std::get<I>(parents)->next())
              ? void(ended = I)
              : void()),
         ...);
        if (ended == sizeof...(Ts)) return Out(std::move(*std::get<I>(e))...);
        if (strict) {
          if (ended > 0) throw_zip_length(ended, true);
          ((I > 0 && std::get<I>(parents)->next() ? throw_zip_length(I, false) : void()), ...);
        }
        return std::nullopt;
      }
      (std::index_sequence_for<Ts...>());
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parents");
      w.begin_array();
      std::apply([&](auto&... p) { (p->save(w), ...); }, parents);
      w.end();
      w.end();
    }
    void restore(const StateView& s) override {
      const std::vector<StateView> states = s.at("parents").items();
      check_parents(states.size(), sizeof...(Ts));
      std::size_t i = 0;
      std::apply([&](auto&... p) { (p->restore(states[i++]), ...); }, parents);
    }
    void start_prefetch() override {
      std::apply([&](auto&... p) { (p->start_prefetch(), ...); }, parents);
    }
    std::tuple<std::unique_ptr<Iterator<Ts>>...> parents;
  };

  bool strict_;
  static void check_parents(std::size_t given, std::size_t expected) {
    if (given != expected)
      throw_user_error({"zip: state", std::to_string(expected) + " parents", std::to_string(given),
                        "Restore a state that the same pipeline gave"});
  }
};

template <class T>
class ZipVectorIterNode final : public IterNode<std::vector<T>> {
 public:
  explicit ZipVectorIterNode(bool strict) : strict_(strict) {}
  XYLEM_DATA_NODE(ZipVectorIterNode, "zip")
  std::unique_ptr<Iterator<std::vector<T>>> iterate(const std::shared_ptr<const Node>& self,
                                                    const IteratorContext& c) const override {
    auto it = std::make_unique<It>(self, c);
    for (std::size_t i = 0; i < this->parents().size(); ++i)
      it->parents.push_back(this->template iterate_parent<T>(c, i));
    return it;
  }

 private:
  struct It final : Iterator<std::vector<T>> {
    using Iterator<std::vector<T>>::Iterator;
    std::optional<std::vector<T>> do_next() override {
      const bool strict = node_as<ZipVectorIterNode>(*this->node_).strict_;
      std::vector<T> out;
      for (std::size_t i = 0; i < parents.size(); ++i) {
        if (std::optional<T> e = parents[i]->next()) {
          out.push_back(std::move(*e));
          continue;
        }
        if (strict) {
          if (i > 0) throw_zip_length(i, true);
          for (std::size_t j = 1; j < parents.size(); ++j)
            if (parents[j]->next()) throw_zip_length(j, false);
        }
        return std::nullopt;
      }
      return out;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parents");
      w.begin_array();
      for (auto& p : parents) p->save(w);
      w.end();
      w.end();
    }
    void restore(const StateView& s) override {
      const std::vector<StateView> states = s.at("parents").items();
      if (states.size() != parents.size())
        throw_user_error({"zip: state", std::to_string(parents.size()) + " parents",
                          std::to_string(states.size()),
                          "Restore a state that the same pipeline gave"});
      for (std::size_t i = 0; i < parents.size(); ++i) parents[i]->restore(states[i]);
    }
    void start_prefetch() override {
      for (auto& p : parents) p->start_prefetch();
    }
    std::vector<std::unique_ptr<Iterator<T>>> parents;
  };
  bool strict_;
};

template <class T>
class MixIterNode final : public IterNode<T> {
 public:
  // `names` is empty, or names the parents: states then are by name.
  MixIterNode(std::vector<std::int64_t> proportions, std::vector<std::string> names)
      : proportions_(std::move(proportions)),
        names_(std::move(names)),
        total_(std::accumulate(proportions_.begin(), proportions_.end(), std::int64_t{0})) {}
  XYLEM_DATA_NODE(MixIterNode, "mix")
  std::string arguments() const override {
    std::string s = "proportions ";
    for (std::size_t i = 0; i < proportions_.size(); ++i)
      s += (i > 0 ? ":" : "") + std::to_string(proportions_[i]);
    return s;
  }
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    auto it = std::make_unique<It>(self, c);
    for (std::size_t i = 0; i < this->parents().size(); ++i)
      it->parents.push_back(this->template iterate_parent<T>(c, i));
    return it;
  }

 private:
  struct It final : Iterator<T> {
    using Iterator<T>::Iterator;
    std::optional<T> do_next() override {
      if (stop) return std::nullopt;
      const MixIterNode& n = node_as<MixIterNode>(*this->node_);
      last = static_cast<std::size_t>(mixed_position(index, n.proportions_, n.total_).first);
      std::optional<T> e = parents[last]->next();
      ++index;
      if (!e) stop = true;
      return e;
    }
    void save(StateWriter& w) override {
      const auto& names = node_as<MixIterNode>(*this->node_).names_;
      w.begin_object();
      w.key("parents");
      names.empty() ? w.begin_array() : w.begin_object();
      for (std::size_t i = 0; i < parents.size(); ++i) {
        if (!names.empty()) w.key(names[i]);
        parents[i]->save(w);
      }
      w.end();
      w.field("index", index);
      w.key("stop");
      w.boolean(stop);
      w.end();
    }
    void restore(const StateView& s) override {
      const auto& names = node_as<MixIterNode>(*this->node_).names_;
      const StateView saved = s.at("parents");
      if (names.empty()) {
        const std::vector<StateView> states = saved.items();
        if (!saved.is_array() || states.size() != parents.size())
          throw_user_error({"mix: state",
                            "an array of " + std::to_string(parents.size()) + " parents",
                            std::to_string(states.size()) + (saved.is_array() ? "" : " by name"),
                            "Name the data sets, so that some can be added or removed"});
        for (std::size_t i = 0; i < parents.size(); ++i) parents[i]->restore(states[i]);
      } else {
        for (std::size_t i = 0; i < parents.size(); ++i)
          if (const StateView p = saved.find(names[i]); p.valid() && !p.is_null())
            parents[i]->restore(p);
      }
      index = state_count(s, "index");
      stop = s.at("stop").boolean();
    }
    void start_prefetch() override {
      for (auto& p : parents) p->start_prefetch();
    }
    std::string origin() const override {
      return parents.empty() ? ""
                             : "component " + std::to_string(last) + ", " + parents[last]->origin();
    }
    std::vector<std::unique_ptr<Iterator<T>>> parents;
    std::int64_t index = 0;
    std::size_t last = 0;
    bool stop = false;
  };
  std::vector<std::int64_t> proportions_;
  std::vector<std::string> names_;
  std::int64_t total_;
};

}  // namespace xylem::data::internal
