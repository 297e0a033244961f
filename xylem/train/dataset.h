#pragma once

#include <memory>
#include <string>

#include "xylem/data/batches.h"
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

// The run's training batches from the first on: what `xylem train` trains on, in this order.
std::unique_ptr<data::BatchIterator> training_batches(const Config& config, const Dataset& dataset);

}  // namespace xylem::train
