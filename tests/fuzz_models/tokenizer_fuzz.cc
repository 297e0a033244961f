// A tokenizer.json, a zero byte, and a text for the tokenizer: errors or ids, and ids that decode.

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "xylem/base/error.h"
#include "xylem/models/tokenizers/hf_tokenizer.h"

namespace {

std::string seed(const std::string& members, const std::string& model) {
  using namespace std::string_literals;
  return R"({"added_tokens": [{"id": 9, "content": "<s>", "special": true, "lstrip": true}], )" +
         members + R"("model": {"type": "BPE", )" + model +
         R"("vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5, "<0x41>": 6, "▁": 7},
             "merges": ["a b", ["ab", "c"]]}})" +
         "\0ab <s> abc\xC3\xA9\xFF 12"s;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(
      *argc, *argv,
      {seed("", ""),
       seed(R"("pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}, )",
            R"("ignore_merges": true, )"),
       seed(
           R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "▁"},
               {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
              "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
               {"type": "Strip", "content": " ", "start": 1, "stop": 1}]}, )",
           R"("byte_fallback": true, "unk_token": "a", "fuse_unk": true, )"),
       seed(
           R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
               {"type": "Split", "pattern": {"Regex": "\\s+|\\p{L}+"}, "behavior": "MergedWithNext", "invert": false},
               {"type": "Metaspace", "prepend_scheme": "first"}]}, "decoder": {"type": "Metaspace"},
              "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "S", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"S": {"ids": [0]}}}, )",
           R"("end_of_word_suffix": "b", "continuing_subword_prefix": "", )")});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const std::size_t zero = input.find('\0');
  const std::string_view text = zero == input.npos ? "" : input.substr(zero + 1);
  try {
    const auto t = xylem::models::HfTokenizer::parse(input.substr(0, zero));
    const auto ids = t->encode_with_special_tokens(text);
    t->decode(ids);
    t->decode(ids, true);
    xylem::TextStream stream(*t);
    for (const std::int32_t id : ids) stream.add(id);
    stream.finish();
  } catch (const xylem::UserError&) {
  }
  return 0;
}
