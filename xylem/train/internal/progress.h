#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "xylem/train/metrics.h"

namespace xylem::train::internal {

// Says how training goes: on a terminal one line that is redrawn, elsewhere a line every
// log_period steps.
class Progress {
 public:
  Progress(std::FILE* out, bool terminal, std::int64_t total_steps, std::int64_t log_period);

  void step(const StepMetrics& m);
  // A line of its own, above the live one.
  void note(const std::string& text);
  // Leaves the live line behind.
  void finish();

 private:
  std::string describe(const StepMetrics& m) const;
  void clear();

  std::FILE* out_;
  bool terminal_;
  bool live_ = false;
  std::int64_t total_, period_;
  double typical_seconds_ = 0;  // smoothed over some 20 steps
  double last_drawn_ = 0;
};

// "1:02:03", "4:05".
std::string format_duration(double seconds);

}  // namespace xylem::train::internal
