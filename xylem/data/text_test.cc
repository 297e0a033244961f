#include "xylem/data/text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/data/internal/run_program.h"

namespace xylem::data {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

class TextTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_temporary_directory("text-test"); }
  void TearDown() override { remove_tree(dir_); }
  std::string at(std::string_view name) const { return join_path(dir_, name); }
  std::string dir_;
};

TEST_F(TextTest, JoinsFilesInTheOrderGiven) {
  write_file(at("a.txt"), "alpha");
  write_file(at("b.txt"), "beta");
  EXPECT_EQ(load_text(at("b.txt") + ", " + at("a.txt")), "betaalpha");
}

TEST_F(TextTest, ReadsADirectoryByNameWithAllBelowButHiddenFiles) {
  make_directories(at("deep/er"));
  write_file(at("z"), "Z");
  write_file(at("a"), "A");
  write_file(at("deep/er/m"), "M");
  write_file(at(".hidden"), "no");
  EXPECT_EQ(load_text(dir_), "AMZ");
}

TEST_F(TextTest, ExpandsPatterns) {
  for (const char* name : {"2.txt", "1.txt", "3.md"}) write_file(at(name), name);
  EXPECT_EQ(load_text(at("*.txt")), "1.txt2.txt");
  EXPECT_NE(error_of([&] { load_text(at("*.rst")); }).find("*.rst"), std::string::npos);
}

TEST_F(TextTest, KeepsBytesAsTheyAre) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  write_file(at("bytes"), bytes);
  EXPECT_EQ(load_text(at("bytes")), bytes);
}

TEST_F(TextTest, RefusesWhatIsMissingOrEmpty) {
  EXPECT_NE(error_of([&] { load_text(at("missing")); }).find("missing"), std::string::npos);
  EXPECT_NE(error_of([] { load_text(""); }).find("dataset_path"), std::string::npos);
  EXPECT_NE(error_of([] { load_text(" , "); }).find("dataset_path"), std::string::npos);
  write_file(at("empty"), "");
  EXPECT_NE(error_of([&] { load_text(at("empty")); }).find("at least one byte"), std::string::npos);
}

TEST_F(TextTest, NamesThePackagesWhenThereIsNoBible) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", dir_.c_str(), 1);
  const std::string missing = error_of([] { load_text("bible"); });
  write_file(at("bible"), "#!/bin/sh\necho no text >&2\nexit 3\n");
  [[maybe_unused]] const int r = std::system(("/bin/chmod +x " + at("bible")).c_str());
  const std::string failing = error_of([] { load_text("bible"); });
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_NE(missing.find("bible-kjv-text"), std::string::npos) << missing;
  EXPECT_NE(failing.find("status 3"), std::string::npos) << failing;
  EXPECT_NE(failing.find("no text"), std::string::npos) << failing;
}

TEST(SplitText, HoldsOutTheLastTwentieth) {
  const std::string text(99, 'x');
  EXPECT_EQ(split_text(text).train.size(), 95u);
  EXPECT_EQ(split_text(text).validation.size(), 4u);
  EXPECT_EQ(split_text("").validation.size(), 0u);
}

TEST(RunProgram, CollectsBothStreamsWithoutBlocking) {
  const internal::ProgramOutput r = internal::run_program(
      {"sh", "-c",
       "i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; echo abc; i=$((i+1)); "
       "done; exit 7"});
  EXPECT_TRUE(r.found);
  EXPECT_EQ(r.exit_status, 7);
  EXPECT_EQ(r.output.size(), 80000u);
  EXPECT_EQ(r.errors.size(), 220000u);
}

TEST(RunProgram, TellsSignalsAndAbsence) {
  EXPECT_EQ(internal::run_program({"sh", "-c", "kill -9 $$"}).exit_status, 128 + 9);
  EXPECT_FALSE(internal::run_program({"no-such-program-here"}).found);
}

}  // namespace
}  // namespace xylem::data
