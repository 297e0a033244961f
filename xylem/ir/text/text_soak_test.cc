#include <gtest/gtest.h>

#include <random>

#include "xylem/base/error.h"
#include "xylem/ir/testing/text_samples.h"
#include "xylem/ir/text.h"
#include "xylem/ir/verify.h"

// Damaged programs in large numbers: texts whose pieces are cut, repeated, moved between programs
// and flipped. Reading ends in a program or a UserError; what is read can be verified and written.

namespace xylem::ir {
namespace {

constexpr int kRounds = 200000;

std::string mutate(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string s = corpus[random() % corpus.size()];
  for (std::uint64_t k = random() % 4 + 1; k > 0 && !s.empty(); --k) {
    std::size_t at = random() % s.size();
    std::size_t n = std::min<std::size_t>(random() % 24 + 1, s.size() - at);
    switch (random() % 5) {
      case 0: s.erase(at, n); break;
      case 1: s.insert(random() % s.size(), s.substr(at, n)); break;
      case 2: {
        const std::string& other = corpus[random() % corpus.size()];
        s.insert(at, other.substr(random() % other.size(), n));
        break;
      }
      case 3: s[at] = static_cast<char>(random()); break;
      default: {
        static constexpr std::string_view kTokens[] = {
            "-1",       "9223372036854775807",
            "0x",       "<",
            ">",        "[",
            "]",        "(",
            ")",        "{",
            "}",        "\"",
            "?",        "%0",
            "#",        "!",
            "dense<",   "tensor<",
            "complex<", "loc(",
            ":",        "->",
            "1e999",    "=",
        };
        s.replace(at, n, kTokens[random() % std::size(kTokens)]);
      }
    }
  }
  return s;
}

TEST(TextSoakTest, DamagedNativeTexts) {
  std::vector<std::string> corpus;
  for (const GraphPtr& g : testing::sample_graphs()) corpus.push_back(print(*g, true));
  std::mt19937_64 random(1);
  for (int i = 0; i < kRounds; ++i) {
    try {
      GraphPtr g = parse_graph(mutate(corpus, random));
      verify(*g);
      EXPECT_EQ(print(*parse_graph(print(*g, true)), true), print(*g, true));
      EXPECT_EQ(encode(*decode(encode(*g))), encode(*g));
    } catch (const UserError&) {
    }
  }
}

TEST(TextSoakTest, DamagedStablehloTexts) {
  std::vector<std::string> corpus;
  for (const GraphPtr& g : testing::stablehlo_samples()) {
    Module m;
    m.functions.push_back({"main", false, g});
    corpus.push_back(print_stablehlo(m));
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < kRounds; ++i) {
    try {
      Module m = parse_stablehlo(mutate(corpus, random));
      for (const Module::Function& f : m.functions)
        if (f.graph) verify(*f.graph);
      parse_stablehlo(print_stablehlo(m));
    } catch (const UserError&) {
    }
  }
}

TEST(TextSoakTest, DamagedEncodings) {
  std::vector<std::string> corpus;
  for (const GraphPtr& g : testing::sample_graphs()) corpus.push_back(encode(*g));
  std::mt19937_64 random(3);
  for (int i = 0; i < kRounds; ++i) {
    try {
      GraphPtr g = decode(mutate(corpus, random));
      print(*g);
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace xylem::ir
