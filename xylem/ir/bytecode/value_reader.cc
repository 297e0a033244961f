#include "xylem/ir/bytecode/value_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode/enums.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/mlir_reader.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Attributes.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";
// Attributes share their parts in the file; spelled out they may have this many in all.
constexpr std::uint64_t kMaxNodes = 1 << 22;

}  // namespace

ValueReader::Nesting::Nesting(ValueReader& reader, std::size_t at) : reader_(reader) {
  if (reader.depth_ == text::kMaxDepth)
    reader.source_.fail(at, "attribute",
                        fmt::format("attributes and types nest at most {} deep", text::kMaxDepth),
                        "these nest deeper", "Flatten them");
  ++reader.depth_;
}

ValueReader::ValueReader(Source& source, const Frame& frame) : source_(source), frame_(frame) {
  for (int m = 0; m < 2; ++m) {
    attrs_[m].resize(frame.attrs.size());
    attr_states_[m].resize(frame.attrs.size(), State::kUnread);
  }
  weights_.resize(frame.attrs.size(), 1);
  types_.resize(frame.types.size());
  type_states_.resize(frame.types.size(), State::kUnread);
  type_weights_.resize(frame.types.size(), 1);
  location_states_.resize(frame.attrs.size(), State::kUnread);
}

void ValueReader::charge_weight(std::size_t at, std::uint64_t weight) {
  weight_ += weight;
  if (weight_ > kMaxNodes)
    source_.fail(at, "attribute", fmt::format("it has at most {} parts", kMaxNodes),
                 "shared parts multiply beyond that", "Write a smaller attribute");
}

const Attr& ValueReader::attr(std::size_t index, Mode mode) {
  auto m = static_cast<std::size_t>(mode);
  State& state = attr_states_[m][index];
  const Part& part = frame_.attrs[index].part;
  if (state != State::kRead) {
    if (state == State::kBusy)
      source_.fail(part.begin, "attribute", "attributes do not contain themselves",
                   fmt::format("attribute {} does", index), kDamaged);
    Nesting nesting(*this, part.begin);
    state = State::kBusy;
    std::uint64_t outer = weight_;
    weight_ = 1;
    attrs_[m][index] = std::make_unique<const Attr>(read_attr(index, mode));
    weights_[index] = static_cast<std::uint32_t>(weight_);
    weight_ = outer;
    state = State::kRead;
  }
  charge_weight(part.begin, weights_[index]);
  if (depth_ == 0) weight_ = 1;
  return *attrs_[m][index];
}

Attr ValueReader::read_attr(std::size_t index, Mode mode) {
  const Entry& e = frame_.attrs[index];
  ByteCursor c(source_, e.part.begin, e.part.end);
  if (!e.custom) return read_assembly(c, mode);
  Attr a;
  switch (e.dialect) {
    case Dialect::kBuiltin: a = read_builtin(index, c, mode); break;
    case Dialect::kVhlo: a = read_vhlo(index, c, mode); break;
    case Dialect::kStablehlo: a = read_stablehlo(index, c, mode); break;
    case Dialect::kChlo: {
      std::uint64_t code = c.varint("attribute");
      const Enumeration* enumeration = enumeration_of_chlo(code);
      if (!enumeration)
        source_.fail(e.part.begin, "attribute", "a code of CHLO's attributes",
                     fmt::format("code {}", code), kDamaged);
      a = read_enum(c, *enumeration, mode);
      break;
    }
    case Dialect::kSdy: return OpaqueAttr{sdy_text(index, false)};
    case Dialect::kFunc:
    case Dialect::kOther:
      source_.fail(e.part.begin, "attribute",
                   "attributes are those of builtin, stablehlo, chlo, vhlo and sdy",
                   fmt::format("one of '{}'", frame_.dialects[e.dialect_index]),
                   "Legalise the program to StableHLO");
  }
  if (!c.done()) c.fail("attribute", "its bytes end with it", "bytes are left", kDamaged);
  return a;
}

std::string_view ValueReader::string(ByteCursor& c) {
  return frame_.strings[c.index("string", frame_.strings.size())];
}

const std::string& ValueReader::string_attr(ByteCursor& c) {
  std::size_t at = c.pos();
  std::size_t index = attr_ref(c);
  const std::string* s = attr(index, Mode::kForeign).get<std::string>();
  if (!s) source_.fail(at, "attribute", "a string", "another attribute", kDamaged);
  return *s;
}

AttrList ValueReader::read_list(ByteCursor& c, Mode mode) {
  AttrList list;
  std::size_t n = c.count("list");
  list.reserve(n);
  for (std::size_t i = 0; i < n; ++i) list.push_back(attr(attr_ref(c), mode));
  return list;
}

Attrs ValueReader::read_entries(ByteCursor& c, Mode mode) {
  Attrs attrs;
  std::size_t n = c.count("dictionary", 2);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t at = c.pos();
    const std::string& name = string_attr(c);
    if (attrs.has(name))
      source_.fail(at, "attributes", "every name stands once",
                   fmt::format("'{}' is repeated", name), kDamaged);
    attrs.set(name, attr(attr_ref(c), mode));
  }
  return attrs;
}

Attrs ValueReader::dictionary(std::size_t index, Mode mode) {
  const Attrs* d = attr(index, mode).dict();
  if (!d)
    source_.fail(frame_.attrs[index].part.begin, "attributes", "a dictionary", "another attribute",
                 kDamaged);
  return *d;
}

std::vector<std::pair<std::string_view, std::size_t>> ValueReader::dictionary_refs(
    std::size_t index) {
  dictionary(index, Mode::kForeign);  // checks that it is one
  const Entry& e = frame_.attrs[index];
  std::vector<std::pair<std::string_view, std::size_t>> refs;
  if (!e.custom) return refs;
  ByteCursor c(source_, e.part.begin, e.part.end);
  c.varint("attribute");
  std::size_t n = c.count("dictionary", 2);
  for (std::size_t i = 0; i < n; ++i) {
    std::string_view name = intern(string_attr(c));
    refs.emplace_back(name, attr_ref(c));
  }
  return refs;
}

// VHLO's or builtin's attribute that is a type.
const FileType* ValueReader::type_of_attr(std::size_t index) {
  const Entry& e = frame_.attrs[index];
  bool vhlo = e.custom && e.dialect == Dialect::kVhlo;
  if (!vhlo && !(e.custom && e.dialect == Dialect::kBuiltin)) return nullptr;
  ByteCursor c(source_, e.part.begin, e.part.end);
  constexpr std::uint64_t kVhloType = 17, kBuiltinType = 6;
  if (c.varint("attribute") != (vhlo ? kVhloType : kBuiltinType)) return nullptr;
  return &file_type(type_ref(c));
}

Dims ValueReader::read_dims(ByteCursor& c) {
  Dims d;
  std::size_t n = c.count("list of integers");
  for (std::size_t i = 0; i < n; ++i) d.push_back(c.signed_varint("integer"));
  return d;
}

double ValueReader::read_double(ByteCursor& c) {
  return std::bit_cast<double>(c.signed_varint("float"));
}

Attr ValueReader::from_text(const std::string& text, Mode mode, std::size_t at) {
  if (mode == Mode::kForeign && (text.empty() || text[0] == '#')) return OpaqueAttr{text};
  try {
    ParseOptions options;
    options.allow_unregistered = true;
    text::MlirReader reader(text, source_.name, options);
    Attr a = reader.read_attr(mode == Mode::kInherent ? text::MlirReader::Mode::kInherent
                                                      : text::MlirReader::Mode::kForeign);
    if (reader.cursor().at_end()) return a;
  } catch (const UserError& e) {
    source_.fail(at, "attribute", "an attribute's text", fmt::format("{} ({})", text, e.message()),
                 kDamaged);
  }
  return OpaqueAttr{text};
}

// Assembly text of an attribute whose dialect has no encoding for it.
Attr ValueReader::read_assembly(ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  std::string text(c.c_string("attribute text"));
  if (text.starts_with("loc(")) return OpaqueAttr{text};
  return from_text(text, mode, at);
}

Attr ValueReader::type_attr(const FileType& t) {
  auto spelled = [&](std::size_t index) {
    std::string s;
    text::append_mlir_attr(s, type_attr(file_type(index)));
    return s;
  };
  switch (t.kind) {
    case FileType::Kind::kValue: return t.type;
    case FileType::Kind::kElement:
      if (t.is_signed) return OpaqueAttr{fmt::format("s{}", dtype_name(t.type.dtype()))};
      if (t.type.extra()) {
        std::string tensor = t.type.to_mlir();
        return OpaqueAttr{tensor.substr(7, tensor.size() - 8)};
      }
      return t.type.dtype();
    case FileType::Kind::kIndex: return OpaqueAttr{"index"};
    case FileType::Kind::kNone: return OpaqueAttr{"none"};
    case FileType::Kind::kOther: return OpaqueAttr{t.text};
    case FileType::Kind::kFunction: {
      std::string s = "(";
      for (std::size_t i = 0; i < t.inputs.size(); ++i) s += (i ? ", " : "") + spelled(t.inputs[i]);
      s += ") -> ";
      if (t.results.size() != 1) s += '(';
      for (std::size_t i = 0; i < t.results.size(); ++i)
        s += (i ? ", " : "") + spelled(t.results[i]);
      if (t.results.size() != 1) s += ')';
      return OpaqueAttr{s};
    }
  }
  return {};
}

// An integer of a type's width: one raw byte up to 8 bits, zigzag up to 64.
Attr ValueReader::read_integer(ByteCursor& c) {
  std::size_t at = c.pos();
  const FileType& t = file_type(type_ref(c));
  if (!t.is_element() || !(is_integer(t.type.dtype()) || is_bool(t.type.dtype())))
    source_.fail(at, "attribute", "an integer has an integer type", "another type", kDamaged);
  DType dtype = t.type.dtype();
  int bits = dtype_bits(dtype);
  std::int64_t v = bits <= 8 ? c.byte("integer") : c.signed_varint("integer");
  int unused = 64 - bits;
  auto u = static_cast<std::uint64_t>(v) << unused;
  bool is_unsigned = is_unsigned_int(dtype) || is_bool(dtype);
  v = is_unsigned ? static_cast<std::int64_t>(u >> unused) : static_cast<std::int64_t>(u) >> unused;
  if (is_bool(dtype)) return v != 0;
  if (t.kind == FileType::Kind::kIndex) return OpaqueAttr{fmt::format("{} : index", v)};
  if (t.is_signed) return OpaqueAttr{fmt::format("{} : s{}", v, dtype_name(dtype))};
  if (dtype == DType::kI64) return v;
  return ScalarAttr{dtype, v, 0};
}

Attr ValueReader::read_float(ByteCursor& c) {
  std::size_t at = c.pos();
  const FileType& t = file_type(type_ref(c));
  if (t.kind != FileType::Kind::kElement || !is_float(t.type.dtype()) || t.type.extra())
    source_.fail(at, "attribute", "a float has a float type", "another type", kDamaged);
  DType dtype = t.type.dtype();
  std::uint64_t bits = dtype_bits(dtype) <= 8
                           ? c.byte("float")
                           : static_cast<std::uint64_t>(c.signed_varint("float"));
  if (dtype == DType::kF64) return std::bit_cast<double>(bits);
  auto each = static_cast<std::size_t>(dtype_bytes(dtype));
  HostArray one =
      HostArray::from_bytes(dtype, {}, {reinterpret_cast<const std::byte*>(&bits), each});
  return ScalarAttr{dtype, 0, one.at(0)};
}

Attr ValueReader::read_enum(ByteCursor& c, const Enumeration& e, Mode mode) {
  std::size_t at = c.pos();
  std::uint64_t v = c.varint("enumeration");
  if (v >= e.members.size() || e.members[v].empty())
    source_.fail(at, e.mnemonic, "a member of the enumeration", fmt::format("number {}", v),
                 kDamaged);
  if (e.mnemonic == "custom_call_api_version")
    return ScalarAttr{DType::kI32, static_cast<std::int64_t>(v), 0};
  if (mode == Mode::kInherent) return EnumAttr(e.members[v]);
  return OpaqueAttr{fmt::format("#stablehlo<{} {}>", e.mnemonic, e.members[v])};
}

Attr ValueReader::tensor(const FileType& t, std::string_view blob, Mode mode, std::size_t at) {
  bool value = t.kind == FileType::Kind::kValue && t.type.is_tensor() && t.type.is_static();
  if (!value) source_.fail(at, "constant", "a static tensor type", "another type", kDamaged);
  DType dtype = t.type.dtype();
  if (t.type.extra() && t.type.extra()->quant) dtype = t.type.extra()->quant->storage;
  HostArray a = read_elements(source_, dtype, t.type.dims(), blob, at);
  // A tensor of `index` is marked by its encoding (read_shaped).
  if (mode == Mode::kForeign && !t.text.empty()) {
    std::string s;
    text::append_dense(s, a, Type::tensor(dtype, t.type.dims()));
    s.replace(s.rfind("i64>"), 4, "index>");
    return OpaqueAttr{s};
  }
  return a;
}

Attr ValueReader::read_dense_array(ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  const FileType& t = file_type(type_ref(c));
  std::size_t count_at = c.pos();
  std::uint64_t n = c.varint("array");
  std::size_t size = c.count("array bytes");
  std::string_view blob = c.bytes("array", size);
  if (t.kind != FileType::Kind::kElement || is_complex(t.type.dtype()))
    source_.fail(at, "array", "elements are integers or floats", "another type", kDamaged);
  DType dtype = t.type.dtype();
  if (n > blob.size() || n * static_cast<std::uint64_t>(dtype_bytes(dtype)) != blob.size())
    source_.fail(count_at, "array", fmt::format("the bytes of {} elements", n),
                 fmt::format("{} bytes", blob.size()), kDamaged);
  HostArray a =
      HostArray::from_bytes(dtype, {static_cast<std::int64_t>(n)}, as_bytes(std::span(blob)));
  bool integers = dtype == DType::kI64 ||
                  (mode == Mode::kInherent && (dtype == DType::kBool || dtype == DType::kI32));
  if (integers) {
    HostArray wide = a.astype(DType::kI64);
    return Dims(wide.span<std::int64_t>());
  }
  std::string s;
  text::append_dense(s, a, Type::tensor(dtype, a.dims()), -1);
  // "dense<[1, 2]> : …" holds the elements as array<…> has them.
  std::string inside;
  std::size_t open = s.find('<') + 1, close = s.rfind("> : ");
  if (n > 1 && s[open] != '[') {
    std::string one = s.substr(open, close - open);
    for (std::uint64_t i = 0; i < n; ++i) inside += (i ? ", " : "") + one;
  } else {
    inside = s.substr(open, close - open);
    std::erase(inside, '[');
    std::erase(inside, ']');
  }
  return OpaqueAttr{fmt::format("array<{}{}{}>", dtype_name(dtype), n ? ": " : "", inside)};
}

// dense<["a", "b"]> : tensor<2x!tf.string>
Attr ValueReader::read_dense_strings(ByteCursor& c) {
  const FileType& t = file_type(type_ref(c));
  c.varint("splat");
  std::size_t n = c.count("strings");
  std::string s = "dense<";
  if (n != 1) s += '[';
  for (std::size_t i = 0; i < n; ++i) {
    if (i) s += ", ";
    text::append_quoted(s, string(c));
  }
  if (n != 1) s += ']';
  s += "> : ";
  text::append_mlir_attr(s, type_attr(t));
  return OpaqueAttr{s};
}

// dense_resource<…> : type: the bytes stand in the resource section, aligned.
Attr ValueReader::read_resource(ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  std::size_t type = type_ref(c);
  std::size_t handle = c.index("resource", frame_.resources.size());
  const Resource& r = frame_.resources[handle];
  if (!r.is_blob || r.data.begin == r.data.end)
    source_.fail(at, "resource", "bytes in the resource section",
                 fmt::format("'{}' has none", r.key), "Write the program with its resources");
  ByteCursor data(source_, r.data.begin, r.data.end);
  std::uint64_t alignment = data.varint("resource alignment");
  std::uint64_t size = data.varint("resource size");
  if (!std::has_single_bit(alignment))
    data.fail("resource", "an alignment that is a power of two", fmt::format("{}", alignment),
              kDamaged);
  while (data.pos() % alignment != 0) data.byte("filler");
  return tensor(file_type(type), data.bytes("resource", size), mode, at);
}

Attr ValueReader::read_builtin(std::size_t index, ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  std::uint64_t code = c.varint("attribute");
  switch (code) {
    case 0: return read_list(c, mode);
    case 1: return read_entries(c, mode);
    case 2: return string(c);
    case 3: {
      std::string s;
      text::append_quoted(s, string(c));
      s += " : ";
      text::append_mlir_attr(s, type_attr(file_type(type_ref(c))));
      return OpaqueAttr{s};
    }
    case 4: return SymbolAttr{string_attr(c)};
    case 5: {
      std::string s;
      text::append_symbol(s, string_attr(c));
      std::size_t n = c.count("symbols");
      for (std::size_t i = 0; i < n; ++i) {
        const SymbolAttr* part = attr(attr_ref(c), Mode::kForeign).get<SymbolAttr>();
        if (!part) source_.fail(at, "attribute", "a symbol", "another attribute", kDamaged);
        s += "::";
        text::append_symbol(s, part->name);
      }
      return OpaqueAttr{s};
    }
    case 6: return type_attr(file_type(type_ref(c)));
    case 7: return {};
    case 8: return read_integer(c);
    case 9: return read_float(c);
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
    case 22: {
      c.bytes("location", c.remaining());
      std::string text = location_text(index);
      return OpaqueAttr{fmt::format("loc({})", text.empty() ? "unknown" : text)};
    }
    case 16: return read_resource(c, mode);
    case 17: return read_dense_array(c, mode);
    case 18: {
      std::size_t type = type_ref(c);
      std::size_t size = c.count("constant bytes");
      return tensor(file_type(type), c.bytes("constant", size), mode, at);
    }
    case 19: return read_dense_strings(c);
    default: break;
  }
  source_.fail(at, "attribute", "a builtin attribute that StableHLO programs use",
               fmt::format("code {}", code), "Legalise the program to StableHLO");
}

Attr ValueReader::read_vhlo(std::size_t index, ByteCursor& c, Mode mode) {
  std::size_t at = c.pos();
  std::uint64_t code = c.varint("attribute");
  if (const Enumeration* e = enumeration_of_vhlo(code)) return read_enum(c, *e, mode);
  switch (code) {
    case 1: return read_list(c, mode);
    case 2: {
      std::uint64_t v = c.varint("bool");
      if (v > 1) source_.fail(at, "bool", "0 or 1", fmt::format("{}", v), kDamaged);
      return v == 1;
    }
    case 6: return read_entries(c, mode);
    case 8: return read_float(c);
    case 9: return read_integer(c);
    case 10: return read_alias(c, mode);
    case 14: return string(c);
    case 15: {
      std::size_t type = type_ref(c);
      std::size_t size = c.count("constant bytes");
      return tensor(file_type(type), c.bytes("constant", size), mode, at);
    }
    case 17: return type_attr(file_type(type_ref(c)));
    case 20: return read_accuracy(c, mode);
    case 18:
    case 21:
    case 22:
    case 23:
    case 24:
    case 25: {
      c.bytes("attribute", c.remaining());
      return from_text(mesh_text(index), mode, at);
    }
    default: break;
  }
  source_.fail(at, "attribute", "a code of VHLO's attributes", fmt::format("code {}", code),
               "The file is newer than StableHLO 1.20, or damaged");
}

}  // namespace xylem::ir::bytecode
