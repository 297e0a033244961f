#include "xylem/models/tokenizers/hf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/models/tokenizers/internal/regex.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

// A file with a small model of bytes "a" to "d", their merges, and the members given.
std::string file(const std::string& members, const std::string& model_members = "") {
  return R"({"added_tokens": [{"id": 9, "content": "<s>", "special": true}], )" + members +
         R"("model": {"type": "BPE", )" + model_members +
         R"("vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "ab": 4, "bc": 5, "abc": 6, "Ġ": 7, "Ġab": 8},
             "merges": [["b", "c"], "a b", ["a", "bc"], ["Ġ", "ab"]]}})";
}

const char* const kByteLevel =
    R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
       "decoder": {"type": "ByteLevel"}, )";

std::string error_of(const std::string& json) {
  try {
    HfTokenizer::parse(json, "t.json");
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(HfTokenizer, MergesByRankAndThenFromTheLeft) {
  const auto t = HfTokenizer::parse(file(""));
  EXPECT_THAT(t->encode("abc"), ElementsAre(6));
  EXPECT_THAT(t->encode("abab"), ElementsAre(4, 4));
  EXPECT_THAT(t->encode("abcab"), ElementsAre(6, 4));
  EXPECT_THAT(t->encode("axb"), ElementsAre(4));  // what has no token is left out before the merges
  EXPECT_TRUE(t->encode("").empty());
  EXPECT_TRUE(t->encode("xyz").empty());
  EXPECT_EQ(t->vocab_size(), 10);
  EXPECT_EQ(t->decode(Ids{6, 3}), "abc d");
}

TEST(HfTokenizer, BytesOfPiecesStandForThemselves) {
  const auto t = HfTokenizer::parse(file(kByteLevel));
  EXPECT_THAT(t->encode("ab ab<s>abc"), ElementsAre(4, 8, 9, 6));
  EXPECT_EQ(t->decode(t->encode("ab ab<s>abc")), "ab ab<s>abc");
  EXPECT_EQ(t->decode(t->encode("ab ab<s>abc"), true), "ab ababc");
  EXPECT_THAT(t->encode("a\xFF"
                        "b"),
              ElementsAre(0, 1));
}

TEST(HfTokenizer, LongPiecesMergeAsShortOnesDo) {
  const auto t = HfTokenizer::parse(file(""));
  std::mt19937 random(1);
  for (int n : {1, 5, 23, 24, 25, 26, 60, 3000}) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "abcd"[random() % 4];
    // Longer than what is looked for pair by pair, and cut by a letter that ends every merge.
    Ids parts;
    std::string part;
    for (char c : text + "d") {
      part += c;
      if (c != 'd') continue;
      const Ids ids = t->encode(part);
      parts.insert(parts.end(), ids.begin(), ids.end());
      part.clear();
    }
    EXPECT_EQ(t->encode(text + "d"), parts) << text;
  }
  EXPECT_EQ(t->encode(std::string(1 << 20, 'a')).size(), 1u << 20);
}

TEST(HfTokenizer, SaysWhatBeginsAndEndsATextByTemplateAndByFolder) {
  const std::string post =
      R"("post_processor": {"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "S", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
          "special_tokens": {"S": {"id": "S", "ids": [9], "tokens": ["<s>"]}}}, )";
  const auto t = HfTokenizer::parse(file(post));
  EXPECT_EQ(t->bos_id(), 9);
  EXPECT_EQ(t->eos_id(), std::nullopt);
  EXPECT_THAT(t->encode("ab"), ElementsAre(4));
  EXPECT_THAT(t->encode_with_special_tokens("ab"), ElementsAre(9, 4));

  const std::string folder = testing::TempDir() + "/hf_tokenizer";
  make_directories(folder);
  write_file(folder + "/tokenizer.json", file(post));
  write_file(folder + "/tokenizer_config.json",
             R"({"bos_token": null, "eos_token": {"content": "d"}})");
  const auto f = HfTokenizer::open(folder);
  EXPECT_EQ(f->bos_id(), std::nullopt);
  EXPECT_EQ(f->eos_id(), 3);
  write_file(folder + "/tokenizer_config.json", R"({"eos_token": "none such"})");
  EXPECT_THROW(HfTokenizer::open(folder), UserError);
  EXPECT_THROW(HfTokenizer::open(folder + "/absent"), EnvironmentError);
}

TEST(HfTokenizer, RefusesWhatItDoesNotKnowByItsPlace) {
  EXPECT_THAT(error_of(""), HasSubstr("t.json: "));
  EXPECT_THAT(error_of("[1]"), HasSubstr("JSON object"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("64 levels"));
  EXPECT_THAT(error_of(R"({"model": {"type": "Unigram", "vocab": []}})"),
              HasSubstr("t.json.model.type: BPE"));
  EXPECT_THAT(error_of(file(R"("normalizer": {"type": "Precompiled"}, )")),
              HasSubstr("t.json.normalizer.type"));
  EXPECT_THAT(
      error_of(
          file(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Odd"}]}, )")),
      HasSubstr("t.json.pre_tokenizer.pretokenizers[0].type"));
  EXPECT_THAT(error_of(file(R"("decoder": {"type": "CTC"}, )")), HasSubstr("t.json.decoder.type"));
  EXPECT_THAT(error_of(file(R"("post_processor": {"type": "Odd"}, )")),
              HasSubstr("t.json.post_processor.type"));
  EXPECT_THAT(error_of(file("", R"("dropout": 0.1, )")), HasSubstr("t.json.model.dropout"));
  EXPECT_THAT(error_of(file("", R"("unk_token": "?", )")), HasSubstr("t.json.model.unk_token"));
  EXPECT_THAT(
      error_of(file(
          R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}, )")),
      HasSubstr("Oniguruma"));
  EXPECT_THAT(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}})"),
              HasSubstr("[\"a\"]"));
  EXPECT_THAT(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 2000000000}, "merges": []}})"),
              HasSubstr("without large gaps"));
  EXPECT_THAT(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]}})"),
              HasSubstr("merges[0]"));
  const auto t = HfTokenizer::parse(file(""));
  EXPECT_THROW(t->decode(Ids{10}), UserError);
  EXPECT_THROW(t->decode(Ids{-1}), UserError);
}

TEST(HfTokenizer, MatchesThatTakeTooLongAreErrors) {
  const auto t = HfTokenizer::parse(file(
      R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a*)*(a*)*(a*)*c"}, "behavior": "Isolated"}, )"));
  try {
    t->encode(std::string(3000, 'a') + "b");
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("bounded steps"));
  }
}

TEST(HfTokenizer, ThreadsShareOneTokenizer) {
  const auto t = HfTokenizer::parse(file(kByteLevel));
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) text += "abcd .\n"[random() % 7];
    expected.push_back(t->encode(text));
    texts.push_back(std::move(text));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t k = 0; k < wrong.size(); ++k)
    threads.emplace_back([&, k] {
      for (int round = 0; round < 3; ++round)
        for (std::size_t i = 0; i < texts.size(); ++i)
          wrong[k] += t->encode(texts[i]) != expected[i];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(TextStreamOfTokens, GivesCharactersWhenTheyAreComplete) {
  const std::string bytes =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "Ã": 1, "©": 2, "Ġ": 3}, "merges": []},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})";
  const auto t = HfTokenizer::parse(bytes);
  TextStream stream(*t);
  EXPECT_EQ(stream.add(0), "a");
  EXPECT_EQ(stream.add(1), "");
  EXPECT_EQ(stream.add(2), "é");
  EXPECT_EQ(stream.add(99), "");
  EXPECT_EQ(stream.add(1), "");
  EXPECT_EQ(stream.finish(), "\xC3");

  const auto m = HfTokenizer::parse(
      R"({"model": {"type": "BPE", "vocab": {"▁a": 0, "b": 1}, "merges": []}, "decoder": {"type": "Metaspace"}})");
  TextStream words(*m);
  std::string text;
  for (std::int32_t id : {0, 1, 0}) text += words.add(id);
  EXPECT_EQ(text + words.finish(), "ab a");
}

// ---- regular expressions

TEST(Scanner, AgreesWithTheEngineOnAllTexts) {
  using internal::Regex;
  const char* const llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const char* const qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const char* const parts[] = {"a",  "S",      "'",    "'s", "'LL",    "rE",   " ",    "  ",
                               "\t", "\n",     "\r\n", "1",  "234",    ".",    "!?",   "é",
                               "ſ",  "\u3000", "٣",    "字", "\u0301", "\x0b", "\x1c", "_"};
  std::mt19937 random(3);
  for (const char* pattern : {internal::kGpt2Pattern, llama3, qwen2}) {
    const Regex regex(pattern, "test");
    ASSERT_NE(internal::ascii_scanner(pattern), nullptr);
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      for (unsigned n = random() % 12; n > 0; --n) text += parts[random() % std::size(parts)];
      std::vector<std::size_t> fast, slow;
      regex.find_all(text, [&](std::size_t b, std::size_t e) { fast.insert(fast.end(), {b, e}); });
      regex.find_all_slowly(text, [&](std::size_t b, std::size_t e) {
        slow.insert(slow.end(), {b, e});
      });
      ASSERT_EQ(fast, slow) << pattern << "\n" << text;
    }
  }
}

TEST(Unicode, BrokenPartsBecomeOneReplacementEach) {
  using internal::to_utf8;
  EXPECT_EQ(to_utf8("a\xC3"), "a\uFFFD");
  EXPECT_EQ(to_utf8("\xE2\x82z\xF0\x9F\x98"), "\uFFFDz\uFFFD");
  EXPECT_EQ(to_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(to_utf8("\xF5\x80é"), "\uFFFD\uFFFDé");
  EXPECT_TRUE(internal::is_utf8("é字😀"));
}

TEST(Unicode, NormalFormsComposeAndDecompose) {
  using internal::NormalForm;
  using internal::normalize;
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "é");
  EXPECT_EQ(normalize("é", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("ﬁ", NormalForm::kNfkc), "fi");
  EXPECT_EQ(normalize(std::string_view("a\0b", 3), NormalForm::kNfc), std::string_view("a\0b", 3));
  EXPECT_EQ(internal::lowercase("ÄİΣ"), "äi\u0307σ");
}

}  // namespace
}  // namespace xylem::models
