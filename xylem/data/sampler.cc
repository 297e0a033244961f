#include "xylem/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "xylem/base/error.h"
#include "xylem/data/node.h"

namespace xylem::data {
namespace {

std::string repr_of(const std::optional<ShardOptions>& s) {
  const ShardOptions o = s.value_or(ShardOptions());
  return fmt::format("{}(shard_index={}, shard_count={}, drop_remainder={})",
                     s ? "ShardOptions" : "NoSharding", o.shard_index, o.shard_count,
                     o.drop_remainder ? "True" : "False");
}

std::string repr_of(const std::optional<std::int64_t>& v) {
  return v ? fmt::format("{}", *v) : "None";
}

void check_records(std::int64_t n, const std::optional<ShardOptions>& shard) {
  if (n < 1)
    throw_user_error({"Sampler: num_records", "at least 1", fmt::format("{}", n),
                      "Give the number of records of the source"});
  if (shard && (shard->shard_count < 1 || shard->shard_index < 0 ||
                shard->shard_index >= shard->shard_count))
    throw_user_error({"Sampler: shard options", "0 <= shard_index < shard_count",
                      fmt::format("{} of {}", shard->shard_index, shard->shard_count),
                      "Give the number of this host and of all hosts"});
}

void check_position(std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size)
    throw_user_error({"Sampler: index", fmt::format("from 0 to {}", size - 1),
                      fmt::format("{}", index), "Stay below size()"});
}

// Positions of one shard among `size` that are dealt out in turn.
std::int64_t dealt(std::int64_t size, const ShardOptions& s, bool remainder) {
  if (size >= kInfinite) return kInfinite;
  return size / s.shard_count + (remainder && s.shard_index < size % s.shard_count ? 1 : 0);
}

}  // namespace

ShardRange even_split(std::int64_t n, const ShardOptions& s) {
  const std::int64_t base = n / s.shard_count, rest = s.drop_remainder ? 0 : n % s.shard_count;
  const std::int64_t begin = s.shard_index * base + std::min(s.shard_index, rest);
  return {begin, begin + base + (s.shard_index < rest ? 1 : 0)};
}

// ---- SequentialSampler

SequentialSampler::SequentialSampler(std::int64_t num_records, std::optional<ShardOptions> shard,
                                     std::optional<std::int64_t> seed, Compat compat)
    : num_records_(num_records), size_(num_records), shard_(shard), compat_(compat) {
  check_records(num_records, shard);
  if (shard && shard->drop_remainder) size_ = num_records / shard->shard_count * shard->shard_count;
  if (seed) seed_ = static_cast<std::uint64_t>(*seed);
}

RecordMetadata SequentialSampler::at(std::int64_t index) const {
  check_position(index, size_);
  RecordMetadata m{index, index, {}};
  if (seed_) m.rng = sampler_generator(*seed_, index);
  return m;
}

std::string SequentialSampler::repr() const {
  return fmt::format("SequentialSampler(num_records={}, shard_options={})", num_records_,
                     repr_of(shard_));
}

std::int64_t SequentialSampler::shard_size(const ShardOptions& s) const {
  return dealt(size_, s, compat_ == Compat::fixed && !s.drop_remainder);
}

// ---- IndexSampler

IndexSampler::IndexSampler(std::int64_t num_records, IndexSamplerOptions options)
    : num_records_(num_records), size_(kInfinite), options_(options), block_{0, num_records} {
  check_records(num_records, options.shard);
  if (options.num_epochs && *options.num_epochs < 1)
    throw_user_error({"IndexSampler: num_epochs", "at least 1",
                      fmt::format("{}", *options.num_epochs), "Leave it out for no end"});
  if (options.shuffle && !options.seed)
    throw_user_error({"IndexSampler: seed", "a seed, since shuffle is set", "none", "Give one"});
  if (options.seed && (*options.seed < 0 || *options.seed > 0xffffffff))
    throw_user_error({"IndexSampler: seed", "an integer from 0 to 2^32 - 1",
                      fmt::format("{}", *options.seed), "Give another seed"});
  const ShardOptions s = options.shard.value_or(ShardOptions());
  if (options.shard) block_ = even_split(num_records, s);
  if (options.num_epochs) {
    size_ = num_records > kInfinite / *options.num_epochs ? kInfinite
                                                          : num_records * *options.num_epochs;
    if (s.drop_remainder)
      size_ = std::min(size_, (block_.end - block_.begin) * s.shard_count * *options.num_epochs);
    // Every shard has room for all epochs of its block.
    if (options.compat == Compat::fixed) size_ = std::max(size_, shard_size(s) * s.shard_count);
  }
  if (options.shuffle) orders_.emplace(static_cast<std::uint32_t>(*options.seed), options.compat);
}

RecordMetadata IndexSampler::at(std::int64_t index) const {
  check_position(index, size_);
  const ShardOptions s = options_.shard.value_or(ShardOptions());
  const std::int64_t n = block_.end - block_.begin;
  if (n == 0)
    throw_user_error({"IndexSampler", "a record or more for each shard",
                      fmt::format("{} records for {} shards", num_records_, s.shard_count),
                      "Use fewer shards"});
  std::int64_t k = index / s.shard_count;
  if (orders_) orders_->apply(n, std::span(&k, 1), std::span(&k, 1));
  RecordMetadata m{index, block_.begin + k % n, {}};
  if (options_.seed) m.rng = sampler_generator(static_cast<std::uint64_t>(*options_.seed), index);
  return m;
}

std::string IndexSampler::repr() const {
  return fmt::format(
      "IndexSampler(num_records={}, shard_options={}, shuffle={}, num_epochs={}, seed={})",
      num_records_, repr_of(options_.shard), options_.shuffle ? "True" : "False",
      repr_of(options_.num_epochs), repr_of(options_.seed));
}

std::int64_t IndexSampler::shard_size(const ShardOptions& s) const {
  if (!options_.num_epochs) return kInfinite;
  if (options_.compat == Compat::grain) return dealt(size_, s, false);
  const std::int64_t n = block_.end - block_.begin;
  return n > kInfinite / *options_.num_epochs ? kInfinite : n * *options_.num_epochs;
}

}  // namespace xylem::data
