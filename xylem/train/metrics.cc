#include "xylem/train/metrics.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "xylem/base/file.h"
#include "xylem/base/json.h"

namespace xylem::train {
namespace {

// Calls f for each complete line that holds a step; stops at the first that does not or when f says
// false. Returns the length of what was accepted.
template <class F>
std::size_t scan(std::string_view text, F&& f) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    const std::optional<StepMetrics> m = parse_metrics(text.substr(at, end - at));
    if (!m || !f(*m)) break;
    at = end + 1;
  }
  return at;
}

}  // namespace

double bits_per_byte(double nats, double bytes_per_token) {
  return nats / std::log(2.0) / bytes_per_token;
}

std::string format_metrics(const StepMetrics& m) {
  JsonWriter w;
  w.begin_object();
  w.field("step", m.step);
  w.field("loss", m.loss);
  w.field("learning_rate", m.learning_rate);
  w.field("grad_norm", m.grad_norm);
  w.field("tokens_per_second", m.tokens_per_second);
  w.field("step_seconds", m.step_seconds);
  w.field("mfu", m.mfu);
  if (m.eval_loss) {
    w.field("eval_loss", *m.eval_loss);
    w.field(m.byte_tokens ? "eval_bits_per_byte" : "eval_bits_per_token",
            bits_per_byte(*m.eval_loss));
  }
  w.end_object();
  return w.take();
}

std::optional<StepMetrics> parse_metrics(std::string_view line) {
  const nlohmann::json j = nlohmann::json::parse(line, nullptr, false);
  if (!j.is_object() || !j.contains("step") || !j["step"].is_number_integer()) return std::nullopt;
  const auto number = [&](const char* key) {
    const auto it = j.find(key);
    if (it == j.end() || !it->is_number()) return std::numeric_limits<double>::quiet_NaN();
    return it->get<double>();
  };
  StepMetrics m{.step = j["step"].get<std::int64_t>(),
                .loss = number("loss"),
                .learning_rate = number("learning_rate"),
                .grad_norm = number("grad_norm"),
                .tokens_per_second = number("tokens_per_second"),
                .step_seconds = number("step_seconds"),
                .mfu = number("mfu"),
                .eval_loss = std::nullopt,
                .byte_tokens = !j.contains("eval_bits_per_token")};
  if (j.contains("eval_loss")) m.eval_loss = number("eval_loss");
  return m;
}

std::vector<StepMetrics> read_metrics(const std::string& path) {
  std::vector<StepMetrics> out;
  if (!path_exists(path)) return out;
  scan(read_file(path), [&](const StepMetrics& m) {
    out.push_back(m);
    return true;
  });
  return out;
}

MetricsLog::MetricsLog(const std::string& path, std::int64_t first_step) {
  if (path_exists(path)) {
    const std::string text = read_file(path);
    std::int64_t next = 0;
    const std::size_t keep =
        scan(text, [&](const StepMetrics& m) { return m.step == next++ && m.step < first_step; });
    if (keep < text.size()) truncate_file(path, keep);
  }
  file_ = std::make_unique<AppendFile>(path);
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::write(const StepMetrics& m) { file_->write(format_metrics(m) + "\n"); }
void MetricsLog::sync() { file_->sync(); }

}  // namespace xylem::train
