#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode/artifact_writer.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/enums.h"
#include "xylem/ir/bytecode/structure_text.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Attributes.

namespace xylem::ir::bytecode {
namespace {

std::string code(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

// An integer or the bits of a float, of a width.
void append_bits(std::string& out, std::int64_t v, int bits) {
  if (bits <= 8) {
    out += static_cast<char>(bits == 1 ? v & 1 : v);
  } else {
    append_signed_varint(out, v);
  }
}

// The bits of a float, sign extended as MLIR's integers are.
std::int64_t float_bits(double v, DType dtype) {
  HostArray one = HostArray::scalar(v).astype(dtype);
  std::int64_t bits = 0;
  std::memcpy(&bits, one.data(), static_cast<std::size_t>(dtype_bytes(dtype)));
  int unused = 64 - dtype_bits(dtype);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(bits) << unused) >> unused;
}

bool is_splat(const HostArray& a) {
  auto each = static_cast<std::size_t>(dtype_bytes(a.dtype()));
  return a.size() > 1 && std::memcmp(a.data(), a.data() + each, a.nbytes() - each) == 0;
}

// Booleans are packed, the first element in the lowest bit; a repeated one is a byte of equal bits.
std::string packed(const HostArray& a) {
  if (is_splat(a)) return std::string(1, a.data()[0] != std::byte{0} ? '\xFF' : '\0');
  std::string s(static_cast<std::size_t>((a.size() + 7) / 8), '\0');
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (a.data()[i] != std::byte{0}) {
      char& c = s[static_cast<std::size_t>(i / 8)];
      c = static_cast<char>(c | 1 << (i % 8));
    }
  return s;
}

}  // namespace

std::size_t ArtifactWriter::string_attr(std::string_view s) {
  std::string b = code(14);
  append_varint(b, pools_.string(s));
  return vhlo(std::move(b));
}

std::size_t ArtifactWriter::builtin_string(std::string_view s) {
  std::string b = code(2);
  append_varint(b, pools_.string(s));
  return pools_.attr("builtin", std::move(b));
}

std::size_t ArtifactWriter::bool_attr(bool v) { return vhlo(code(2) + code(v)); }

std::size_t ArtifactWriter::int_attr(std::int64_t v, DType dtype) {
  std::string b = code(9);
  append_varint(b, element_type(dtype, nullptr));
  append_bits(b, v, dtype_bits(dtype));
  return vhlo(std::move(b));
}

std::size_t ArtifactWriter::float_attr(double v, DType dtype) {
  std::string b = code(8);
  append_varint(b, element_type(dtype, nullptr));
  append_bits(b, float_bits(v, dtype), dtype_bits(dtype));
  return vhlo(std::move(b));
}

std::size_t ArtifactWriter::array_attr(const std::vector<std::size_t>& list) {
  std::string b = code(1);
  append_varint(b, list.size());
  for (std::size_t a : list) append_varint(b, a);
  return vhlo(std::move(b));
}

std::size_t ArtifactWriter::dict_attr(const Attrs& attrs) {
  std::string b = code(6);
  append_varint(b, attrs.size());
  for (const auto& [name, value] : attrs.entries()) {
    append_varint(b, string_attr(name));
    append_varint(b, attr(value));
  }
  return vhlo(std::move(b));
}

std::size_t ArtifactWriter::type_attr(std::size_t type) { return vhlo(code(17) + code(type)); }

std::size_t ArtifactWriter::enum_attr(std::string_view mnemonic, std::string_view member) {
  const Enumeration* e = enumeration_of_mnemonic(mnemonic);
  int number = e ? e->number(member) : -1;
  if (number < 0) {
    refuse({}, "attribute", fmt::format("a member of {}", mnemonic), fmt::format("'{}'", member),
           "Use one of its members");
    return 0;
  }
  return vhlo(code(static_cast<std::uint64_t>(e->vhlo_code)) +
              code(static_cast<std::uint64_t>(number)));
}

std::size_t ArtifactWriter::tensor_attr(const HostArray& given, std::size_t type) {
  HostArray a = given.to_contiguous();
  std::string b = code(15);
  append_varint(b, type);
  if (is_bool(a.dtype())) {
    std::string bytes = packed(a);
    append_varint(b, bytes.size());
    return vhlo(b + bytes);
  }
  if (a.size() == 0 || is_splat(a)) {
    auto size = a.size() == 0 ? 0 : static_cast<std::size_t>(dtype_bytes(a.dtype()));
    append_varint(b, size);
    if (size) b.append(reinterpret_cast<const char*>(a.data()), size);
    return vhlo(std::move(b));
  }
  append_varint(b, a.nbytes());
  return vhlo(std::move(b), std::move(a));
}

std::size_t ArtifactWriter::dims_attr(const Dims& d) {
  HostArray a(DType::kI64, {d.ssize()});
  std::copy(d.begin(), d.end(), a.as<std::int64_t>());
  return tensor_attr(a, type(Type::tensor(DType::kI64, a.dims())));
}

// A tensor of `index`.
std::size_t ArtifactWriter::index_tensor(const Dims& shape, const HostArray& a) {
  std::string t = code(20);
  append_varint(t, shape.size());
  for (std::int64_t d : shape) append_signed_varint(t, d);
  append_varint(t, named_type("index"));
  return tensor_attr(a, pools_.type("vhlo", std::move(t)));
}

std::size_t ArtifactWriter::foreign_attr(std::string_view text) {
  if (text.empty()) return 0;
  std::string_view dialect = "builtin";
  if (text[0] == '#') {
    std::size_t end = 1;
    while (end < text.size() && text[end] != '.' && text[end] != '<') ++end;
    dialect = text.substr(1, end - 1);
  }
  require({1, 11, 0}, fmt::format("'{}', which is another dialect's,", text.substr(0, 60)), {});
  return pools_.attr_text(dialect, text);
}

// Parts of "#stablehlo.replica_group_mesh_axes<…>".
std::size_t ArtifactWriter::mesh_attr(std::string_view text) {
  require({1, 16, 0}, "axes of a mesh", {});
  if (text.starts_with('@')) {
    std::string_view name = text.substr(1);
    if (name.starts_with('"') && name.size() > 1) name = name.substr(1, name.size() - 2);
    return string_attr(name);
  }
  if (text.starts_with('(')) {  // (1)2
    std::size_t close = text.find(')');
    std::string b = code(21);
    auto number = [&](std::string_view s) {
      const std::int64_t* v = nullptr;
      Attr a = parse_inherent(std::string(s));
      v = a.get<std::int64_t>();
      append_signed_varint(b, v ? *v : 0);
    };
    number(text.substr(1, close - 1));
    number(text.substr(close + 1));
    return vhlo(std::move(b));
  }
  StructureText s = take_apart(text);
  auto name = [&] {
    const std::string* n = s.find("name");
    Attr a = n ? parse_inherent(*n) : Attr();
    return string_attr(a.get<std::string>() ? *a.get<std::string>() : std::string());
  };
  auto list = [&](std::string_view field) {
    std::vector<std::size_t> items;
    if (const std::string* v = s.find(field))
      for (const std::string& item : list_items(*v)) items.push_back(mesh_attr(item));
    return array_attr(items);
  };
  if (s.mnemonic == "axis_ref") {
    std::string b = code(22) + code(name());
    const std::string* sub = s.find("sub_axis_info");
    append_varint(b, sub != nullptr);
    if (sub) append_varint(b, mesh_attr(*sub));
    return vhlo(std::move(b));
  }
  if (s.mnemonic == "replica_group_mesh_axes" && s.find("mesh")) {
    std::string b = code(23) + code(mesh_attr(*s.find("mesh")));
    return vhlo(b + code(list("axes")));
  }
  if (s.mnemonic == "mesh_axis") {
    std::string b = code(24) + code(name());
    const std::string* size = s.find("size");
    Attr v = size ? parse_inherent(*size) : Attr();
    append_signed_varint(b, v.get<std::int64_t>() ? *v.get<std::int64_t>() : 0);
    return vhlo(std::move(b));
  }
  if (s.mnemonic == "mesh") {
    std::string b = code(25) + code(list("axes"));
    const std::string* devices = s.find("device_ids");
    append_varint(b, devices ? attr(parse_inherent(*devices)) << 1 | 1 : 0);
    return vhlo(std::move(b));
  }
  refuse({}, "attribute", "a mesh or its axes", std::string(text), "Correct the attribute");
  return 0;
}

// Structures with an encoding of their own in VHLO; SIZE_MAX for others.
std::size_t ArtifactWriter::structure_attr(std::string_view mnemonic, const Attrs& f) {
  auto real = [&](std::string_view name) {
    const Attr* a = f.find(name);
    if (!a) return 0.0;
    if (auto* s = a->get<ScalarAttr>()) return is_float(s->dtype) ? s->real : double(s->integer);
    if (auto* i = a->get<std::int64_t>()) return double(*i);
    return a->get<double>() ? *a->get<double>() : 0.0;
  };
  if (mnemonic == "result_accuracy") {
    std::string member = "DEFAULT";
    const Attr* mode = f.find("mode");
    if (mode && mode->get<EnumAttr>()) member = mode->get<EnumAttr>()->value;
    std::string b = code(20);
    append_signed_varint(b, std::bit_cast<std::int64_t>(real("atol")));
    append_signed_varint(b, std::bit_cast<std::int64_t>(real("rtol")));
    append_signed_varint(b, f.i64_or("ulps", 0));
    append_varint(b, enum_attr("result_accuracy_mode", member));
    require({1, 9, 0}, "the attribute 'result_accuracy'", {});
    return vhlo(std::move(b));
  }
  if (mnemonic == "output_operand_alias") {
    std::string b = code(10);
    auto list = [&](std::string_view name) {
      Dims d = f.dims_or(name, {});
      append_varint(b, d.size());
      for (std::int64_t v : d) append_signed_varint(b, v);
    };
    list("output_tuple_indices");
    append_signed_varint(b, f.i64_or("operand_index", 0));
    list("operand_tuple_indices");
    return vhlo(std::move(b));
  }
  return SIZE_MAX;
}

// Attributes that are kept as text.
std::size_t ArtifactWriter::opaque_attr(const std::string& text) {
  if (text.starts_with("#stablehlo<")) {  // "#stablehlo<precision HIGH>"
    std::string_view inside = std::string_view(text).substr(11, text.size() - 12);
    std::size_t blank = inside.find(' ');
    if (blank != std::string_view::npos && text.back() == '>')
      return enum_attr(inside.substr(0, blank), inside.substr(blank + 1));
  }
  if (text.starts_with("#stablehlo.")) {
    StructureText s = take_apart(text);
    if (s.mnemonic == "replica_group_mesh_axes" || s.mnemonic == "axis_ref" ||
        s.mnemonic == "mesh" || s.mnemonic == "mesh_axis")
      return mesh_attr(text);
    Attr a = parse_inherent(text);
    if (s.fields.size() == 1 && s.fields[0].first.empty() && enumeration_of_mnemonic(s.mnemonic))
      return enum_attr(s.mnemonic, s.fields[0].second);
    std::size_t known = a.dict() ? structure_attr(s.mnemonic, *a.dict()) : SIZE_MAX;
    if (known != SIZE_MAX) return known;
    refuse({}, "attribute", "attributes that VHLO has outside of their ops", text,
           "Remove the attribute");
    return 0;
  }
  // "3 : index", "dense<[1, 0]> : tensor<2xindex>".
  constexpr std::string_view kIndex = " : index";
  if (text.ends_with(kIndex)) {
    Attr v = parse_inherent(text.substr(0, text.size() - kIndex.size()));
    if (auto* i = v.get<std::int64_t>()) {
      std::string b = code(9) + code(named_type("index"));
      append_signed_varint(b, *i);
      return vhlo(std::move(b));
    }
  }
  if (text.starts_with("dense<") && text.ends_with("xindex>")) {
    Attr v = parse_inherent(text);
    if (auto* a = v.get<HostArray>()) return index_tensor(a->dims(), *a);
  }
  if (text.starts_with("@")) {
    refuse({}, "attribute", "symbols are not nested", text, "Remove the attribute");
    return 0;
  }
  if (std::size_t t = named_type(text); t != SIZE_MAX) return type_attr(t);
  return foreign_attr(text);
}

std::size_t ArtifactWriter::attr(const Attr& a) {
  if (a.is_unit()) return foreign_attr("unit");
  if (auto* v = a.get<bool>()) return bool_attr(*v);
  if (auto* v = a.get<std::int64_t>()) return int_attr(*v);
  if (auto* v = a.get<double>()) return float_attr(*v, DType::kF64);
  if (auto* v = a.get<std::string>()) return string_attr(*v);
  if (auto* v = a.get<Dims>()) return dims_attr(*v);
  if (auto* v = a.get<HostArray>())
    return tensor_attr(*v, type(Type::tensor(v->dtype(), v->dims())));
  if (auto* v = a.get<DType>()) return type_attr(element_type(*v, nullptr));
  if (auto* v = a.get<Type>()) return type_attr(type(*v));
  if (auto* v = a.get<ScalarAttr>())
    return is_float(v->dtype) ? float_attr(v->real, v->dtype) : int_attr(v->integer, v->dtype);
  if (auto* v = a.get<SymbolAttr>()) return string_attr(v->name);
  if (auto* v = a.get<OpaqueAttr>()) return opaque_attr(v->text);
  if (auto* list = a.list()) {
    std::vector<std::size_t> items;
    for (const Attr& e : *list) items.push_back(attr(e));
    return array_attr(items);
  }
  if (auto* d = a.dict()) return dict_attr(*d);
  refuse({}, "attribute", "attributes that StableHLO has", a.to_string(), "Remove the attribute");
  return 0;
}

std::size_t ArtifactWriter::builtin_dict(const Attrs& attrs) {
  std::string b = code(1);
  append_varint(b, attrs.size());
  for (const auto& [name, value] : attrs.entries()) {
    append_varint(b, builtin_string(name));
    append_varint(b, builtin_attr(value));
  }
  return pools_.attr("builtin", std::move(b));
}

// The module's attributes stay as MLIR has them.
std::size_t ArtifactWriter::builtin_attr(const Attr& a) {
  auto integer = [&](std::int64_t v, DType dtype) {
    std::string b = code(8) + code(builtin_type(dtype));
    append_bits(b, v, dtype_bits(dtype));
    return pools_.attr("builtin", std::move(b));
  };
  auto real = [&](double v, DType dtype) {
    std::string b = code(9) + code(builtin_type(dtype));
    append_bits(b, float_bits(v, dtype), dtype_bits(dtype));
    return pools_.attr("builtin", std::move(b));
  };
  if (a.is_unit()) return pools_.attr("builtin", code(7));
  if (auto* v = a.get<bool>()) return integer(*v, DType::kBool);
  if (auto* v = a.get<std::int64_t>()) return integer(*v, DType::kI64);
  if (auto* v = a.get<double>()) return real(*v, DType::kF64);
  if (auto* v = a.get<std::string>()) return builtin_string(*v);
  if (auto* v = a.get<SymbolAttr>())
    return pools_.attr("builtin", code(4) + code(builtin_string(v->name)));
  if (auto* v = a.get<ScalarAttr>()) {
    if (!is_float(v->dtype)) return integer(v->integer, v->dtype);
    if (dtype_bits(v->dtype) > 8) return real(v->real, v->dtype);
  }
  if (auto* list = a.list()) {
    std::string b = code(0) + code(list->size());
    for (const Attr& e : *list) append_varint(b, builtin_attr(e));
    return pools_.attr("builtin", std::move(b));
  }
  if (auto* d = a.dict()) return builtin_dict(*d);
  std::string text;
  text::append_mlir_attr(text, a);
  std::string_view dialect = "builtin";
  if (text[0] == '#') dialect = std::string_view(text).substr(1, text.find_first_of(".<") - 1);
  return pools_.attr_text(dialect, text);
}

}  // namespace xylem::ir::bytecode
