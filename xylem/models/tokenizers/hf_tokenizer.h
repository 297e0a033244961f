#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/tokenizer.h"

namespace xylem::models {

// A tokenizer as Hugging Face's `tokenizers` library describes it in tokenizer.json, with that
// library's ids for every text. The model is byte-pair encoding (`BPE` without dropout); around it
// stand
//
//   added tokens     with lstrip, rstrip, single_word, normalized
//   normalizers      NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Replace, Prepend,
//                    ByteLevel, BertNormalizer, Sequence
//   pre-tokenizers   ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit,
//                    CharDelimiterSplit, BertPreTokenizer, FixedLength, Sequence
//   post-processors  TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence
//   decoders         ByteLevel, ByteFallback, Metaspace, WordPiece, BPEDecoder, Fuse, Strip,
//                    Replace, Sequence
//
// Regular expressions are Oniguruma's, as there. `truncation` and `padding` are read over. Text
// that is no UTF-8 is taken with U+FFFD for each maximal broken part. Immutable; concurrent calls
// are safe, and share a bounded memory of pieces already encoded.
class HfTokenizer final : public Tokenizer {
 public:
  // A tokenizer.json, or a folder that holds one. Which tokens begin and end a text is said by the
  // folder's tokenizer_config.json (bos_token, eos_token), else by its special_tokens_map.json,
  // else by what the post-processor puts around a text. EnvironmentError if the file cannot be
  // read, UserError if it is not such a file, or has a part that is not in the lists above.
  static std::shared_ptr<const HfTokenizer> open(const std::string& path);
  // The text of a tokenizer.json; `name` stands in messages.
  static std::shared_ptr<const HfTokenizer> parse(std::string_view json,
                                                  std::string_view name = "tokenizer.json");
  ~HfTokenizer() override;

  // tokenizers' encode(text, add_special_tokens=False).
  std::vector<std::int32_t> encode(std::string_view text) const override;
  // The same with what the post-processor adds: encode(text).
  std::vector<std::int32_t> encode_with_special_tokens(std::string_view text) const;
  // tokenizers' decode(ids, skip_special_tokens=False), but for bytes that are no UTF-8, which stay
  // as they are where the decoder is ByteLevel. Numbers that no token has stand for nothing.
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  // The largest id and one more.
  std::int32_t vocab_size() const override;
  std::optional<std::int32_t> bos_id() const override;
  std::optional<std::int32_t> eos_id() const override;

  // Id of a token by its text in the vocabulary, added tokens first.
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(std::int32_t id) const;

 private:
  struct Impl;
  explicit HfTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xylem::models
