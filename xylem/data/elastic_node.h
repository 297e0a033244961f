#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xylem/data/iter_nodes.h"
#include "xylem/data/map_nodes.h"
#include "xylem/data/read_node.h"

namespace xylem::data {

// Which part of the data is this host's.
struct ShardOptions {
  std::int64_t shard_index = 0, shard_count = 1;
  bool drop_remainder = false;
};

namespace internal {

void check_elastic(std::int64_t global_batch_size, const ShardOptions& s);

// Batches of one host out of several; see elastic() in dataset.h.
template <class T>
class ElasticNode final : public IterNode<Arrays<T>> {
 public:
  ElasticNode(std::int64_t global_batch_size, ShardOptions shard, ReadAheadOptions options)
      : batch_(global_batch_size), shard_(shard), options_(options) {
    check_elastic(global_batch_size, shard);
    check_read_options(options);
  }
  XYLEM_DATA_NODE(ElasticNode, "elastic")
  std::string arguments() const override {
    return "global batch " + std::to_string(batch_) + ", shard " +
           std::to_string(shard_.shard_index) + " of " + std::to_string(shard_.shard_count);
  }
  std::unique_ptr<Iterator<Arrays<T>>> iterate(const std::shared_ptr<const Node>& self,
                                               const IteratorContext& c) const override {
    return std::make_unique<It>(self, c);
  }

 private:
  struct It final : Iterator<Arrays<T>> {
    It(std::shared_ptr<const Node> node, const IteratorContext& c)
        : Iterator<Arrays<T>>(std::move(node), c), context(c) {}
    const ElasticNode& elastic() const { return static_cast<const ElasticNode&>(*this->node_); }
    std::optional<Arrays<T>> do_next() override {
      if (!it) open();
      std::optional<Arrays<T>> e = it->next();
      if (e) next_index += elastic().batch_;
      return e;
    }
    // This host's elements from next_index on, in batches.
    void open() {
      const ElasticNode& n = elastic();
      auto slice = make_node<SliceNode<T>>(
          {n.parents()[0]}, "",
          Slice{next_index + n.shard_.shard_index, std::nullopt, n.shard_.shard_count}, true);
      slice->bind();
      using Batch = DefaultBatch<T, Arrays<T>>;
      auto batch = make_node<BatchMapNode<T, Arrays<T>, Batch>>(
          {slice}, "", n.batch_ / n.shard_.shard_count, true, Batch{});
      auto read = make_node<ReadNode<Arrays<T>>>({batch}, "", n.options_);
      it = read->iterate(read, context);
    }
    void save(StateWriter& w) override {
      w.begin_object();
      w.field("global_next_index", next_index);
      w.end();
    }
    void restore(const StateView& s) override {
      next_index = state_count(s, "global_next_index");
      it.reset();
    }
    void start_prefetch() override {
      if (!it) open();
      it->start_prefetch();
    }
    std::string origin() const override { return it ? it->origin() : ""; }
    IteratorContext context;
    std::int64_t next_index = 0;
    std::unique_ptr<Iterator<Arrays<T>>> it;
  };

  std::int64_t batch_;
  ShardOptions shard_;
  ReadAheadOptions options_;
};

}  // namespace internal
}  // namespace xylem::data
