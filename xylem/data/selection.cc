#include "xylem/data/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "xylem/base/error.h"
#include "xylem/data/map_nodes.h"

namespace xylem::data {

Slice::Resolved Slice::resolve(std::int64_t n) const {
  if (step == 0)
    throw_user_error({"slice: step", "a number that is not 0", "0", "Give a step of 1 or more"});
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto place = [&](std::int64_t p) { return std::clamp(p < 0 ? p + n : p, low, high); };
  const std::int64_t from = start ? place(*start) : step > 0 ? low : high;
  const std::int64_t to = stop ? place(*stop) : step > 0 ? high : low;
  std::int64_t count = 0;
  if (step > 0 && from < to) count = (to - from - 1) / step + 1;
  if (step < 0 && from > to) count = (from - to - 1) / -step + 1;
  return {from, step, count};
}

std::string Slice::to_string() const {
  const auto text = [](const std::optional<std::int64_t>& v) {
    return v ? fmt::format("{}", *v) : "";
  };
  return fmt::format("{}:{}{}", text(start), text(stop), step == 1 ? "" : fmt::format(":{}", step));
}

namespace internal {
namespace {

class Mixture final : public Selection {
 public:
  Mixture(std::span<const std::int64_t> lengths, std::vector<std::int64_t> proportions)
      : proportions_(std::move(proportions)),
        total_(std::accumulate(proportions_.begin(), proportions_.end(), std::int64_t{0})) {
    // As Grain computes it: in double precision, then truncated.
    double least = static_cast<double>(kInfinite);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == 0)
        throw_user_error({fmt::format("mix: data set {}", i), "at least one element", "none",
                          "Leave the empty data set out"});
      least =
          std::min(least, static_cast<double>(lengths[i]) /
                              (static_cast<double>(proportions_[i]) / static_cast<double>(total_)));
    }
    length_ =
        least >= static_cast<double>(kInfinite) ? kInfinite : static_cast<std::int64_t>(least);
  }
  std::int64_t length() const override { return length_; }
  std::pair<std::int64_t, std::int64_t> at(std::int64_t i) const override {
    return mixed_position(i, proportions_, total_);
  }
  std::string to_string() const override {
    return fmt::format("proportions {}", fmt::join(proportions_, ":"));
  }

 private:
  std::vector<std::int64_t> proportions_;
  std::int64_t total_, length_;
};

class Concatenation final : public Selection {
 public:
  explicit Concatenation(std::span<const std::int64_t> lengths)
      : lengths_(lengths.begin(), lengths.end()), starts_{0} {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] >= kInfinite || starts_.back() > kInfinite - lengths[i])
        throw_user_error({fmt::format("concatenate: data set {}", i), "a finite data set",
                          "an infinite one", "Repeat the concatenation instead of its parts"});
      starts_.push_back(starts_.back() + lengths[i]);
    }
  }
  std::int64_t length() const override { return starts_.back(); }
  std::pair<std::int64_t, std::int64_t> at(std::int64_t i) const override {
    const std::int64_t epoch = i / length(), r = i % length();
    const auto d = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), r) -
                                            starts_.begin() - 1);
    return {static_cast<std::int64_t>(d), r - starts_[d] + epoch * lengths_[d]};
  }

 private:
  std::vector<std::int64_t> lengths_, starts_;
};

}  // namespace

std::vector<std::int64_t> mixing_proportions(std::span<const double> weights, std::size_t n) {
  if (weights.empty()) return std::vector<std::int64_t>(n, 1);
  if (weights.size() != n)
    throw_user_error({"mix: weights", fmt::format("one for each of {} data sets", n),
                      fmt::format("{}", weights.size()), "Give as many weights as data sets"});
  for (const double w : weights)
    if (!(w > 0) || w > 1e300)
      throw_user_error({"mix: weights", "positive numbers", fmt::format("{}", w),
                        "Leave out data sets of weight zero"});
  const double scale = 100 / *std::min_element(weights.begin(), weights.end());
  std::vector<std::int64_t> out;
  for (const double w : weights) {
    if (w * scale > 1e15)
      throw_user_error({"mix: weights", "a ratio of at most 10^13 between two",
                        fmt::format("{}", w), "Give weights nearer to each other"});
    out.push_back(static_cast<std::int64_t>(w * scale));
  }
  return out;
}

std::pair<std::int64_t, std::int64_t> mixed_position(std::int64_t k,
                                                     std::span<const std::int64_t> proportions,
                                                     std::int64_t total) {
  // Of the first k and k + 1 positions, how many belong to the data sets still to be looked at.
  const auto share = [](std::int64_t n, std::int64_t part, std::int64_t whole) {
    return static_cast<std::int64_t>(static_cast<__int128>(n) * part / whole);
  };
  std::int64_t before = k, after = k + 1, remaining = total;
  for (std::size_t i = 0; i < proportions.size(); ++i) {
    const std::int64_t rest = remaining - proportions[i];
    const std::int64_t next_before = share(before, rest, remaining);
    const std::int64_t next_after = share(after, rest, remaining);
    if (before - next_before != after - next_after)
      return {static_cast<std::int64_t>(i), after - next_after - 1};
    remaining = rest;
    before = next_before;
    after = next_after;
  }
  XYLEM_CHECK(false, "no data set at a position of a mixture");
  return {0, 0};
}

std::shared_ptr<const Selection> mixture(std::span<const std::int64_t> lengths,
                                         std::span<const double> weights, bool weighted) {
  return std::make_shared<Mixture>(lengths, weighted
                                                ? mixing_proportions(weights, lengths.size())
                                                : std::vector<std::int64_t>(lengths.size(), 1));
}

std::shared_ptr<const Selection> concatenation(std::span<const std::int64_t> lengths) {
  return std::make_shared<Concatenation>(lengths);
}

void check_slice_list(std::span<const std::int64_t> list, std::int64_t length) {
  for (const std::int64_t p : list)
    if (p < 0 || p >= length)
      throw_user_error({"slice: positions", fmt::format("from 0 to {}", length - 1),
                        fmt::format("{}", p), "Leave the position out"});
}

void throw_bad_selection(std::int64_t i, std::int64_t data_set, std::int64_t key,
                         std::size_t count) {
  throw_user_error({fmt::format("selection map at position {}", i),
                    fmt::format("a data set from 0 to {} and an index from 0 on", count - 1),
                    fmt::format("data set {}, index {}", data_set, key), "Correct the map"});
}

void throw_absent_in_batch() {
  throw_user_error({"batch", "elements that are all present", "an absent one",
                    "Call to_iter_dataset() before batch"});
}

void throw_fan_out(std::size_t given, std::int64_t most) {
  throw_user_error({"flat_map", fmt::format("at most max_fan_out = {} pieces of an element", most),
                    fmt::format("{}", given), "Raise max_fan_out"});
}

void window_shuffle(std::int64_t length, std::int64_t window, std::uint64_t seed, Compat compat,
                    bool first_epoch_only, std::span<const std::int64_t> in,
                    std::span<std::int64_t> out) {
  const auto order = [&](std::int64_t n, std::int64_t number) {
    const std::uint64_t s = seed + static_cast<std::uint64_t>(number);
    if (s > 0xffffffffu)
      throw_user_error({"window_shuffle: seed", "seed + number of the window below 2^32",
                        fmt::format("{}", s), "Give a smaller seed"});
    return IndexShuffle(n, static_cast<std::uint32_t>(s), compat);
  };
  std::optional<IndexShuffle> shuffle;
  std::vector<std::int32_t> table;  // of the same order, where it is asked often enough
  std::int64_t last = -1;
  for (std::size_t k = 0; k < in.size(); ++k) {
    std::int64_t begin, number, size = window;
    if (compat == Compat::grain) {
      number = in[k] / window;
      begin = number * window;
    } else {
      // Windows end with the epoch. Their numbers run on over epochs, so that they are Grain's
      // where the window divides the length.
      const std::int64_t epoch = in[k] / length, r = in[k] % length;
      const std::int64_t per_epoch = (length - 1) / window + 1;
      number = (first_epoch_only ? 0 : epoch * per_epoch) + r / window;
      begin = epoch * length + r / window * window;
      size = std::min(window, length - r / window * window);
    }
    if (last != begin) {
      shuffle = order(size, number);
      std::size_t asked = k + 1;
      while (asked < in.size() && in[asked] >= begin && in[asked] - begin < size) ++asked;
      // One element walks 2^16 / size steps, the table takes as long as some 2^13 of them.
      constexpr std::int64_t kDomain = 1 << 16, kTable = 1 << 13;
      table.clear();
      if (size<kDomain&& static_cast<std::int64_t>(asked - k) * (kDomain / size)> kTable)
        table = shuffle->table();
    }
    last = begin;
    const std::int64_t at = in[k] - begin;
    out[k] = begin + (table.empty() ? (*shuffle)(at) : table[static_cast<std::size_t>(at)]);
  }
}

std::optional<ShuffleBelow> find_shuffle(const Node& node) {
  std::optional<ShuffleBelow> found;
  for (const auto& p : node.parents())
    if (const auto below = find_shuffle(*p); below && !found) found = below;
  if (const auto seed = node.shuffle_seed())
    return ShuffleBelow{*seed, !found || found->keeps_epochs};
  if (found && node.changes_epochs()) found->keeps_epochs = false;
  return found;
}

// ---- RangeNode

RangeNode::RangeNode(std::int64_t start, std::int64_t stop, std::int64_t step)
    : start_(start), step_(step), count_(0) {
  if (step == 0)
    throw_user_error({"range: step", "a number that is not 0", "0", "Give a step of 1 or more"});
  if (step > 0 && stop > start) count_ = (stop - start - 1) / step + 1;
  if (step < 0 && stop < start) count_ = (start - stop - 1) / -step + 1;
}

std::string RangeNode::arguments() const {
  return fmt::format("{}, {}, {}", start_, start_ + count_ * step_, step_);
}

std::string RangeNode::origin(std::int64_t i) const {
  return fmt::format("number {}", start_ + i % count_ * step_);
}

std::shared_ptr<Node> RangeNode::worker_part(std::int64_t i, std::int64_t n, bool) const {
  auto copy = std::make_shared<RangeNode>(*this);
  const SourcePart part = SourcePart{0, count_}.even_part(i, n);
  copy->start_ = start_ + part.begin * step_;
  copy->count_ = part.count;
  return copy;
}

void RangeNode::do_get(const EvalContext&, std::span<const std::int64_t> indices,
                       std::span<std::optional<std::int64_t>> out) const {
  for (std::size_t k = 0; k < indices.size(); ++k)
    out[k] = start_ + (indices[k] < count_ ? indices[k] : indices[k] % count_) * step_;
}

}  // namespace internal
}  // namespace xylem::data
