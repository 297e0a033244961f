#include <gtest/gtest.h>

#include <random>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/ir/bytecode.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

// Damaged artifacts in large numbers: bytes cut, repeated, moved between files and replaced.
// Reading ends in a program or a UserError; what is read can be verified, printed and written.

namespace xylem::ir {
namespace {

constexpr int kRounds = 300000;

std::string mutate(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string s = corpus[random() % corpus.size()];
  for (std::uint64_t k = random() % 4 + 1; k > 0 && !s.empty(); --k) {
    std::size_t at = random() % s.size();
    std::size_t n = std::min<std::size_t>(random() % 16 + 1, s.size() - at);
    switch (random() % 5) {
      case 0: s.erase(at, n); break;
      case 1: s.insert(random() % s.size(), s.substr(at, n)); break;
      case 2: {
        const std::string& other = corpus[random() % corpus.size()];
        s.replace(at, n, other.substr(random() % other.size(), n));
        break;
      }
      case 3: s[at] = static_cast<char>(random()); break;
      default: s[at] = static_cast<char>(s[at] + (random() % 2 ? 2 : -2));
    }
  }
  return s;
}

TEST(BytecodeSoakTest, DamagedArtifacts) {
  std::vector<std::string> corpus;
  for (const char* name : {"control.0.9.0.bc", "control.0.14.0.bc", "control.1.17.0.bc",
                           "control.plain.bc", "mixed.bc", "mixed.plain.bc", "control.export"})
    corpus.push_back(
        read_file(std::string(XYLEM_SOURCE_DIR "/xylem/ir/bytecode/testdata/") + name));
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    Module m;
    m.functions.push_back({"main", false, g});
    try {
      corpus.push_back(write_artifact(m, kCurrentVersion));
    } catch (const UserError&) {  // a CHLO op without decomposition
    }
  }
  std::mt19937_64 random(4);
  int read = 0;
  for (int i = 0; i < kRounds; ++i) {
    try {
      Module m = read_bytecode(mutate(corpus, random));
      ++read;
      for (const Module::Function& f : m.functions)
        if (f.graph) verify(*f.graph);
      print_stablehlo(m);
      write_artifact(m, kCurrentVersion);
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace xylem::ir
