#include <fmt/format.h>

#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/quant.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/native.h"

// The native reader's types and attributes.

namespace xylem::ir::text {
namespace {

[[noreturn]] void fail_number(Cursor& c, std::size_t at, NumberError e, std::string_view number,
                              DType dtype) {
  c.fail(at, "number",
         e == NumberError::kRange ? fmt::format("values of {} are in its range", dtype_name(dtype))
                                  : fmt::format("expected a value of {}", dtype_name(dtype)),
         fmt::format("found '{}'", number), "Write a number that the type can hold");
}

DType read_dtype(Cursor& c) {
  std::size_t at = c.token_pos();
  std::string_view name = c.identifier("element type");
  if (auto d = parse_dtype(name)) return *d;
  c.fail(at, "element type", "expected an element type such as f32, i8 or bf16",
         fmt::format("found '{}'", name), "Use StableHLO's name of the type");
}

// "inf" and "nan" are words, the rest starts like a number.
std::string_view number_or_word(Cursor& c) {
  std::size_t at = c.token_pos();
  std::size_t sign = c.raw() == '-' || c.raw() == '+' ? 1 : 0;
  for (std::string_view word : {"inf", "nan"}) {
    if (c.text().substr(at + sign, 3) == word && !is_identifier_char(c.raw(sign + 3))) {
      c.step(sign + 3);
      return c.text().substr(at, sign + 3);
    }
  }
  return c.number("number");
}

void read_real(Cursor& c, DType dtype, std::byte* out) {
  std::size_t at = c.token_pos();
  std::string_view number = number_or_word(c);
  NumberError e = parse_element(number, dtype, out);
  if (e != NumberError::kNone) fail_number(c, at, e, number, dtype);
}

void read_element(Cursor& c, DType dtype, std::byte* out) {
  if (is_bool(dtype) && (c.looking_at_word("true") || c.looking_at_word("false"))) {
    bool v = c.accept_word("true");
    if (!v) c.expect_word("false", "element");
    *out = std::byte{v};
  } else if (is_complex(dtype)) {
    DType part = real_dtype(dtype);
    c.expect('(', "complex number");
    read_real(c, part, out);
    c.expect(',', "complex number");
    read_real(c, part, out + dtype_bytes(part));
    c.expect(')', "complex number");
  } else if (dtype == DType::kFloat0) {
    c.expect('0', "element of float0");
  } else {
    read_real(c, dtype, out);
  }
}

// Bytes of an array type, checked for overflow.
std::int64_t checked_bytes(Cursor& c, const Type& t, std::size_t at) {
  try {
    std::int64_t n = t.is_static() ? t.size() : -1;
    std::int64_t bytes = 0;
    if (n >= 0 && !__builtin_mul_overflow(n, std::int64_t{dtype_bytes(t.dtype())}, &bytes))
      return bytes;
  } catch (const UserError&) {
  }
  c.fail(at, "dense", "the array's type is static and its size fits 63 bits",
         fmt::format("found {}", t.to_string()), "Write the array's own dimensions");
}

Attr read_dense(Cursor& c) {
  if (c.accept_word("undefined")) return HostArray();
  std::size_t at = c.token_pos();
  Type t = read_type(c);
  if (!t.is_tensor() || t.extra())
    c.fail(at, "dense", "expected a plain tensor type", fmt::format("found {}", t.to_string()),
           "Write an element type and dimensions");
  std::int64_t total = checked_bytes(c, t, at);
  auto element = static_cast<std::size_t>(dtype_bytes(t.dtype()));
  at = c.token_pos();
  auto wrong_size = [&](std::string_view what, std::int64_t given) {
    c.fail(at, "dense", fmt::format("{} has {} elements", t.to_string(), t.size()),
           fmt::format("the {} holds {}", what, given), "Make type and values agree");
  };
  if (c.peek() == '"') {
    std::string_view hex;
    if (!c.plain_string(hex, "dense") || hex.size() % 2 || !hex.starts_with("0x"))
      c.fail(at, "dense", "a string of bytes is \"0x\" and digit pairs", "found another string",
             "Write two hexadecimal digits a byte");
    hex.remove_prefix(2);
    if (static_cast<std::int64_t>(hex.size() / 2) != total)
      wrong_size("string", static_cast<std::int64_t>(element ? hex.size() / 2 / element : 0));
    HostArray a(t.dtype(), t.dims());
    if (!decode_hex(hex, a.data()))
      c.fail(at, "dense", "a string of bytes is \"0x\" and digit pairs", "found another character",
             "Write two hexadecimal digits a byte");
    return a;
  }
  if (c.accept('[')) {
    std::vector<std::byte> bytes;
    std::int64_t count = 0;
    std::byte one[16] = {};
    while (!c.accept(']')) {
      if (count) c.expect(',', "dense");
      read_element(c, t.dtype(), one);
      bytes.insert(bytes.end(), one, one + element);
      ++count;
    }
    if (count != t.size()) wrong_size("list", count);
    return HostArray::from_bytes(t.dtype(), t.dims(), bytes);
  }
  std::byte one[16] = {};
  read_element(c, t.dtype(), one);
  c.charge(total, at);
  HostArray a(t.dtype(), t.dims());
  for (std::int64_t i = 0; i < total; i += static_cast<std::int64_t>(element))
    std::memcpy(a.data() + i, one, element);
  return a;
}

std::string read_name(Cursor& c, std::string_view reading) {
  return c.peek() == '"' ? c.string(reading) : std::string(c.identifier(reading));
}

Attr read_number(Cursor& c) {
  std::size_t at = c.token_pos();
  std::string_view number = number_or_word(c);
  bool integral = number.find_first_of(".einEx") == std::string_view::npos;
  std::size_t after = c.pos();
  if (c.accept(':')) {
    DType dtype = read_dtype(c);
    ScalarAttr s{dtype, 0, 0};
    if (is_float(dtype)) {
      if (parse_double(number, s.real) == NumberError::kNone) return s;
    } else if (integral) {
      c.seek(at);
      s.integer = c.integer("attribute");
      c.accept(':');
      read_dtype(c);
      return s;
    }
    fail_number(c, at, NumberError::kForm, number, dtype);
  }
  c.seek(at);
  if (integral) return c.integer("attribute");
  c.seek(after);
  double v = 0;
  NumberError e = parse_double(number, v);
  if (e != NumberError::kNone) fail_number(c, at, e, number, DType::kF64);
  return v;
}

Type read_bracketed_extras(Cursor& c, Type t) {
  TypeExtra extra;
  while (c.accept('<')) {
    if (c.accept("bounds=")) {
      std::size_t at = c.token_pos();
      extra.bounds = read_dims(c);
      if (extra.bounds.size() != t.dims().size())
        c.fail(at, "type", fmt::format("bounds has one entry per dimension ({})", t.rank()),
               fmt::format("found {}", extra.bounds.size()), "Write '?' where there is no bound");
      c.expect('>', "type");
    } else if (c.accept("!quant.uniform<")) {
      DType expressed = t.dtype();
      extra.quant = std::make_shared<const QuantParams>(read_quant(c, expressed));
      t = t.with_dtype(expressed);
      c.expect('>', "type");
    } else {
      extra.encoding = c.balanced('<', '>', "type");
    }
  }
  return Type::with_extra(std::move(t), std::move(extra));
}

}  // namespace

Dims read_dims(Cursor& c) {
  Dims d;
  c.expect('[', "dimensions");
  while (!c.accept(']')) {
    if (!d.empty()) c.expect(',', "dimensions");
    d.push_back(c.accept('?') ? kDynamic : c.integer("dimensions"));
  }
  return d;
}

Type read_type(Cursor& c) {
  Cursor::Depth depth(c);
  bool future = c.accept_word("future");
  if (future ? (c.expect('(', "future type"), true) : c.accept('(')) {
    std::vector<Type> elements;
    while (!c.accept(')')) {
      if (!elements.empty()) c.expect(',', "tuple type");
      elements.push_back(read_type(c));
    }
    return future ? Type::future(std::move(elements)) : Type::tuple(std::move(elements));
  }
  auto shape = [&c]() {
    std::size_t at = c.token_pos();
    Dims d = read_dims(c);
    for (std::int64_t v : d)
      if (v < 0 && v != kDynamic)
        c.fail(at, "type", "dimensions are not negative", fmt::format("found {}", v),
               "Write '?' for a dynamic dimension");
    return d;
  };
  if (c.accept_word("token")) return Type::token();
  if (c.accept("foreign<")) {
    std::string text = c.string("foreign type");
    c.expect('>', "foreign type");
    return Type::foreign(text);
  }
  if (c.accept("key<")) {
    std::string name = std::string(c.identifier("key type"));
    c.expect('>', "key type");
    return Type::key(name, shape());
  }
  if (c.accept("ref<")) {
    DType dtype = read_dtype(c);
    Dims dims = shape();
    MemorySpace space = MemorySpace::kAny;
    if (c.accept(',')) {
      if (c.accept_word("device")) {
        space = MemorySpace::kDevice;
      } else if (c.accept_word("scratch")) {
        space = MemorySpace::kScratch;
      } else if (c.accept_word("scalar")) {
        space = MemorySpace::kScalar;
      } else {
        c.fail_here("ref type", "memory spaces are device, scratch and scalar", "Use one of them");
      }
    }
    c.expect('>', "ref type");
    return Type::ref(dtype, std::move(dims), space);
  }
  DType dtype = read_dtype(c);
  Type t = Type::tensor(dtype, shape());
  return c.raw() == '<' ? read_bracketed_extras(c, std::move(t)) : t;
}

QuantParams read_quant(Cursor& c, DType& expressed) {
  QuantParams q;
  q.storage = read_dtype(c);
  if (c.accept('<')) {
    q.storage_min = c.integer("quantised type");
    c.expect(':', "quantised type");
    q.storage_max = c.integer("quantised type");
    c.expect('>', "quantised type");
    // The storage type's whole range is the default.
    QuantParams full;
    full.storage = q.storage;
    if (is_integer(q.storage) && dtype_bits(q.storage) <= 32 &&
        storage_range(full) == std::pair(q.storage_min, q.storage_max))
      q.storage_min = q.storage_max = 0;
  }
  c.expect(':', "quantised type");
  expressed = read_dtype(c);
  if (c.accept(':')) {
    std::size_t at = c.token_pos();
    std::int64_t axis = c.integer("quantised type");
    if (axis < 0 || axis > 1000000)
      c.fail(at, "quantised type", "the axis is a dimension", fmt::format("found {}", axis),
             "Write the index of a dimension");
    q.axis = static_cast<int>(axis);
  }
  c.expect(',', "quantised type");
  bool list = q.axis >= 0;
  if (list) c.expect('{', "quantised type");
  do {
    double scale = 0;
    std::size_t at = c.token_pos();
    std::string_view number = number_or_word(c);
    NumberError e = parse_double(number, scale);
    if (e != NumberError::kNone) fail_number(c, at, e, number, DType::kF64);
    q.scales.push_back(scale);
    q.zero_points.push_back(c.accept(':') ? c.integer("quantised type") : 0);
  } while (list && c.accept(','));
  if (list) c.expect('}', "quantised type");
  c.expect('>', "quantised type");
  return q;
}

Attrs read_attrs(Cursor& c) {
  Cursor::Depth depth(c);
  Attrs attrs;
  c.expect('{', "attributes");
  bool first = true;
  while (!c.accept('}')) {
    if (!first) c.expect(',', "attributes");
    first = false;
    std::size_t at = c.token_pos();
    std::string name = read_name(c, "attribute name");
    if (attrs.has(name))
      c.fail(at, "attributes", "every name stands once", fmt::format("'{}' is repeated", name),
             "Remove one of them");
    attrs.set(name, c.accept('=') ? read_attr(c) : Attr());
  }
  return attrs;
}

Attr read_attr(Cursor& c) {
  Cursor::Depth depth(c);
  switch (c.peek()) {
    case '"': return c.string("attribute");
    case '[': return read_dims(c);
    case '{': return read_attrs(c);
    case '#': c.step(); return EnumAttr(read_name(c, "enumeration member"));
    case '@': c.step(); return SymbolAttr{read_name(c, "symbol")};
    default: break;
  }
  if (c.accept_word("unit")) return {};
  if (c.accept_word("true")) return true;
  if (c.accept_word("false")) return false;
  if (c.accept_word("dense")) return read_dense(c);
  if (c.accept_word("dtype")) return read_dtype(c);
  if (c.accept_word("type")) return read_type(c);
  if (c.accept_word("opaque")) return OpaqueAttr{c.string("opaque attribute")};
  if (c.accept("list[")) {
    AttrList list;
    while (!c.accept(']')) {
      if (!list.empty()) c.expect(',', "list");
      list.push_back(read_attr(c));
    }
    return list;
  }
  return read_number(c);
}

}  // namespace xylem::ir::text
