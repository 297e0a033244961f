#include "xylem/base/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"

namespace xylem {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// What the header says. The header is a Python dictionary literal with three known keys.
struct Header {
  std::string descr;
  bool fortran = false;
  Dims shape;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Header parse() {
    Header h;
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !seen[0]) {
        seen[0] = true;
        skip();
        if (at_ < text_.size() && text_[at_] == '[')
          fail("an array of one plain type", "a structured type");
        h.descr = string();
      } else if (key == "fortran_order" && !seen[1]) {
        seen[1] = true;
        h.fortran = boolean();
      } else if (key == "shape" && !seen[2]) {
        seen[2] = true;
        h.shape = shape();
      } else {
        fail("the keys descr, fortran_order and shape, each once", fmt::format("the key {}", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) fail("nothing behind the dictionary", "more text");
    if (!seen[0] || !seen[1] || !seen[2]) fail("descr, fortran_order and shape", "fewer keys");
    return h;
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view given) const {
    throw_user_error({name_, fmt::format("the header must hold {}", expected),
                      fmt::format("it holds {} (at character {})", given, at_),
                      "The file is damaged or was not written by NumPy"});
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c), "something else");
  }
  std::string string() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      fail("a string", "something else");
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("the end of a string", "no quote");
    const std::string_view s = text_.substr(at_, end - at_);
    if (s.size() > 64 || s.find('\\') != std::string_view::npos)
      fail("a short plain string", "a long one or escapes");
    at_ = end + 1;
    return std::string(s);
  }
  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False", "something else");
  }
  Dims shape() {
    Dims d;
    expect('(');
    while (!accept(')')) {
      skip();
      std::int64_t v = 0;
      const std::size_t begin = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, text_[at_] - '0', &v))
          fail("dimensions of 63 bits", "a larger one");
      if (at_ == begin) fail("a dimension", "something else");
      accept('L');  // Python 2 wrote long integers so
      d.push_back(v);
      if (d.size() > 64) fail("at most 64 dimensions", "more");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return d;
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
};

struct Descr {
  std::string_view code;
  DType dtype;
};

// Type codes without the byte order.
constexpr Descr kDescrs[] = {
    {"b1", DType::kBool}, {"i1", DType::kI8},    {"i2", DType::kI16}, {"i4", DType::kI32},
    {"i8", DType::kI64},  {"u1", DType::kU8},    {"u2", DType::kU16}, {"u4", DType::kU32},
    {"u8", DType::kU64},  {"f2", DType::kF16},   {"f4", DType::kF32}, {"f8", DType::kF64},
    {"c8", DType::kC64},  {"c16", DType::kC128},
};

bool is_raw(DType t) {
  return std::none_of(std::begin(kDescrs), std::end(kDescrs),
                      [t](const Descr& d) { return d.dtype == t; });
}

DType parse_descr(const std::string& descr, std::optional<DType> raw_type, std::string_view name,
                  bool& swap) {
  const char order = descr.empty() ? ' ' : descr[0];
  const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
  const std::string_view code = std::string_view(descr).substr(has_order ? 1 : 0);
  swap = order == '>';
  for (const Descr& d : kDescrs)
    if (code == d.code) return d.dtype;
  if (code == "f1") return DType::kF8E5M2;  // what NumPy writes but does not read
  if (code == "V1" || code == "V2") {
    const int bytes = code[1] - '0';
    const DType t = raw_type.value_or(DType::kBF16);
    swap = false;  // raw bytes have no order
    if (dtype_bytes(t) == bytes && is_raw(t)) return t;
    throw_user_error({name, "the type of raw elements must be known",
                      raw_type ? fmt::format("elements have {} bytes, {} has {}", bytes,
                                             dtype_name(t), dtype_bytes(t))
                               : fmt::format("elements are {} raw bytes", bytes),
                      "Pass the type that was saved"});
  }
  throw_user_error({name, "the element type must be a boolean, a number or raw bytes of one or two",
                    fmt::format("it is \"{}\"", descr),
                    "Save the array as another type with NumPy's astype"});
}

void swap_bytes(std::byte* p, std::size_t total, std::size_t unit) {
  for (std::size_t i = 0; i + unit <= total; i += unit) std::reverse(p + i, p + i + unit);
}

}  // namespace

HostArray parse_npy(std::span<const std::byte> bytes, std::string_view name,
                    std::optional<DType> raw_type) {
  ByteReader r(bytes, name);
  if (r.read_string(6) != kMagic) r.fail("a .npy file begins with \\x93NUMPY", "it does not");
  const int major = r.read<std::uint8_t>();
  const int minor = r.read<std::uint8_t>();
  if (major < 1 || major > 3 || minor != 0)
    r.fail("version 1.0, 2.0 or 3.0", fmt::format("the version is {}.{}", major, minor));
  const std::uint32_t length = major == 1 ? r.read<std::uint16_t>() : r.read<std::uint32_t>();
  const Header h = HeaderParser(r.read_string(length), name).parse();
  bool swap = false;
  const DType t = parse_descr(h.descr, raw_type, name, swap);

  // Sizes are compared before anything is allocated.
  std::int64_t total = dtype_bytes(t);
  bool empty = false, fits = true;
  for (std::int64_t n : h.shape) {
    if (n < 0) r.fail("sizes are not negative", fmt::format("one is {}", n));
    empty = empty || n == 0;
    fits = fits && !__builtin_mul_overflow(total, std::max<std::int64_t>(n, 1), &total);
  }
  if (empty) total = 0;
  if ((!fits && !empty) || static_cast<std::uint64_t>(total) != r.remaining())
    r.fail(fmt::format("{} must be all that follows the header", shape_string(t, h.shape)),
           fmt::format("{} bytes follow", r.remaining()));
  const std::span<const std::byte> data = r.read_bytes(static_cast<std::uint64_t>(total));
  HostArray a;
  if (h.fortran && h.shape.size() > 1) {
    Dims reversed(h.shape.size(), 0);
    std::reverse_copy(h.shape.begin(), h.shape.end(), reversed.begin());
    const HostArray columns = HostArray::from_bytes(t, reversed, data);
    Dims strides(h.shape.size(), 0);
    std::reverse_copy(columns.byte_strides().begin(), columns.byte_strides().end(),
                      strides.begin());
    a = HostArray(t, h.shape, columns.owner(), strides).clone();
  } else {
    a = HostArray::from_bytes(t, h.shape, data);
  }
  if (swap) {
    const auto unit = static_cast<std::size_t>(dtype_bytes(real_dtype(t)));
    swap_bytes(a.data(), a.nbytes(), unit);
  }
  if (is_bool(t))  // other bytes would break what arrays promise
    for (std::int64_t i = 0; i < a.size(); ++i)
      a.data()[i] = std::byte{a.data()[i] != std::byte{0}};
  return a;
}

HostArray read_npy(const std::string& path, std::optional<DType> raw_type) {
  const std::string bytes = read_file(path);
  return parse_npy(as_byte_span(bytes), path, raw_type);
}

std::string format_npy(const HostArray& a) {
  if (!a.defined() || a.dtype() == DType::kFloat0)
    throw_user_error({"format_npy", "the array must be defined and have bytes",
                      a.defined() ? a.type_string() : std::string("it is undefined"),
                      "Convert it to another type first"});
  std::string descr;
  for (const Descr& d : kDescrs)
    if (d.dtype == a.dtype())
      descr = fmt::format("{}{}", dtype_bytes(d.dtype) == 1 ? '|' : '<', d.code);
  if (descr.empty()) descr = dtype_bytes(a.dtype()) == 2 ? "|V2" : "|V1";
  std::string shape;
  for (std::int64_t d : a.dims()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", d);
  if (a.rank() == 1) shape += ',';
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // Room in which NumPy's appenders can let the first dimension grow.
  if (a.rank() > 0) header.append(21 - fmt::format("{}", a.dims()[0]).size(), ' ');
  // Spaces and a line end, so that the data begins at a multiple of 64.
  const bool long_form = header.size() + 1 + 10 > 65535;
  const std::size_t before = long_form ? 12 : 10;
  const std::size_t whole = (before + header.size() + 1 + 63) / 64 * 64;
  header.append(whole - before - header.size() - 1, ' ');
  header += '\n';
  ByteWriter w;
  w.write_string(kMagic);
  w.write<std::uint8_t>(long_form ? 2 : 1);
  w.write<std::uint8_t>(0);
  if (long_form)
    w.write(static_cast<std::uint32_t>(header.size()));
  else
    w.write(static_cast<std::uint16_t>(header.size()));
  w.write_string(header);
  const HostArray c = a.to_contiguous();
  w.write_bytes({c.data(), c.nbytes()});
  return w.take();
}

void write_npy(const std::string& path, const HostArray& a) {
  write_file_atomic(path, format_npy(a));
}

}  // namespace xylem
