#include "xylem/ir/text/cursor.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/attr.h"

namespace xylem::ir::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Where MLIR tells that a token is missing: behind the one before it, comments left out.
std::size_t behind_last_token(std::string_view text, std::size_t at) {
  std::size_t end = at;
  for (;;) {
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    if (end == 0) return at;
    if (text[end - 1] != '\n' && text[end - 1] != '\r') return end;
    --end;
    std::size_t start = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    start = start == std::string_view::npos ? 0 : start + 1;
    std::size_t comment = text.substr(start, end - start).find("//");
    if (comment != std::string_view::npos) end = start + comment;
  }
}

}  // namespace

bool is_identifier_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_identifier_char(char c) {
  return is_identifier_start(c) || is_digit(c) || c == '$' || c == '.';
}

bool is_identifier(std::string_view s) {
  if (s.empty() || !is_identifier_start(s[0])) return false;
  for (char c : s)
    if (!is_identifier_char(c)) return false;
  return true;
}

const char* intern_c_string(std::string s) {
  s += '\0';
  return intern(s).data();
}

void append_quoted(std::string& out, std::string_view s) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  out += '"';
  for (char c : s) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c == '"' ? "22" : "\\";
    } else if (u < 0x20 || u >= 0x7f) {
      out += '\\';
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void Cursor::skip() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++pos_;
    } else if (c == '/' && raw(1) == '/') {
      std::size_t end = text_.find('\n', pos_);
      pos_ = end == std::string_view::npos ? text_.size() : end + 1;
    } else {
      return;
    }
  }
}

bool Cursor::looking_at(std::string_view token) {
  skip();
  return text_.substr(pos_, token.size()) == token;
}

bool Cursor::looking_at_word(std::string_view word) {
  return looking_at(word) && !is_identifier_char(raw(word.size()));
}

bool Cursor::accept(std::string_view token) {
  if (!looking_at(token)) return false;
  pos_ += token.size();
  return true;
}

bool Cursor::accept_word(std::string_view word) {
  if (!looking_at_word(word)) return false;
  pos_ += word.size();
  return true;
}

void Cursor::expect(char c, std::string_view reading) { expect(std::string_view(&c, 1), reading); }

void Cursor::expect(std::string_view token, std::string_view reading) {
  if (!accept(token)) fail_here(reading, fmt::format("expected '{}'", token), "Put it there");
}

void Cursor::expect_word(std::string_view word, std::string_view reading) {
  if (!accept_word(word)) fail_here(reading, fmt::format("expected '{}'", word), "Put it there");
}

std::string_view Cursor::identifier(std::string_view reading) {
  skip();
  if (!is_identifier_start(raw())) fail_here(reading, "expected a name", "Write a plain name");
  std::size_t start = pos_;
  while (is_identifier_char(raw())) ++pos_;
  return text_.substr(start, pos_ - start);
}

std::string_view Cursor::suffix_name(std::string_view reading) {
  std::size_t start = pos_;
  while (is_identifier_char(raw()) || (raw() == '-' && raw(1) != '>')) ++pos_;
  if (pos_ == start)
    fail_here(reading, "expected a name", "Write letters, digits or '_' behind the mark");
  return text_.substr(start, pos_ - start);
}

bool Cursor::plain_string(std::string_view& out, std::string_view reading) {
  if (peek() != '"') fail_here(reading, "expected a string", "Write it in double quotes");
  const char* begin = text_.data() + pos_ + 1;
  const void* quote = std::memchr(begin, '"', text_.size() - pos_ - 1);
  std::size_t rest = quote ? static_cast<std::size_t>(static_cast<const char*>(quote) - begin)
                           : text_.size() - pos_ - 1;
  if (!quote || std::memchr(begin, '\n', rest))
    fail(pos_, reading, "a string ends in '\"' on its line", "it does not", "Close it");
  auto length = static_cast<std::size_t>(static_cast<const char*>(quote) - begin);
  if (std::memchr(begin, '\\', length)) return false;
  out = text_.substr(pos_ + 1, length);
  pos_ += length + 2;
  return true;
}

std::string Cursor::string(std::string_view reading) {
  std::string_view plain;
  if (plain_string(plain, reading)) return std::string(plain);
  std::size_t start = pos_++;
  std::string s;
  for (;;) {
    if (pos_ >= text_.size() || text_[pos_] == '\n')
      fail(start, reading, "a string ends in '\"' on its line", "it does not", "Close it");
    char c = text_[pos_++];
    if (c == '"') return s;
    if (c != '\\') {
      s += c;
      continue;
    }
    char e = raw();
    int high = hex_digit(e), low = hex_digit(raw(1));
    if (high >= 0 && low >= 0) {
      s += static_cast<char>(high * 16 + low);
      pos_ += 2;
    } else if (e == '"' || e == '\\' || e == 'n' || e == 't' || e == 'r') {
      s += e == 'n' ? '\n' : e == 't' ? '\t' : e == 'r' ? '\r' : e;
      ++pos_;
    } else {
      fail(pos_ - 1, reading, "escapes are \\\" \\\\ \\n \\t \\r and two hexadecimal digits",
           fmt::format("found \\ before {}", found(pos_)), "Escape the character by its code");
    }
  }
}

std::int64_t Cursor::integer(std::string_view reading) {
  std::size_t start = token_pos();
  bool negative = raw() == '-';
  if (negative || raw() == '+') ++pos_;
  int base = 10;
  if (raw() == '0' && raw(1) == 'x' && hex_digit(raw(2)) >= 0) {
    base = 16;
    pos_ += 2;
  }
  std::uint64_t magnitude = 0;
  const char* begin = text_.data() + pos_;
  auto [end, ec] = std::from_chars(begin, text_.data() + text_.size(), magnitude, base);
  if (ec == std::errc::invalid_argument) {
    pos_ = start;
    fail_here(reading, "expected an integer", "Write a decimal or 0x number");
  }
  pos_ += static_cast<std::size_t>(end - begin);
  std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (ec != std::errc() || magnitude > limit)
    fail(start, reading, "integers fit 64 bits", fmt::format("found {}", found(start)),
         "Write a smaller number");
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

std::string_view Cursor::number(std::string_view reading) {
  std::size_t start = token_pos();
  if (raw() == '-' || raw() == '+') ++pos_;
  if (!is_digit(raw()) && !(raw() == '.' && is_digit(raw(1)))) {
    pos_ = start;
    fail_here(reading, "expected a number", "Write a decimal or 0x number");
  }
  if (raw() == '0' && raw(1) == 'x' && hex_digit(raw(2)) >= 0) {
    pos_ += 2;
    while (hex_digit(raw()) >= 0) ++pos_;
  } else {
    while (is_digit(raw())) ++pos_;
    if (raw() == '.') ++pos_;
    while (is_digit(raw())) ++pos_;
    if (raw() == 'e' || raw() == 'E') {
      std::size_t sign = raw(1) == '-' || raw(1) == '+' ? 2 : 1;
      if (is_digit(raw(sign))) {
        pos_ += sign;
        while (is_digit(raw())) ++pos_;
      }
    }
  }
  return text_.substr(start, pos_ - start);
}

std::string_view Cursor::balanced(char open, char close, std::string_view reading) {
  std::size_t start = pos_;
  // A stack of the brackets to come; "->" is no bracket.
  std::string expected(1, close);
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '"') {
      std::string_view plain;
      if (!plain_string(plain, reading)) string(reading);
      continue;
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      expected += c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '>';
    } else if (c == '-' && raw(1) == '>') {
      ++pos_;
    } else if (static_cast<unsigned char>(c) >= 0x7f || c == '\0') {
      fail(pos_, reading, "names and punctuation are ASCII",
           fmt::format("found byte 0x{:02X}", static_cast<unsigned char>(c)), "Put it into quotes");
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (c != expected.back())
        fail(pos_, reading, fmt::format("expected '{}'", expected.back()),
             fmt::format("found '{}'", c), "Balance the brackets");
      expected.pop_back();
      if (expected.empty()) {
        std::string_view inside = text_.substr(start, pos_ - start);
        ++pos_;
        return inside;
      }
    }
    ++pos_;
  }
  fail(start > 0 ? start - 1 : 0, reading, fmt::format("'{}' is closed by '{}'", open, close),
       "the text ends first", "Close the bracket");
}

LineCol Cursor::line_col(std::size_t pos) const {
  if (pos > text_.size()) pos = text_.size();
  if (pos < counted_pos_) {
    counted_pos_ = line_start_ = 0;
    counted_line_ = 0;
  }
  while (counted_pos_ < pos) {
    const char* from = text_.data() + counted_pos_;
    const void* newline = std::memchr(from, '\n', pos - counted_pos_);
    if (!newline) {
      counted_pos_ = pos;
      break;
    }
    counted_pos_ += static_cast<std::size_t>(static_cast<const char*>(newline) - from) + 1;
    line_start_ = counted_pos_;
    ++counted_line_;
  }
  return {first_line_ + counted_line_, static_cast<int>(pos - line_start_) + 1};
}

std::string Cursor::place(std::size_t pos) const {
  LineCol at = line_col(pos);
  return fmt::format("{}:{}:{}", file_, at.line, at.column);
}

std::string Cursor::found(std::size_t pos) const {
  if (pos >= text_.size()) return "end of text";
  std::size_t end = pos + 1;
  if (text_[pos] == '%' || text_[pos] == '@' || text_[pos] == '#' || text_[pos] == '-' ||
      is_identifier_char(text_[pos]))
    while (end < text_.size() && end < pos + 40 && is_identifier_char(text_[end])) ++end;
  auto first = static_cast<unsigned char>(text_[pos]);
  if (first < 0x20 || first >= 0x7f) return fmt::format("byte 0x{:02x}", first);
  return fmt::format("'{}'", text_.substr(pos, end - pos));
}

void Cursor::fail(std::size_t pos, std::string_view operation, std::string_view expected,
                  std::string_view given, std::string_view advice) const {
  failed_pos_ = pos;
  std::string where = place(pos);
  UserError parts(ErrorParts{operation, expected, given, advice});
  throw UserError(fmt::format("{}: error: {}: {}", where, language_, parts.message()));
}

void Cursor::fail_here(std::string_view operation, std::string_view expected,
                       std::string_view advice) {
  std::size_t at = token_pos();
  fail(behind_last_token(text_, at), operation, expected, fmt::format("found {}", found(at)),
       advice);
}

void Cursor::fail_labelled(std::string_view label, std::size_t pos, std::string_view operation,
                           std::string_view expected, std::string_view given,
                           std::string_view advice) const {
  failed_pos_ = pos;
  std::string where = place(pos);
  ConstraintError parts(std::string(label), ErrorParts{operation, expected, given, advice});
  throw UserError(fmt::format("{}: error: {}: {}", where, language_, parts.message()));
}

Cursor::Depth::Depth(Cursor& c) : c_(c) {
  if (c.depth_ >= kMaxDepth)
    c.fail_here("nesting", fmt::format("at most {} levels are read", kMaxDepth),
                "Flatten the program");
  ++c.depth_;
}

void Cursor::charge(std::int64_t bytes, std::size_t pos) {
  if (bytes > kMaxSplatBytes - charged_)
    fail(pos, "constant",
         fmt::format("repeated values of a text take at most {} bytes", kMaxSplatBytes),
         fmt::format("this one needs {} more", bytes), "Broadcast a scalar constant instead");
  charged_ += bytes;
}

}  // namespace xylem::ir::text
