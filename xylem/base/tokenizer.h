#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xylem {

// Turns text into token ids and back. Implementations are immutable once made, so that concurrent
// calls are safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of the text, without tokens of beginning or end. Every text can be encoded.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // UserError if an id is outside [0, vocab_size). A sequence cut inside a character gives
  // incomplete UTF-8 at its end.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  virtual std::int32_t vocab_size() const = 0;

  // Ids of the tokens that open and close a text, where the vocabulary has them.
  virtual std::optional<std::int32_t> bos_id() const { return std::nullopt; }
  virtual std::optional<std::int32_t> eos_id() const { return std::nullopt; }
};

// Text of ids that come one after the other, as a model writes them: an id gives its text as soon
// as no character in it is open. What comes out in all is `decode` of all ids, but that no more
// than the last few of them are looked at together. One thread at a time; the tokenizer must live
// as long.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  // The text that the id completes, often that of the id itself. Ids outside the vocabulary, as a
  // model with spare rows may draw, stand for no text.
  std::string add(std::int32_t id);
  // What is left at the end: the bytes of a character that never became complete.
  std::string finish();

 private:
  std::string text_since_read(bool finish);
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;
  std::size_t read_ = 0;  // ids whose text is out; those before give them their context
};

// One token per byte, ids 0 to 255. Exact for any bytes.
class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::int32_t vocab_size() const override { return 256; }
};

}  // namespace xylem
