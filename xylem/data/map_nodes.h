#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xylem/base/small_vec.h"
#include "xylem/data/node.h"
#include "xylem/data/random.h"
#include "xylem/data/selection.h"
#include "xylem/data/shuffle.h"

// Map nodes. A node computes a run of elements in one virtual call, and what it needs of its parent
// in one call, so that the cost per record is that of its function.

namespace xylem::data::internal {

using IndexBuffer = SmallVec<std::int64_t, 64>;

// Calls f(i) for each i, and names the node and the record when it throws.
template <class F>
void for_each_index(const Node& node, std::span<const std::int64_t> indices, F&& f) {
  std::size_t i = 0;
  try {
    for (; i < indices.size(); ++i) f(i);
  } catch (...) {
    rethrow_with_place(node, indices[i], node.origin(indices[i]));
  }
}

// Records [begin, begin + count) of what can be indexed.
struct SourcePart {
  std::int64_t begin = 0, count = 0;

  SourcePart even_part(std::int64_t index, std::int64_t parts) const {
    const std::int64_t base = count / parts, rest = count % parts;
    const std::int64_t from = index * base + std::min(index, rest);
    return {begin + from, base + (index < rest ? 1 : 0)};
  }
};

// Reads of several records at once: s.get_batch(indices, out) with ascending, distinct indices.
template <class S, class T>
concept BatchedSource = requires(const S& s, std::span<const std::int64_t> i,
                                 std::span<std::optional<T>> out) {
  s.get_batch(i, out);
};

template <class S>
decltype(auto) source_get(const S& s, std::int64_t i) {
  if constexpr (requires { s.get(i); })
    return s.get(i);
  else
    return s[static_cast<std::size_t>(i)];
}

template <class S>
using SourceElement = std::remove_cvref_t<decltype(source_get(std::declval<const S&>(), 0))>;

template <class T, class S>
class SourceNode final : public MapNode<T> {
 public:
  SourceNode(std::shared_ptr<const S> source, std::string label)
      : source_(std::move(source)),
        label_(std::move(label)),
        part_{0, static_cast<std::int64_t>(source_->size())} {}
  XYLEM_DATA_NODE(SourceNode, "source")
  std::string arguments() const override {
    return label_ + ", " + std::to_string(part_.count) + " records";
  }
  std::int64_t length() const override { return part_.count; }
  std::string origin(std::int64_t i) const override {
    return "record " + std::to_string(part_.begin + i % part_.count) + " of " + label_;
  }
  std::shared_ptr<Node> worker_part(std::int64_t i, std::int64_t n, bool) const override {
    auto copy = std::make_shared<SourceNode>(*this);
    copy->part_ = part_.even_part(i, n);
    return copy;
  }

 protected:
  void do_get(const EvalContext&, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    const auto place = [&](std::int64_t i) {
      return part_.begin + (i < part_.count ? i : i % part_.count);
    };
    if constexpr (BatchedSource<S, T>) {
      if (indices.size() > 1) return get_sorted(indices, place, out);
    }
    for_each_index(*this, indices,
                   [&](std::size_t k) { out[k].emplace(source_get(*source_, place(indices[k]))); });
  }

 private:
  // Distinct records in ascending order, read together, then given out.
  template <class Place>
  void get_sorted(std::span<const std::int64_t> indices, Place&& place,
                  std::span<std::optional<T>> out) const {
    std::vector<std::pair<std::int64_t, std::uint32_t>> order(indices.size());
    for (std::size_t k = 0; k < indices.size(); ++k)
      order[k] = {place(indices[k]), static_cast<std::uint32_t>(k)};
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> records;
    for (const auto& [record, k] : order)
      if (records.empty() || records.back() != record) records.push_back(record);
    std::vector<std::optional<T>> read(records.size());
    try {
      source_->get_batch(std::span<const std::int64_t>(records), std::span(read));
    } catch (...) {
      // Singly, to find the one at fault.
      if (indices.size() == 1) throw;
      for_each_index(*this, indices, [&](std::size_t k) {
        const std::int64_t record = place(indices[k]);
        source_->get_batch(std::span(&record, 1), out.subspan(k, 1));
      });
      return;
    }
    std::size_t at = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (order[k].first != records[at]) ++at;
      const bool last = k + 1 == order.size() || order[k + 1].first != records[at];
      if (last)
        out[order[k].second] = std::move(read[at]);
      else
        out[order[k].second] = read[at];
    }
  }

  std::shared_ptr<const S> source_;
  std::string label_;
  SourcePart part_;
};

class RangeNode final : public MapNode<std::int64_t> {
 public:
  RangeNode(std::int64_t start, std::int64_t stop, std::int64_t step);
  XYLEM_DATA_NODE(RangeNode, "range")
  std::string arguments() const override;
  std::int64_t length() const override { return count_; }
  std::string origin(std::int64_t i) const override;
  std::shared_ptr<Node> worker_part(std::int64_t i, std::int64_t n, bool) const override;

 protected:
  void do_get(const EvalContext&, std::span<const std::int64_t> indices,
              std::span<std::optional<std::int64_t>> out) const override;

 private:
  std::int64_t start_, step_, count_;
};

// ---- functions of elements

template <class P, class T, class F>
class MapMapNode final : public MapNode<T> {
 public:
  explicit MapMapNode(F f) : f_(std::move(f)) {}
  XYLEM_DATA_NODE(MapMapNode, "map")
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    const auto& parent = this->template parent_as<MapNode<P>>();
    if constexpr (std::is_same_v<P, T>) {
      parent.get(c, indices, out);
      for_each_index(*this, indices, [&](std::size_t i) {
        if (out[i]) *out[i] = f_(std::move(*out[i]));
      });
    } else {
      std::vector<std::optional<P>> in(indices.size());
      parent.get(c, indices, std::span(in));
      for_each_index(*this, indices, [&](std::size_t i) {
        if (in[i])
          out[i].emplace(f_(std::move(*in[i])));
        else
          out[i].reset();
      });
    }
  }

 private:
  F f_;
};

template <class P, class T, class F>
class MapWithIndexMapNode final : public MapNode<T> {
 public:
  explicit MapWithIndexMapNode(F f) : f_(std::move(f)) {}
  XYLEM_DATA_NODE(MapWithIndexMapNode, "map_with_index")
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    std::vector<std::optional<P>> in(indices.size());
    this->template parent_as<MapNode<P>>().get(c, indices, std::span(in));
    for_each_index(*this, indices, [&](std::size_t i) {
      if (in[i])
        out[i].emplace(f_(indices[i], std::move(*in[i])));
      else
        out[i].reset();
    });
  }

 private:
  F f_;
};

template <class P, class T, class F>
class RandomMapMapNode final : public MapNode<T> {
 public:
  explicit RandomMapMapNode(F f) : f_(std::move(f)), generators_(0) {}
  void set_seed(std::uint64_t seed) { generators_ = RecordGenerators(seed); }
  XYLEM_DATA_NODE(RandomMapMapNode, "random_map")
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    std::vector<std::optional<P>> in(indices.size());
    this->template parent_as<MapNode<P>>().get(c, indices, std::span(in));
    for_each_index(*this, indices, [&](std::size_t i) {
      if (in[i]) {
        Generator g = generators_(indices[i]);
        out[i].emplace(f_(std::move(*in[i]), g));
      } else {
        out[i].reset();
      }
    });
  }

 private:
  F f_;
  RecordGenerators generators_;
};

template <class T, class F>
class FilterMapNode final : public MapNode<T> {
 public:
  explicit FilterMapNode(F f) : f_(std::move(f)) {}
  XYLEM_DATA_NODE(FilterMapNode, "filter")
  std::int64_t length() const override { return this->parents()[0]->length(); }
  bool sparse() const override { return true; }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    this->template parent_as<MapNode<T>>().get(c, indices, out);
    for_each_index(*this, indices, [&](std::size_t i) {
      if (out[i] && !f_(std::as_const(*out[i]))) out[i].reset();
    });
  }

 private:
  F f_;
};

[[noreturn]] void throw_fan_out(std::size_t given, std::int64_t most);

template <class P, class T, class F>
class FlatMapMapNode final : public MapNode<T> {
 public:
  FlatMapMapNode(F f, std::int64_t max_fan_out) : f_(std::move(f)), fan_out_(max_fan_out) {}
  XYLEM_DATA_NODE(FlatMapMapNode, "flat_map")
  std::string arguments() const override { return "max_fan_out=" + std::to_string(fan_out_); }
  std::int64_t length() const override {
    const std::int64_t n = this->parents()[0]->length();
    return n >= kInfinite / fan_out_ ? kInfinite : n * fan_out_;
  }
  bool sparse() const override { return true; }
  std::string origin(std::int64_t i) const override {
    return this->parents()[0]->origin(i / fan_out_);
  }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    // Pieces of one element usually stand together.
    IndexBuffer wanted;
    for (const std::int64_t i : indices)
      if (wanted.empty() || wanted.back() != i / fan_out_) wanted.push_back(i / fan_out_);
    std::vector<std::optional<P>> in(wanted.size());
    this->template parent_as<MapNode<P>>().get(c, {wanted.data(), wanted.size()}, std::span(in));
    std::size_t at = 0;
    bool split = false;
    std::vector<T> pieces;
    for_each_index(*this, indices, [&](std::size_t k) {
      if (wanted[at] != indices[k] / fan_out_) {
        ++at;
        split = false;
      }
      if (!split) {
        pieces.clear();
        if (in[at])
          for (auto&& piece : f_(std::move(*in[at]))) pieces.push_back(std::move(piece));
        if (static_cast<std::int64_t>(pieces.size()) > fan_out_)
          throw_fan_out(pieces.size(), fan_out_);
        split = true;
      }
      const auto j = static_cast<std::size_t>(indices[k] % fan_out_);
      if (j < pieces.size())
        out[k] = pieces[j];
      else
        out[k].reset();
    });
  }

 private:
  F f_;
  std::int64_t fan_out_;
};

// ---- other orders

// A node whose element i is its parent's element at another index.
template <class T>
class ReindexNode : public MapNode<T> {
 public:
  std::string origin(std::int64_t i) const override {
    std::int64_t j = i;
    reindex(EvalContext(), std::span(&i, 1), std::span(&j, 1));
    return this->parents()[0]->origin(j);
  }

 protected:
  virtual void reindex(const EvalContext& c, std::span<const std::int64_t> in,
                       std::span<std::int64_t> out) const = 0;
  virtual EvalContext parent_context(const EvalContext& c) const { return c; }

  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    IndexBuffer at(indices.size(), 0);
    reindex(c, indices, {at.data(), at.size()});
    this->template parent_as<MapNode<T>>().get(parent_context(c), {at.data(), at.size()}, out);
  }
};

template <class T>
class ShuffleMapNode final : public ReindexNode<T> {
 public:
  void set_seed(std::uint64_t seed) {
    orders_.emplace(static_cast<std::uint32_t>(seed), this->compat());
  }
  XYLEM_DATA_NODE(ShuffleMapNode, "shuffle")
  std::optional<std::uint32_t> shuffle_seed() const override { return orders_->seed(); }
  std::string arguments() const override { return "seed=" + std::to_string(orders_->seed()); }
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void reindex(const EvalContext& c, std::span<const std::int64_t> in,
               std::span<std::int64_t> out) const override {
    orders_->apply(length(), in, out, c.first_epoch_order);
  }

 private:
  std::optional<ShuffleOrders> orders_;
};

template <class T>
class WindowShuffleMapNode final : public ReindexNode<T> {
 public:
  WindowShuffleMapNode(std::int64_t window, std::uint64_t seed) : window_(window), seed_(seed) {}
  XYLEM_DATA_NODE(WindowShuffleMapNode, "window_shuffle")
  std::optional<std::uint32_t> shuffle_seed() const override {
    return static_cast<std::uint32_t>(seed_);
  }
  std::string arguments() const override {
    return std::to_string(window_) + ", seed=" + std::to_string(seed_);
  }
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void reindex(const EvalContext& c, std::span<const std::int64_t> in,
               std::span<std::int64_t> out) const override {
    window_shuffle(length(), window_, seed_, this->compat(), c.first_epoch_order, in, out);
  }

 private:
  std::int64_t window_;
  std::uint64_t seed_;
};

template <class T>
class SliceNode final : public ReindexNode<T> {
 public:
  // `as_written`: the index algebra without care for shuffles below; for parts of workers.
  SliceNode(Slice slice, bool as_written) : slice_(slice), as_written_(as_written) {}
  explicit SliceNode(std::vector<std::int64_t> list) : list_(std::move(list)), is_list_(true) {}
  // Once the parents are set.
  void bind() {
    if (is_list_) check_slice_list(list_, this->parents()[0]->length());
    if (!as_written_ && this->compat() == Compat::fixed)
      shuffled_ = find_shuffle(*this->parents()[0]);
    if (shuffled_) orders_.emplace(shuffled_->seed, this->compat());
  }
  XYLEM_DATA_NODE(SliceNode, "slice")
  std::string arguments() const override {
    return is_list_ ? std::to_string(list_.size()) + " positions" : slice_.to_string();
  }
  std::int64_t length() const override {
    return is_list_ ? static_cast<std::int64_t>(list_.size())
                    : slice_.resolve(this->parents()[0]->length()).count;
  }

 protected:
  void reindex(const EvalContext& c, std::span<const std::int64_t> in,
               std::span<std::int64_t> out) const override {
    const std::int64_t parent = this->parents()[0]->length();
    const Slice::Resolved r = is_list_ ? Slice::Resolved{0, 1, length()} : slice_.resolve(parent);
    const bool reorder = shuffled_ && !c.first_epoch_order;
    for (std::size_t k = 0; k < in.size(); ++k) {
      const std::int64_t epoch = in[k] / r.count;
      std::int64_t at = in[k] % r.count;
      if (reorder && epoch > 0) {
        // The records of the first epoch's slice in an order of this epoch's own.
        std::int64_t j;
        orders_->apply(r.count, in.subspan(k, 1), std::span(&j, 1));
        at = j % r.count;
      }
      at = is_list_ ? list_[static_cast<std::size_t>(at)] : r.start + at * r.step;
      out[k] = at + (shuffled_ && !shuffled_->keeps_epochs ? 0 : epoch * parent);
    }
  }
  EvalContext parent_context(const EvalContext& c) const override {
    EvalContext d = c;
    d.first_epoch_order |= shuffled_ && shuffled_->keeps_epochs;
    return d;
  }

 private:
  Slice slice_;
  std::vector<std::int64_t> list_;
  bool is_list_ = false, as_written_ = false;
  std::optional<ShuffleBelow> shuffled_;
  std::optional<ShuffleOrders> orders_;
};

template <class T>
class RepeatMapNode final : public ReindexNode<T> {
 public:
  RepeatMapNode(std::optional<std::int64_t> epochs, bool reseed)
      : epochs_(epochs), reseed_(reseed) {}
  XYLEM_DATA_NODE(RepeatMapNode, "repeat")
  bool changes_epochs() const override { return true; }
  std::string arguments() const override {
    return (epochs_ ? std::to_string(*epochs_) : std::string("forever")) +
           (reseed_ ? "" : ", reseed_each_epoch=false");
  }
  std::int64_t length() const override {
    const std::int64_t n = this->parents()[0]->length();
    if (n == 0) return 0;
    return !epochs_ || n > kInfinite / *epochs_ ? kInfinite : n * *epochs_;
  }

 protected:
  void reindex(const EvalContext&, std::span<const std::int64_t> in,
               std::span<std::int64_t> out) const override {
    const std::int64_t n = this->parents()[0]->length();
    for (std::size_t k = 0; k < in.size(); ++k) out[k] = reseed_ ? in[k] : in[k] % n;
  }

 private:
  std::optional<std::int64_t> epochs_;
  bool reseed_;
};

// Hands everything through; holds a default seed or a mode for the nodes above.
template <class T>
class MarkMapNode final : public ReindexNode<T> {
 public:
  explicit MarkMapNode(std::optional<std::uint64_t> seed) : seed_(seed) {}
  XYLEM_DATA_NODE(MarkMapNode, "mark")
  std::int64_t length() const override { return this->parents()[0]->length(); }
  bool is_mark() const override { return true; }
  std::optional<std::uint64_t> seed_mark() const override { return seed_; }

 protected:
  void reindex(const EvalContext&, std::span<const std::int64_t> in,
               std::span<std::int64_t> out) const override {
    std::copy(in.begin(), in.end(), out.begin());
  }

 private:
  std::optional<std::uint64_t> seed_;
};

// ---- several parents

// Element i is element key of parent d, (d, key) = selection(i).
template <class T>
class SelectNode final : public MapNode<T> {
 public:
  SelectNode(std::string_view kind, std::shared_ptr<const Selection> selection)
      : kind_(kind), selection_(std::move(selection)) {}
  std::shared_ptr<Node> clone() const override { return std::make_shared<SelectNode>(*this); }
  std::string_view kind() const override { return kind_; }
  bool changes_epochs() const override { return true; }
  std::string arguments() const override { return selection_->to_string(); }
  std::int64_t length() const override { return selection_->length(); }
  std::string origin(std::int64_t i) const override {
    const auto [d, key] = selection_->at(i);
    return "component " + std::to_string(d) + ", " +
           this->parents()[static_cast<std::size_t>(d)]->origin(key);
  }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<T>> out) const override {
    const std::size_t parts = this->parents().size();
    if (indices.size() == 1) {
      const auto [d, key] = checked(indices[0]);
      this->template parent_as<MapNode<T>>(static_cast<std::size_t>(d))
          .get(c, std::span(&key, 1), out);
      return;
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> at(indices.size());
    for_each_index(*this, indices, [&](std::size_t k) { at[k] = checked(indices[k]); });
    std::vector<std::int64_t> keys;
    std::vector<std::size_t> places;
    for (std::size_t d = 0; d < parts; ++d) {
      keys.clear();
      places.clear();
      for (std::size_t k = 0; k < at.size(); ++k)
        if (at[k].first == static_cast<std::int64_t>(d)) {
          keys.push_back(at[k].second);
          places.push_back(k);
        }
      if (keys.empty()) continue;
      std::vector<std::optional<T>> got(keys.size());
      this->template parent_as<MapNode<T>>(d).get(c, keys, std::span(got));
      for (std::size_t k = 0; k < keys.size(); ++k) out[places[k]] = std::move(got[k]);
    }
  }

 private:
  std::pair<std::int64_t, std::int64_t> checked(std::int64_t i) const {
    const auto p = selection_->at(i);
    if (p.first < 0 || p.first >= static_cast<std::int64_t>(this->parents().size()) || p.second < 0)
      throw_bad_selection(i, p.first, p.second, this->parents().size());
    return p;
  }

  std::string_view kind_;
  std::shared_ptr<const Selection> selection_;
};

template <class... Ts>
class ZipMapNode final : public MapNode<std::tuple<Ts...>> {
 public:
  XYLEM_DATA_NODE(ZipMapNode, "zip")
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<std::tuple<Ts...>>> out) const override {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::tuple<std::vector<std::optional<Ts>>...> in{
          std::vector<std::optional<Ts>>(indices.size())...};
      (this->template parent_as<MapNode<Ts>>(I).get(c, indices, std::span(std::get<I>(in))), ...);
      for (std::size_t k = 0; k < indices.size(); ++k) {
        if ((std::get<I>(in)[k].has_value() && ...))
          out[k].emplace(std::move(*std::get<I>(in)[k])...);
        else
          out[k].reset();
      }
    }
    (std::index_sequence_for<Ts...>());
  }
};

// The same over equal types: a vector.
template <class T>
class ZipVectorMapNode final : public MapNode<std::vector<T>> {
 public:
  XYLEM_DATA_NODE(ZipVectorMapNode, "zip")
  std::int64_t length() const override { return this->parents()[0]->length(); }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<std::vector<T>>> out) const override {
    for (auto& o : out) o.emplace();
    for (std::size_t p = 0; p < this->parents().size(); ++p) {
      std::vector<std::optional<T>> in(indices.size());
      this->template parent_as<MapNode<T>>(p).get(c, indices, std::span(in));
      for (std::size_t k = 0; k < indices.size(); ++k) {
        if (in[k] && out[k])
          out[k]->push_back(std::move(*in[k]));
        else
          out[k].reset();
      }
    }
  }
};

// ---- batch

// Makes a batch of present elements, which it may take.
template <class T, class Out>
struct DefaultBatch {
  std::int64_t pad_to = 0;  // rows; 0: no padding
  double pad_value = 0;

  Out operator()(std::span<std::optional<T>> elements) const {
    Out out = [&] {
      if constexpr (Number<T> && std::is_same_v<Out, HostArray>) {
        HostArray a(dtype_of<T>(), {static_cast<std::int64_t>(elements.size())});
        T* to = a.as<T>();
        for (std::size_t i = 0; i < elements.size(); ++i) to[i] = *elements[i];
        return a;
      } else {
        std::vector<const T*> pointers;
        pointers.reserve(elements.size());
        for (const auto& e : elements) pointers.push_back(&*e);
        if constexpr (HasArrays<T> && std::is_same_v<Out, Arrays<T>>)
          return stack<T>(std::span<const T* const>(pointers));
        else
          return stack_as<Out, T>(std::span<const T* const>(pointers));
      }
    }();
    if (pad_to > 0)
      for (HostArray* a : tree::leaf_pointers<HostArray>(out)) *a = pad_rows(*a, pad_to, pad_value);
    return out;
  }
};

template <class T, class F>
struct CustomBatch {
  F f;
  auto operator()(std::span<std::optional<T>> elements) const {
    std::vector<T> values;
    values.reserve(elements.size());
    for (auto& e : elements) values.push_back(std::move(*e));
    return f(std::move(values));
  }
};

template <class T, class Out, class F>
class BatchMapNode final : public MapNode<Out> {
 public:
  BatchMapNode(std::int64_t size, bool drop, F f) : size_(size), drop_(drop), f_(std::move(f)) {}
  XYLEM_DATA_NODE(BatchMapNode, "batch")
  std::string arguments() const override {
    return std::to_string(size_) + (drop_ ? ", drop_remainder" : "");
  }
  std::int64_t length() const override {
    const std::int64_t n = this->parents()[0]->length();
    return n / size_ + (!drop_ && n % size_ != 0 ? 1 : 0);
  }
  std::string origin(std::int64_t i) const override {
    const auto [from, count] = rows(i, this->parents()[0]->length(), length());
    return std::to_string(count) + " elements from " + this->parents()[0]->origin(from) + " on";
  }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<Out>> out) const override {
    const std::int64_t parent = this->parents()[0]->length(), own = length();
    std::vector<std::int64_t> wanted;
    wanted.reserve(indices.size() * static_cast<std::size_t>(std::min<std::int64_t>(size_, 4096)));
    for (const std::int64_t i : indices) {
      const auto [from, count] = rows(i, parent, own);
      for (std::int64_t k = 0; k < count; ++k) wanted.push_back(from + k);
    }
    std::vector<std::optional<T>> in(wanted.size());
    this->template parent_as<MapNode<T>>().get(c, wanted, std::span(in));
    std::size_t at = 0;
    for_each_index(*this, indices, [&](std::size_t k) {
      const auto count = static_cast<std::size_t>(rows(indices[k], parent, own).second);
      const std::span<std::optional<T>> part = std::span(in).subspan(at, count);
      for (const auto& e : part)
        if (!e) throw_absent_in_batch();
      out[k].emplace(f_(part));
      at += count;
    });
  }

 private:
  std::pair<std::int64_t, std::int64_t> rows(std::int64_t i, std::int64_t parent,
                                             std::int64_t own) const {
    const std::int64_t first = i % own * size_;
    return {i / own * parent + first, std::min(size_, parent - first)};
  }

  std::int64_t size_;
  bool drop_;
  F f_;
};

}  // namespace xylem::data::internal
