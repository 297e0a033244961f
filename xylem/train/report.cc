#include "xylem/train/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace xylem::train {
namespace {

constexpr double kWidth = 860, kHeight = 420;
constexpr double kLeft = 60, kRight = 20, kTop = 34, kBottom = 44;
constexpr std::size_t kMaxPoints = 600;

struct Point {
  double x, y;
};

// Means of at most kMaxPoints equal runs of steps; steps whose loss is no number are left out.
std::vector<Point> training_curve(std::span<const StepMetrics> metrics) {
  std::vector<Point> out;
  const std::size_t run = (metrics.size() + kMaxPoints - 1) / kMaxPoints;
  for (std::size_t i = 0; i < metrics.size(); i += run) {
    double x = 0, y = 0, n = 0;
    for (std::size_t k = i; k < std::min(i + run, metrics.size()); ++k) {
      if (!std::isfinite(metrics[k].loss)) continue;
      x += static_cast<double>(metrics[k].step);
      y += metrics[k].loss;
      n += 1;
    }
    if (n > 0) out.push_back({x / n, y / n});
  }
  return out;
}

std::vector<Point> evaluation_points(std::span<const StepMetrics> metrics) {
  std::vector<Point> out;
  for (const StepMetrics& m : metrics)
    if (m.eval_loss && std::isfinite(*m.eval_loss))
      out.push_back({static_cast<double>(m.step), *m.eval_loss});
  return out;
}

// 1, 2 or 5 times a power of ten, so that about `count` of them span the range.
double tick_step(double range, int count) {
  const double raw = range / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= raw) return m * power;
  return 10 * power;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
};

std::string polyline(const std::vector<Point>& points, std::string_view colour) {
  std::string s =
      fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"", colour);
  for (const Point& p : points) s += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
  return s + "\"/>\n";
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// The bytes as UTF-8; what is none becomes U+FFFD.
std::string printable(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    const std::size_t n = c < 0x80                ? 1
                          : c >= 0xc2 && c < 0xe0 ? 2
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xf0 && c < 0xf5 ? 4
                                                  : 0;
    bool ok = n > 0 && i + n <= bytes.size() && (c >= 0x20 || c == '\n' || c == '\t');
    for (std::size_t k = 1; ok && k < n; ++k)
      ok = (static_cast<unsigned char>(bytes[i + k]) & 0xc0) == 0x80;
    if (ok)
      out += bytes.substr(i, n);
    else
      out += "\xef\xbf\xbd";
    i += ok ? n : 1;
  }
  return out;
}

std::string table_row(std::string_view name, const std::string& value) {
  return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", name, escape(value));
}

}  // namespace

std::string loss_svg(std::span<const StepMetrics> metrics, const std::string& title) {
  std::vector<Point> train = training_curve(metrics);
  std::vector<Point> eval = evaluation_points(metrics);
  Range x, y;
  for (const auto* points : {&train, &eval})
    for (const Point& p : *points) {
      x.add(p.x);
      y.add(p.y);
    }
  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"20\" "
      "font-size=\"14\">{3}</text>\n",
      kWidth, kHeight, kLeft, escape(title));
  if (train.empty() && eval.empty())
    return s +
           fmt::format("<text x=\"{}\" y=\"{}\">no steps yet</text>\n</svg>\n", kLeft, kHeight / 2);
  if (x.high <= x.low) x.high = x.low + 1;
  const double margin = std::max((y.high - y.low) * 0.05, 1e-3);
  y.low -= margin;
  y.high += margin;
  const auto to_x = [&](double v) {
    return kLeft + (v - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight);
  };
  const auto to_y = [&](double v) {
    return kHeight - kBottom - (v - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  };

  const double dy = tick_step(y.high - y.low, 6), dx = std::max(1.0, tick_step(x.high - x.low, 8));
  for (double v = std::ceil(y.low / dy) * dy; v <= y.high; v += dy)
    s += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        kLeft, kWidth - kRight, to_y(v), kLeft - 6, to_y(v) + 4, v);
  for (double v = std::ceil(x.low / dx) * dx; v <= x.high; v += dx)
    s += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", to_x(v),
                     kHeight - kBottom + 18, v);
  s += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text>\n",
                   (kLeft + kWidth - kRight) / 2, kHeight - 8);
  s += fmt::format(
      "<text x=\"16\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {0})\">"
      "loss, nats per token</text>\n",
      kHeight / 2);

  for (Point& p : train) p = {to_x(p.x), to_y(p.y)};
  for (Point& p : eval) p = {to_x(p.x), to_y(p.y)};
  s += polyline(train, "#3b6fb6");
  s += polyline(eval, "#d1495b");
  for (const Point& p : eval)
    s += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#d1495b\"/>\n", p.x, p.y);
  s += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" fill=\"#3b6fb6\">training</text>"
      "<text x=\"{0}\" y=\"{2}\" fill=\"#d1495b\">validation</text>\n</svg>\n",
      kWidth - kRight - 80, kTop + 12, kTop + 30);
  return s;
}

std::string report_html(const ReportInput& in) {
  std::string s = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font:15px/1.5 sans-serif;max-width:900px;margin:2em auto;padding:0 1em}}"
      "th{{text-align:left;font-weight:normal;color:#555;padding-right:2em}}"
      "pre{{background:#f6f6f6;padding:1em;white-space:pre-wrap;overflow-wrap:anywhere}}"
      "svg{{max-width:100%;height:auto}}</style></head>\n<body>\n<h1>{0}</h1>\n<table>\n",
      escape(in.config.run_name));
  s += table_row("status", in.status);
  s += table_row("parameters", fmt::format("{:.0f}", in.parameters));
  s += table_row("steps", fmt::format("{} of {}", in.metrics.size(), in.config.steps));
  if (!in.metrics.empty()) {
    const StepMetrics& last = in.metrics.back();
    std::vector<double> seconds;
    for (const StepMetrics& m : in.metrics) seconds.push_back(m.step_seconds);
    std::nth_element(seconds.begin(),
                     seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    const double median = seconds[seconds.size() / 2];
    const double tokens = static_cast<double>(in.config.per_device_batch_size) *
                          static_cast<double>(in.config.max_target_length);
    s += table_row("last training loss", fmt::format("{:.4f} nats per token", last.loss));
    const auto evaluated =
        std::find_if(in.metrics.rbegin(), in.metrics.rend(),
                     [](const StepMetrics& m) { return m.eval_loss.has_value(); });
    if (evaluated != in.metrics.rend())
      s += table_row(
          "validation",
          fmt::format("{:.4f} nats per token, {:.4f} bits per {} (step {})", *evaluated->eval_loss,
                      bits_per_byte(*evaluated->eval_loss),
                      in.config.tokenizer_type == "byte" ? "byte" : "token", evaluated->step));
    s += table_row("median step", fmt::format("{:.2f} ms, {:.0f} tokens per second", median * 1e3,
                                              median > 0 ? tokens / median : 0));
  }
  s += "</table>\n<h2>Loss</h2>\n" + loss_svg(in.metrics, in.config.run_name);
  if (!in.sample.empty())
    s += fmt::format("<h2>Sample</h2>\n<pre><b>{}</b>{}</pre>\n", escape(printable(in.prompt)),
                     escape(printable(in.sample)));
  s += fmt::format("<h2>Configuration</h2>\n<pre>{}</pre>\n</body></html>\n",
                   escape(to_yaml(in.config)));
  return s;
}

}  // namespace xylem::train
