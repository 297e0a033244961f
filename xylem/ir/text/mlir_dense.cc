#include <fmt/format.h>

#include <array>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/mlir_reader.h"

// "dense<…> : type" and "dense_resource<…> : type".

namespace xylem::ir::text {

// Reads the literal between the angle brackets once its type is known.
class DenseReader {
 public:
  // `lone`: null, or set if the literal is one value for more elements than `budget` bytes hold,
  // which is then the result.
  DenseReader(Cursor& c, const Type& type, std::int64_t& budget, bool* lone)
      : c_(c),
        type_(type),
        element_(static_cast<std::size_t>(dtype_bytes(type.dtype()))),
        budget_(budget),
        lone_(lone) {}

  HostArray read() {
    std::size_t at = c_.token_pos();
    std::int64_t n = type_.size();
    if (c_.peek() == '>') {
      if (n != 0)
        c_.fail(at, "dense", fmt::format("{} has {} elements", type_.to_string(), n),
                "the list is empty", "Give the elements");
      return HostArray(type_.dtype(), type_.dims());
    }
    if (c_.peek() == '"') return read_string();
    std::byte one[16] = {};
    if (c_.peek() != '[') {
      read_element(one);
      return splat(one, at);
    }
    // Every element takes a character at least: the type cannot ask for more than the text holds.
    if (n > static_cast<std::int64_t>(c_.text().size()))
      c_.fail(at, "dense", fmt::format("{} has {} elements", type_.to_string(), n),
              "the list holds fewer", "Make type and values agree");
    HostArray a(type_.dtype(), type_.dims());
    out_ = a.data();
    end_ = out_ + a.nbytes();
    read_list(0);
    return a;
  }

 private:
  HostArray splat(const std::byte* one, std::size_t at) {
    std::int64_t total = type_.nbytes();
    if (type_.size() > 1 && lone_ && total > budget_) {
      *lone_ = true;
      HostArray a(type_.dtype(), {});
      std::memcpy(a.data(), one, element_);
      return a;
    }
    if (type_.size() > 1) {
      c_.charge(total, at);
      budget_ -= total;
    }
    HostArray a(type_.dtype(), type_.dims());
    if (total == 0) return a;
    if (element_ == 1) {
      std::memset(a.data(), static_cast<int>(one[0]), static_cast<std::size_t>(total));
    } else {
      for (std::int64_t i = 0; i < total; i += static_cast<std::int64_t>(element_))
        std::memcpy(a.data() + i, one, element_);
    }
    return a;
  }

  HostArray read_string() {
    std::size_t at = c_.token_pos();
    std::string_view hex;
    if (!c_.plain_string(hex, "dense") || !hex.starts_with("0x") || hex.size() % 2)
      c_.fail(at, "dense", "a string of bytes is \"0x\" and digit pairs", "found another string",
              "Write two hexadecimal digits a byte");
    hex.remove_prefix(2);
    auto given = static_cast<std::int64_t>(hex.size() / 2);
    std::int64_t n = type_.size(), total = type_.nbytes();
    auto decode = [&](std::byte* out) {
      if (!decode_hex(hex, out))
        c_.fail(at, "dense", "a string of bytes is \"0x\" and digit pairs",
                "found another character", "Write two hexadecimal digits a byte");
    };
    bool is_bool = xylem::is_bool(type_.dtype());
    if (given == total && !(is_bool && n == 1)) {
      HostArray a(type_.dtype(), type_.dims());
      decode(a.data());
      clean(a.data(), n);
      return a;
    }
    std::byte one[16] = {};
    if (given == static_cast<std::int64_t>(element_)) {
      decode(one);
      // A byte of up to eight booleans is a repeated value if it is 0, 1 or (older) 0xFF.
      bool repeated = !is_bool || n == 1 || n > 8 || one[0] == std::byte{0} ||
                      one[0] == std::byte{1} || one[0] == std::byte{255};
      clean(one, repeated ? 1 : 0);
      if (repeated) return splat(one, at);
    }
    if (is_bool && given == (n + 7) / 8) {  // older form: one bit an element
      std::vector<std::byte> packed(static_cast<std::size_t>(given));
      decode(packed.data());
      HostArray a(type_.dtype(), type_.dims());
      for (std::int64_t i = 0; i < n; ++i)
        a.data()[i] = packed[static_cast<std::size_t>(i / 8)] >> (i % 8) & std::byte{1};
      return a;
    }
    c_.fail(at, "dense", fmt::format("{} has {} bytes", type_.to_string(), total),
            fmt::format("the string holds {}", given), "Make type and values agree");
  }

  // Bits above a narrow type's width carry no meaning; booleans are 0 or 1.
  void clean(std::byte* p, std::int64_t n) const {
    int bits = dtype_bits(type_.dtype());
    if (bits >= 8) return;
    auto mask = static_cast<std::byte>((1 << bits) - 1);
    bool is_bool = xylem::is_bool(type_.dtype());
    for (std::int64_t i = 0; i < n; ++i)
      p[i] = is_bool ? std::byte{p[i] != std::byte{0}} : p[i] & mask;
  }

  void read_list(int axis) {
    Cursor::Depth depth(c_);
    std::size_t at = c_.token_pos();
    c_.expect('[', "dense");
    if (axis >= type_.rank())
      c_.fail(at, "dense", fmt::format("{} has {} dimensions", type_.to_string(), type_.rank()),
              "the lists are nested deeper", "Make type and values agree");
    std::int64_t count = 0;
    while (!c_.accept(']')) {
      if (count) c_.expect(',', "dense");
      if (axis + 1 < type_.rank()) {
        read_list(axis + 1);
      } else {
        if (out_ == end_) wrong_length(at, axis, "more");
        read_element(out_);
        out_ += element_;
      }
      ++count;
    }
    if (count != type_.dim(axis)) wrong_length(at, axis, fmt::format("{}", count));
  }

  [[noreturn]] void wrong_length(std::size_t at, int axis, std::string_view given) const {
    c_.fail(
        at, "dense",
        fmt::format("dimension {} of {} has {} elements", axis, type_.to_string(), type_.dim(axis)),
        fmt::format("the list holds {}", given), "Make type and values agree");
  }

  void read_element(std::byte* out) {
    DType dtype = type_.dtype();
    if (!is_complex(dtype)) return read_real(dtype, out);
    DType part = real_dtype(dtype);
    c_.expect('(', "complex number");
    read_real(part, out);
    c_.expect(',', "complex number");
    read_real(part, out + dtype_bytes(part));
    c_.expect(')', "complex number");
  }

  void read_real(DType dtype, std::byte* out) {
    std::size_t at = c_.token_pos();
    if (xylem::is_bool(dtype)) {
      bool one = c_.accept_word("true") || c_.accept("-1");
      if (one || c_.accept_word("false")) {
        *out = std::byte{one};
        return;
      }
    }
    std::string_view number = c_.number("dense");
    if (is_float(dtype) && number.find_first_of(".eEx") == std::string_view::npos)
      c_.fail(at, "dense", fmt::format("values of {} have a point", dtype_name(dtype)),
              fmt::format("found '{}'", number), "Write it like 1.0, or as its bits");
    NumberError e = parse_element(number, dtype, out);
    if (e == NumberError::kNone) return;
    c_.fail(at, "dense",
            e == NumberError::kRange
                ? fmt::format("values of {} are in its range", dtype_name(dtype))
                : fmt::format("expected a value of {}", dtype_name(dtype)),
            fmt::format("found '{}'", number), "Write a number that the type can hold");
  }

  Cursor& c_;
  const Type& type_;
  std::size_t element_;
  std::int64_t& budget_;
  bool* lone_;
  std::byte* out_ = nullptr;
  std::byte* end_ = nullptr;
};

// To behind the '>' that ends a literal. What cannot stand in one is told at its place.
void MlirReader::skip_literal() {
  static constexpr auto kStops = [] {
    std::array<bool, 256> stops{};
    for (char ch : {'>', '<', '{', '}', '@', '%', '=', ':', '"', '/', '#', '!'})
      stops[static_cast<unsigned char>(ch)] = true;
    return stops;
  }();
  std::string_view text = c_.text();
  for (;;) {
    std::size_t at = c_.pos();
    while (at < text.size() && !kStops[static_cast<unsigned char>(text[at])]) ++at;
    c_.seek(at);
    char ch = c_.raw();
    if (ch == '"') {
      std::string_view hex;
      if (!c_.plain_string(hex, "dense")) c_.string("dense");
    } else if (ch == '/' && c_.raw(1) == '/') {
      c_.skip();
    } else if (ch == '>') {
      c_.step();
      return;
    } else {
      c_.fail_here("dense", "expected '>'", "Close the constant");
    }
  }
}

HostArray MlirReader::read_dense() {
  if (c_.accept("dense_resource<")) return read_dense_resource();
  std::size_t start = c_.token_pos();
  c_.expect("dense<", "constant");
  // The elements cannot be read before their type, which stands behind them.
  std::size_t literal = c_.token_pos();
  skip_literal();
  c_.expect(':', "dense");
  std::size_t type_at = c_.token_pos();
  Type t = read_type();
  std::size_t back = c_.pos();
  if (!t.is_tensor() || !t.is_static())
    c_.fail(type_at, "dense", "constants have a static tensor type",
            fmt::format("found {}", t.to_string()), "Give its dimensions");
  Type storage = t;
  if (t.extra() && t.extra()->quant) storage = Type::tensor(t.extra()->quant->storage, t.dims());
  c_.seek(literal);
  bool lone = false;
  bool may_be_lone = allow_large_splat_ && !t.extra();
  HostArray a = DenseReader(c_, storage, splat_budget_, may_be_lone ? &lone : nullptr).read();
  if (lone) large_splat_ = t;
  c_.expect('>', "dense");
  if (c_.pos() > back) c_.fail(start, "dense", "brackets are balanced", "they are not", "Close it");
  c_.seek(back);
  return a;
}

std::pair<Attr, Type> MlirReader::read_constant() {
  constexpr std::size_t kShort = 64;
  std::size_t start = c_.token_pos();
  std::string_view rest = c_.text().substr(start, kShort);
  for (const KnownConstant& k : known_constants_)
    if (!k.text.empty() && rest.starts_with(k.text)) {
      c_.seek(start + k.text.size());
      return {k.value, k.type};
    }
  HostArray a = read_dense();
  Type type = Type::tensor(a.dtype(), a.dims());
  Attr value = std::move(a);
  std::string_view text = c_.text().substr(start, c_.pos() - start);
  // The text of a type ends with its bracket, so no other text starts with it. Index types and
  // splats that stand for more than they hold are noted by their reader.
  if (text.size() <= kShort && text.ends_with('>') && !large_splat_ &&
      text.find("index") == std::string_view::npos)
    known_constants_[next_known_constant_++ % known_constants_.size()] = {text, value, type};
  return {std::move(value), std::move(type)};
}

// "name> : type"; the bytes stand in the resource section: name: "0x", 4 bytes of alignment, data.
HostArray MlirReader::read_dense_resource() {
  std::size_t at = c_.token_pos();
  std::string name =
      c_.peek() == '"' ? c_.string("resource") : std::string(c_.suffix_name("resource"));
  c_.expect('>', "resource");
  c_.expect(':', "resource");
  Type t = read_type();
  std::size_t back = c_.pos();
  auto missing = [&] {
    c_.fail(at, "dense_resource", "the resource section of the text holds the bytes",
            fmt::format("'{}' is not in it", name), "Print the program with its resources");
  };
  if (!t.is_tensor() || !t.is_static() || t.extra())
    c_.fail(at, "dense_resource", "constants have a static tensor type",
            fmt::format("found {}", t.to_string()), "Give its dimensions");
  if (resources_pos_ == 0) missing();
  std::string_view section = c_.text().substr(resources_pos_);
  std::size_t found = 0;
  for (;;) {
    found = section.find(name, found);
    if (found == std::string_view::npos) missing();
    std::size_t after = found + name.size();
    bool whole = !is_identifier_char(section[found - 1]) && after < section.size() &&
                 (section[after] == ':' || section[after] == '"' || section[after] == ' ');
    if (whole) break;
    ++found;
  }
  c_.seek(resources_pos_ + found + name.size());
  c_.accept('"');
  c_.expect(':', "resource");
  std::size_t blob = c_.token_pos();
  std::string_view hex;
  std::int64_t total = t.nbytes();
  if (!c_.plain_string(hex, "resource") || !hex.starts_with("0x") ||
      static_cast<std::int64_t>(hex.size()) != 2 + 8 + 2 * total)
    c_.fail(blob, "resource",
            fmt::format("a string 0x, 4 bytes of alignment and the {} bytes of {}", total,
                        t.to_string()),
            fmt::format("found {} characters", hex.size()), "Make type and values agree");
  HostArray a(t.dtype(), t.dims());
  if (!decode_hex(hex.substr(10), a.data()))
    c_.fail(blob, "resource", "bytes are digit pairs", "found another character",
            "Write two hexadecimal digits a byte");
  c_.seek(back);
  return a;
}

}  // namespace xylem::ir::text
