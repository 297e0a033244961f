#pragma once

#include <span>
#include <string>

#include "xylem/train/config.h"
#include "xylem/train/metrics.h"

namespace xylem::train {

// The loss by step as an SVG image: the training loss, averaged where there are more steps than
// pixels, and the validation loss as points.
std::string loss_svg(std::span<const StepMetrics> metrics, const std::string& title);

struct ReportInput {
  Config config;
  std::span<const StepMetrics> metrics;
  double parameters = 0;
  std::string status;          // "finished", "stopped after step 12"
  std::string prompt, sample;  // bytes; empty: no sample
};

// One HTML page that needs nothing else: results, loss curve, sample, configuration.
std::string report_html(const ReportInput& input);

}  // namespace xylem::train
