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

// One token per byte, ids 0 to 255. Exact for any bytes.
class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::int32_t vocab_size() const override { return 256; }
};

}  // namespace xylem
