#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "xylem/data/elastic_node.h"
#include "xylem/data/random.h"
#include "xylem/data/shuffle.h"

namespace xylem::data {

// What a sampler says of one position of the global order.
struct RecordMetadata {
  std::int64_t index = 0;                  // the position
  std::optional<std::int64_t> record_key;  // of the record in the source
  std::optional<Generator> rng;            // for this record, if the sampler has a seed
};

// The part [begin, end) of n elements that is a shard's: as even as possible, the first shards one
// longer unless the remainder is dropped.
struct ShardRange {
  std::int64_t begin, end;
};
ShardRange even_split(std::int64_t n, const ShardOptions& shard);

// The order in which a DataLoader visits records. Immutable.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Positions 0 ... size() - 1 of all shards together; kInfinite without an end.
  virtual std::int64_t size() const = 0;
  // UserError outside of them.
  virtual RecordMetadata at(std::int64_t index) const = 0;
  // As Grain's text: it stands in checkpoints.
  virtual std::string repr() const = 0;
  virtual std::optional<ShardOptions> shard_options() const { return std::nullopt; }
  // How many positions k * shard_count + shard_index are this shard's.
  virtual std::int64_t shard_size(const ShardOptions& shard) const = 0;
};

// Records in the order of the source. Without `shard`: Grain's NoSharding.
class SequentialSampler final : public Sampler {
 public:
  SequentialSampler(std::int64_t num_records, std::optional<ShardOptions> shard = std::nullopt,
                    std::optional<std::int64_t> seed = std::nullopt, Compat compat = Compat::fixed);
  std::int64_t size() const override { return size_; }
  RecordMetadata at(std::int64_t index) const override;
  std::string repr() const override;
  std::optional<ShardOptions> shard_options() const override {
    return shard_.value_or(ShardOptions());
  }
  std::int64_t shard_size(const ShardOptions& shard) const override;

 private:
  std::int64_t num_records_, size_;
  std::optional<ShardOptions> shard_;
  std::optional<std::uint64_t> seed_;
  Compat compat_;
};

struct IndexSamplerOptions {
  std::optional<ShardOptions> shard = {};  // without: NoSharding
  bool shuffle = false;                    // within each shard's block of records
  std::optional<std::int64_t> num_epochs = {};
  std::optional<std::int64_t> seed = {};  // needed to shuffle; 32 bits
  Compat compat = Compat::fixed;
};

// Each shard owns a block of consecutive records and visits it epoch after epoch.
class IndexSampler final : public Sampler {
 public:
  IndexSampler(std::int64_t num_records, IndexSamplerOptions options);
  std::int64_t size() const override { return size_; }
  RecordMetadata at(std::int64_t index) const override;
  std::string repr() const override;
  std::optional<ShardOptions> shard_options() const override {
    return options_.shard.value_or(ShardOptions());
  }
  std::int64_t shard_size(const ShardOptions& shard) const override;

 private:
  std::int64_t num_records_, size_;
  IndexSamplerOptions options_;
  ShardRange block_;
  std::optional<ShuffleOrders> orders_;
};

}  // namespace xylem::data
