#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "xylem/data/dataset.h"
#include "xylem/data/windows.h"
#include "xylem/train/config.h"

namespace xylem::train {

// The text of a run, cut into windows of its training and validation parts.
struct Dataset {
  std::shared_ptr<const std::string> text;  // what the windows refer to
  data::Windows training, validation;

  // UserError or EnvironmentError if the text cannot be had or is too short.
  static Dataset load(const Config& config);
};

// The run's training batches, without end: what `xylem train` trains on, in this order. i32[B, T +
// 1] of the windows; an epoch visits every window once, in an order of its own (that of
// IndexShuffle with seed + epoch); a batch may span two epochs. The state is a position,
// {"next_index": batches}.
data::IterDataset<HostArray> training_batches(const Config& config, const Dataset& dataset);

// The next `steps` batches as u8[steps, B, T + 1].
HostArray collect_batches(data::DatasetIterator<HostArray>& batches, std::int64_t steps);

}  // namespace xylem::train
