#include "xylem/models/tokenizers/internal/regex.h"

#include <fmt/format.h>
#include <oniguruma.h>

#include <mutex>
#include <new>

#include "xylem/base/error.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models::internal {
namespace {

void initialize_engine() {
  static std::once_flag once;
  std::call_once(once, [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
  });
}

std::string message_of(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int n = info != nullptr ? onig_error_code_to_str(text, code, info)
                                : onig_error_code_to_str(text, code);
  return std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(n));
}

struct Region {
  OnigRegion* region = onig_region_new();
  Region() {
    if (region == nullptr) throw std::bad_alloc();
  }
  ~Region() { onig_region_free(region, 1); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
};

}  // namespace

struct Regex::Impl {
  OnigRegex regex = nullptr;
  AsciiScanner scanner = nullptr;
  std::string pattern, where;

  ~Impl() {
    if (regex != nullptr) onig_free(regex);
  }

  template <bool kScan, class F>
  void find_all(std::string_view text, const F& match) const {
    std::string older;
    if (needs_stand_ins(text)) text = older = with_stand_ins(text);
    const auto* begin = reinterpret_cast<const OnigUChar*>(text.data());
    const OnigUChar* end = begin + text.size();
    Region r;
    std::size_t at = 0, last = std::string_view::npos;
    while (at <= text.size()) {
      if (kScan && scanner != nullptr && at < text.size()) {
        if (const std::size_t stop = scanner(text, at); stop != 0) {
          match(at, stop);
          at = last = stop;
          continue;
        }
      }
      const int found = onig_search(regex, begin, end, begin + at, end, r.region, ONIG_OPTION_NONE);
      if (found == ONIG_MISMATCH) return;
      if (found < 0)
        throw_user_error({where, "a regular expression that can be matched in bounded steps",
                          fmt::format("{:.200}: {}", pattern, message_of(found, nullptr)),
                          "Write the pattern without nested repetitions, or shorten the text"});
      const auto b = static_cast<std::size_t>(r.region->beg[0]);
      const auto e = static_cast<std::size_t>(r.region->end[0]);
      if (b == e && last == e) {
        if (at >= text.size()) return;
        at += char_bytes(text[at]);
        continue;
      }
      match(b, e);
      at = last = e;
    }
  }
};

Regex::Regex(std::string_view pattern, const std::string& where) : impl_(std::make_unique<Impl>()) {
  initialize_engine();
  impl_->pattern = pattern;
  impl_->where = where;
  impl_->scanner = ascii_scanner(pattern);
  // Newer versions of the engine count symbols to this class, as Ruby does.
  std::string newer(pattern);
  for (std::size_t i = 0; (i = newer.find("[:punct:]", i)) != std::string::npos;)
    newer.replace(i, 9, "\\p{P}\\p{S}");
  pattern = newer;
  OnigErrorInfo info;
  const auto* begin = reinterpret_cast<const OnigUChar*>(pattern.data());
  const int code = is_utf8(pattern)
                       ? onig_new(&impl_->regex, begin, begin + pattern.size(), ONIG_OPTION_NONE,
                                  ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info)
                       : ONIGERR_INVALID_CODE_POINT_VALUE;
  if (code != ONIG_NORMAL) {
    impl_->regex = nullptr;
    throw_user_error({where, "a regular expression in Oniguruma's syntax",
                      fmt::format("{:.200}: {}", to_utf8(pattern), message_of(code, &info)),
                      "Correct the pattern"});
  }
}

Regex::~Regex() = default;

const std::string& Regex::pattern() const { return impl_->pattern; }

void Regex::find_all(std::string_view text,
                     const std::function<void(std::size_t, std::size_t)>& match) const {
  impl_->find_all<true>(text, match);
}

void Regex::find_all_slowly(std::string_view text,
                            const std::function<void(std::size_t, std::size_t)>& match) const {
  impl_->find_all<false>(text, match);
}

std::string escape_regex(std::string_view literal) {
  std::string out;
  for (char c : literal) {
    const auto b = static_cast<unsigned char>(c);
    if (b < 0x80 && !is_word(b)) {
      // A backslash before a line's end or another control character would be read as an escape.
      if (b < 0x20 || b == 0x7F) {
        out += fmt::format("\\x{:02x}", b);
        continue;
      }
      out += '\\';
    }
    out += c;
  }
  return out;
}

// ---- scanners

const char* const kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

enum Kind : unsigned char { kLetter, kDigit, kSpace, kNewline, kOther, kBeyond };

struct Kinds {
  Kind of[256];
  constexpr Kinds() : of() {
    for (int c = 0; c < 256; ++c) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      of[c] = c >= 0x80                         ? kBeyond
              : letter                          ? kLetter
              : c >= '0' && c <= '9'            ? kDigit
              : c == '\n' || c == '\r'          ? kNewline
              : c == ' ' || (c >= 9 && c <= 13) ? kSpace
                                                : kOther;
    }
  }
};
constexpr Kinds kKinds;

Kind kind(char c) { return kKinds.of[static_cast<unsigned char>(c)]; }
bool white(Kind k) { return k == kSpace || k == kNewline; }

// The end of the run of `k` from `at`; 0 if a character beyond ASCII may go on with it.
std::size_t run(std::string_view text, std::size_t at, Kind k) {
  while (at < text.size() && kind(text[at]) == k) ++at;
  return at < text.size() && kind(text[at]) == kBeyond ? 0 : at;
}

// Length of the contraction at text[at], which is an apostrophe: 's 't 'm 'd 're 've 'll, or 0.
std::size_t contraction(std::string_view text, std::size_t at, bool any_case) {
  const auto letter = [&](std::size_t i) {
    if (i >= text.size()) return '\0';
    const char c = text[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char a = letter(at + 1), b = letter(at + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return 0;
}

// \s+(?!\S)|\s+ at white space: all of a run but its last character, where a word follows. With
// `lines`, \s*[\r\n]+ comes first.
std::size_t white_run(std::string_view text, std::size_t at, bool lines) {
  std::size_t end = at, line_end = 0;
  for (; end < text.size() && white(kind(text[end])); ++end)
    if (kind(text[end]) == kNewline) line_end = end + 1;
  if (end < text.size() && kind(text[end]) == kBeyond) return 0;
  if (lines && line_end != 0) return line_end;
  return end == text.size() || end == at + 1 ? end : end - 1;
}

std::size_t scan_gpt2(std::string_view text, std::size_t at) {
  if (text[at] == '\'')
    if (const std::size_t n = contraction(text, at, false); n != 0) return at + n;
  const std::size_t first = at + (text[at] == ' ' ? 1 : 0);
  const Kind k = first < text.size() ? kind(text[first]) : kSpace;
  if (k == kBeyond) return 0;
  if (!white(k)) return run(text, first, k);
  return white_run(text, at, false);
}

template <int kMaxDigits>
std::size_t scan_llama3(std::string_view text, std::size_t at) {
  const Kind k = kind(text[at]);
  const auto next = at + 1 < text.size() ? kind(text[at + 1]) : kNewline;
  if (k == kBeyond) return 0;
  if (text[at] == '\'') {
    if (next == kBeyond) return 0;  // a long s begins a contraction, too
    if (const std::size_t n = contraction(text, at, true); n != 0) return at + n;
  }
  if (k == kLetter) return run(text, at, kLetter);
  if (k == kDigit) {
    std::size_t end = at + 1;
    while (end < text.size() && end < at + kMaxDigits && kind(text[end]) == kDigit) ++end;
    return end < at + kMaxDigits && end < text.size() && kind(text[end]) == kBeyond ? 0 : end;
  }
  if (k != kNewline) {
    if (next == kBeyond) return 0;
    if (next == kLetter) return run(text, at + 1, kLetter);
    if (k == kOther || (text[at] == ' ' && next == kOther)) {
      std::size_t end = run(text, at + (k == kOther ? 0 : 1), kOther);
      while (end != 0 && end < text.size() && kind(text[end]) == kNewline) ++end;
      return end;
    }
  }
  return white_run(text, at, true);
}

}  // namespace

AsciiScanner ascii_scanner(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return scan_gpt2;
  if (pattern ==
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")
    return scan_llama3<3>;
  if (pattern ==
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")
    return scan_llama3<1>;
  return nullptr;
}

}  // namespace xylem::models::internal
