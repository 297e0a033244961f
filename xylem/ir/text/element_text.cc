#include "xylem/ir/text/element_text.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "xylem/base/dtype_cast.h"

namespace xylem::ir::text {
namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

// Bits of an element of 1, 2, 4 or 8 bytes.
std::uint64_t load_bits(const std::byte* p, int bytes) {
  std::uint64_t u = 0;
  std::memcpy(&u, p, static_cast<std::size_t>(bytes));
  return u;
}

void append_bits(std::string& out, std::uint64_t bits, int bytes) {
  out += "0x";
  for (int shift = bytes * 8 - 4; shift >= 0; shift -= 4) out += kHexDigits[bits >> shift & 15];
}

template <class T>
std::string_view shortest(std::array<char, 40>& buffer, T v, std::chars_format format) {
  auto r = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v, format);
  return {buffer.data(), static_cast<std::size_t>(r.ptr - buffer.data())};
}

// MLIR's float literals need a '.'.
void append_with_point(std::string& out, std::string_view s) {
  std::size_t e = s.find('e');
  out += s.substr(0, e);
  if (s.substr(0, e).find('.') == std::string_view::npos) out += ".0";
  if (e != std::string_view::npos) out += s.substr(e);
}

bool same_bits(DType dtype, double v, const std::byte* element) {
  std::byte again[8];
  double_to_element(v, dtype, again);
  return std::memcmp(again, element, static_cast<std::size_t>(dtype_bytes(dtype))) == 0;
}

// A finite float element as MLIR prints it: six decimals if they are exact, else the shortest
// digits. MLIR reads a literal as a double and rounds that, so the digits must survive both steps.
bool append_mlir_finite(std::string& out, DType dtype, const std::byte* element, double v) {
  std::string six = fmt::format("{:.6e}", v);
  double back = 0;
  if (parse_double(six, back) == NumberError::kNone && same_bits(dtype, back, element)) {
    out += six;
    return true;
  }
  std::array<char, 40> buffer;
  float f = 0;
  if (dtype == DType::kF32) std::memcpy(&f, element, 4);
  std::string_view s = dtype == DType::kF32 ? shortest(buffer, f, std::chars_format::scientific)
                                            : shortest(buffer, v, std::chars_format::scientific);
  if (parse_double(s, back) != NumberError::kNone || !same_bits(dtype, back, element)) return false;
  append_with_point(out, s);
  return true;
}

void append_float(std::string& out, DType dtype, const std::byte* element, NumberStyle style) {
  double v = element_to_double(dtype, element);
  int bytes = dtype_bytes(dtype);
  std::array<char, 40> buffer;
  if (style == NumberStyle::kMlir) {
    if (std::isfinite(v) && append_mlir_finite(out, dtype, element, v)) return;
  } else if (!std::isnan(v)) {
    if (dtype == DType::kF32) {
      // From the bits: no conversion that a thread's flush-to-zero mode could change.
      float f;
      std::memcpy(&f, element, 4);
      out += shortest(buffer, f, std::chars_format::general);
    } else {
      out += shortest(buffer, v, std::chars_format::general);
    }
    return;
  }
  append_bits(out, load_bits(element, bytes), bytes);
}

NumberError parse_integer(std::string_view s, DType dtype, std::byte* out) {
  bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  bool hex = s.size() > 2 && s[0] == '0' && s[1] == 'x';
  if (hex) s.remove_prefix(2);
  std::uint64_t magnitude = 0;
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), magnitude, hex ? 16 : 10);
  if (ec == std::errc::result_out_of_range) return NumberError::kRange;
  if (ec != std::errc() || end != s.data() + s.size()) return NumberError::kForm;
  int bits = dtype_bits(dtype);
  std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  std::uint64_t limit = all;
  if (is_signed_int(dtype)) limit = negative ? all / 2 + 1 : hex ? all : all / 2;
  if (is_bool(dtype)) limit = 1;
  if (magnitude > limit || (negative && magnitude != 0 && !is_signed_int(dtype)))
    return NumberError::kRange;
  std::uint64_t value = (negative ? 0 - magnitude : magnitude) & all;
  std::memcpy(out, &value, static_cast<std::size_t>(dtype_bytes(dtype)));
  return NumberError::kNone;
}

// A number in decimal, rounded once to T.
template <class T>
NumberError parse_decimal(std::string_view s, T& out) {
  bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
  if (ec == std::errc::invalid_argument || end != s.data() + s.size()) return NumberError::kForm;
  if (ec == std::errc::result_out_of_range) {
    // Too small for the type becomes zero, too large infinity, as strtod has it.
    std::size_t e = s.find_first_of("eE");
    bool small = e != std::string_view::npos && e + 1 < s.size() && s[e + 1] == '-';
    out = small ? T(0) : std::numeric_limits<T>::infinity();
    if (negative) out = -out;
  }
  return NumberError::kNone;
}

}  // namespace

void append_double(std::string& out, double v, NumberStyle style) {
  std::byte bytes[8];
  std::memcpy(bytes, &v, 8);
  std::size_t start = out.size();
  append_float(out, DType::kF64, bytes, style);
  // A plain attribute must not read back as an integer.
  if (style == NumberStyle::kNative && out.find_first_of(".einfx", start) == std::string::npos)
    out += ".0";
}

void append_float_literal(std::string& out, double v, DType dtype) {
  std::byte bytes[8];
  double_to_element(v, dtype, bytes);
  append_float(out, dtype, bytes, NumberStyle::kMlir);
}

void append_element(std::string& out, DType dtype, const std::byte* element, NumberStyle style) {
  switch (dtype_info(dtype).kind) {
    case DTypeKind::kBool: out += *element != std::byte{0} ? "true" : "false"; return;
    case DTypeKind::kFloat: append_float(out, dtype, element, style); return;
    case DTypeKind::kFloat0: out += '0'; return;
    case DTypeKind::kComplex: {
      DType part = real_dtype(dtype);
      out += '(';
      append_float(out, part, element, style);
      out += style == NumberStyle::kMlir ? "," : ", ";
      append_float(out, part, element + dtype_bytes(part), style);
      out += ')';
      return;
    }
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned: break;
  }
  int bits = dtype_bits(dtype);
  std::uint64_t u = load_bits(element, dtype_bytes(dtype));
  std::array<char, 40> buffer;
  char* end = buffer.data() + buffer.size();
  if (bits < 64) u &= (std::uint64_t{1} << bits) - 1;
  std::to_chars_result r;
  if (is_signed_int(dtype)) {
    auto v = static_cast<std::int64_t>(u << (64 - bits)) >> (64 - bits);
    r = std::to_chars(buffer.data(), end, v);
  } else {
    r = std::to_chars(buffer.data(), end, u);
  }
  out.append(buffer.data(), r.ptr);
}

NumberError parse_double(std::string_view number, double& out) {
  std::byte bytes[8];
  NumberError e = parse_element(number, DType::kF64, bytes);
  if (e == NumberError::kNone) std::memcpy(&out, bytes, 8);
  return e;
}

NumberError parse_element(std::string_view s, DType dtype, std::byte* out) {
  if (!is_float(dtype)) return parse_integer(s, dtype, out);
  if (s.size() > 2 && s[0] == '0' && s[1] == 'x') {
    std::uint64_t bits = 0;
    s.remove_prefix(2);
    auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), bits, 16);
    if (ec == std::errc::result_out_of_range) return NumberError::kRange;
    if (ec != std::errc() || end != s.data() + s.size()) return NumberError::kForm;
    int width = dtype_bits(dtype);
    if (width < 64 && bits >> width != 0) return NumberError::kRange;
    std::memcpy(out, &bits, static_cast<std::size_t>(dtype_bytes(dtype)));
    return NumberError::kNone;
  }
  if (dtype == DType::kF32) {
    float f = 0;
    NumberError e = parse_decimal(s, f);
    if (e == NumberError::kNone) std::memcpy(out, &f, 4);
    return e;
  }
  double d = 0;
  NumberError e = parse_decimal(s, d);
  if (e != NumberError::kNone) return e;
  if (dtype == DType::kF64) {
    std::memcpy(out, &d, 8);
  } else {
    double_to_element(d, dtype, out);
  }
  return NumberError::kNone;
}

void append_hex(std::string& out, const std::byte* bytes, std::size_t n) {
  std::size_t at = out.size();
  out.resize(at + 2 + 2 * n);
  char* p = out.data() + at;
  *p++ = '0';
  *p++ = 'x';
  for (std::size_t i = 0; i < n; ++i) {
    auto b = static_cast<unsigned>(bytes[i]);
    *p++ = kHexDigits[b >> 4];
    *p++ = kHexDigits[b & 15];
  }
}

bool decode_hex(std::string_view hex, std::byte* out) {
  static constexpr std::array<std::int8_t, 256> kValue = [] {
    std::array<std::int8_t, 256> t{};
    for (auto& v : t) v = -1;
    for (int i = 0; i < 10; ++i) t[static_cast<std::size_t>('0' + i)] = static_cast<std::int8_t>(i);
    for (int i = 0; i < 6; ++i)
      t[static_cast<std::size_t>('a' + i)] = t[static_cast<std::size_t>('A' + i)] =
          static_cast<std::int8_t>(10 + i);
    return t;
  }();
  int bad = 0;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    int high = kValue[static_cast<unsigned char>(hex[i])];
    int low = kValue[static_cast<unsigned char>(hex[i + 1])];
    bad |= high | low;
    out[i / 2] = static_cast<std::byte>((high & 15) << 4 | (low & 15));
  }
  return bad >= 0;
}

}  // namespace xylem::ir::text
