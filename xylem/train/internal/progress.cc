#include "xylem/train/internal/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace xylem::train::internal {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string format_rate(double v) {
  if (v >= 1e6) return fmt::format("{:.2f}M", v / 1e6);
  if (v >= 1e4) return fmt::format("{:.1f}k", v / 1e3);
  return fmt::format("{:.0f}", v);
}

}  // namespace

std::string format_duration(double seconds) {
  const auto s = static_cast<long long>(std::max(0.0, std::round(seconds)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

Progress::Progress(std::FILE* out, bool terminal, std::int64_t total_steps, std::int64_t log_period)
    : out_(out), terminal_(terminal), total_(total_steps), period_(log_period) {}

std::string Progress::describe(const StepMetrics& m) const {
  // One step's time jumps about on a busy machine; what is shown is smoothed like the time left.
  const double ratio = typical_seconds_ > 0 ? m.step_seconds / typical_seconds_ : 1;
  const double left = static_cast<double>(total_ - m.step - 1) * typical_seconds_;
  return fmt::format("step {}/{}  loss {:.4f}  {} tokens/s  MFU {:.1f} %  ETA {}", m.step + 1,
                     total_, m.loss, format_rate(m.tokens_per_second * ratio), m.mfu * ratio * 100,
                     format_duration(left));
}

void Progress::step(const StepMetrics& m) {
  // The first step compiles; until there is another it is all that is known.
  typical_seconds_ = typical_seconds_ == 0 || m.step == 1
                         ? m.step_seconds
                         : typical_seconds_ * 0.95 + m.step_seconds * 0.05;
  const bool last = m.step + 1 == total_;
  if (terminal_) {
    if (!last && now() - last_drawn_ < 0.1) return;
    last_drawn_ = now();
    fmt::print(out_, "\r\x1b[K{}", describe(m));
    live_ = true;
    std::fflush(out_);
  } else if (m.step % period_ == 0 || last) {
    fmt::print(out_, "{}\n", describe(m));
    std::fflush(out_);
  }
}

void Progress::clear() {
  if (live_) fmt::print(out_, "\r\x1b[K");
  live_ = false;
}

void Progress::note(const std::string& text) {
  clear();
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

void Progress::finish() {
  if (live_) fmt::print(out_, "\n");
  live_ = false;
  std::fflush(out_);
}

}  // namespace xylem::train::internal
