#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The parts of a tokenizer.json around its model. Each is made from its JSON object; UserError
// names the member at fault. Immutable once made; concurrent calls are safe.

namespace xylem::models::internal {

using Json = nlohmann::json;

// A JSON value with the place where it stands, for messages: "tokenizer.json: normalizer.content".
struct JsonPlace {
  const Json& value;
  std::string path;

  JsonPlace at(const std::string& key) const;  // UserError if there is no such member
  JsonPlace at(std::size_t i) const;
  bool has(const std::string& key) const;  // there, and not null
  bool boolean(const std::string& key, bool otherwise) const;
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& otherwise) const;
  std::uint32_t number(const std::string& key) const;  // 0 to 2^31 - 2
  std::string type() const { return text("type"); }
  // The members of a list, or UserError.
  std::size_t size(const std::string& key) const;

  [[noreturn]] void refuse(const std::string& expected, const std::string& advice) const;
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `at_start` says whether the text's first character is the first of all; it becomes false where
  // that character was taken away.
  virtual void apply(std::string& text, bool& at_start) const = 0;
};
// Null for a null value.
std::unique_ptr<Normalizer> make_normalizer(const JsonPlace& json);

// A piece of text, never empty, and whether it begins where the whole text does.
using PieceSink = std::function<void(std::string_view piece, bool at_start)>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(std::string_view text, bool at_start, const PieceSink& sink) const = 0;
  // A copy whose last step leaves out ByteLevel's mapping of bytes to characters; null if the last
  // step has none. What it gives are bytes.
  virtual std::unique_ptr<PreTokenizer> without_byte_map() const { return nullptr; }
};
std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonPlace& json);

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  // Whether the text may hold bytes that are no UTF-8.
  virtual bool gives_bytes() const { return false; }
};
std::unique_ptr<Decoder> make_decoder(const JsonPlace& json);

// What a post-processor puts around the ids of one text, in order; an empty entry is the text.
using PostProcessor = std::vector<std::vector<std::optional<std::int32_t>>>;
// One template for each step of a Sequence.
PostProcessor make_post_processor(const JsonPlace& json);

// ByteLevel's characters for bytes: those that print stand for themselves, the others, in order,
// are U+0100 and on.
const std::string& byte_level_char(unsigned char byte);
// Bytes of a text of such characters; nothing if another is among them.
std::optional<std::string> byte_level_bytes(std::string_view text);

}  // namespace xylem::models::internal
