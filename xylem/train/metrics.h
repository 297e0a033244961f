#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xylem {
class AppendFile;
}

namespace xylem::train {

// What is known of one training step. Losses in nats per token; NaN where JSON has null.
struct StepMetrics {
  std::int64_t step = 0;  // from 0
  double loss = 0;
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping
  double tokens_per_second = 0;
  double step_seconds = 0;
  double mfu = 0;
  std::optional<double> eval_loss;  // after this step, over the validation text
  bool byte_tokens = true;  // whether a token is a byte, so that losses can be given by byte
};

// Nats per token to bits per byte, a token being `bytes_per_token` bytes.
double bits_per_byte(double nats, double bytes_per_token = 1);

// One JSON object, and back: nothing if the text is not one.
std::string format_metrics(const StepMetrics& m);
std::optional<StepMetrics> parse_metrics(std::string_view line);

// The steps of a metrics file as far as it is whole: up to the first line that is cut or foreign.
std::vector<StepMetrics> read_metrics(const std::string& path);

// Appends to a file of one line a step. Opening it cuts the file to the steps before `first_step`,
// so that after any end of the former process each step stands there once.
class MetricsLog {
 public:
  MetricsLog(const std::string& path, std::int64_t first_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void write(const StepMetrics& m);
  // Flushes to disk. A checkpoint of step n is committed only after the lines before n are.
  void sync();

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace xylem::train
