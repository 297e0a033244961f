#include "xylem/ir/text/stablehlo_attrs.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"

namespace xylem::ir::text {
namespace {

const std::vector<Structure>& structures() {
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
  return attr == "shape" || attr == "result_dtype" || attr == "num_captures";
}

bool is_inherent(const OpDef& def, std::string_view attr) {
  if (const AttrDef* a = def.find_attr(attr)) return a->kind != AttrKind::kAny;
  const Structure* s = find_structure(def.name);
  return s && s->attr == attr;
}

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
    } else if (!results.empty() && results.back().is_tensor()) {
      // Of several results the last one carries the shape (bits of rng_bit_generator).
      if (a.name == "shape" && a.kind == AttrKind::kDims) attrs.set(a.name, results.back().dims());
      if (a.name == "result_dtype" && a.required) attrs.set(a.name, results.back().dtype());
    }
  }
  return attrs;
}

bool derive_result_dtype(const OpDef& def, Attrs& attrs, std::span<const Type> results) {
  const AttrDef* a = def.find_attr("result_dtype");
  if (!a || a->required || results.empty() || !results.back().is_tensor()) return false;
  attrs.set("result_dtype", results.back().dtype());
  return true;
}

}  // namespace xylem::ir::text
