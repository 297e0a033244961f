#include "xylem/train/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "xylem/base/file.h"
#include "xylem/train/internal/progress.h"
#include "xylem/train/report.h"

namespace xylem::train {
namespace {

StepMetrics at_step(std::int64_t step) {
  return {.step = step,
          .loss = 2.5 - 0.01 * static_cast<double>(step),
          .learning_rate = 1e-3,
          .grad_norm = 1,
          .tokens_per_second = 1000,
          .step_seconds = 0.01,
          .mfu = 0.5,
          .eval_loss = std::nullopt};
}

class MetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = make_temporary_directory("metrics-test");
    path_ = join_path(dir_, "metrics.jsonl");
  }
  void TearDown() override { remove_tree(dir_); }
  void write(std::int64_t first, std::int64_t last) const {
    MetricsLog log(path_, first);
    for (std::int64_t s = first; s < last; ++s) log.write(at_step(s));
    log.sync();
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> out;
    for (const StepMetrics& m : read_metrics(path_)) out.push_back(m.step);
    return out;
  }
  std::string dir_, path_;
};

TEST_F(MetricsTest, LinesHoldTheFieldsAndComeBack) {
  StepMetrics m = at_step(3);
  m.eval_loss = 1.5;
  const std::string line = format_metrics(m);
  EXPECT_EQ(
      line,
      "{\"step\": 3, \"loss\": 2.47, \"learning_rate\": 0.001, \"grad_norm\": 1, "
      "\"tokens_per_second\": 1000, \"step_seconds\": 0.01, \"mfu\": 0.5, \"eval_loss\": 1.5, "
      "\"eval_bits_per_byte\": " +
          line.substr(line.rfind(' ') + 1));
  const StepMetrics back = parse_metrics(line).value();
  EXPECT_EQ(back.loss, m.loss);
  EXPECT_EQ(back.eval_loss, m.eval_loss);
  EXPECT_FALSE(parse_metrics(format_metrics(at_step(0)))->eval_loss);
  EXPECT_NEAR(bits_per_byte(std::log(2.0)), 1, 1e-15);
  m.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(parse_metrics(format_metrics(m))->loss));
  for (const char* bad : {"", "{}", "[]", "{\"step\": \"1\"}", "{\"step\": 1"})
    EXPECT_FALSE(parse_metrics(bad)) << bad;
}

TEST_F(MetricsTest, ResumingCutsWhatWillBeWrittenAgain) {
  write(0, 10);
  write(6, 8);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  write(0, 2);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{0, 1}));
}

TEST_F(MetricsTest, TornAndForeignLinesAreCut) {
  write(0, 4);
  const std::string whole = read_file(path_);
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    write_file(path_, whole.substr(0, n));
    MetricsLog(path_, 4);
    const std::string kept = read_file(path_);
    EXPECT_TRUE(kept.empty() || kept.back() == '\n');
    EXPECT_EQ(whole.substr(0, kept.size()), kept);
  }
  write_file(path_, whole + "nonsense\n" + whole);
  MetricsLog(path_, 100);
  EXPECT_EQ(read_file(path_), whole);
}

TEST(Report, DrawsAnyMetrics) {
  std::vector<StepMetrics> many;
  EXPECT_NE(loss_svg(many, "empty").find("no steps yet"), std::string::npos);
  for (std::int64_t s = 0; s < 5000; ++s) many.push_back(at_step(s));
  many[4000].loss = std::numeric_limits<double>::infinity();
  many[4999].eval_loss = 1.0;
  const std::string svg = loss_svg(many, "a <title> & more");
  EXPECT_NE(svg.find("a &lt;title&gt; &amp; more"), std::string::npos);
  EXPECT_NE(svg.find("<circle"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_LT(svg.size(), 40000u);
  for (const std::size_t n : {1, 2, 3})
    EXPECT_EQ(loss_svg(std::span(many).first(n), "few").find("nan"), std::string::npos);
}

TEST(Report, ThePageStandsAloneAndEscapesWhatItShows) {
  const std::vector<StepMetrics> metrics = {at_step(0), at_step(1)};
  const std::string page = report_html({.config = {},
                                        .metrics = metrics,
                                        .parameters = 12,
                                        .status = "finished",
                                        .prompt = "<b>",
                                        .sample = "\xff ok \xc3\xa9\x01"});
  EXPECT_NE(page.find("&lt;b&gt;"), std::string::npos);
  EXPECT_NE(page.find("\xef\xbf\xbd ok \xc3\xa9\xef\xbf\xbd"), std::string::npos);
  EXPECT_NE(page.find("<td>finished</td>"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
}

TEST(Progress, WritesALineEveryPeriodOffATerminal) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  internal::Progress progress(out, /*terminal=*/false, 25, 10);
  for (std::int64_t s = 0; s < 25; ++s) progress.step(at_step(s));
  progress.finish();
  std::fclose(out);
  const std::string lines(text, size);
  std::free(text);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_NE(lines.find("step 1/25  loss 2.5000  1000 tokens/s  MFU 50.0 %  ETA 0:00"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("step 25/25"), std::string::npos);
}

TEST(Progress, FormatsDurations) {
  EXPECT_EQ(internal::format_duration(3.4), "0:03");
  EXPECT_EQ(internal::format_duration(245), "4:05");
  EXPECT_EQ(internal::format_duration(3723), "1:02:03");
  EXPECT_EQ(internal::format_duration(-1), "0:00");
}

}  // namespace
}  // namespace xylem::train
