#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace xylem {

// Writes JSON text piece by piece.
//
//   JsonWriter w;
//   w.begin_object();
//   w.field("step", 3);
//   w.key("shape"); w.begin_array(); w.value(2); w.value(3); w.end_array();
//   w.end_object();                     // {"step": 3, "shape": [2, 3]}
//
// Numbers are written with the shortest digits that read back as the same value; NaN and
// infinities, which JSON lacks, as null. Text must be UTF-8; bytes that are not are replaced by
// U+FFFD. Misuse (a value without its key, an end too many) is an InternalError.
class JsonWriter {
 public:
  // With indent > 0 objects and arrays are spread over lines.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view k);

  void value(std::string_view s);
  void value(const char* s) { value(std::string_view(s)); }
  void value(const std::string& s) { value(std::string_view(s)); }
  void value(bool b) { raw(b ? "true" : "false"); }
  void value(double d);
  void value(float f);
  template <class T>
  requires std::is_integral_v<T>
  void value(T v) {
    if constexpr (std::is_signed_v<T>)
      number(static_cast<std::int64_t>(v));
    else
      number(static_cast<std::uint64_t>(v));
  }
  void null() { raw("null"); }
  // Text that is JSON already.
  void raw(std::string_view json);

  template <class T>
  void field(std::string_view k, const T& v) {
    key(k);
    value(v);
  }
  template <class Range>
  void array(std::string_view k, const Range& values) {
    key(k);
    begin_array();
    for (const auto& v : values) value(v);
    end_array();
  }

  // The finished text; InternalError if something is open.
  std::string take();

 private:
  void number(std::int64_t v);
  void number(std::uint64_t v);
  void begin(char open);
  void end(char close);
  void separate();
  void new_line();

  struct Level {
    char close;
    bool empty = true;
    bool after_key = false;
  };
  std::string out_;
  std::vector<Level> levels_;
  int indent_;
};

// The text as a JSON string with quotes.
std::string json_quote(std::string_view s);

}  // namespace xylem
