#include <fmt/format.h>

#include <utility>

#include "xylem/models/tokenizers/internal/parts.h"
#include "xylem/models/tokenizers/internal/regex.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models::internal {

std::string pattern_of(const JsonPlace& json);

// ---- ByteLevel's characters

namespace {

struct ByteChars {
  std::string of[256];
  std::int16_t byte[0x144];  // of a character below U+0144; -1 for others
  ByteChars() {
    for (auto& b : byte) b = -1;
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const char32_t c = prints ? b : next++;
      append_char(of[b], c);
      byte[c] = static_cast<std::int16_t>(b);
    }
  }
};

const ByteChars& byte_chars() {
  static const ByteChars chars;
  return chars;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  if (what.empty()) return;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

}  // namespace

const std::string& byte_level_char(unsigned char byte) { return byte_chars().of[byte]; }

std::optional<std::string> byte_level_bytes(std::string_view text) {
  const ByteChars& chars = byte_chars();
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_char(text, at);
    if (c >= 0x144 || chars.byte[c] < 0) return std::nullopt;
    out += static_cast<char>(chars.byte[c]);
  }
  return out;
}

// ---- decoders

namespace {

class ByteLevel final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& t : tokens) bytes += byte_level_bytes(t).value_or(t);
    tokens.assign(1, std::move(bytes));
  }
  bool gives_bytes() const override { return true; }
};

class ByteFallback final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (is_utf8(bytes)) {
        if (!bytes.empty()) out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& t : tokens) {
      if (const int b = byte_of(t); b >= 0) {
        bytes += static_cast<char>(b);
      } else {
        flush();
        out.push_back(std::move(t));
      }
    }
    flush();
    tokens = std::move(out);
  }

 private:
  static int byte_of(const std::string& t) {
    if (t.size() != 6 || !t.starts_with("<0x") || t[5] != '>') return -1;
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    const int high = t[3] == '+' ? 0 : digit(t[3]), low = digit(t[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
  }
};

class Metaspace final : public Decoder {
 public:
  Metaspace(std::string replacement, bool drops_first)
      : replacement_(std::move(replacement)), drops_first_(drops_first) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement_, i == 0 && drops_first_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool drops_first_;
};

class WordPiece final : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(std::vector<std::string>& tokens) const override {
    static constexpr std::pair<const char*, const char*> kCleaner[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& t = tokens[i];
      if (i != 0) {
        if (t.starts_with(prefix_))
          t.erase(0, prefix_.size());
        else
          t.insert(0, " ");
      }
      if (cleanup_)
        for (const auto& [what, with] : kCleaner) replace_all(t, what, with);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class Suffix final : public Decoder {
 public:
  explicit Suffix(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class Fuse final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& t : tokens) all += t;
    tokens.assign(1, std::move(all));
  }
};

class Strip final : public Decoder {
 public:
  Strip(std::string content, std::uint32_t start, std::uint32_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& t : tokens) {
      std::size_t begin = 0, end = t.size();
      const std::size_t n = content_.size();
      for (std::uint32_t i = 0; i < start_ && t.compare(begin, n, content_) == 0; ++i) begin += n;
      for (std::uint32_t i = 0;
           i < stop_ && end >= begin + n && t.compare(end - n, n, content_) == 0; ++i)
        end -= n;
      t = t.substr(begin, end - begin);
    }
  }

 private:
  std::string content_;
  std::uint32_t start_, stop_;
};

class Replace final : public Decoder {
 public:
  Replace(std::string_view pattern, std::string content, const std::string& where)
      : regex_(pattern, where), content_(std::move(content)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& t : tokens) {
      if (t.empty()) continue;
      std::string out;
      std::size_t last = 0;
      regex_.find_all(t, [&](std::size_t begin, std::size_t end) {
        out.append(t, last, begin - last);
        out += content_;
        last = end;
      });
      out.append(t, last);
      t = std::move(out);
    }
  }

 private:
  Regex regex_;
  std::string content_;
};

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      steps_[i]->apply(tokens);
      if (i + 1 < steps_.size() && steps_[i]->gives_bytes())
        for (std::string& t : tokens) t = to_utf8(t);
    }
  }
  bool gives_bytes() const override { return !steps_.empty() && steps_.back()->gives_bytes(); }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const JsonPlace& json) {
  if (json.value.is_null()) return nullptr;
  const std::string type = json.type();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Metaspace") {
    const std::string scheme =
        json.text_or("prepend_scheme", json.boolean("add_prefix_space", true) ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      json.at("prepend_scheme").refuse("always, first or never", "Correct the member");
    return std::make_unique<Metaspace>(json.text_or("replacement", "\xE2\x96\x81"),
                                       scheme != "never");
  }
  if (type == "WordPiece")
    return std::make_unique<WordPiece>(json.text_or("prefix", "##"), json.boolean("cleanup", true));
  if (type == "BPEDecoder") return std::make_unique<Suffix>(json.text_or("suffix", "</w>"));
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") {
    const std::string content = json.text("content");
    if (count_chars(content) != 1) json.at("content").refuse("one character", "Correct the member");
    return std::make_unique<Strip>(content, json.number("start"), json.number("stop"));
  }
  if (type == "Replace")
    return std::make_unique<Replace>(pattern_of(json), json.text("content"), json.path);
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> steps;
    for (std::size_t i = 0; i < json.size("decoders"); ++i)
      if (auto step = make_decoder(json.at("decoders").at(i))) steps.push_back(std::move(step));
    return std::make_unique<Sequence>(std::move(steps));
  }
  json.at("type").refuse(
      "ByteLevel, ByteFallback, Metaspace, WordPiece, BPEDecoder, Fuse, Strip, Replace or Sequence",
      "Use a tokenizer with these decoders");
}

// ---- post-processors

namespace {

using Template = std::vector<std::optional<std::int32_t>>;

std::int32_t id_of_pair(const JsonPlace& json, const char* key) {
  const JsonPlace pair = json.at(key);
  if (!pair.value.is_array() || pair.value.size() != 2 || !pair.value[0].is_string() ||
      !pair.value[1].is_number_unsigned() || pair.value[1].get<std::uint64_t>() > 0x7FFFFFFE)
    pair.refuse("a token and its id", "Correct the member");
  return pair.value[1].get<std::int32_t>();
}

void read_template(const JsonPlace& json, PostProcessor& out) {
  const JsonPlace special = json.at("special_tokens");
  Template pieces;
  for (std::size_t i = 0; i < json.size("single"); ++i) {
    const JsonPlace piece = json.at("single").at(i);
    if (piece.has("Sequence")) {
      if (piece.at("Sequence").text("id") == "A")
        pieces.emplace_back(std::nullopt);
      else
        piece.refuse("sequence A alone in a template for one text", "Correct the template");
    } else if (piece.has("SpecialToken")) {
      const JsonPlace token = special.at(piece.at("SpecialToken").text("id"));
      for (std::size_t k = 0; k < token.size("ids"); ++k) {
        const JsonPlace id = token.at("ids").at(k);
        if (!id.value.is_number_unsigned() || id.value.get<std::uint64_t>() > 0x7FFFFFFE)
          id.refuse("an id from 0 to 2147483646", "Correct the member");
        pieces.emplace_back(id.value.get<std::int32_t>());
      }
    } else {
      piece.refuse("Sequence or SpecialToken", "Correct the template");
    }
  }
  out.push_back(std::move(pieces));
}

}  // namespace

PostProcessor make_post_processor(const JsonPlace& json) {
  PostProcessor out;
  if (json.value.is_null()) return out;
  const std::string type = json.type();
  if (type == "TemplateProcessing") {
    read_template(json, out);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    out.push_back({id_of_pair(json, "cls"), std::nullopt, id_of_pair(json, "sep")});
  } else if (type == "Sequence") {
    for (std::size_t i = 0; i < json.size("processors"); ++i)
      for (Template& t : make_post_processor(json.at("processors").at(i)))
        out.push_back(std::move(t));
  } else if (type != "ByteLevel") {
    json.at("type").refuse(
        "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or Sequence",
        "Use a tokenizer with these post-processors");
  }
  return out;
}

}  // namespace xylem::models::internal
