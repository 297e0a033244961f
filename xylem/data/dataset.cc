#include "xylem/data/dataset.h"

#include <fmt/format.h>

#include "xylem/base/error.h"

namespace xylem::data {

MapDataset<std::int64_t> range(std::int64_t stop) { return range(0, stop); }

MapDataset<std::int64_t> range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  return MapDataset<std::int64_t>(std::make_shared<internal::RangeNode>(start, stop, step));
}

namespace internal {

void check_count(std::string_view what, std::int64_t given) {
  if (given < 1)
    throw_user_error({what, "at least 1", fmt::format("{}", given), "Give a positive number"});
}

void check_finite(std::int64_t length) {
  if (length >= kInfinite)
    throw_user_error({"repeat", "a finite data set", "one that is repeated without end already",
                      "Leave the second repeat out"});
}

void check_dense(const Node& node) {
  if (node.sparse())
    throw_user_error({"batch", "a data set in which every element is present",
                      fmt::format("{}, in which elements can be absent", node.path()),
                      "Call to_iter_dataset() before batch"});
}

void check_equal_lengths(std::span<const std::int64_t> lengths) {
  for (std::size_t i = 1; i < lengths.size(); ++i)
    if (lengths[i] != lengths[0])
      throw_user_error({fmt::format("zip: data set {}", i),
                        fmt::format("{} elements, as data set 0", lengths[0]),
                        fmt::format("{}", lengths[i]), "Slice the longer ones"});
}

void check_some(std::string_view what, std::size_t n) {
  if (n == 0)
    throw_user_error({what, "at least one data set", "none", "Give the data sets to combine"});
}

void check_index(std::int64_t i, std::int64_t length) {
  if (i < 0 || length == 0)
    throw_user_error(
        {"MapDataset: index", length == 0 ? "a data set that is not empty" : "a number from 0 on",
         length == 0 ? "one without elements" : fmt::format("{}", i), "Check size() before"});
}

void check_open(bool open) {
  if (!open)
    throw_user_error({"DatasetIterator", "an open iterator", "one that was closed",
                      "Make another with iterator() and set_state it"});
}

void check_read_options(const ReadAheadOptions& o) {
  if (o.num_threads < 0 || o.num_threads > 4096 || o.prefetch_buffer_size < 0)
    throw_user_error(
        {"ReadAheadOptions", "num_threads from 0 to 4096, prefetch_buffer_size from 0 on",
         fmt::format("{}, {}", o.num_threads, o.prefetch_buffer_size), "Give 0 for no threads"});
}

void throw_index_outside(std::int64_t index, std::int64_t length) {
  throw_user_error({"iterator state: next_index", fmt::format("from 0 to {}", length),
                    fmt::format("{}", index),
                    "Restore with the data that the state was saved with"});
}

std::int64_t state_count(const StateView& s, std::string_view key) {
  const std::int64_t v = s.integer(key);
  if (v < 0 || v > std::int64_t{1} << 60)
    throw_user_error({fmt::format("iterator state: {}", key), "a number from 0 to 2^60",
                      fmt::format("{}", v), "Restore a state that the same pipeline gave"});
  return v;
}

void check_buffer(int buffer) {
  if (buffer < 0 || buffer > 1'000'000)
    throw_user_error({"prefetch", "a number of elements or workers from 0 to 1,000,000",
                      fmt::format("{}", buffer), "Give 0 for no prefetching"});
}

void check_cycle_length(std::int64_t cycle_length, std::int64_t count) {
  if (cycle_length < 1 || count >= kInfinite)
    throw_user_error({"interleave", "cycle_length of at least 1, finitely many data sets",
                      fmt::format("cycle_length {}, {} data sets", cycle_length, count),
                      "Give the number of data sets to read at the same time"});
}

void check_elastic(std::int64_t global_batch_size, const ShardOptions& s) {
  if (s.shard_count < 1 || s.shard_index < 0 || s.shard_index >= s.shard_count ||
      global_batch_size < 1 || global_batch_size % s.shard_count != 0)
    throw_user_error(
        {"elastic", "shard_index < shard_count, which divides the global batch size",
         fmt::format("shard {} of {}, batch {}", s.shard_index, s.shard_count, global_batch_size),
         "Give a global batch size that every number of hosts divides"});
}

void throw_zip_length(std::size_t i, bool shorter) {
  throw_user_error({fmt::format("zip: data set {}", i), "as many elements as those before it",
                    shorter ? "fewer" : "more", "Give strict = false to stop at the shortest"});
}

}  // namespace internal
}  // namespace xylem::data
