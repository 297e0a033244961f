#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xylem/data/dataset.h"
#include "xylem/data/sampler.h"

// Grain's DataLoader API: a source, a sampler, operations.
//
//   auto loader = data::data_loader(records, data::IndexSampler(n, {.shuffle = true, .seed = 1}))
//                     .map(decode)
//                     .batch(32);
//   auto it = loader.iterator();
//   it.get_state();       // the JSON of Grain's DataLoader, indented by four

namespace xylem::data {

struct DataLoaderOptions {
  int worker_count = 0;  // threads with a part of the order each; see IterDataset::mp_prefetch
  int worker_buffer_size = 1;
  std::optional<ShardOptions> shard = {};  // default: the sampler's
  ReadAheadOptions read = {};
  // What Grain's checkpoints hold for the source: the type's text for lists, repr(source) for
  // others.
  std::string source_repr = "<class 'list'>";
};

// What travels through a loader. Not a plain struct, so that batches are made of `data` only.
template <class T>
class LoaderRecord {
 public:
  LoaderRecord(RecordMetadata m, T d) : metadata(std::move(m)), data(std::move(d)) {}
  RecordMetadata metadata;
  T data;
};

namespace internal {

struct LoaderConfig {
  DataLoaderOptions options;
  ShardOptions shard;
  std::string sampler;
};

void check_loader_options(const DataLoaderOptions& o);
[[noreturn]] void throw_no_generator();
// Between Grain's two layouts; see docs/from-grain.md.
void write_loader_state(StateWriter& w, const LoaderConfig& c, const StateView& pipeline);
State pipeline_state(const LoaderConfig& c, const StateView& loader);

// Record k of a shard: what the sampler says of position k * shard_count + shard_index.
template <class T>
class SamplerNode final : public MapNode<LoaderRecord<T>> {
 public:
  SamplerNode(std::shared_ptr<const Sampler> sampler, ShardOptions shard)
      : sampler_(std::move(sampler)), shard_(shard), length_(sampler_->shard_size(shard)) {}
  XYLEM_DATA_NODE(SamplerNode, "sampler")
  std::string arguments() const override { return sampler_->repr(); }
  std::int64_t length() const override { return length_; }
  std::string origin(std::int64_t i) const override {
    return this->parents()[0]->origin(at(i).record_key.value_or(0));
  }

 protected:
  void do_get(const EvalContext& c, std::span<const std::int64_t> indices,
              std::span<std::optional<LoaderRecord<T>>> out) const override {
    std::vector<RecordMetadata> metadata;
    IndexBuffer keys;
    for_each_index(*this, indices, [&](std::size_t k) {
      metadata.push_back(at(indices[k]));
      keys.push_back(*metadata.back().record_key);
    });
    std::vector<std::optional<T>> in(indices.size());
    this->template parent_as<MapNode<T>>().get(c, {keys.data(), keys.size()}, std::span(in));
    for (std::size_t k = 0; k < in.size(); ++k)
      out[k].emplace(std::move(metadata[k]), std::move(*in[k]));
  }

 private:
  RecordMetadata at(std::int64_t k) const {
    return sampler_->at(k * shard_.shard_count + shard_.shard_index);
  }
  std::shared_ptr<const Sampler> sampler_;
  ShardOptions shard_;
  std::int64_t length_;
};

template <class T>
class LoaderStateNode final : public IterNode<T> {
 public:
  explicit LoaderStateNode(std::shared_ptr<const LoaderConfig> c) : config_(std::move(c)) {}
  XYLEM_DATA_NODE(LoaderStateNode, "data_loader")
  std::unique_ptr<Iterator<T>> iterate(const std::shared_ptr<const Node>& self,
                                       const IteratorContext& c) const override {
    return std::make_unique<It>(self, c, this->template iterate_parent<T>(c));
  }

 private:
  struct It final : StepIterator<T, T> {
    using StepIterator<T, T>::StepIterator;
    std::optional<T> do_next() override { return this->parent_->next(); }
    const LoaderConfig& config() const {
      return *static_cast<const LoaderStateNode&>(*this->node_).config_;
    }
    void save(StateWriter& w) override {
      State s;
      this->parent_->save_to(s);
      write_loader_state(w, config(), s.view());
    }
    void restore(const StateView& s) override {
      const State p = pipeline_state(config(), s);
      this->parent_->restore(p.view());
    }
  };
  std::shared_ptr<const LoaderConfig> config_;
};

}  // namespace internal

template <class T>
class DataLoader {
 public:
  using Records = IterDataset<LoaderRecord<T>>;
  DataLoader(Records records, std::shared_ptr<const internal::LoaderConfig> config, bool own_state)
      : records_(std::move(records)), config_(std::move(config)), own_state_(own_state) {}

  template <class F>
  requires std::invocable<const F&, T>
  auto map(F f, std::string name = "") const {
    using U = internal::MapResult<F, T>;
    return next<U>(records_.map(
        [f = std::move(f)](LoaderRecord<T> r) {
          return LoaderRecord<U>(std::move(r.metadata), f(std::move(r.data)));
        },
        std::move(name)));
  }
  // f(element, generator): the sampler's generator of this record.
  template <class F>
  requires std::invocable<const F&, T, Generator&>
  auto random_map(F f, std::string name = "") const {
    using U = std::remove_cvref_t<std::invoke_result_t<const F&, T, Generator&>>;
    return next<U>(records_.map(
        [f = std::move(f)](LoaderRecord<T> r) {
          if (!r.metadata.rng) internal::throw_no_generator();
          U u = f(std::move(r.data), *r.metadata.rng);
          return LoaderRecord<U>(std::move(r.metadata), std::move(u));
        },
        std::move(name)));
  }
  template <class F>
  requires std::predicate<const F&, const T&> DataLoader filter(F f, std::string name = "")
  const {
    return DataLoader(
        records_.filter([f = std::move(f)](const LoaderRecord<T>& r) { return f(r.data); },
                        std::move(name)),
        config_, own_state_);
  }
  // The pieces have no generator; the state is then that of the pipeline.
  template <class F>
  requires std::invocable<const F&, T>
  auto flat_map(F f, std::int64_t max_fan_out, std::string name = "") const {
    using U =
        std::remove_cvref_t<decltype(*std::begin(std::declval<internal::MapResult<F, T>&>()))>;
    return DataLoader<U>(records_.flat_map(
                             [f = std::move(f), max_fan_out](LoaderRecord<T> r) {
                               std::vector<LoaderRecord<U>> out;
                               for (auto&& piece : f(std::move(r.data)))
                                 out.emplace_back(
                                     RecordMetadata{r.metadata.index * max_fan_out +
                                                        static_cast<std::int64_t>(out.size()),
                                                    {},
                                                    {}},
                                     std::move(piece));
                               if (static_cast<std::int64_t>(out.size()) > max_fan_out)
                                 internal::throw_fan_out(out.size(), max_fan_out);
                               return out;
                             },
                             std::move(name)),
                         config_, true);
  }
  auto batch(std::int64_t batch_size, bool drop_remainder = false) const {
    using U = Arrays<T>;
    return next<U>(records_.batch(
        batch_size,
        [](std::vector<LoaderRecord<T>> records) {
          std::vector<const T*> data;
          for (const LoaderRecord<T>& r : records) data.push_back(&r.data);
          RecordMetadata last = std::move(records.back().metadata);
          last.record_key.reset();
          return LoaderRecord<U>(std::move(last), stack<T>(std::span<const T* const>(data)));
        },
        drop_remainder));
  }

  // The pipeline, with this loader's states.
  IterDataset<T> dataset() const {
    IterDataset<T> d = records_.map([](LoaderRecord<T> r) { return std::move(r.data); }, "data");
    const DataLoaderOptions& o = config_->options;
    if (o.worker_count > 0)
      d = d.mp_prefetch(
          {.num_workers = o.worker_count, .per_worker_buffer_size = o.worker_buffer_size});
    if (own_state_) return d;
    return IterDataset<T>(make_node<internal::LoaderStateNode<T>>({d.node()}, "", config_));
  }
  DatasetIterator<T> iterator() const { return dataset().iterator(); }

 private:
  template <class U>
  DataLoader<U> next(IterDataset<LoaderRecord<U>> r) const {
    return DataLoader<U>(std::move(r), config_, own_state_);
  }
  Records records_;
  std::shared_ptr<const internal::LoaderConfig> config_;
  bool own_state_;  // the pipeline's own layout
};

template <class T>
DataLoader<T> data_loader(const MapDataset<T>& source, std::shared_ptr<const Sampler> sampler,
                          DataLoaderOptions options = {}) {
  internal::check_loader_options(options);
  auto c = std::make_shared<internal::LoaderConfig>();
  c->shard = options.shard ? *options.shard : sampler->shard_options().value_or(ShardOptions());
  c->sampler = sampler->repr();
  const ReadAheadOptions read = options.read;
  c->options = std::move(options);
  auto n = make_node<internal::SamplerNode<T>>({source.node()}, "", std::move(sampler), c->shard);
  return DataLoader<T>(MapDataset<LoaderRecord<T>>(std::move(n)).to_iter_dataset(read),
                       std::move(c), false);
}
template <class T, class S>
requires std::derived_from<S, Sampler> DataLoader<T> data_loader(const MapDataset<T>& source,
                                                                 S sampler,
                                                                 DataLoaderOptions options = {}) {
  return data_loader(source, std::make_shared<const S>(std::move(sampler)), std::move(options));
}

}  // namespace xylem::data
