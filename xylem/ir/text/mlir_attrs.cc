#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/mlir_reader.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Attributes of MLIR text.

namespace xylem::ir::text {

std::string MlirReader::read_symbol() {
  c_.expect('@', "symbol");
  return c_.raw() == '"' ? c_.string("symbol") : std::string(c_.suffix_name("symbol"));
}

Dims MlirReader::read_int_list() {
  Dims d;
  c_.expect('[', "list of integers");
  while (!c_.accept(']')) {
    if (!d.empty()) c_.expect(',', "list of integers");
    d.push_back(c_.integer("list of integers"));
  }
  return d;
}

Attrs MlirReader::read_dict(const OpDef* def) {
  c_.expect('{', "attributes");
  return read_entries(def, "}");
}

Attrs MlirReader::read_entries(const OpDef* def, std::string_view close) {
  Cursor::Depth depth(c_);
  Attrs attrs;
  bool first = true;
  while (!c_.accept(close)) {
    if (!first) c_.expect(',', "attributes");
    first = false;
    std::size_t at = c_.token_pos();
    std::string name = c_.peek() == '"' ? c_.string("attribute name")
                                        : std::string(c_.identifier("attribute name"));
    if (attrs.has(name))
      c_.fail(at, "attributes", "every name stands once", fmt::format("'{}' is repeated", name),
              "Remove one of them");
    Mode mode = def && is_inherent(*def, name) ? Mode::kInherent : Mode::kForeign;
    attrs.set(name, c_.accept('=') ? read_attr(mode) : Attr());
    if (name == "precision_config" && mode == Mode::kInherent) check_precisions(attrs.at(name), at);
  }
  return attrs;
}

void MlirReader::check_precisions(const Attr& config, std::size_t at) const {
  const AttrList* list = config.list();
  if (!list) return;  // told with the kinds of all attributes
  for (const Attr& a : *list)
    if (!a.get<EnumAttr>())
      c_.fail(at, "precision_config", "its entries are #stablehlo<precision DEFAULT> and the like",
              fmt::format("found {}", a.to_string()), "Use DEFAULT, HIGH or HIGHEST");
}

// Text that we do not interpret: the rest of a type or attribute that starts at `start`, up to
// the end of its brackets.
Attr MlirReader::read_foreign(std::size_t start) {
  for (;;) {
    char ch = c_.raw();
    if (ch == '<' || ch == '(' || ch == '[') {
      c_.step();
      c_.balanced(ch, ch == '<' ? '>' : ch == '(' ? ')' : ']', "attribute");
    } else if (is_identifier_char(ch) || ch == '!' || ch == '#' || ch == '@') {
      c_.step();
    } else if (ch == '-' && c_.raw(1) == '>') {  // a function type
      c_.step(2);
      c_.skip();
    } else if (ch == ' ' && c_.looking_at("->")) {
      c_.skip();
    } else {
      break;
    }
  }
  std::string_view text = c_.text().substr(start, c_.pos() - start);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  if (text.empty()) {
    c_.seek(start);
    c_.fail_here("attribute", "expected an attribute", "Write a value");
  }
  return OpaqueAttr{std::string(text)};
}

Attr MlirReader::read_number_attr() {
  std::size_t at = c_.token_pos();
  std::string_view number = c_.number("attribute");
  bool hex = number.size() > 2 && number[1] == 'x';
  bool integral = hex || number.find_first_of(".eE") == std::string_view::npos;
  auto bad = [&](std::string_view type) {
    c_.fail(at, "attribute", fmt::format("expected a value of {}", type),
            fmt::format("found '{}'", number), "Write a number that the type can hold");
  };
  std::string_view type_name = integral ? "i64" : "f64";
  std::optional<DType> dtype = integral ? DType::kI64 : DType::kF64;
  if (c_.accept(':')) {
    std::size_t type_at = c_.token_pos();
    if (c_.raw() == '!') return read_foreign(at);
    type_name = c_.identifier("attribute type");
    dtype = parse_dtype(type_name);
    if (!dtype || is_complex(*dtype) || *dtype == DType::kFloat0) {
      c_.seek(type_at);
      return read_foreign(at);
    }
  }
  if (is_float(*dtype)) {
    if (integral && !hex) bad(type_name);  // floats have a point
    ScalarAttr s{*dtype, 0, 0};
    if (hex) {
      // The bits of a value of the type.
      std::byte bits[8];
      if (parse_element(number, *dtype, bits) != NumberError::kNone) bad(type_name);
      HostArray one =
          HostArray::from_bytes(*dtype, {}, {bits, static_cast<std::size_t>(dtype_bytes(*dtype))});
      s.real = one.at(0);
    } else if (parse_double(number, s.real) != NumberError::kNone) {
      bad(type_name);
    }
    if (*dtype == DType::kF64) return s.real;
    return s;
  }
  if (!integral) bad(type_name);
  std::byte value[8] = {};
  if (parse_element(number, *dtype, value) != NumberError::kNone) bad(type_name);
  std::uint64_t u = 0;
  for (int i = 7; i >= 0; --i) u = u << 8 | static_cast<std::uint64_t>(value[i]);
  auto v = static_cast<std::int64_t>(u);
  int unused = 64 - dtype_bits(*dtype);
  if (is_signed_int(*dtype)) v = static_cast<std::int64_t>(u << unused) >> unused;
  if (*dtype == DType::kI64) return v;
  return ScalarAttr{*dtype, v, 0};
}

// "array<i64: 1, 2>", behind "array<".
Attr MlirReader::read_dense_array(Mode mode) {
  std::size_t start = c_.token_pos() - 6;
  bool i64 = c_.looking_at_word("i64");
  bool integers = i64 || c_.looking_at_word("i1") || c_.looking_at_word("i32");
  if (!i64 && (mode == Mode::kForeign || !integers)) {
    c_.balanced('<', '>', "array");
    return OpaqueAttr{std::string(c_.text().substr(start, c_.pos() - start))};
  }
  c_.identifier("array");
  Dims d;
  if (c_.accept(':')) {
    do {
      if (c_.accept_word("true")) {
        d.push_back(1);
      } else if (c_.accept_word("false")) {
        d.push_back(0);
      } else {
        d.push_back(c_.integer("array"));
      }
    } while (c_.accept(','));
  }
  c_.expect('>', "array");
  return d;
}

Attr MlirReader::read_attr(Mode mode) {
  Cursor::Depth depth(c_);
  std::size_t start = c_.token_pos();
  switch (c_.raw()) {
    case '"': {
      std::string s = c_.string("attribute");
      if (!c_.accept(':')) return s;
      c_.skip();
      return read_foreign(start);
    }
    case '{': return read_dict(nullptr);
    case '[': {
      c_.step();
      AttrList list;
      while (!c_.accept(']')) {
        if (!list.empty()) c_.expect(',', "list");
        list.push_back(read_attr(mode));
      }
      return list;
    }
    case '@': {
      SymbolAttr s{read_symbol()};
      if (!c_.looking_at("::")) return s;
      while (c_.accept("::")) read_symbol();
      return OpaqueAttr{std::string(c_.text().substr(start, c_.pos() - start))};
    }
    case '#': return read_hash_attr(mode);
    case '(': return read_foreign(start);
    default: break;
  }
  char ch = c_.raw();
  if (ch == '-' || ch == '+' || (ch >= '0' && ch <= '9')) return read_number_attr();
  if (c_.accept_word("true")) return true;
  if (c_.accept_word("false")) return false;
  if (c_.accept_word("unit")) return {};
  if (c_.accept("array<")) return read_dense_array(mode);
  if (c_.looking_at("dense<") || c_.looking_at("dense_resource<")) {
    if (mode == Mode::kForeign && c_.accept("dense<")) {
      c_.balanced('<', '>', "dense");
      c_.expect(':', "dense");
      if (!c_.looking_at("tensor<")) return read_foreign(start);
      c_.seek(start);
    }
    saw_index_ = false;
    HostArray a = read_dense();
    // Kept as text where the type has no counterpart.
    if (saw_index_ && mode == Mode::kForeign)
      return OpaqueAttr{std::string(c_.text().substr(start, c_.pos() - start))};
    return a;
  }
  if (c_.looking_at("tensor<") || c_.looking_at("tuple<") || c_.looking_at("!stablehlo.token")) {
    saw_index_ = false;
    Type t = read_type();
    if (saw_index_) return OpaqueAttr{std::string(c_.text().substr(start, c_.pos() - start))};
    return t;
  }
  if (c_.looking_at_word("loc")) {
    Location loc;
    accept_location(loc);
    return OpaqueAttr{std::string(c_.text().substr(start, c_.pos() - start))};
  }
  if (ch == '!') return read_foreign(start);
  std::string_view word = c_.identifier("attribute");
  if (c_.raw() != '<') {
    std::optional<DType> d = parse_dtype(word);
    if (d && word == dtype_name(*d)) return *d;
  } else if (word == "complex") {
    TypeExtra none;
    c_.seek(start);
    return read_element_type(none);
  }
  return read_foreign(start);
}

// "#alias", "#dialect.name<…>", "#dialect<name …>".
Attr MlirReader::read_hash_attr(Mode mode) {
  std::size_t start = c_.token_pos();
  c_.step();
  std::string_view name = c_.suffix_name("attribute");
  bool dialect = name.find('.') != std::string_view::npos || c_.raw() == '<';
  if (dialect) {
    check_stablehlo_attr(start, name);
    if (mode == Mode::kInherent && (name.starts_with("stablehlo") || name.starts_with("chlo")))
      return read_structure(start, mode);
    return read_foreign(start);
  }
  Alias& a = alias(c_.text().substr(start, name.size() + 1), start);
  std::size_t back = c_.pos();
  c_.seek(a.pos);
  Resolving resolving(*this, a, start);
  Attr v = read_attr(mode);
  c_.seek(back);
  return v;
}

Attrs MlirReader::read_conv_dims() {
  Attrs fields;
  auto part = [&](char first, std::string_view first_name, char second,
                  std::string_view second_name, std::string_view spatial_name) {
    std::size_t at = c_.token_pos();
    std::vector<std::pair<std::int64_t, std::int64_t>> spatial;  // number, dimension
    bool seen_first = false, seen_second = false;
    std::int64_t i = 0;
    c_.expect('[', "dimension numbers");
    for (; !c_.accept(']'); ++i) {
      if (i) c_.expect(',', "dimension numbers");
      char ch = c_.peek();
      if (ch == first || ch == second) {
        c_.step();
        bool& seen = ch == first ? seen_first : seen_second;
        if (seen)
          c_.fail(at, "dimension numbers", "every dimension has one meaning",
                  fmt::format("'{}' stands twice", ch), "Name it once");
        seen = true;
        fields.set(ch == first ? first_name : second_name, i);
      } else if (ch == '?') {
        c_.step();
      } else {
        if (ch < '0' || ch > '9')
          c_.fail_here("dimension numbers",
                       fmt::format("a dimension is {}, {} or a spatial number", first, second),
                       "Write it like [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
        spatial.push_back({c_.integer("dimension numbers"), i});
      }
    }
    std::sort(spatial.begin(), spatial.end());
    Dims dims;
    for (auto [number, dim] : spatial) {
      if (number != static_cast<std::int64_t>(dims.size()))
        c_.fail(at, "dimension numbers", "spatial dimensions are 0, 1, … each once",
                fmt::format("{} is missing or repeated", dims.size()), "Number them in order");
      dims.push_back(dim);
    }
    if (!seen_first || !seen_second)
      c_.fail(at, "dimension numbers", fmt::format("there are '{}' and '{}'", first, second),
              "one is missing", "Name both");
    fields.set(spatial_name, dims);
  };
  part('b', "input_batch_dimension", 'f', "input_feature_dimension", "input_spatial_dimensions");
  c_.expect('x', "dimension numbers");
  part('i', "kernel_input_feature_dimension", 'o', "kernel_output_feature_dimension",
       "kernel_spatial_dimensions");
  c_.expect("->", "dimension numbers");
  part('b', "output_batch_dimension", 'f', "output_feature_dimension", "output_spatial_dimensions");
  return fields;
}

// The cursor stands behind "#stablehlo" or "#stablehlo.name".
Attr MlirReader::read_structure(std::size_t start, Mode mode) {
  bool member = c_.text().substr(start, c_.pos() - start).find('.') == std::string_view::npos;
  if (!c_.accept('<')) return OpaqueAttr{std::string(c_.text().substr(start, c_.pos() - start))};
  if (member) {  // "#stablehlo<precision HIGH>"
    c_.identifier("enumeration");
    std::string_view value = c_.identifier("enumeration member");
    c_.expect('>', "enumeration");
    return EnumAttr(value);
  }
  c_.skip();
  if (c_.text().substr(start, c_.pos() - start).starts_with("#stablehlo.conv<") &&
      !c_.accept_word("raw")) {
    Attrs dims = read_conv_dims();
    c_.expect('>', "structure");
    return dims;
  }
  c_.skip();  // behind "raw"
  // A structure names its fields; anything else is an enumeration's member or has a syntax of its
  // own.
  std::size_t inside = c_.pos();
  if (is_identifier_start(c_.raw())) {
    std::string_view word = c_.identifier("attribute");
    if (c_.accept('>')) return EnumAttr(word);
    if (c_.peek() != '=') {
      c_.seek(start + 1);
      return read_foreign(start);
    }
    c_.seek(inside);
  } else if (c_.raw() != '>') {
    c_.seek(start + 1);
    return read_foreign(start);
  }
  Attrs fields;
  while (!c_.accept('>')) {
    if (!fields.empty()) {
      c_.expect(',', "structure");
      if (c_.accept('>')) break;
    }
    std::string_view name = c_.identifier("field");
    c_.expect('=', "structure");
    bool integers = c_.peek() == '[';
    std::size_t value_at = c_.pos();
    if (integers) {
      c_.step();
      char first = c_.peek();
      integers = first == ']' || first == '-' || (first >= '0' && first <= '9');
      c_.seek(value_at);
    }
    fields.set(name, integers ? Attr(read_int_list()) : read_attr(mode));
  }
  return fields;
}

}  // namespace xylem::ir::text
