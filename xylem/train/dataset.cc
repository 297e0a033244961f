#include "xylem/train/dataset.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/data/text.h"

namespace xylem::train {

Dataset Dataset::load(const Config& config) {
  auto text = std::make_shared<const std::string>(data::load_text(config.dataset_path));
  const data::TextSplit split = data::split_text(*text);
  data::Windows training(split.train, config.max_target_length, "training text");
  data::Windows validation(split.validation, config.max_target_length, "validation text");
  return {std::move(text), training, validation};
}

data::IterDataset<HostArray> training_batches(const Config& config, const Dataset& dataset) {
  data::MapDataset<HostArray> windows = data::source(dataset.training, "training text");
  if (config.enable_data_shuffling) windows = windows.shuffle(config.data_shuffle_seed);
  return windows.repeat()
      .batch(config.per_device_batch_size)
      .to_iter_dataset({.num_threads = 1, .prefetch_buffer_size = 4});
}

HostArray collect_batches(data::DatasetIterator<HostArray>& batches, std::int64_t steps) {
  if (steps < 1)
    throw_user_error({"data batches: steps", "at least 1", fmt::format("{}", steps),
                      "Give the number of batches to collect"});
  HostArray all;
  for (std::int64_t s = 0; s < steps; ++s) {
    const HostArray b = batches.next().value();
    if (s == 0) all = HostArray(DType::kU8, {steps, b.dims()[0], b.dims()[1]});
    std::uint8_t* to = all.as<std::uint8_t>() + s * b.size();
    for (const std::int32_t token : b.span<std::int32_t>())
      *to++ = static_cast<std::uint8_t>(token);
  }
  return all;
}

}  // namespace xylem::train
