#include "xylem/ir/text/stablehlo_attrs.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::text {
namespace {

const std::vector<Structure>& structures() {
  static const std::vector<StructureField> kConvFields = {{"input_batch_dimension", true},
                                                          {"input_feature_dimension", true},
                                                          {"input_spatial_dimensions"},
                                                          {"kernel_input_feature_dimension", true},
                                                          {"kernel_output_feature_dimension", true},
                                                          {"kernel_spatial_dimensions"},
                                                          {"output_batch_dimension", true},
                                                          {"output_feature_dimension", true},
                                                          {"output_spatial_dimensions"}};
  static const auto* kTable = new std::vector<Structure>{
      {"stablehlo.dot_general",
       "dot_dimension_numbers",
       "dot",
       {{"lhs_batching_dimensions"},
        {"rhs_batching_dimensions"},
        {"lhs_contracting_dimensions"},
        {"rhs_contracting_dimensions"}}},
      {"stablehlo.gather",
       "dimension_numbers",
       "gather",
       {{"offset_dims"},
        {"collapsed_slice_dims"},
        {"operand_batching_dims"},
        {"start_indices_batching_dims"},
        {"start_index_map"},
        {"index_vector_dim", true}}},
      {"stablehlo.scatter",
       "scatter_dimension_numbers",
       "scatter",
       {{"update_window_dims"},
        {"inserted_window_dims"},
        {"input_batching_dims"},
        {"scatter_indices_batching_dims"},
        {"scatter_dims_to_operand_dims"},
        {"index_vector_dim", true}}},
      {"stablehlo.dynamic_gather",
       "dimension_numbers",
       "gather",
       {{"offset_dims"},
        {"collapsed_slice_dims"},
        {"operand_batching_dims"},
        {"start_indices_batching_dims"},
        {"start_index_map"},
        {"index_vector_dim", true}}},
      {"stablehlo.convolution", "dimension_numbers", "conv", kConvFields},
      {"stablehlo.dynamic_conv", "dimension_numbers", "conv", kConvFields},
      {"chlo.ragged_dot",
       "ragged_dot_dimension_numbers",
       "ragged_dot",
       {{"lhs_batching_dimensions"},
        {"rhs_batching_dimensions"},
        {"lhs_contracting_dimensions"},
        {"rhs_contracting_dimensions"},
        {"lhs_ragged_dimensions"},
        {"rhs_group_dimensions"}}},
  };
  return *kTable;
}

// A list of integers in any of its spellings; false if the value is something else.
bool to_dims(const Attr& a, Dims& out) {
  if (auto* d = a.get<Dims>()) {
    out = *d;
    return true;
  }
  out.clear();
  if (auto* list = a.list()) {
    for (const Attr& e : *list) {
      if (auto* i = e.get<std::int64_t>()) {
        out.push_back(*i);
      } else if (auto* s = e.get<ScalarAttr>(); s && is_integer(s->dtype)) {
        out.push_back(s->integer);
      } else if (auto* b = e.get<bool>()) {
        out.push_back(*b);
      } else {
        return false;
      }
    }
    return true;
  }
  if (auto* h = a.get<HostArray>()) {
    if (h->rank() != 1 || !(is_integer(h->dtype()) || is_bool(h->dtype()))) return false;
    HostArray wide = h->astype(DType::kI64);
    out = Dims(wide.span<std::int64_t>());
    return true;
  }
  return false;
}

}  // namespace

// The value with the kind that the op wants; false if it cannot have that.
bool to_kind(AttrKind kind, Attr& a) {
  switch (kind) {
    case AttrKind::kDims: {
      Dims d;
      if (!to_dims(a, d)) return false;
      a = std::move(d);
      return true;
    }
    case AttrKind::kInt:
      if (auto* s = a.get<ScalarAttr>(); s && !is_float(s->dtype)) a = s->integer;
      return a.get<std::int64_t>() != nullptr;
    case AttrKind::kBool:
    case AttrKind::kUnit:
      if (a.is_unit()) a = true;
      return a.get<bool>() != nullptr;
    case AttrKind::kFloat:
      if (auto* s = a.get<ScalarAttr>(); s && is_float(s->dtype)) a = s->real;
      return a.get<double>() != nullptr;
    case AttrKind::kEnum: return a.get<EnumAttr>() != nullptr;
    case AttrKind::kString: return a.get<std::string>() != nullptr;
    case AttrKind::kArray: return a.get<HostArray>() != nullptr;
    case AttrKind::kSymbol: return a.get<SymbolAttr>() != nullptr;
    case AttrKind::kList: return a.list() != nullptr;
    case AttrKind::kDict: return a.dict() != nullptr;
    case AttrKind::kType: return a.get<Type>() != nullptr;
    case AttrKind::kDType: return a.get<DType>() != nullptr;
    case AttrKind::kAny: return true;
  }
  return false;
}

namespace {

const char* kind_words(AttrKind kind) {
  switch (kind) {
    case AttrKind::kDims: return "a list of integers";
    case AttrKind::kInt: return "an integer";
    case AttrKind::kBool:
    case AttrKind::kUnit: return "true or false";
    case AttrKind::kFloat: return "a float";
    case AttrKind::kEnum: return "a member of its enumeration";
    case AttrKind::kString: return "a string";
    case AttrKind::kArray: return "a dense array";
    case AttrKind::kSymbol: return "a symbol";
    case AttrKind::kList: return "a list";
    case AttrKind::kDict: return "a dictionary";
    case AttrKind::kType: return "a type";
    case AttrKind::kDType: return "an element type";
    case AttrKind::kAny: break;
  }
  return "any value";
}

void flatten(const Structure& s, Attrs& attrs, const AttrFail& fail) {
  const Attr* given = attrs.find(s.attr);
  // Absent in texts of the pretty form, which sets the fields; those not named are empty.
  if (given && !given->dict()) {
    fail(fmt::format("'{}' is #stablehlo.{}<…>", s.attr, s.mnemonic), given->to_string());
    return;
  }
  Attrs fields = given ? *given->dict() : Attrs();
  attrs.erase(s.attr);
  for (const StructureField& f : s.fields) {
    if (const Attr* value = fields.find(f.name)) {
      attrs.set(f.name, *value);
      fields.erase(f.name);
    } else if (!attrs.has(f.name)) {
      attrs.set(f.name, f.integer ? Attr(0) : Attr(Dims{}));
    }
  }
  for (const auto& [name, value] : fields.entries())
    fail(fmt::format("'{}' has the fields of #stablehlo.{}", s.attr, s.mnemonic),
         fmt::format("field '{}' is none of them", name));
}

}  // namespace

const Structure* find_structure(std::string_view op) {
  for (const Structure& s : structures())
    if (s.op == op) return &s;
  return nullptr;
}

bool is_derived(std::string_view attr) {
  return attr == "shape" || attr == "result_dtype" || attr == "result_types" ||
         attr == "num_captures";
}

bool is_inherent(const OpDef& def, std::string_view attr) {
  if (const AttrDef* a = def.find_attr(attr))
    return a->kind != AttrKind::kAny || attr == "replica_groups";
  const Structure* s = find_structure(def.name);
  return s && s->attr == attr;
}

namespace {

// Attributes that say what their absence says; printers leave them out of the pretty form.
void drop_defaults(const OpDef& def, Attrs& attrs) {
  const auto drop = [&](std::string_view name, const Attr& value) {
    const Attr* a = attrs.find(name);
    if (a && *a == value) attrs.erase(name);
  };
  if (def.name == "stablehlo.custom_call") {
    drop("api_version", 1);
    drop("has_side_effect", false);
    drop("called_computations", AttrList());
  } else if (def.name == "stablehlo.composite") {
    drop("version", 0);
    drop("composite_attributes", Attrs());
  }
}

}  // namespace

Attrs to_inherent(const OpDef& def, Attrs attrs, std::span<const Type> results,
                  const AttrFail& fail) {
  if (const Structure* s = find_structure(def.name)) flatten(*s, attrs, fail);
  for (const AttrDef& a : def.attrs) {
    if (const Attr* given = attrs.find(a.name)) {
      Attr value = *given;
      if (to_kind(a.kind, value)) {
        attrs.set(a.name, std::move(value));
      } else {
        fail(fmt::format("attribute '{}' is {}", a.name, kind_words(a.kind)),
             fmt::format("it is {}", given->to_string()));
      }
    } else if (a.name == "result_types") {
      set_result_types(attrs, results);
    } else if (!results.empty() && results.back().is_tensor()) {
      // Of several results the last one carries the shape (bits of rng_bit_generator).
      if (a.name == "shape" && a.kind == AttrKind::kDims) attrs.set(a.name, results.back().dims());
      if (a.name == "result_dtype" && a.required)
        attrs.set(a.name,
                  (is_by_storage(def) ? storage_type(results.back()) : results.back()).dtype());
    }
  }
  drop_defaults(def, attrs);
  return attrs;
}

bool refine_result_types(const OpDef& def, Attrs& attrs, std::span<const Type> operands,
                         std::span<const GraphPtr> regions, const std::vector<Type>& written,
                         const std::vector<Type>& inferred) {
  if (inferred == written) return true;
  bool fits = inferred.size() == written.size() && !def.find_attr("result_types");
  for (std::size_t i = 0; fits && i < inferred.size(); ++i)
    fits =
        types_compatible(is_by_storage(def) ? storage_type(written[i]) : written[i], inferred[i]);
  if (!fits) return false;
  set_result_types(attrs, written);
  infer_types({def, operands, attrs, regions, {}});
  return true;
}

void set_result_types(Attrs& attrs, std::span<const Type> results) {
  AttrList types;
  for (const Type& t : results) types.push_back(t);
  attrs.set("result_types", std::move(types));
}

std::vector<std::string> referenced_functions(const OpDef& def, const Attrs& attrs) {
  std::vector<std::string> names;
  auto add = [&](auto&& self, const Attr& a) -> void {
    if (const SymbolAttr* s = a.get<SymbolAttr>()) names.push_back(s->name);
    if (const AttrList* list = a.list())
      for (const Attr& e : *list) self(self, e);
  };
  auto attr = [&](std::string_view name) {
    if (const Attr* a = attrs.find(name)) add(add, *a);
  };
  if (def.name == "stablehlo.composite") attr("decomposition");
  if (def.name == "stablehlo.custom_call") attr("called_computations");
  if (def.name == "interpreter.run_parallel") {
    attr("programs");
    attr("infeed");
  }
  return names;
}

bool derive_result_dtype(const OpDef& def, Attrs& attrs, std::span<const Type> results) {
  const AttrDef* a = def.find_attr("result_dtype");
  if (!a || a->required || results.empty() || !results.back().is_tensor()) return false;
  attrs.set("result_dtype", results.back().dtype());
  return true;
}

}  // namespace xylem::ir::text
