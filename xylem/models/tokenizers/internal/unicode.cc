#include "xylem/models/tokenizers/internal/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "xylem/base/error.h"
#include "xylem/models/tokenizers/internal/unicode_tables.h"

namespace xylem::models::internal {
namespace {

// Length of the well-formed sequence at the beginning of s, or minus the length of the broken part.
int sequence_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return -1;
  const int n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (int i = 1; i < n; ++i, low = 0x80, high = 0xBF)
    if (static_cast<std::size_t>(i) >= s.size() || byte(static_cast<std::size_t>(i)) < low ||
        byte(static_cast<std::size_t>(i)) > high)
      return -i;
  return n;
}

bool between(char32_t c, char32_t low, char32_t high) { return c >= low && c <= high; }

bool in(const CharRange* table, std::size_t size, char32_t c) {
  const CharRange* r =
      std::partition_point(table, table + size, [c](const CharRange& x) { return x.end < c; });
  return r != table + size && r->begin <= c;
}

const StandIn* find(const StandIn* table, std::size_t size, char32_t c) {
  const StandIn* r =
      std::partition_point(table, table + size, [c](const StandIn& x) { return x.end < c; });
  return r != table + size && r->begin <= c ? r : nullptr;
}

void append_normalized(std::string& to, std::string_view text, NormalForm form) {
  if (text.empty()) return;
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatible ? UTF8PROC_COMPAT : 0));
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &out, options);
  if (n == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  XYLEM_CHECK(n >= 0, utf8proc_errmsg(n));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(out, std::free);
  to.append(reinterpret_cast<const char*>(out), static_cast<std::size_t>(n));
}

}  // namespace

char32_t next_char(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t lead = byte(at);
  if (lead < 0x80) return ++at, lead;
  const std::size_t n = char_bytes(text[at]);
  char32_t c = lead & (0xFFu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) c = c << 6 | (byte(at + i) & 0x3F);
  at += n;
  return c;
}

void append_char(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::size_t char_bytes(char lead) {
  const auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

std::size_t count_chars(std::string_view text) {
  std::size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const int n = sequence_length(text.substr(at));
    if (n < 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const int n = sequence_length(bytes.substr(at));
    if (n > 0)
      out.append(bytes, at, static_cast<std::size_t>(n));
    else
      out += "\xEF\xBF\xBD";
    at += static_cast<std::size_t>(std::abs(n));
  }
  return out;
}

bool is_white_space(char32_t c) {
  return between(c, 9, 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_numeric(char32_t c) {
  return c < 0x80 ? between(c, '0', '9') : in(kNumeric, kNumericSize, c);
}
bool is_punctuation(char32_t c) { return in(kPunctuation, kPunctuationSize, c); }
bool is_mark(char32_t c) { return c >= 0x80 && in(kMark, kMarkSize, c); }
bool is_nonspacing_mark(char32_t c) { return c >= 0x80 && in(kNonspacing, kNonspacingSize, c); }
bool is_control(char32_t c) { return in(kControl, kControlSize, c); }

bool is_word(char32_t c) {
  if (c < 0x80)
    return between(c, '0', '9') || between(c, 'A', 'Z') || between(c, 'a', 'z') || c == '_';
  return in(kWord, kWordSize, c);
}

bool is_chinese(char32_t c) {
  return between(c, 0x4E00, 0x9FFF) || between(c, 0x3400, 0x4DBF) || between(c, 0x20000, 0x2A6DF) ||
         between(c, 0x2A700, 0x2B73F) || between(c, 0x2B740, 0x2B81F) ||
         between(c, 0x2B920, 0x2CEAF) || between(c, 0xF900, 0xFAFF) || between(c, 0x2F800, 0x2FA1F);
}

std::string normalize(std::string_view text, NormalForm form) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
    } else if (in(kInert, kInertSize, next_char(text, at))) {
      append_normalized(out, text.substr(done, begin - done), form);
      out.append(text, begin, at - begin);
      done = at;
    }
  }
  append_normalized(out, text.substr(done), form);
  return out;
}

namespace {

char32_t lower_of(char32_t c) {
  if (c < 0x80) return between(c, 'A', 'Z') ? c + 32 : c;
  if (const StandIn* s = find(kLower, kLowerSize, c)) return s->as;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

}  // namespace

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_char(text, at);
    if (c == 0x130)
      out += "i\xCC\x87";  // the one character whose lower case is two
    else
      append_char(out, lower_of(c));
  }
  return out;
}

bool needs_stand_ins(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xE0) {
      ++at;
      continue;
    }
    if (find(kStandIns, kStandInsSize, next_char(text, at)) != nullptr) return true;
  }
  return false;
}

std::string with_stand_ins(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_char(text, at);
    const StandIn* s = c < 0x800 ? nullptr : find(kStandIns, kStandInsSize, c);
    append_char(out, s != nullptr ? s->as : c);
  }
  return out;
}

}  // namespace xylem::models::internal
