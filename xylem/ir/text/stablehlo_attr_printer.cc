#include <fmt/format.h>

#include <algorithm>
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

std::string_view dialect_of(const OpDef& def) { return def.name.substr(0, def.name.find('.')); }

void append_enum(std::string& out, const OpDef& def, std::string_view attr,
                 std::string_view value) {
  fmt::format_to(std::back_inserter(out), "#{}<{} {}>", dialect_of(def), enumeration_of(attr),
                 value);
}

// Structures that are kept as dictionaries: what the attribute, or the field of another one, is.
std::string_view mnemonic_of(std::string_view attr, std::string_view parent) {
  if (attr == "channel_handle") return "channel_handle";
  if (attr == "output_operand_aliases") return "output_operand_alias";
  if (attr == "replica_groups") return "replica_group_mesh_axes";
  if (attr == "mesh") return "mesh";
  if (attr == "axes") return parent == "mesh" ? "mesh_axis" : "axis_ref";
  return {};
}

void append_structure_field(std::string& out, std::string_view name, const Attr& value,
                            std::string_view parent);

void append_structure_dict(std::string& out, std::string_view mnemonic, const Attrs& fields) {
  // Fields in the order of their declaration where that is not the alphabet's.
  static constexpr std::string_view kFirst[] = {"output_tuple_indices", "mesh", "name"};
  fmt::format_to(std::back_inserter(out), "#stablehlo.{}<", mnemonic);
  bool first = true;
  auto print = [&](std::string_view name, const Attr& value) {
    fmt::format_to(std::back_inserter(out), "{}{} = ", first ? "" : ", ", name);
    first = false;
    append_structure_field(out, name, value, mnemonic);
  };
  for (std::string_view name : kFirst)
    if (const Attr* value = fields.find(name)) print(name, *value);
  for (const auto& [name, value] : fields.entries())
    if (std::find(std::begin(kFirst), std::end(kFirst), name) == std::end(kFirst))
      print(name, value);
  out += '>';
}

void append_structure_field(std::string& out, std::string_view name, const Attr& value,
                            std::string_view parent) {
  std::string_view mnemonic = mnemonic_of(name, parent);
  if (const Attrs* fields = value.dict(); fields && !mnemonic.empty())
    return append_structure_dict(out, mnemonic, *fields);
  if (const AttrList* list = value.list()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i) out += ", ";
      append_structure_field(out, name, (*list)[i], parent);
    }
    out += ']';
  } else if (const std::int64_t* v = value.get<std::int64_t>()) {
    fmt::format_to(std::back_inserter(out), "{}", *v);
  } else if (const Dims* d = value.get<Dims>()) {
    append_list(out, *d);
  } else {
    append_mlir_attr(out, value);
  }
}

// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]".
void append_conv_dims(std::string& out, const Attrs& attrs) {
  auto part = [&](std::string_view first, char first_char, std::string_view second,
                  char second_char, std::string_view spatial) {
    Dims dims = attrs.dims_or(spatial, {});
    std::vector<std::string> names(dims.size() + 2, "?");
    auto set = [&](std::int64_t at, std::string name) {
      if (at >= 0 && at < static_cast<std::int64_t>(names.size()))
        names[static_cast<std::size_t>(at)] = std::move(name);
    };
    for (std::size_t i = 0; i < dims.size(); ++i) set(dims[i], fmt::format("{}", i));
    set(attrs.i64_or(first, 0), std::string(1, first_char));
    set(attrs.i64_or(second, 0), std::string(1, second_char));
    out += '[';
    for (std::size_t i = 0; i < names.size(); ++i) out += (i ? ", " : "") + names[i];
    out += ']';
  };
  part("input_batch_dimension", 'b', "input_feature_dimension", 'f', "input_spatial_dimensions");
  out += 'x';
  part("kernel_input_feature_dimension", 'i', "kernel_output_feature_dimension", 'o',
       "kernel_spatial_dimensions");
  out += "->";
  part("output_batch_dimension", 'b', "output_feature_dimension", 'f', "output_spatial_dimensions");
}

// The type of an integer or float attribute that is not i64 or f64.
std::string_view number_type(std::string_view attr) {
  static constexpr std::pair<std::string_view, std::string_view> kTable[] = {
      {"exponent_bits", "i32"},
      {"mantissa_bits", "i32"},
      {"index", "i32"},
      {"api_version", "i32"},
      {"version", "i32"},
      {"epsilon", "f32"},
      {"iter", "ui32"},
      {"max_ulp_difference", "ui64"},
      {"min_ulp_difference", "ui64"},
  };
  for (auto [name, type] : kTable)
    if (name == attr) return type;
  return {};
}

void append_structure(std::string& out, const OpDef& def, const Structure& s, const Attrs& attrs) {
  fmt::format_to(std::back_inserter(out), "{} = #{}.{}<", s.attr, dialect_of(def), s.mnemonic);
  if (s.mnemonic == "conv") {
    append_conv_dims(out, attrs);
    out += '>';
    return;
  }
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
  const AttrDef* a = def.find_attr(name);
  if (a && a->kind == AttrKind::kUnit) return;
  out += " = ";
  if (auto* e = attr.get<EnumAttr>()) return append_enum(out, def, name, e->value);
  if (std::string_view type = number_type(name); !type.empty()) {
    if (auto* v = attr.get<std::int64_t>()) {
      if (type == "ui64") {
        fmt::format_to(std::back_inserter(out), "{} : ui64", static_cast<std::uint64_t>(*v));
      } else {
        fmt::format_to(std::back_inserter(out), "{} : {}", *v, type);
      }
      return;
    }
    if (auto* v = attr.get<double>(); v && type == "f32") {
      append_float_literal(out, *v, DType::kF32);
      out += " : f32";
      return;
    }
  }
  if (auto* d = attr.get<Dims>(); d && name.ends_with("SegmentSizes")) {
    std::string text;
    append_i64_array(text, *d);
    out += text.replace(6, 3, "i32");
    return;
  }
  if (auto* d = attr.get<Dims>(); d && name == "window_reversal") {
    out += "array<i1";
    for (std::size_t i = 0; i < d->size(); ++i)
      fmt::format_to(std::back_inserter(out), "{}{}", i ? ", " : ": ", (*d)[i] ? "true" : "false");
    out += '>';
    return;
  }
  if (name == "operand_layouts" || name == "result_layouts") {
    // Dense arrays of index.
    out += '[';
    bool first = true;
    for (const Attr& e : attr.list() ? *attr.list() : AttrList{}) {
      if (!first) out += ", ";
      first = false;
      std::string dense;
      append_mlir_attr(dense, e);
      if (std::size_t at = dense.rfind("xi64>"); at != std::string::npos)
        dense.replace(at, 5, "xindex>");
      out += dense;
    }
    out += ']';
    return;
  }
  if (!mnemonic_of(name, {}).empty() && (attr.dict() || attr.list()))
    return append_structure_field(out, name, attr, {});
  if (auto* list = attr.list(); list && a) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i) out += ", ";
      if (auto* e = (*list)[i].get<EnumAttr>()) {
        append_enum(out, def, name, e->value);
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
  if (s) append_structure(inside, def, *s, attrs);
  for (const auto& [name, value] : attrs.entries()) {
    const AttrDef* a = def.find_attr(name);
    if (!a || is_derived(name)) continue;
    bool in_structure = false;
    if (s)
      for (const StructureField& f : s->fields) in_structure = in_structure || f.name == name;
    if (in_structure) continue;
    if (a->kind == AttrKind::kUnit && value.get<bool>() && !*value.get<bool>()) continue;
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
