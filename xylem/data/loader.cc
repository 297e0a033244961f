#include "xylem/data/loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"

namespace xylem::data::internal {

void check_loader_options(const DataLoaderOptions& o) {
  if (o.worker_count < 0 || o.worker_buffer_size < 0)
    throw_user_error({"DataLoader: worker_count, worker_buffer_size", "numbers from 0 on",
                      fmt::format("{}, {}", o.worker_count, o.worker_buffer_size),
                      "Give 0 for no workers"});
}

void throw_no_generator() {
  throw_user_error({"DataLoader: random_map", "a record with a generator of its own", "none",
                    "Give the sampler a seed, and put random_map before flat_map"});
}

// With W workers and S shards worker w sees every W * S-th position; the layout counts positions,
// the pipeline elements of each worker.

void write_loader_state(StateWriter& w, const LoaderConfig& c, const StateView& pipeline) {
  const StateView ring = pipeline.find("iterators_in_use_states");
  std::vector<StateView> workers{pipeline};
  std::int64_t next = 0;
  if (ring.valid()) {
    workers = ring.items();
    next = pipeline.integer("next_index_in_cycle");
  }
  const auto step = static_cast<std::int64_t>(workers.size()) * c.shard.shard_count;
  w.begin_object();
  w.field("version", 2);
  w.key("last_seen_indices");
  w.begin_object();
  for (std::size_t i = 0; i < workers.size(); ++i)
    w.field(std::to_string(i), c.shard.shard_index - step +
                                   static_cast<std::int64_t>(i) * c.shard.shard_count +
                                   workers[i].integer("next_index") * step);
  w.end();
  w.field("last_worker_index", next - 1);
  w.field("worker_count", c.options.worker_count);
  w.key("sampler");
  w.string(c.sampler);
  w.key("data_source");
  w.string(c.options.source_repr);
  w.end();
}

State pipeline_state(const LoaderConfig& c, const StateView& s) {
  const auto same = [](std::string_view key, const std::string& here, const std::string& saved) {
    if (here != saved)
      throw_user_error({fmt::format("DataLoader state: {}", key), here, saved,
                        "Restore with the loader that the state was saved with"});
  };
  same("version", "2", std::to_string(s.integer("version")));
  same("worker_count", std::to_string(c.options.worker_count),
       std::to_string(s.integer("worker_count")));
  same("sampler", c.sampler, std::string(s.at("sampler").string()));
  same("data_source", c.options.source_repr, std::string(s.at("data_source").string()));
  const StateView seen = s.at("last_seen_indices");
  const std::int64_t workers = std::max(c.options.worker_count, 1);
  const std::int64_t step = workers * c.shard.shard_count;
  const auto consumed = [&](std::int64_t i) {
    const std::int64_t last = seen.integer(std::to_string(i));
    if (last < -step || last > std::int64_t{1} << 60)
      throw_user_error({"DataLoader state: last_seen_indices",
                        fmt::format("positions from {} to 2^60", -step), fmt::format("{}", last),
                        "Restore a state that the same loader gave"});
    return (last + step - c.shard.shard_index - i * c.shard.shard_count) / step;
  };
  State out;
  StateWriter w(out);
  w.begin_object();
  if (c.options.worker_count == 0) {
    w.field("next_index", consumed(0));
  } else {
    const std::int64_t last = s.integer("last_worker_index");
    w.field("next_index_in_cycle", last < 0 ? 0 : (last % workers + 1) % workers);
    w.field("next_index_in_datasets", workers);
    w.key("iterators_in_use_indices");
    w.begin_array();
    for (std::int64_t i = 0; i < workers; ++i) w.integer(i);
    w.end();
    w.key("iterators_in_use_states");
    w.begin_array();
    for (std::int64_t i = 0; i < workers; ++i) {
      w.begin_object();
      w.field("next_index", consumed(i));
      w.end();
    }
    w.end();
    w.key("exhausted");
    w.begin_array();
    for (std::int64_t i = 0; i < workers; ++i) w.integer(0);
    w.end();
  }
  w.end();
  return out;
}

}  // namespace xylem::data::internal
