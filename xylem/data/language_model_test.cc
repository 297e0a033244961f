#include "xylem/data/language_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "xylem/base/file.h"
#include "xylem/data/formats/record.h"
#include "xylem/data/formats/transform.h"
#include "xylem/data/text.h"

namespace xylem::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int32_t>;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

std::string gzip(const std::string& s) {
  z_stream z = {};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(s.size() + 100, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(s.data()));
  z.avail_in = static_cast<uInt>(s.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string zstd(const std::string& s) {
  std::string out(ZSTD_compressBound(s.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), s.data(), s.size(), 3));
  return out;
}

std::vector<std::string> documents(const TextCorpus& c) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < c.size(); ++i) out.push_back(c.get(i));
  return out;
}

TEST(TextCorpus, ReadsPlainAndCompressedFilesByPattern) {
  const std::string dir = make_temporary_directory("corpus-test");
  write_file(join_path(dir, "1.txt"), "one");
  write_file(join_path(dir, "2.txt.gz"), gzip("two"));
  write_file(join_path(dir, "3.txt.zst"), zstd("three"));
  EXPECT_THAT(documents(TextCorpus(dir + "/*", DocumentSplit::file)),
              ElementsAre("one", "two", "three"));
  EXPECT_EQ(load_text(dir), "onetwothree");
  write_file(join_path(dir, "4.gz"), gzip(std::string(1 << 20, 'x')).substr(0, 500));
  EXPECT_THAT(error_of([&] { load_text(dir); }), HasSubstr("4.gz"));
  EXPECT_THAT(error_of([&] { read_text_file(join_path(dir, "3.txt.zst"), 4); }),
              HasSubstr("at most 4 bytes"));
  remove_tree(dir);
}

TEST(TextCorpus, CutsLinesParagraphsAndJsonLines) {
  EXPECT_THAT(documents(TextCorpus::of_text("a\r\n\nb b\n \nc", DocumentSplit::line)),
              ElementsAre("a", "b b", "c"));
  EXPECT_THAT(documents(TextCorpus::of_text("\na\nb\n\n\nc\n", DocumentSplit::paragraph)),
              ElementsAre("a\nb", "c"));
  const auto json =
      TextCorpus::of_text("{\"text\": \"x\\ny\"}\n{\"body\": 1}\n", DocumentSplit::json_lines);
  EXPECT_EQ(json.get(0), "x\ny");
  EXPECT_THAT(error_of([&] { json.get(1); }), HasSubstr("`text`"));
}

TEST(LanguageModelBatches, PredictTheNextTokenOfTheDocumentOnly) {
  const auto corpus = TextCorpus::of_text("abcd\nxyz\nQ\nmno\n", DocumentSplit::line);
  const auto ds = language_model_batches(
      {{corpus, 1}}, {.sequence_length = 4, .batch_size = 2, .shuffle = false, .num_epochs = 1});
  auto it = ds.iterator();
  const LmBatch b = it.next().value();
  EXPECT_FALSE(it.next());
  EXPECT_EQ(b.inputs.to_vector<std::int32_t>(), (Tokens{'a', 'b', 'c', 'x', 'y', 'm', 'n', 0}));
  EXPECT_EQ(b.targets.to_vector<std::int32_t>(), (Tokens{'b', 'c', 'd', 'y', 'z', 'n', 'o', 0}));
  EXPECT_EQ(b.weights.to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(b.segment_ids.to_vector<std::int32_t>(), (Tokens{1, 1, 1, 2, 1, 2, 2, 0}));
  EXPECT_EQ(b.positions.to_vector<std::int32_t>(), (Tokens{0, 1, 2, 0, 0, 0, 1, 0}));
}

TEST(LanguageModelBatches, KeepDocumentsWholeWhenTheyFit) {
  const auto corpus = TextCorpus::of_text("abcdefghi\nxyz\nmn\n", DocumentSplit::line);
  auto it = language_model_batches({{corpus, 1}}, {.sequence_length = 5,
                                                   .batch_size = 1,
                                                   .packing = LmPacking::first_fit,
                                                   .num_packing_bins = 3,
                                                   .shuffle = false,
                                                   .num_epochs = 1})
                .iterator();
  std::multiset<std::string> rows;
  while (const auto b = it.next()) {
    std::string row;
    for (const auto t : b->inputs.span<std::int32_t>()) row += t ? static_cast<char>(t) : '.';
    rows.insert(row);
  }
  EXPECT_EQ(rows, (std::multiset<std::string>{"abcde", "fghxy", "m...."}));
}

TEST(LanguageModelBatches, GiveOneDocumentARowWithoutPacking) {
  const auto corpus = TextCorpus::of_text("abc\nabcdefgh\n", DocumentSplit::line);
  auto batches = language_model_batches({{corpus, 1.0}}, {.sequence_length = 4,
                                                          .batch_size = 2,
                                                          .packing = LmPacking::none,
                                                          .shuffle = false,
                                                          .num_epochs = 1})
                     .iterator();
  const LmBatch b = batches.next().value();
  EXPECT_THAT(b.inputs.to_vector<std::int32_t>(), ElementsAre('a', 'b', 0, 0, 'a', 'b', 'c', 'd'));
  EXPECT_THAT(b.targets.to_vector<std::int32_t>(), ElementsAre('b', 'c', 0, 0, 'b', 'c', 'd', 'e'));
  EXPECT_THAT(b.weights.to_vector<float>(), ElementsAre(1, 1, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(b.segment_ids.to_vector<std::int32_t>(), ElementsAre(1, 1, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(b.positions.to_vector<std::int32_t>(), ElementsAre(0, 1, 0, 0, 0, 1, 2, 3));
}

TEST(Documents, ComeFromColumnsFeaturesAndLines) {
  const std::string dir = make_temporary_directory("documents-test");
  const auto all = [&](const std::string& name, const DocumentOptions& o) {
    std::vector<std::string> out;
    const auto d = xylem::data::documents(join_path(dir, name), o);
    for (std::int64_t i = 0; i < d.size(); ++i) out.push_back(d.at(i).value());
    return out;
  };
  write_file(join_path(dir, "a.jsonl"), "{\"n\": 1, \"body\": \"one\"}\n{\"body\": \"two\"}\n");
  EXPECT_THAT(all("a.jsonl", {.column = "body"}), ElementsAre("one", "two"));
  EXPECT_THAT(error_of([&] { all("a.jsonl", {}); }),
              HasSubstr("one text in each record; the record has the fields n, body"));
  EXPECT_THAT(error_of([&] { all("a.jsonl", {.column = "n"}); }), HasSubstr("; 1"));

  Fields f;
  f.emplace_back("text", "in an example");
  const auto writer = create_records(join_path(dir, "b.array_record"));
  writer->write_bytes(encode_example(f));
  writer->close();
  EXPECT_THAT(all("b.array_record", {}), ElementsAre("in an example"));
  EXPECT_THAT(all("b.array_record", {.column = ""}), ElementsAre(encode_example(f)));

  write_file(join_path(dir, "c.txt"), "p\nq\n\nr\n");
  EXPECT_THAT(all("c.txt", {}), ElementsAre("p\nq", "r"));
  EXPECT_THAT(all("c.txt", {.split = DocumentSplit::line}), ElementsAre("p", "q", "r"));
  remove_tree(dir);
}

TEST(LanguageModelBatches, MixCorporaByWeightAndResume) {
  std::string a, b;
  for (int i = 0; i < 50; ++i) a += "aaaa\n", b += "bbbb\n";
  const std::vector<WeightedCorpus> corpora{{TextCorpus::of_text(a, DocumentSplit::line), 3},
                                            {TextCorpus::of_text(b, DocumentSplit::line), 1}};
  const auto ds = language_model_batches(corpora, {.sequence_length = 6, .batch_size = 4});
  auto it = ds.iterator();
  std::int64_t as = 0, all = 0;
  std::vector<Tokens> rest;
  std::string state;
  for (int i = 0; i < 40; ++i) {
    const LmBatch batch = it.next().value();
    for (const auto t : batch.inputs.span<std::int32_t>()) as += t == 'a', ++all;
    if (i == 17) state = it.get_state();
    if (i > 17) rest.push_back(batch.inputs.to_vector<std::int32_t>());
  }
  EXPECT_NEAR(static_cast<double>(as) / static_cast<double>(all), 0.75, 0.02);
  auto again = ds.iterator();
  again.set_state(state);
  for (const Tokens& r : rest) EXPECT_EQ(again.next()->inputs.to_vector<std::int32_t>(), r);
}

TEST(LanguageModelBatches, GiveHostsDisjointDocuments) {
  std::string text;
  for (int i = 0; i < 26; ++i) text += std::string(5, static_cast<char>('a' + i)) + "\n";
  std::multiset<std::int32_t> seen;
  for (std::int64_t h = 0; h < 2; ++h) {
    auto it = language_model_batches(
                  {{TextCorpus::of_text(text, DocumentSplit::line), 1}},
                  {.sequence_length = 4, .batch_size = 1, .num_epochs = 1, .shard = {h, 2}})
                  .iterator();
    while (const auto b = it.next()) seen.insert(b->inputs.as<std::int32_t>()[0]);
  }
  EXPECT_EQ(seen.size(), 26u);
  for (std::int32_t c = 'a'; c <= 'z'; ++c) EXPECT_EQ(seen.count(c), 1u);
}

TEST(Fim, RearrangesWithoutLosingTokens) {
  const DocumentHook hook = fill_in_the_middle(
      {.rate = 1, .spm_rate = 0.5, .prefix_id = 300, .middle_id = 301, .suffix_id = 302});
  const RecordGenerators generators(4);
  int spm = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    Tokens tokens(10);
    for (int k = 0; k < 10; ++k) tokens[static_cast<std::size_t>(k)] = k;
    Generator g = generators(i);
    const TokenSequence s = hook({tokens, {}}, g);
    ASSERT_EQ(s.tokens.size(), 13u);
    ASSERT_EQ(s.tokens[0], 300);
    const auto at = [&](std::int32_t id) {
      return std::find(s.tokens.begin(), s.tokens.end(), id) - s.tokens.begin();
    };
    ASSERT_LT(at(302), at(301));
    Tokens prefix, suffix, rest;
    spm += at(302) == 1;
    prefix.assign(s.tokens.begin() + 1, s.tokens.begin() + at(302));
    suffix.assign(s.tokens.begin() + at(302) + 1, s.tokens.begin() + at(301));
    rest.assign(s.tokens.begin() + at(301) + 1, s.tokens.end());
    Tokens joined = prefix;
    joined.insert(joined.end(), rest.begin(), rest.end());
    joined.insert(joined.end(), suffix.begin(), suffix.end());
    EXPECT_EQ(joined, tokens);
  }
  EXPECT_GT(spm, 60);
  EXPECT_LT(spm, 150);
}

TEST(Chat, CountsTheAssistantsWordsOnly) {
  const auto messages = parse_chat(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, "
      "{\"role\": \"assistant\", \"content\": \"yo\"}]}");
  const TokenSequence s = chat_tokens(messages, ByteTokenizer());
  std::string trained;
  for (std::size_t i = 0; i < s.tokens.size(); ++i)
    if (s.weights[i] > 0) trained += static_cast<char>(s.tokens[i]);
  EXPECT_EQ(trained, "yo<|im_end|>\n");
  EXPECT_THAT(error_of([] { parse_chat("{\"messages\": [{\"role\": 1}]}"); }),
              HasSubstr("content"));
}

}  // namespace
}  // namespace xylem::data
