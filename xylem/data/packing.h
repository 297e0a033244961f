#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xylem/data/iter_nodes.h"
#include "xylem/data/node.h"

namespace xylem::data {

// A packed row: `values` holds the tokens of several sequences one after the other, `segment_ids`
// (i32) which sequence a token belongs to (from 1; 0 is padding), `positions` (i32) its place in
// its sequence. All three have the fields of the element; a field that is not packed is undefined.
template <class A>
struct Packed {
  A values, segment_ids, positions;
};

// Row length by feature, in the order in which states list the features.
using FeatureLengths = std::vector<std::pair<std::string, std::int64_t>>;

enum class FitStrategy : std::uint8_t { first_fit, best_fit };

// Packing into bins: whole sequences, padded rows. Features are named by their path in the element
// ("tokens", "inputs.image").
struct PackOptions {
  FeatureLengths length;  // of a row, for each feature to be packed
  std::int64_t num_packing_bins = 1;
  std::uint64_t seed = 0;
  bool shuffle_bins = true;
  // Rows leave in the order of the mean of their distinct values of this feature.
  std::string shuffle_bins_group_by_feature = {};
  // Without segment ids and positions. Those that `length` does not name come out stacked, one
  // value for each packed element.
  std::vector<std::string> meta_features = {};
  std::map<std::string, std::int64_t> alignment = {};  // next sequences start at multiples
  std::map<std::string, double> padding = {};          // default 0
  std::optional<std::int64_t> max_sequences_per_bin = {};
};

enum class BosHandling : std::uint8_t { do_nothing, replace_first_token_with_bos };

// Packing by cutting: sequences are joined and cut into full rows. `length` names all features.
struct ConcatThenSplitOptions {
  FeatureLengths length;
  std::vector<std::string> meta_features = {};
  bool split_full_length_features = true;
  BosHandling bos_handling = BosHandling::do_nothing;
  std::vector<std::string> bos_features = {};
  std::optional<std::int64_t> bos_token_id = {};
};

namespace internal {

struct Feature {
  std::string name;
  HostArray array;
};
using Features = std::vector<Feature>;

// One row: arrays by feature, in the order of the element.
struct PackedRow {
  std::vector<HostArray> values, segment_ids, positions;
};

void check_pack_options(const PackOptions& o);
void check_concat_options(const ConcatThenSplitOptions& o);

// The rows being filled.
class BinPacker {
 public:
  // The element gives dtypes and trailing dimensions.
  BinPacker(const PackOptions& options, FitStrategy strategy, const Features& like);
  // False if no row has room. UserError if the element can fit into none.
  bool try_add(const Features& e);
  std::int64_t num_rows() const;
  // Order of the rows that are filled, for `seed`.
  std::vector<std::int64_t> row_order(std::uint64_t seed) const;
  PackedRow row(std::int64_t r) const;

 private:
  struct Packing {
    std::size_t feature = 0;  // its place in the element
    std::string name;
    std::int64_t length = 0, alignment = 1;
    bool meta = false;
    std::size_t row_bytes = 0, item_bytes = 0;
    HostArray values, segment_ids, positions;
    std::vector<std::int64_t> used;
  };
  std::int64_t find_row() const;

  const PackOptions& options_;
  FitStrategy strategy_;
  std::vector<std::string> names_;
  std::vector<Packing> packings_;
  std::vector<std::int64_t> lengths_;                       // of the element being added
  std::vector<std::int32_t> count_;                         // sequences in each row
  std::vector<std::size_t> listed_;                         // meta features that are listed
  std::vector<std::vector<std::vector<HostArray>>> lists_;  // [listed][row]
};

// An element waiting to be packed, perhaps a part of it.
struct ConcatElement {
  State parent_state;  // before it was read
  Features features;
  std::vector<std::pair<std::int64_t, std::int64_t>> slices;  // (-1, -1): whole
};

class ConcatPacker {
 public:
  ConcatPacker(const ConcatThenSplitOptions& options, Compat compat)
      : options_(options), compat_(compat) {}

  // Settles the order of features by the first element.
  void check(const Features& f);
  ConcatElement whole(Features f, State parent_state) const;
  bool full_length(const ConcatElement& e) const;
  // Adds what fits to the row in progress; what is left over is returned.
  std::optional<ConcatElement> add(ConcatElement e);
  bool row_empty() const { return row_.empty(); }
  PackedRow take_row();
  PackedRow pack(std::span<const ConcatElement> elements) const;
  void clear_row();

  bool is_meta(std::string_view name) const;
  std::vector<std::pair<std::int64_t, std::int64_t>> slices_of(const StateView& s) const;
  void write_slices(StateWriter& w,
                    const std::vector<std::pair<std::int64_t, std::int64_t>>* slices) const;

 private:
  std::pair<std::int64_t, std::int64_t> part(const ConcatElement& e, std::size_t k) const;

  const ConcatThenSplitOptions& options_;
  Compat compat_;
  std::vector<std::string> names_;  // of the element
  std::vector<std::size_t> order_;  // feature of the element for each of options_.length
  std::vector<ConcatElement> row_;
  std::vector<std::int64_t> used_;
};

template <class T>
Features features_of(const T& e) {
  Features f;
  visit_arrays(e, "", [&](const std::string& path, const HostArray& a) { f.push_back({path, a}); });
  return f;
}

template <class T, class A>
Packed<A> assemble_packed(const T& like, PackedRow row) {
  const auto from = [](std::vector<HostArray>& v) {
    return [&v, k = std::size_t{0}]() mutable { return std::move(v[k++]); };
  };
  Packed<A> out;
  auto values = from(row.values), ids = from(row.segment_ids), positions = from(row.positions);
  out.values = assemble_arrays(like, values);
  out.segment_ids = assemble_arrays(like, ids);
  out.positions = assemble_arrays(like, positions);
  return out;
}

template <class T>
class PackNode final : public IterNode<Packed<Arrays<T>>> {
 public:
  using Out = Packed<Arrays<T>>;
  PackNode(PackOptions options, FitStrategy strategy)
      : options_(std::move(options)), strategy_(strategy) {
    check_pack_options(options_);
  }
  std::shared_ptr<Node> clone() const override { return std::make_shared<PackNode>(*this); }
  std::string_view kind() const override {
    return strategy_ == FitStrategy::first_fit ? "first_fit_pack" : "best_fit_pack";
  }
  std::string arguments() const override {
    return std::to_string(options_.num_packing_bins) + " bins";
  }
  std::unique_ptr<Iterator<Out>> iterate(const std::shared_ptr<const Node>& self,
                                         const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, Out> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, Out>(std::move(node), c, std::move(parent)) {
      this->parent_->save_to(emitted);
    }
    const PackNode& pack() const { return node_as<PackNode>(*this->node_); }

    std::optional<Out> do_next() override {
      if (!closed && !close_batch()) return std::nullopt;
      const std::int64_t r = order.empty() ? next_row : order[static_cast<std::size_t>(next_row)];
      Out out = assemble_packed<T, Arrays<T>>(*like, closed->row(r));
      ++next_row;
      ++counter;
      if (next_row >= rows) {
        closed.reset();
        std::swap(emitted, after_closed);
        next_row = 0;
      }
      return out;
    }
    // Reads until the rows in progress are full or the parent ends; false if there are none.
    bool close_batch() {
      while (true) {
        this->parent_->save_to(before);
        std::optional<T> e = this->parent_->next();
        if (!e) {
          if (!filling) return false;
          finish();
          return true;
        }
        bool added = false, ok = this->attempt([&] {
          const Features f = features_of(*e);
          if (!filling) filling = std::make_unique<BinPacker>(pack().options_, pack().strategy_, f);
          added = filling->try_add(f);
        });
        if (!like) like = e;
        if (!ok || added) continue;
        finish();
        this->attempt([&] {
          const Features f = features_of(*e);
          filling = std::make_unique<BinPacker>(pack().options_, pack().strategy_, f);
          filling->try_add(f);
        });
        return true;
      }
    }
    void finish() {
      closed = std::move(filling);
      rows = closed->num_rows();
      order.clear();
      if (pack().options_.shuffle_bins)
        order = closed->row_order(pack().options_.seed +
                                  static_cast<std::uint64_t>(counter - next_row));
      std::swap(after_closed, before);
      // A state may say that rows were given out already.
      if (next_row >= rows && rows > 0) next_row = rows - 1;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent");
      w.copy(emitted);
      w.field("next_row", next_row);
      w.field("counter", counter);
      w.end();
    }
    void restore(const StateView& s) override {
      s.at("parent").extract(emitted);
      this->parent_->restore(emitted.view());
      next_row = state_count(s, "next_row");
      counter = state_count(s, "counter");
      if (counter < next_row || next_row >= pack().options_.num_packing_bins)
        throw_user_error({"pack: state", "0 <= next_row < num_packing_bins, counter >= next_row",
                          std::to_string(next_row) + ", " + std::to_string(counter),
                          "Restore a state that the same pipeline gave"});
      closed.reset();
      filling.reset();
    }

    State emitted, before, after_closed;  // the parent's
    std::optional<T> like;
    std::unique_ptr<BinPacker> filling, closed;
    std::vector<std::int64_t> order;
    std::int64_t rows = 0, next_row = 0, counter = 0;
  };
  PackOptions options_;
  FitStrategy strategy_;
};

template <class T>
class ConcatThenSplitNode final : public IterNode<Packed<Arrays<T>>> {
 public:
  using Out = Packed<Arrays<T>>;
  explicit ConcatThenSplitNode(ConcatThenSplitOptions options) : options_(std::move(options)) {
    check_concat_options(options_);
  }
  XYLEM_DATA_NODE(ConcatThenSplitNode, "concat_then_split")
  std::unique_ptr<Iterator<Out>> iterate(const std::shared_ptr<const Node>& self,
                                         const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, Out> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c,
       std::unique_ptr<Iterator<T>> parent)
        : StepIterator<T, Out>(std::move(node), c, std::move(parent)),
          packer(node_as<ConcatThenSplitNode>(*this->node_).options_, this->node_->compat()) {
      checkpoint();
    }

    std::optional<Out> do_next() override {
      if (first < rows.size()) return take();
      if (ended) return std::nullopt;
      checkpoint();
      rows.clear();
      first = 0;
      const bool keep_full =
          !node_as<ConcatThenSplitNode>(*this->node_).options_.split_full_length_features;
      std::vector<PackedRow> full;
      packer.clear_row();
      while (true) {
        if (remainder) {
          remainder = packer.add(std::move(*std::exchange(remainder, std::nullopt)));
          if (remainder) break;
        }
        std::optional<ConcatElement> e = read();
        if (!e) break;
        if (keep_full && packer.full_length(*e)) {
          full.push_back(packer.pack({&*e, 1}));
          continue;
        }
        remainder = packer.add(std::move(*e));
        if (remainder) break;
      }
      if (!packer.row_empty()) rows.push_back(packer.take_row());
      for (PackedRow& r : full) rows.push_back(std::move(r));
      if (ended && remainder) {
        rows.push_back(packer.pack({&*remainder, 1}));
        remainder.reset();
      }
      if (!rows.empty()) return take();
      checkpoint();
      return std::nullopt;
    }
    Out take() {
      ++taken;
      return assemble_packed<T, Arrays<T>>(*like, std::move(rows[first++]));
    }
    std::optional<ConcatElement> read() {
      State before;
      this->parent_->save_to(before);
      std::optional<T> e = this->parent_->next();
      if (!e) {
        ended = true;
        return std::nullopt;
      }
      if (!like) like = e;
      Features f = features_of(*e);
      try {
        packer.check(f);
      } catch (...) {
        rethrow_with_place(*this->node_, -1, this->parent_->origin());
      }
      return packer.whole(std::move(f), std::move(before));
    }
    void checkpoint() {
      if (remainder)
        snapshot = remainder->parent_state;
      else
        this->parent_->save_to(snapshot);
      slices.reset();
      if (remainder) slices = remainder->slices;
      taken = 0;
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.key("parent_state");
      w.copy(snapshot);
      w.key("remainder_slices");
      packer.write_slices(w, slices ? &*slices : nullptr);
      w.field("elements_from_buffer_after_checkpoint", taken);
      w.end();
    }
    void restore(const StateView& s) override {
      const std::int64_t calls = state_count(s, "elements_from_buffer_after_checkpoint");
      const auto saved = packer.slices_of(s.at("remainder_slices"));
      rows.clear();
      first = 0;
      remainder.reset();
      ended = false;
      this->parent_->restore(s.at("parent_state"));
      if (std::any_of(saved.begin(), saved.end(), [](const auto& p) { return p.first >= 0; })) {
        std::optional<ConcatElement> e = read();
        if (!e)
          throw_user_error({"concat_then_split: state", "a parent with the pending element",
                            "its end", "Restore with the data that the state was saved with"});
        e->slices = saved;
        remainder = std::move(e);
      }
      checkpoint();
      for (std::int64_t k = 0; k < calls; ++k) {
        // All come from what is packed at once.
        if (k > 0 && first >= rows.size())
          throw_user_error({"concat_then_split: state",
                            "at most " + std::to_string(k) + " rows since the snapshot",
                            std::to_string(calls), "Restore a state that the same pipeline gave"});
        if (!do_next()) break;
      }
    }

    ConcatPacker packer;
    State snapshot;  // where this row began
    std::optional<std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
    std::optional<T> like;
    std::vector<PackedRow> rows;
    std::size_t first = 0;
    std::optional<ConcatElement> remainder;
    std::int64_t taken = 0;
    bool ended = false;
  };
  ConcatThenSplitOptions options_;
};

}  // namespace internal
}  // namespace xylem::data
