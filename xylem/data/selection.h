#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xylem/data/shuffle.h"

// Index algebra of slices, mixtures and windows.

namespace xylem::data {

class Node;

// Python's start:stop:step; negative positions count from the end.
struct Slice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;

  struct Resolved {
    std::int64_t start, step, count;
  };
  // Against a length. UserError if step is 0.
  Resolved resolve(std::int64_t length) const;
  std::string to_string() const;
};

// Which element of which data set stands at a position.
class Selection {
 public:
  virtual ~Selection() = default;
  virtual std::int64_t length() const = 0;
  // (data set, index in it) of position i >= 0. Thread-safe.
  virtual std::pair<std::int64_t, std::int64_t> at(std::int64_t i) const = 0;
  virtual std::string to_string() const { return ""; }
};

namespace internal {

// Integer weights of a mixture: scaled so that the smallest is 100, then truncated. Equal weights
// if there are none. UserError if one is not positive.
std::vector<std::int64_t> mixing_proportions(std::span<const double> weights, std::size_t n);
// The data set that gives position k of a mixture, and which of its elements.
std::pair<std::int64_t, std::int64_t> mixed_position(std::int64_t k,
                                                     std::span<const std::int64_t> proportions,
                                                     std::int64_t total);
std::shared_ptr<const Selection> mixture(std::span<const std::int64_t> lengths,
                                         std::span<const double> weights, bool weighted);
std::shared_ptr<const Selection> concatenation(std::span<const std::int64_t> lengths);

void check_slice_list(std::span<const std::int64_t> list, std::int64_t length);
[[noreturn]] void throw_bad_selection(std::int64_t i, std::int64_t data_set, std::int64_t key,
                                      std::size_t count);
[[noreturn]] void throw_absent_in_batch();

// Element order within windows of w; see Compat for what happens at the end of an epoch.
void window_shuffle(std::int64_t length, std::int64_t window, std::uint64_t seed, Compat compat,
                    bool first_epoch_only, std::span<const std::int64_t> in,
                    std::span<std::int64_t> out);

// What a slice must know of a shuffle among its ancestors.
struct ShuffleBelow {
  std::uint32_t seed = 0;    // that of the nearest
  bool keeps_epochs = true;  // one epoch of the slice's parent is one of the shuffle
};
std::optional<ShuffleBelow> find_shuffle(const Node& node);

}  // namespace internal
}  // namespace xylem::data
