#include <utility>

#include "xylem/models/tokenizers/internal/parts.h"
#include "xylem/models/tokenizers/internal/regex.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models::internal {
namespace {

// Keeps the characters that `keep` takes, as `map` changes them.
template <class F>
void change_chars(std::string& text, bool& at_start, const F& change) {
  std::string out;
  out.reserve(text.size());
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const bool kept = change(next_char(text, at), out);
    if (first && !kept) at_start = false;
    first = false;
  }
  text = std::move(out);
}

class Form final : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  void apply(std::string& text, bool&) const override { text = normalize(text, form_); }

 private:
  NormalForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(std::string& text, bool&) const override { text = lowercase(text); }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text, bool& at_start) const override {
    std::size_t begin = text.size(), end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t here = at;
      if (is_white_space(next_char(text, at))) continue;
      if (begin == text.size()) begin = here;
      end = at;
    }
    if (!left_) begin = 0;
    if (!right_) end = text.size();
    if (begin != 0) at_start = false;
    text = begin < end ? text.substr(begin, end - begin) : std::string();
  }

 private:
  bool left_, right_;
};

class StripAccents final : public Normalizer {
 public:
  void apply(std::string& text, bool& at_start) const override {
    change_chars(text, at_start, [](char32_t c, std::string& out) {
      if (is_mark(c)) return false;
      append_char(out, c);
      return true;
    });
  }
};

// The clean-up of Google's machine translation.
class Nmt final : public Normalizer {
 public:
  void apply(std::string& text, bool& at_start) const override {
    change_chars(text, at_start, [](char32_t c, std::string& out) {
      if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
          c == 0x9F)
        return false;
      const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      append_char(out, space ? U' ' : c);
      return true;
    });
  }
};

class Replace final : public Normalizer {
 public:
  Replace(std::string_view pattern, std::string content, const std::string& where)
      : regex_(pattern, where), content_(std::move(content)) {}
  void apply(std::string& text, bool& at_start) const override {
    if (text.empty()) return;
    std::string out;
    std::size_t last = 0;
    regex_.find_all(text, [&](std::size_t begin, std::size_t end) {
      out.append(text, last, begin - last);
      out += content_;
      if (begin == 0 && end > 0 && content_.empty()) at_start = false;
      last = end;
    });
    out.append(text, last);
    text = std::move(out);
  }

 private:
  Regex regex_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : prefix_(std::move(text)) {}
  void apply(std::string& text, bool&) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class ByteMap final : public Normalizer {
 public:
  void apply(std::string& text, bool&) const override {
    std::string out;
    out.reserve(text.size() * 2);
    for (char c : text) out += byte_level_char(static_cast<unsigned char>(c));
    text = std::move(out);
  }
};

class Bert final : public Normalizer {
 public:
  Bert(bool clean, bool chinese, bool strip, bool lower)
      : clean_(clean), chinese_(chinese), strip_(strip), lower_(lower) {}
  void apply(std::string& text, bool& at_start) const override {
    if (clean_)
      change_chars(text, at_start, [](char32_t c, std::string& out) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (!line && is_control(c))) return false;
        append_char(out, line || is_white_space(c) ? U' ' : c);
        return true;
      });
    if (chinese_)
      change_chars(text, at_start, [](char32_t c, std::string& out) {
        const bool apart = is_chinese(c);
        if (apart) out += ' ';
        append_char(out, c);
        if (apart) out += ' ';
        return true;
      });
    if (strip_) {
      text = normalize(text, NormalForm::kNfd);
      change_chars(text, at_start, [](char32_t c, std::string& out) {
        if (is_nonspacing_mark(c)) return false;
        append_char(out, c);
        return true;
      });
    }
    if (lower_) text = lowercase(text);
  }

 private:
  bool clean_, chinese_, strip_, lower_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void apply(std::string& text, bool& at_start) const override {
    for (const auto& step : steps_) step->apply(text, at_start);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::string pattern_of(const JsonPlace& json);

std::unique_ptr<Normalizer> make_normalizer(const JsonPlace& json) {
  if (json.value.is_null()) return nullptr;
  const std::string type = json.type();
  if (type == "NFC") return std::make_unique<Form>(NormalForm::kNfc);
  if (type == "NFD") return std::make_unique<Form>(NormalForm::kNfd);
  if (type == "NFKC") return std::make_unique<Form>(NormalForm::kNfkc);
  if (type == "NFKD") return std::make_unique<Form>(NormalForm::kNfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "Strip")
    return std::make_unique<Strip>(json.boolean("strip_left", true),
                                   json.boolean("strip_right", true));
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Replace")
    return std::make_unique<Replace>(pattern_of(json), json.text("content"), json.path);
  if (type == "Prepend") return std::make_unique<Prepend>(json.text("prepend"));
  if (type == "ByteLevel") return std::make_unique<ByteMap>();
  if (type == "BertNormalizer") {
    const bool lower = json.boolean("lowercase", true);
    return std::make_unique<Bert>(json.boolean("clean_text", true),
                                  json.boolean("handle_chinese_chars", true),
                                  json.boolean("strip_accents", lower), lower);
  }
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (std::size_t i = 0; i < json.size("normalizers"); ++i)
      if (auto step = make_normalizer(json.at("normalizers").at(i)))
        steps.push_back(std::move(step));
    return std::make_unique<Sequence>(std::move(steps));
  }
  json.at("type").refuse(
      "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Replace, Prepend, ByteLevel, "
      "BertNormalizer or Sequence",
      "Use a tokenizer with these normalizers");
}

}  // namespace xylem::models::internal
