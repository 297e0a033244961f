#pragma once

#include <cstdint>
#include <cstdio>

#include "xylem/train/run.h"

namespace xylem::train {

struct TrainOptions {
  std::FILE* out = stdout;  // where progress goes
  bool terminal = false;    // one live line instead of many
};

enum class TrainStatus : std::uint8_t {
  kFinished,  // all steps are done
  kStopped,   // a signal, or request_stop, ended it; the state is saved
};

// Trains from the newest checkpoint of the run's folder, or from the start, to the configured
// number of steps. On SIGINT and SIGTERM it finishes the step, saves and returns. What follows a
// resume is bit for bit what would have followed without the interruption. Throws UserError or
// EnvironmentError; the checkpoints committed by then stay.
TrainStatus train(const Run& run, const TrainOptions& options = {});

}  // namespace xylem::train
