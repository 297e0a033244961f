#include "xylem/ir/op_def.h"

#include <fmt/format.h>

#include <unordered_map>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/input_labels.h"
#include "xylem/ir/quant.h"

namespace xylem::ir {
namespace {

struct Table {
  std::vector<const OpDef*> ops;
  std::unordered_map<std::string_view, const OpDef*> by_name;
  std::unordered_map<const OpDef*, int> ids;

  Table() : ops(ops::all_ops()) {
    for (const OpDef* d : ops) {
      XYLEM_CHECK(by_name.emplace(d->name, d).second, d->name);
      ids.emplace(d, static_cast<int>(ids.size()));
    }
  }
};

const Table& table() {
  static const Table* t = new Table;
  return *t;
}

const char* kind_name(AttrKind k) {
  static constexpr const char* kNames[] = {
      "unit",  "bool", "integer",     "float",  "string", "list of integers", "array",
      "dtype", "type", "enumeration", "symbol", "list",   "dictionary",       "any"};
  return kNames[static_cast<int>(k)];
}

bool has_kind(const Attr& a, AttrKind k) {
  switch (k) {
    case AttrKind::kUnit: return a.is_unit() || a.get<bool>();
    case AttrKind::kBool: return a.get<bool>() || a.is_unit();
    case AttrKind::kInt: return a.get<std::int64_t>() || a.get<ScalarAttr>();
    case AttrKind::kFloat: return a.get<double>() || a.get<ScalarAttr>();
    case AttrKind::kString: return a.get<std::string>() != nullptr;
    case AttrKind::kDims: return a.get<Dims>() != nullptr;
    case AttrKind::kArray: return a.get<HostArray>() != nullptr;
    case AttrKind::kDType: return a.get<DType>() != nullptr;
    case AttrKind::kType: return a.get<Type>() != nullptr;
    case AttrKind::kEnum: return a.get<EnumAttr>() != nullptr;
    case AttrKind::kSymbol: return a.get<SymbolAttr>() != nullptr;
    case AttrKind::kList: return a.list() != nullptr;
    case AttrKind::kDict: return a.dict() != nullptr;
    case AttrKind::kAny: return true;
  }
  return false;
}

bool is_member(std::string_view members, std::string_view value) {
  while (!members.empty()) {
    std::size_t blank = members.find(' ');
    if (members.substr(0, blank) == value) return true;
    if (blank == std::string_view::npos) break;
    members.remove_prefix(blank + 1);
  }
  return false;
}

DimMap pointwise_map(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  const Dims& dims = results.empty() ? call.operands[0].dims() : results[0].dims();
  Dims identity;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    m.factors.push_back({DimMap::FactorKind::kParallel, dims[i]});
    identity.push_back(static_cast<std::int64_t>(i));
  }
  // A scalar operand of a pointwise op (select's predicate, clamp's bounds) has no dimensions.
  for (const Type& t : call.operands)
    m.operands.push_back(t.dims().size() == dims.size() ? identity : Dims{});
  for (std::size_t i = 0; i < results.size(); ++i) m.results.push_back(identity);
  return m;
}

DimMap opaque_map(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  auto add = [&](const Type& t) {
    Dims d;
    for (std::int64_t size : t.dims()) {
      d.push_back(static_cast<std::int64_t>(m.factors.size()));
      m.factors.push_back({DimMap::FactorKind::kOpaque, size});
    }
    return d;
  };
  for (const Type& t : call.operands) m.operands.push_back(add(t));
  for (const Type& t : results) m.results.push_back(add(t));
  return m;
}

}  // namespace

void OpCall::fail(std::string_view label, std::string_view expected, std::string_view given,
                  std::string_view advice) const {
  throw ConstraintError(std::string(label), ErrorParts{def.name, expected, given, advice},
                        loc.source);
}

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  for (const AttrDef& a : attrs)
    if (a.name == attr) return &a;
  return nullptr;
}

int OpDef::id() const {
  auto it = table().ids.find(this);
  XYLEM_CHECK(it != table().ids.end(), name);
  return it->second;
}

std::span<const OpDef* const> op_table() { return table().ops; }

const OpDef* find_op(std::string_view name) {
  auto it = table().by_name.find(name);
  return it == table().by_name.end() ? nullptr : it->second;
}

namespace {

[[noreturn]] void fail_count(const OpCall& call, std::string label, const std::string& expected,
                             std::size_t given, std::string_view advice) {
  std::string have = fmt::format("{} were given", given);
  ErrorParts parts{call.def.name, expected, have, advice};
  if (label.empty()) throw UserError(parts, call.loc.source);
  throw ConstraintError(std::move(label), parts, call.loc.source);
}

}  // namespace

std::vector<Type> infer_types(const OpCall& call) {
  const OpDef& def = call.def;
  int n = static_cast<int>(call.operands.size());
  if (n < def.min_operands || (def.max_operands >= 0 && n > def.max_operands)) {
    std::string want = def.max_operands < 0 ? fmt::format("at least {}", def.min_operands)
                       : def.min_operands == def.max_operands
                           ? fmt::format("{}", def.min_operands)
                           : fmt::format("{} to {}", def.min_operands, def.max_operands);
    fail_count(call, n < def.min_operands ? ops::missing_operand_label(def, n) : "",
               fmt::format("takes {} operands", want), call.operands.size(),
               "Pass the operands it needs");
  }
  if (def.num_regions >= 0 && static_cast<int>(call.regions.size()) != def.num_regions)
    fail_count(call, ops::missing_region_label(def, static_cast<int>(call.regions.size())),
               fmt::format("takes {} regions", def.num_regions), call.regions.size(),
               "Give one graph for each region");
  for (const AttrDef& a : def.attrs) {
    auto bad = [&](std::string expected, std::string given, std::string advice) {
      ErrorParts parts{def.name, expected, given, advice};
      std::string label = ops::input_label(def, a.name);
      if (label.empty()) throw UserError(parts, call.loc.source);
      throw ConstraintError(label, parts, call.loc.source);
    };
    const Attr* v = call.attrs.find(a.name);
    if (!v) {
      if (!a.required) continue;
      bad(fmt::format("attribute '{}' is required", a.name), "it is absent",
          fmt::format("Add '{}' ({})", a.name, kind_name(a.kind)));
    }
    const EnumAttr* e = v->get<EnumAttr>();
    if (!has_kind(*v, a.kind) || (e && !a.members.empty() && !is_member(a.members, e->value)))
      bad(fmt::format("attribute '{}' is {}", a.name,
                      a.members.empty() ? std::string(kind_name(a.kind))
                                        : fmt::format("one of {}", a.members)),
          fmt::format("it is {}", v->to_string()), "Give a value of that kind");
  }
  const Attr* attr = def.find_attr("result_types") ? nullptr : call.attrs.find("result_types");
  const AttrList* written = attr ? attr->list() : nullptr;
  if (def.quant == QuantSupport::kNone && !written) return def.shape(call);
  return infer_refined(call, written);
}

bool types_compatible(const Type& recorded, const Type& inferred) {
  if (recorded == inferred) return true;
  if (recorded.kind() != inferred.kind()) return false;
  if (recorded.is_tuple() || recorded.is_future()) {
    const std::vector<Type>&a = recorded.elements(), &b = inferred.elements();
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), types_compatible);
  }
  if (!recorded.is_tensor() || recorded.dtype() != inferred.dtype() ||
      recorded.rank() != inferred.rank())
    return false;
  for (int i = 0; i < recorded.rank(); ++i)
    if (recorded.dim(i) != inferred.dim(i) && recorded.dim(i) != kDynamic &&
        inferred.dim(i) != kDynamic)
      return false;
  return true;
}

std::string result_label(const OpDef& def, const Type& written, const Type& inferred) {
  if (def.result_labels.empty()) return {};
  std::size_t blank = def.result_labels.find(' ');
  std::string_view dtype = def.result_labels.substr(0, blank);
  std::string_view shape =
      blank == std::string_view::npos ? dtype : def.result_labels.substr(blank + 1);
  bool same_dtype =
      written.is_tensor() && inferred.is_tensor() && written.dtype() == inferred.dtype();
  return fmt::format("{}_{}", def.name.substr(def.name.find('.') + 1), same_dtype ? shape : dtype);
}

DimMap dimension_map(const OpCall& call, std::span<const Type> results) {
  if (call.def.dims) return call.def.dims(call, results);
  return call.def.is(kPointwise) ? pointwise_map(call, results) : opaque_map(call, results);
}

}  // namespace xylem::ir
