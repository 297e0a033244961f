#include "xylem/train/dataset.h"

#include "xylem/data/text.h"

namespace xylem::train {

Dataset Dataset::load(const Config& config) {
  auto text = std::make_shared<const std::string>(data::load_text(config.dataset_path));
  const data::TextSplit split = data::split_text(*text);
  data::Windows training(split.train, config.max_target_length, "training text");
  data::Windows validation(split.validation, config.max_target_length, "validation text");
  return {std::move(text), training, validation};
}

std::unique_ptr<data::BatchIterator> training_batches(const Config& config,
                                                      const Dataset& dataset) {
  return std::make_unique<data::WindowBatches>(
      dataset.training,
      data::WindowBatchOptions{.batch_size = config.per_device_batch_size,
                               .seed = static_cast<std::uint32_t>(config.data_shuffle_seed),
                               .shuffle = config.enable_data_shuffling});
}

}  // namespace xylem::train
