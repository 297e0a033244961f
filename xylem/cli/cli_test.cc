#include "xylem/cli/cli.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xylem::cli {
namespace {

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run_with(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "xylem");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run(static_cast<int>(arguments.size()), arguments.data());
  std::string out = testing::internal::GetCapturedStdout();
  return {status, std::move(out), testing::internal::GetCapturedStderr()};
}

TEST(Cli, VersionAndHelpGoToStandardOutput) {
  EXPECT_EQ(run_with({"--version"}).out.rfind("xylem ", 0), 0u);
  EXPECT_EQ(run_with({"--help"}).status, 0);
  const Outcome help = run_with({"train", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("adam_weight_decay=0.1"), std::string::npos);
  EXPECT_EQ(help.err, "");
}

TEST(Cli, UsageErrorsAreOneLineAndStatus2) {
  const std::vector<std::vector<const char*>> cases = {{},
                                                       {"sing"},
                                                       {"train"},
                                                       {"train", "c.yaml", "stepz=1"},
                                                       {"train", "c.yaml", "steps=x"},
                                                       {"train", "c.yaml", "nothing"},
                                                       {"generate"},
                                                       {"init", "c.yaml"},
                                                       {"data"}};
  for (const auto& c : cases) {
    const Outcome o = run_with(c);
    EXPECT_EQ(o.status, 2);
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(o.err.find('\n'), o.err.size() - 1) << o.err;
    EXPECT_EQ(o.err.rfind("xylem: ", 0), 0u) << o.err;
  }
}

TEST(Cli, FailuresAreOneLineAndStatus1) {
  for (const auto& c : std::vector<std::vector<const char*>>{
           {"train", "/nonexistent/c.yaml"},
           {"generate", "--run", "/nonexistent", "--prompt", "a"},
           {"init", "/nonexistent/c.yaml", "--out", "x"},
           {"data", "batches", "/nonexistent/c.yaml", "--steps", "1", "--out", "x"}}) {
    const Outcome o = run_with(c);
    EXPECT_EQ(o.status, 1);
    EXPECT_EQ(o.err.find('\n'), o.err.size() - 1) << o.err;
    EXPECT_NE(o.err.find("/nonexistent"), std::string::npos) << o.err;
  }
}

}  // namespace
}  // namespace xylem::cli
