#include <fmt/format.h>

#include <cstring>

#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/element_text.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Attributes and constants as MLIR text.

namespace xylem::ir::text {
namespace {

// The enumeration that an attribute's members belong to.
std::string_view enumeration_of(std::string_view attr) {
  static constexpr std::pair<std::string_view, std::string_view> kTable[] = {
      {"compare_type", "comparison_type"},
      {"precision_config", "precision"},
      {"transpose_a", "transpose"},
  };
  for (auto [name, mnemonic] : kTable)
    if (name == attr) return mnemonic;
  return attr;
}

void append_list(std::string& out, const Dims& d) {
  out += '[';
  for (std::size_t i = 0; i < d.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i ? ", " : "", d[i]);
  out += ']';
}

void append_i64_array(std::string& out, const Dims& d) {
  out += "array<i64";
  for (std::size_t i = 0; i < d.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i ? ", " : ": ", d[i]);
  out += '>';
}

// "f32" of "tensor<f32>".
std::string element_type(DType d) {
  std::string tensor = Type::tensor(d).to_mlir();
  return tensor.substr(7, tensor.size() - 8);
}

struct MlirAttrPrinter {
  std::string& out;

  void operator()(Attr::Unit) const { out += "unit"; }
  void operator()(bool v) const { out += v ? "true" : "false"; }
  void operator()(std::int64_t v) const { fmt::format_to(std::back_inserter(out), "{} : i64", v); }
  void operator()(double v) const {
    append_float_literal(out, v, DType::kF64);
    out += " : f64";
  }
  void operator()(const std::string& v) const { append_quoted(out, v); }
  void operator()(const Dims& v) const { append_i64_array(out, v); }
  void operator()(const HostArray& v) const {
    append_dense(out, v, Type::tensor(v.dtype(), v.dims()));
  }
  void operator()(DType v) const { out += element_type(v); }
  void operator()(const Type& v) const { out += v.to_mlir(); }
  void operator()(const EnumAttr& v) const { out += v.value; }
  void operator()(const ScalarAttr& v) const {
    if (is_float(v.dtype)) {
      append_float_literal(out, v.real, v.dtype);
    } else if (v.dtype == DType::kU64) {
      fmt::format_to(std::back_inserter(out), "{}", static_cast<std::uint64_t>(v.integer));
    } else {
      fmt::format_to(std::back_inserter(out), "{}", v.integer);
    }
    fmt::format_to(std::back_inserter(out), " : {}", dtype_name(v.dtype));
  }
  void operator()(const SymbolAttr& v) const { append_symbol(out, v.name); }
  void operator()(const OpaqueAttr& v) const { out += v.text; }
  void operator()(const std::shared_ptr<const AttrList>& v) const {
    out += '[';
    bool first = true;
    for (const Attr& a : *v) {
      if (!first) out += ", ";
      first = false;
      append_mlir_attr(out, a);
    }
    out += ']';
  }
  void operator()(const std::shared_ptr<const Attrs>& v) const {
    out += '{';
    bool first = true;
    for (const auto& [name, value] : v->entries()) {
      if (!first) out += ", ";
      first = false;
      append_mlir_name(out, name);
      if (value.is_unit()) continue;
      out += " = ";
      append_mlir_attr(out, value);
    }
    out += '}';
  }
};

void append_enum(std::string& out, std::string_view attr, std::string_view value) {
  fmt::format_to(std::back_inserter(out), "#stablehlo<{} {}>", enumeration_of(attr), value);
}

void append_structure(std::string& out, const Structure& s, const Attrs& attrs) {
  fmt::format_to(std::back_inserter(out), "{} = #stablehlo.{}<", s.attr, s.mnemonic);
  bool first = true;
  for (const StructureField& f : s.fields) {
    std::int64_t number = f.integer ? attrs.i64_or(f.name, 0) : 0;
    Dims list = f.integer ? Dims{} : attrs.dims_or(f.name, {});
    if (number == 0 && list.empty()) continue;
    fmt::format_to(std::back_inserter(out), "{}{} = ", first ? "" : ", ", f.name);
    first = false;
    if (f.integer) {
      fmt::format_to(std::back_inserter(out), "{}", number);
    } else {
      append_list(out, list);
    }
  }
  out += '>';
}

}  // namespace

void append_mlir_name(std::string& out, std::string_view name) {
  if (is_identifier(name)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

void append_symbol(std::string& out, std::string_view name) {
  out += '@';
  append_mlir_name(out, name);
}

void append_mlir_attr(std::string& out, const Attr& attr) {
  std::visit(MlirAttrPrinter{out}, attr.value());
}

void append_inherent_attr(std::string& out, const OpDef& def, std::string_view name,
                          const Attr& attr) {
  append_mlir_name(out, name);
  out += " = ";
  const AttrDef* a = def.find_attr(name);
  if (auto* e = attr.get<EnumAttr>()) return append_enum(out, name, e->value);
  if (auto* list = attr.list(); list && a) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i) out += ", ";
      if (auto* e = (*list)[i].get<EnumAttr>()) {
        append_enum(out, name, e->value);
      } else {
        append_mlir_attr(out, (*list)[i]);
      }
    }
    out += ']';
    return;
  }
  append_mlir_attr(out, attr);
}

void append_properties(std::string& out, const OpDef& def, const Attrs& attrs) {
  std::string inside;
  auto separate = [&] {
    if (!inside.empty()) inside += ", ";
  };
  const Structure* s = find_structure(def.name);
  if (s) append_structure(inside, *s, attrs);
  for (const auto& [name, value] : attrs.entries()) {
    const AttrDef* a = def.find_attr(name);
    if (!a || is_derived(name)) continue;
    bool in_structure = false;
    if (s)
      for (const StructureField& f : s->fields) in_structure = in_structure || f.name == name;
    if (in_structure) continue;
    separate();
    append_inherent_attr(inside, def, name, value);
  }
  if (!inside.empty()) fmt::format_to(std::back_inserter(out), " <{{{}}}>", inside);
}

void append_dense(std::string& out, const HostArray& given, const Type& type,
                  std::int64_t max_listed) {
  HostArray a = given.to_contiguous();
  DType dtype = a.dtype();
  auto element = static_cast<std::size_t>(dtype_bytes(dtype));
  bool splat = a.size() > 1 && std::memcmp(a.data(), a.data() + element, a.nbytes() - element) == 0;
  out += "dense<";
  if (a.size() == 1 || splat) {
    append_element(out, dtype, a.data(), NumberStyle::kMlir);
  } else if (max_listed >= 0 && a.size() > max_listed && !is_bool(dtype)) {
    out += '"';
    append_hex(out, a.data(), a.nbytes());
    out += '"';
  } else if (a.size() > 0) {
    // Brackets open and close where an index wraps around.
    const Dims& dims = a.dims();
    Dims strides = row_major_strides(dims);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      if (i) {
        for (int d = dims.ssize() - 1; d >= 0; --d)
          if (i % (strides[d] * dims[d]) == 0) out += ']';
        out += ", ";
      }
      for (int d = 0; d < dims.ssize(); ++d)
        if (i % (strides[d] * dims[d]) == 0) out += '[';
      append_element(out, dtype, a.data() + static_cast<std::size_t>(i) * element,
                     NumberStyle::kMlir);
    }
    out.append(dims.size(), ']');
  }
  fmt::format_to(std::back_inserter(out), "> : {}", type.to_mlir());
}

}  // namespace xylem::ir::text
