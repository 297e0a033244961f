#include "xylem/base/json.h"

#include <fmt/format.h>

#include <cmath>

#include "xylem/base/error.h"

namespace xylem {
namespace {

// Length of the UTF-8 sequence at the front of s; 0 if it is malformed (overlong forms, surrogates
// and values above U+10FFFF included).
std::size_t utf8_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = at(0);
  if (c < 0x80) return 1;
  const std::size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  if (c < 0xc2 || c > 0xf4 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if (at(i) >> 6 != 2) return 0;
  if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) > 0x9f) || (c == 0xf0 && at(1) < 0x90) ||
      (c == 0xf4 && at(1) > 0x8f))
    return 0;
  return n;
}

}  // namespace

std::string json_quote(std::string_view s) {
  std::string out = "\"";
  while (!s.empty()) {
    const char c = s[0];
    std::size_t n = 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else if (n = utf8_length(s); n > 0) {
          out += s.substr(0, n);
        } else {
          out += "\xef\xbf\xbd";
          n = 1;
        }
    }
    s.remove_prefix(n);
  }
  return out + '"';
}

void JsonWriter::new_line() {
  if (indent_ <= 0) return;
  out_ += '\n';
  out_.append(levels_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::separate() {
  if (levels_.empty()) {
    XYLEM_CHECK(out_.empty(), "a JSON text holds one value");
    return;
  }
  Level& l = levels_.back();
  if (l.after_key) {
    l.after_key = false;
    return;
  }
  XYLEM_CHECK(l.close == ']', "a value in an object needs a key");
  if (!l.empty) out_ += indent_ > 0 ? "," : ", ";
  l.empty = false;
  new_line();
}

void JsonWriter::key(std::string_view k) {
  XYLEM_CHECK(!levels_.empty() && levels_.back().close == '}' && !levels_.back().after_key,
              "a key stands in an object, before its value");
  Level& l = levels_.back();
  if (!l.empty) out_ += indent_ > 0 ? "," : ", ";
  l.empty = false;
  new_line();
  out_ += json_quote(k);
  out_ += ": ";
  l.after_key = true;
}

void JsonWriter::begin(char open) {
  separate();
  out_ += open;
  levels_.push_back({open == '{' ? '}' : ']'});
}

void JsonWriter::end(char close) {
  XYLEM_CHECK(!levels_.empty() && levels_.back().close == close && !levels_.back().after_key,
              "ends must match beginnings");
  const bool empty = levels_.back().empty;
  levels_.pop_back();
  if (!empty) new_line();
  out_ += close;
}

void JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
}

void JsonWriter::value(std::string_view s) { raw(json_quote(s)); }
void JsonWriter::value(double d) { std::isfinite(d) ? raw(fmt::format("{}", d)) : null(); }
void JsonWriter::value(float f) { std::isfinite(f) ? raw(fmt::format("{}", f)) : null(); }
void JsonWriter::number(std::int64_t v) { raw(fmt::format("{}", v)); }
void JsonWriter::number(std::uint64_t v) { raw(fmt::format("{}", v)); }

std::string JsonWriter::take() {
  XYLEM_CHECK(levels_.empty(), "an object or array is still open");
  return std::move(out_);
}

}  // namespace xylem
