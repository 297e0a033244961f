#include <algorithm>
#include <utility>

#include "xylem/models/tokenizers/internal/parts.h"
#include "xylem/models/tokenizers/internal/regex.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models::internal {

// {"String": text} or {"Regex": pattern}, as a regular expression.
std::string pattern_of(const JsonPlace& json) {
  const JsonPlace pattern = json.at("pattern");
  if (pattern.has("String")) return escape_regex(pattern.text("String"));
  if (!pattern.has("Regex"))
    pattern.refuse("{\"String\": text} or {\"Regex\": pattern}", "Save the tokenizer again");
  return pattern.text("Regex");
}

namespace {

enum class Behavior : unsigned char {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,
};

Behavior behavior_of(const JsonPlace& json, const char* key) {
  const std::string b = json.text(key);
  if (b == "Removed") return Behavior::kRemoved;
  if (b == "Isolated") return Behavior::kIsolated;
  if (b == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (b == "MergedWithNext") return Behavior::kMergedWithNext;
  if (b == "Contiguous") return Behavior::kContiguous;
  json.at(key).refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
                      "Correct the member");
}

// A part of a text, and whether it is a delimiter.
struct Span {
  std::size_t begin, end;
  bool match;
};

// Collects the parts of a text and hands them on as the behavior says.
class Cutter {
 public:
  Cutter(std::string_view text, bool at_start, Behavior behavior, bool invert)
      : text_(text), at_start_(at_start), behavior_(behavior), invert_(invert) {}

  void match(std::size_t begin, std::size_t end, const PieceSink& sink) {
    if (begin != last_) add({last_, begin, false}, sink);
    add({begin, end, true}, sink);
    last_ = end;
  }

  void finish(const PieceSink& sink) {
    if (last_ != text_.size()) add({last_, text_.size(), false}, sink);
    if (behavior_ == Behavior::kRemoved || behavior_ == Behavior::kIsolated) return;
    std::vector<Span> out;
    const auto fold = [&](bool reverse, auto joins) {
      bool previous = false;
      for (std::size_t k = 0; k < spans_.size(); ++k) {
        const Span& s = spans_[reverse ? spans_.size() - 1 - k : k];
        if (joins(s.match, previous) && !out.empty()) {
          if (reverse)
            out.back().begin = s.begin;
          else
            out.back().end = s.end;
        } else {
          out.push_back(s);
        }
        previous = s.match;
      }
    };
    if (behavior_ == Behavior::kContiguous)
      fold(false, [](bool m, bool previous) { return m == previous; });
    else
      fold(behavior_ == Behavior::kMergedWithNext,
           [](bool m, bool previous) { return m && !previous; });
    if (behavior_ == Behavior::kMergedWithNext) std::reverse(out.begin(), out.end());
    for (const Span& s : out) give(s, sink);
  }

 private:
  void add(Span s, const PieceSink& sink) {
    s.match = s.match != invert_;
    if (behavior_ == Behavior::kIsolated || (behavior_ == Behavior::kRemoved && !s.match))
      give(s, sink);
    else if (behavior_ != Behavior::kRemoved)
      spans_.push_back(s);
  }
  void give(const Span& s, const PieceSink& sink) const {
    if (s.begin < s.end) sink(text_.substr(s.begin, s.end - s.begin), at_start_ && s.begin == 0);
  }

  std::string_view text_;
  bool at_start_;
  Behavior behavior_;
  bool invert_;
  std::size_t last_ = 0;
  std::vector<Span> spans_;
};

class Split final : public PreTokenizer {
 public:
  Split(std::string_view pattern, Behavior behavior, bool invert, const std::string& where)
      : regex_(std::make_shared<Regex>(pattern, where)), behavior_(behavior), invert_(invert) {}
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    Cutter cutter(text, at_start, behavior_, invert_);
    regex_->find_all(text, [&](std::size_t b, std::size_t e) { cutter.match(b, e, sink); });
    cutter.finish(sink);
  }

 private:
  std::shared_ptr<const Regex> regex_;
  Behavior behavior_;
  bool invert_;
};

// Every character that `is` takes is a delimiter.
template <class F>
class SplitChars final : public PreTokenizer {
 public:
  SplitChars(F is, Behavior behavior) : is_(is), behavior_(behavior) {}
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    Cutter cutter(text, at_start, behavior_, false);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      if (is_(next_char(text, at))) cutter.match(begin, at, sink);
    }
    cutter.finish(sink);
  }

 private:
  F is_;
  Behavior behavior_;
};

template <class F>
std::unique_ptr<PreTokenizer> split_chars(F is, Behavior behavior) {
  return std::make_unique<SplitChars<F>>(is, behavior);
}

// Runs of word characters and runs of what is neither such nor white space.
class Whitespace final : public PreTokenizer {
 public:
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    const auto kind = [](char32_t c) { return is_word(c) ? 1 : is_white_space(c) ? 0 : 2; };
    std::size_t begin = 0;
    int open = 0;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t here = at;
      const int k = at < text.size() ? kind(next_char(text, at)) : 0;
      if (k != open) {
        if (open != 0) sink(text.substr(begin, here - begin), at_start && begin == 0);
        begin = here;
        open = k;
      }
      if (here == text.size()) return;
    }
  }
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex, bool map)
      : prefix_(add_prefix_space), map_(map) {
    if (use_regex) regex_ = std::make_shared<Regex>(kGpt2Pattern, "ByteLevel");
  }
  ByteLevel(const ByteLevel& other, bool map)
      : prefix_(other.prefix_), map_(map), regex_(other.regex_) {}
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    std::string longer;
    if (prefix_ && text.front() != ' ') {
      longer = " ";
      longer += text;
      text = longer;
    }
    std::string mapped;
    const auto give = [&](std::string_view piece, bool start) {
      if (!map_) return sink(piece, start);
      mapped.clear();
      for (char c : piece) mapped += byte_level_char(static_cast<unsigned char>(c));
      sink(mapped, start);
    };
    if (!regex_) return give(text, at_start);
    // The pattern leaves no gaps, but what is not matched would be a piece, too.
    std::size_t last = 0;
    const auto part = [&](std::size_t begin, std::size_t end) {
      if (begin < end) give(text.substr(begin, end - begin), at_start && begin == 0);
    };
    regex_->find_all(text, [&](std::size_t begin, std::size_t end) {
      part(last, begin);
      part(begin, end);
      last = end;
    });
    part(last, text.size());
  }
  std::unique_ptr<PreTokenizer> without_byte_map() const override {
    return std::make_unique<ByteLevel>(*this, false);
  }

 private:
  bool prefix_, map_;
  std::shared_ptr<const Regex> regex_;
};

enum class PrependScheme : unsigned char { kAlways, kFirst, kNever };

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    std::string out;
    out.reserve(text.size() + 16);
    const bool marked = text.front() == ' ' || text.starts_with(replacement_);
    if (!marked &&
        (scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && at_start)))
      out = replacement_;
    for (char c : text)
      if (c == ' ')
        out += replacement_;
      else
        out += c;
    if (!split_) return sink(out, at_start);
    Cutter cutter(out, at_start, Behavior::kMergedWithNext, false);
    for (std::size_t at = 0; (at = out.find(replacement_, at)) != std::string::npos;) {
      cutter.match(at, at + replacement_.size(), sink);
      at += replacement_.size();
    }
    cutter.finish(sink);
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    std::size_t begin = 0, chars = 0;
    for (std::size_t at = 0; at < text.size();) {
      next_char(text, at);
      if (++chars == length_ || at == text.size()) {
        sink(text.substr(begin, at - begin), at_start && begin == 0);
        begin = at;
        chars = 0;
      }
    }
  }

 private:
  std::size_t length_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::shared_ptr<const PreTokenizer>> steps)
      : steps_(std::move(steps)) {}
  void split(std::string_view text, bool at_start, const PieceSink& sink) const override {
    run(0, text, at_start, sink);
  }
  std::unique_ptr<PreTokenizer> without_byte_map() const override {
    std::shared_ptr<const PreTokenizer> last =
        steps_.empty() ? nullptr : steps_.back()->without_byte_map();
    if (!last) return nullptr;
    auto steps = steps_;
    steps.back() = std::move(last);
    return std::make_unique<Sequence>(std::move(steps));
  }

 private:
  void run(std::size_t step, std::string_view text, bool at_start, const PieceSink& sink) const {
    if (step == steps_.size()) return sink(text, at_start);
    steps_[step]->split(text, at_start, [&, step](std::string_view s, bool start) {
      run(step + 1, s, start, sink);
    });
  }
  std::vector<std::shared_ptr<const PreTokenizer>> steps_;
};

PrependScheme scheme_of(const JsonPlace& json) {
  const std::string s =
      json.text_or("prepend_scheme", json.boolean("add_prefix_space", true) ? "always" : "never");
  if (s == "always") return PrependScheme::kAlways;
  if (s == "first") return PrependScheme::kFirst;
  if (s != "never")
    json.at("prepend_scheme").refuse("always, first or never", "Correct the member");
  return PrependScheme::kNever;
}

std::string one_char(const JsonPlace& json, const char* key, const char* otherwise) {
  const std::string c = otherwise != nullptr ? json.text_or(key, otherwise) : json.text(key);
  if (count_chars(c) != 1) json.at(key).refuse("one character", "Correct the member");
  return c;
}

}  // namespace

std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonPlace& json) {
  if (json.value.is_null()) return nullptr;
  const std::string type = json.type();
  if (type == "ByteLevel")
    return std::make_unique<ByteLevel>(json.boolean("add_prefix_space", true),
                                       json.boolean("use_regex", true), true);
  if (type == "Split")
    return std::make_unique<Split>(pattern_of(json), behavior_of(json, "behavior"),
                                   json.boolean("invert", false), json.path);
  if (type == "Metaspace")
    return std::make_unique<Metaspace>(one_char(json, "replacement", "\xE2\x96\x81"),
                                       scheme_of(json), json.boolean("split", true));
  if (type == "Digits")
    return split_chars(is_numeric, json.boolean("individual_digits", false)
                                       ? Behavior::kIsolated
                                       : Behavior::kContiguous);
  if (type == "Punctuation")
    return split_chars(is_punctuation,
                       json.has("behavior") ? behavior_of(json, "behavior") : Behavior::kIsolated);
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return split_chars(is_white_space, Behavior::kRemoved);
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = one_char(json, "delimiter", nullptr);
    std::size_t at = 0;
    return split_chars([d = next_char(delimiter, at)](char32_t c) { return c == d; },
                       Behavior::kRemoved);
  }
  if (type == "BertPreTokenizer")
    return std::make_unique<Sequence>(std::vector<std::shared_ptr<const PreTokenizer>>{
        split_chars(is_white_space, Behavior::kRemoved),
        split_chars(is_punctuation, Behavior::kIsolated)});
  if (type == "FixedLength") {
    const std::uint32_t length = json.has("length") ? json.number("length") : 5;
    if (length == 0) json.at("length").refuse("at least 1", "Correct the member");
    return std::make_unique<FixedLength>(length);
  }
  if (type == "Sequence") {
    std::vector<std::shared_ptr<const PreTokenizer>> steps;
    for (std::size_t i = 0; i < json.size("pretokenizers"); ++i)
      if (auto step = make_pre_tokenizer(json.at("pretokenizers").at(i))) steps.push_back(step);
    return std::make_unique<Sequence>(std::move(steps));
  }
  json.at("type").refuse(
      "ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, "
      "CharDelimiterSplit, BertPreTokenizer, FixedLength or Sequence",
      "Use a tokenizer with these pre-tokenizers");
}

}  // namespace xylem::models::internal
