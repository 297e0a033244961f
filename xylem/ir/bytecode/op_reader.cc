#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/bytecode/enums.h"
#include "xylem/ir/bytecode/program_reader.h"
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/static_check.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Ops: their attributes, what they are read as, and their types.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";
using Mode = ValueReader::Mode;

std::string join(const std::vector<Type>& types) {
  std::string s;
  for (const Type& t : types) s += (s.empty() ? "" : ", ") + t.to_mlir();
  return s;
}

bool is_number(const Attr& a, std::int64_t wanted) {
  if (auto* v = a.get<std::int64_t>()) return *v == wanted;
  if (auto* s = a.get<ScalarAttr>()) return is_integer(s->dtype) && s->integer == wanted;
  return false;
}

bool all_equal(const Dims& d, std::int64_t v) {
  return !d.empty() && std::all_of(d.begin(), d.end(), [&](std::int64_t x) { return x == v; });
}

bool all_zero(const HostArray& a) {
  const std::byte* p = a.data();
  return a.size() > 0 &&
         std::all_of(p, p + a.nbytes(), [](std::byte b) { return b == std::byte{0}; });
}

// The empty form of a value that VHLO writes where StableHLO leaves it out.
bool is_absent(const AttrForm& f, const Attr& a) {
  if (f.absent == Absent::kRequired || f.absent == Absent::kKeptOnes) return false;
  if (auto* d = a.get<Dims>()) {
    if (f.absent == Absent::kOnes) return all_equal(*d, 1);
    if (f.absent == Absent::kZeros) return all_equal(*d, 0);
    return d->empty();
  }
  if (auto* h = a.get<HostArray>())
    return f.absent == Absent::kZeros ? all_zero(*h) : h->size() == 0;
  if (f.absent == Absent::kMinusOne) return is_number(a, -1);
  if (f.absent == Absent::kOriginal) return is_number(a, 1);
  if (auto* list = a.list()) {
    if (f.absent != Absent::kTwoDefaults) return list->empty();
    return std::all_of(list->begin(), list->end(), [](const Attr& e) {
      return e.get<EnumAttr>() && e.get<EnumAttr>()->value == "DEFAULT";
    });
  }
  if (auto* b = a.get<bool>()) return !*b;
  if (auto* s = a.get<std::string>()) return s->empty();
  if (auto* d = a.dict()) return d->empty();
  if (auto* e = a.get<EnumAttr>())
    return e->value == enumeration_of_mnemonic(f.enumeration)->members[0];
  return is_number(a, 0);
}

// Attributes that StableHLO's own records spell out where its text leaves them out: those with a
// default, of ops that have a form of their own in text.
bool is_elided(std::string_view op, const AttrForm& f, const Attr& a) {
  if (op == "stablehlo.custom_call") {
    if (f.name != "has_side_effect" && f.name != "api_version" && f.name != "called_computations" &&
        f.name != "output_operand_aliases")
      return false;
  } else if (op != "stablehlo.composite" && op != "stablehlo.cholesky") {
    return false;
  }
  return is_absent(f, a);
}

bool is_default_accuracy(const Attr& a) {
  const OpaqueAttr* text = a.get<OpaqueAttr>();
  return text && text->text ==
                     "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>";
}

// Structures whose fields are attributes of the op table.
void spread_structures(const OpDef& def, Attrs& attrs) {
  if (text::find_structure(def.name)) return;
  const std::vector<PlainAttr>* plain = plain_attrs(def.name);
  if (!plain) return;
  for (const PlainAttr& p : *plain) {
    const Attr* a = def.find_attr(p.name) ? nullptr : attrs.find(p.name);
    if (!a || !a->dict()) continue;
    const Attrs fields = *a->dict();
    bool known = std::all_of(fields.entries().begin(), fields.entries().end(),
                             [&](const auto& e) { return def.find_attr(e.first) != nullptr; });
    if (!known) continue;
    attrs.erase(p.name);
    for (const auto& [name, value] : fields.entries()) attrs.set(name, value);
  }
}

// Whole result types, of ops whose results do not follow from the operands.
void record_result_types(const OpDef& def, Attrs& attrs, const std::vector<Type>& results) {
  const AttrDef* a = def.find_attr("result_types");
  if (!a || !a->required || attrs.has("result_types")) return;
  AttrList types;
  for (const Type& t : results) types.push_back(t);
  attrs.set("result_types", std::move(types));
}

}  // namespace

ValueReader::Mode ProgramReader::mode_of(const OpDef* def, std::string_view attr) const {
  return def && text::is_inherent(*def, attr) ? Mode::kInherent : Mode::kForeign;
}

std::vector<std::pair<std::string_view, std::size_t>> ProgramReader::record_of(const FileOp& op) {
  std::vector<std::pair<std::string_view, std::size_t>> refs;
  const Name& n = *op.name;
  // Before format 5 all attributes stand in the op's dictionary.
  if (frame_.format < 5) {
    if (!op.has_attrs) return refs;
    for (const auto& [name, index] : values_.dictionary_refs(op.attrs)) {
      bool own = n.form == nullptr && n.plain == nullptr;
      if (n.op == "func.func" || n.op == "func.call")
        own = name == "sym_name" || name == "sym_visibility" || name == "function_type" ||
              name == "arg_attrs" || name == "res_attrs" || name == "callee";
      if (n.form)
        for (const AttrForm& a : n.form->attrs) own = own || a.name == name;
      if (n.plain)
        for (const PlainAttr& a : *n.plain) own = own || a.name == name;
      if (own) refs.emplace_back(name, index);
    }
    return refs;
  }
  if (!op.has_record) return refs;
  const Part& part = frame_.properties[op.record];
  ByteCursor c(source_, part.begin, part.end);
  auto required = [&](std::string_view name) {
    refs.emplace_back(name, c.index("property", values_.num_attrs()));
  };
  auto optional = [&](std::string_view name) {
    std::size_t at = c.pos();
    std::uint64_t v = c.varint("property");
    if (v == 0) return;
    if (!(v & 1) || v >> 1 >= values_.num_attrs())
      source_.fail(at, n.op, fmt::format("property '{}' is an attribute or absent", name),
                   fmt::format("number {}", v), kDamaged);
    refs.emplace_back(name, static_cast<std::size_t>(v >> 1));
  };
  if (n.vhlo && n.op == "func.func") {
    for (std::string_view a :
         {"arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"})
      required(a);
  } else if (n.vhlo && n.op == "func.call") {
    required("callee");
  } else if (n.form) {
    Version v = n.revision == 1 ? n.form->since
                                : n.form->revisions[static_cast<std::size_t>(n.revision) - 2];
    for (const AttrForm& a : n.form->attrs)
      if (n.form->has(a, v)) required(a.name);
  } else if (n.plain) {
    ByteCursor ahead = c;
    std::size_t fields = 0;
    for (; !ahead.done(); ++fields) ahead.varint("property");
    for (const PlainAttr& a : *n.plain) {
      if (a.added && fields < n.plain->size()) continue;
      if (a.optional) {
        optional(a.name);
      } else {
        required(a.name);
      }
    }
  }
  // The sizes of its groups of operands and results follow from their number.
  if (n.op == "chlo.scan") c.seek(c.end());
  if (!c.done())
    c.fail(n.op, "its property record ends with its attributes", "more bytes",
           "The file was written by another version of StableHLO, or is damaged");
  return refs;
}

void ProgramReader::read_vhlo_attr(const FileOp& op, const AttrForm& form, std::size_t index,
                                   const OpDef* def, Attrs& attrs) {
  auto bad = [&](std::string_view expected) {
    source_.fail(values_.attr_offset(index), op.name->op,
                 fmt::format("attribute '{}' is {}", form.name, expected), "it is another one",
                 kDamaged);
  };
  auto get = [&](Mode mode) -> const Attr& { return values_.attr(index, mode); };
  auto set = [&](Attr value) {
    if (!is_absent(form, value)) attrs.set(form.name, std::move(value));
  };
  switch (form.coding) {
    case Coding::kDims:
    case Coding::kBools: {
      const HostArray* h = get(Mode::kInherent).get<HostArray>();
      bool boolean = form.coding == Coding::kBools;
      if (!h || h->rank() != 1 || (boolean ? !is_bool(h->dtype()) : !is_integer(h->dtype())))
        bad(boolean ? "a tensor of bools" : "a tensor of integers");
      HostArray wide = h->astype(DType::kI64);
      return set(Dims(wide.span<std::int64_t>()));
    }
    case Coding::kElements: {
      const Attr& a = get(Mode::kInherent);
      if (!a.get<HostArray>()) bad("a tensor");
      return set(a);
    }
    case Coding::kReplicaGroups: return set(get(mode_of(def, form.name)));
    case Coding::kInt:
    case Coding::kInt32: {
      const Attr& a = get(Mode::kInherent);
      if (!a.get<std::int64_t>() &&
          !(a.get<ScalarAttr>() && is_integer(a.get<ScalarAttr>()->dtype)))
        bad("an integer");
      return set(a);
    }
    case Coding::kBool: {
      const Attr& a = get(Mode::kInherent);
      if (!a.get<bool>()) bad("a bool");
      return set(a);
    }
    case Coding::kFlag: {
      const bool* b = get(Mode::kInherent).get<bool>();
      if (!b) bad("a bool");
      if (*b) attrs.set(form.name, Attr());
      return;
    }
    case Coding::kFloat32: return set(get(Mode::kInherent));
    case Coding::kString: {
      const Attr& a = get(Mode::kInherent);
      if (!a.get<std::string>()) bad("a string");
      return set(a);
    }
    case Coding::kConfig:
    case Coding::kDict: return set(get(Mode::kForeign));
    case Coding::kSymbol: {
      const std::string* s = get(Mode::kInherent).get<std::string>();
      if (!s) bad("a string");
      return set(SymbolAttr{*s});
    }
    case Coding::kSymbols: {
      const AttrList* list = get(Mode::kInherent).list();
      if (!list) bad("a list of strings");
      AttrList symbols;
      for (const Attr& a : *list) {
        if (!a.get<std::string>()) bad("a list of strings");
        symbols.push_back(SymbolAttr{*a.get<std::string>()});
      }
      return set(symbols);
    }
    case Coding::kEnum: {
      const Attr& a = get(Mode::kInherent);
      const EnumAttr* e = a.get<EnumAttr>();
      if (form.enumeration == "custom_call_api_version") {
        if (!a.get<ScalarAttr>()) bad("a version");
        return set(a);
      }
      if (!e || enumeration_of_mnemonic(form.enumeration)->number(e->value) < 0)
        bad(fmt::format("a member of {}", form.enumeration));
      return set(a);
    }
    case Coding::kEnums: {
      const Attr& a = get(Mode::kInherent);
      if (!a.list()) bad("a list");
      for (const Attr& e : *a.list())
        if (!e.get<EnumAttr>() ||
            enumeration_of_mnemonic(form.enumeration)->number(e.get<EnumAttr>()->value) < 0)
          bad(fmt::format("a list of members of {}", form.enumeration));
      return set(a);
    }
    case Coding::kIndexTensors:
    case Coding::kList:
    case Coding::kAliases: {
      const Attr& a = get(mode_of(def, form.name));
      if (!a.list()) bad("a list");
      // Layouts of operands and results come together.
      if (form.coding == Coding::kIndexTensors) {
        attrs.set(form.name, a);
        return;
      }
      return set(a);
    }
    case Coding::kAccuracy: {
      const OpaqueAttr* a = get(Mode::kForeign).get<OpaqueAttr>();
      if (!a || !a->text.starts_with("#stablehlo.result_accuracy<")) bad("an accuracy");
      if (is_default_accuracy(*a)) return;
      attrs.set(form.name, get(mode_of(def, form.name)));
      return;
    }
    case Coding::kChannelId:
    case Coding::kChannelType: {
      const std::int64_t* v = get(Mode::kInherent).get<std::int64_t>();
      if (!v) bad("an integer");
      if (is_absent(form, *v)) return;
      bool handle = form.coding == Coding::kChannelId;
      Attrs fields{{"handle", std::int64_t{0}}, {"type", std::int64_t{0}}};
      if (const Attr* before = attrs.find("channel_handle")) fields = *before->dict();
      fields.set(handle ? "handle" : "type", *v);
      attrs.set("channel_handle", fields);
      return;
    }
    case Coding::kAlgorithmType:
    case Coding::kAlgorithmInt:
    case Coding::kAlgorithmBool: {
      // Collected here, joined when all are known.
      Attrs fields;
      if (const Attr* before = attrs.find("algorithm"); before && before->dict())
        fields = *before->dict();
      fields.set(form.name, get(Mode::kInherent));
      attrs.set("algorithm", fields);
      return;
    }
    case Coding::kDummyPadding: return;
  }
}

void ProgramReader::read_vhlo_record(const FileOp& op, const OpDef* def, Attrs& attrs) {
  for (const auto& [name, index] : record_of(op))
    for (const AttrForm& a : op.name->form->attrs)
      if (a.name == name) read_vhlo_attr(op, a, index, def, attrs);
  const Attr* operands = attrs.find("operand_layouts");
  const Attr* results = attrs.find("result_layouts");
  if (operands && results && operands->list()->empty() && results->list()->empty()) {
    attrs.erase("operand_layouts");
    attrs.erase("result_layouts");
  }
  if (const Attr* handle = attrs.find("channel_handle");
      handle && handle->dict() && mode_of(def, "channel_handle") == Mode::kForeign)
    attrs.set("channel_handle",
              OpaqueAttr{fmt::format("#stablehlo.channel_handle<handle = {}, type = {}>",
                                     handle->dict()->i64_or("handle", 0),
                                     handle->dict()->i64_or("type", 0))});
  if (const Attr* algorithm = attrs.find("algorithm"); algorithm && algorithm->dict()) {
    const Attrs f = *algorithm->dict();
    attrs.erase("algorithm");
    std::string s;
    bool none = false;
    for (std::string_view field :
         {"lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
          "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"}) {
      const Attr* value = f.find(field);
      const OpaqueAttr* text = value ? value->get<OpaqueAttr>() : nullptr;
      none = none || !value || (text && text->text == "none");
      if (none) break;
      std::string v;
      if (auto* number = value->get<std::int64_t>()) {
        v = fmt::format("{}", *number);
      } else {
        text::append_mlir_attr(v, *value);
      }
      s += fmt::format("{}{} = {}", s.empty() ? "" : ", ", field, v);
    }
    if (!none) attrs.set("algorithm", OpaqueAttr{"#stablehlo.dot_algorithm<" + s + ">"});
  }
}

Attrs ProgramReader::read_attrs(const FileOp& op, const OpDef* def) {
  Attrs attrs;
  auto own = record_of(op);
  if (op.has_attrs) {
    if (frame_.format >= 5) {
      attrs = values_.dictionary(op.attrs, Mode::kForeign);
    } else {
      for (const auto& [name, index] : values_.dictionary_refs(op.attrs)) {
        bool inherent = std::any_of(own.begin(), own.end(),
                                    [&, n = name](const auto& r) { return r.first == n; });
        if (!inherent) attrs.set(name, values_.attr(index, mode_of(def, name)));
      }
    }
  }
  if (op.name->form) {
    read_vhlo_record(op, def, attrs);
  } else {
    auto structured = [&, n = op.name](std::string_view name) {
      const OpForm* form = find_form(n->op);
      if (!form || name == "algorithm") return false;
      return std::any_of(form->attrs.begin(), form->attrs.end(),
                         [&](const AttrForm& a) { return a.structure == name; });
    };
    const OpForm* form = find_form(op.name->op);
    for (const auto& [name, index] : own) {
      const Attr& value =
          values_.attr(index, structured(name) ? Mode::kInherent : mode_of(def, name));
      const AttrForm* f = nullptr;
      if (form)
        for (const AttrForm& candidate : form->attrs)
          if (candidate.name == name) f = &candidate;
      if (f && is_elided(op.name->op, *f, value)) continue;
      if (f && f->coding == Coding::kAccuracy &&
          is_default_accuracy(values_.attr(index, Mode::kForeign)))
        continue;
      attrs.set(name, value);
    }
  }
  return attrs;
}

void ProgramReader::check_types(Body& body, FileOp& op, const OpDef& def,
                                const std::vector<ValueId>& operand_ids,
                                const std::vector<GraphPtr>& regions,
                                const std::vector<Type>& results, Attrs& attrs) {
  std::vector<Type> operands;
  for (ValueId v : operand_ids) operands.push_back(body.graph->type(v));
  auto infer = [&] { return infer_types({def, operands, attrs, regions, {}}); };
  auto same = [&](const std::vector<Type>& inferred) {
    if (!text::refine_result_types(def, attrs, operands, regions, results, inferred)) return false;
    if (options_.check)
      check_static({def, operands, attrs, regions, {}}, results, *body.graph, operand_ids);
    return true;
  };
  try {
    std::vector<Type> inferred = infer();
    if (same(inferred)) return;
    // Ops such as dot_general name their element type only if it is not the operands'.
    Attrs before = attrs;
    if (inferred.size() == results.size() && text::derive_result_dtype(def, attrs, results)) {
      if (same(infer())) return;
      attrs = std::move(before);
    }
    if (!options_.check) return;
    report(op, op.name->op, fmt::format("the result types are ({})", join(inferred)),
           fmt::format("the written ones are ({})", join(results)), "Correct the written types");
  } catch (const Error& e) {
    if (options_.check) report_line(op.at, op.loc, e.message());
  }
}

// Ops that are read as others: deprecated ones, and those without a meaning on one device.
bool ProgramReader::expand(Body& body, FileOp& op, const OpDef*& def,
                           std::vector<ValueId>& operands, const std::vector<Type>& results,
                           Attrs& attrs, std::size_t& next, std::size_t limit) {
  const std::string& name = op.name->op;
  if (name == "builtin.unrealized_conversion_cast") {
    bool same = operands.size() == results.size();
    for (std::size_t i = 0; same && i < results.size(); ++i)
      same = body.graph->type(operands[i]) == results[i];
    if (!same) source_.fail(op.at, name, "results of the operands' types", "other types", kDamaged);
    for (ValueId v : operands) define(body, next, limit, v, op.at);
    return true;
  }
  if (name == "stablehlo.cross-replica-sum" && operands.size() == 1) {
    // An all_reduce of sums.
    def = find_op("stablehlo.all_reduce");
    Type scalar = Type::tensor(body.graph->type(operands[0]).dtype());
    Builder sum;
    ValueId x = sum.param(scalar), y = sum.param(scalar);
    auto region = std::make_unique<Body>(&body);
    region->graph = std::make_shared<Graph>(*sum.finish({sum.one(ops::kAdd, {x, y})}));
    op.regions.push_back(std::move(region));
  } else if (name == "stablehlo.create_token") {
    def = &ops::kAfterAll;
  } else if (name == "stablehlo.broadcast" && operands.size() == 1) {
    // New dimensions in front.
    def = &ops::kBroadcastInDim;
    attrs.erase("broadcast_sizes");
    int rank = body.graph->type(operands[0]).rank();
    int result_rank = results.size() == 1 ? results[0].rank() : rank;
    Dims dims;
    for (int i = 0; i < rank; ++i) dims.push_back(result_rank - rank + i);
    attrs.set("broadcast_dimensions", std::move(dims));
  } else if (name == "stablehlo.dot" && operands.size() == 2) {
    def = &ops::kDotGeneral;
    std::int64_t last = body.graph->type(operands[0]).rank() - 1;
    attrs.set("lhs_contracting_dimensions", Dims{std::max<std::int64_t>(last, 0)});
    attrs.set("rhs_contracting_dimensions", Dims{0});
  }
  return false;
}

// The graphs of functions that an op names by symbol stand in front of its own regions.
void ProgramReader::add_functions(const Body& body, const FileOp& op, const Attrs& attrs,
                                  const std::vector<ValueId>& operands,
                                  const std::vector<Type>& results,
                                  std::vector<GraphPtr>& regions) {
  auto add = [&](const Attr& a, std::size_t place, bool typed) {
    const SymbolAttr* symbol = a.get<SymbolAttr>();
    if (!symbol) return;
    Function& f = (*functions_)[symbol->name];
    CallSite site{symbol->name, op.at, region_depth_, {}, results, typed};
    for (ValueId v : operands) site.operands.push_back(body.graph->type(v));
    if (function_) function_->calls.push_back(std::move(site));
    regions.insert(regions.begin() + static_cast<std::ptrdiff_t>(place), f.graph);
  };
  if (op.name->op == "stablehlo.composite") {
    if (const Attr* a = attrs.find("decomposition")) add(*a, 0, true);
  } else if (op.name->op == "stablehlo.custom_call") {
    const Attr* a = attrs.find("called_computations");
    if (!a || !a->list()) return;
    std::size_t place = 0;
    for (const Attr& e : *a->list()) add(e, place++, false);
  }
}

void ProgramReader::finish_op(Body& body, FileOp& op, std::size_t& next, std::size_t limit) {
  const std::string& name = op.name->op;
  bool call = name == "func.call";
  const OpDef* def = call ? &ops::kCall : find_op(name);
  if (!call && def && def->is(kXylem)) def = nullptr;
  std::vector<ValueId> operands;
  operands.reserve(op.operands.size());
  for (std::size_t number : op.operands) operands.push_back(use(body, number, op.at));
  std::vector<Type> results;
  results.reserve(op.result_types.size());
  for (std::size_t t : op.result_types) results.push_back(values_.type(t, op.at));
  Attrs attrs = read_attrs(op, def);
  if (!def && expand(body, op, def, operands, results, attrs, next, limit)) return;
  if (!def)
    source_.fail(op.at, name, "ops are those of StableHLO and CHLO that the op table knows",
                 "this one is not in it", "Legalise the program to such ops");

  Op out;
  int before = num_errors_;
  if (call) {
    const Attr* a = attrs.find("callee");
    const std::string* callee = a ? a->get<std::string>() : nullptr;
    if (a && a->get<SymbolAttr>()) callee = &a->get<SymbolAttr>()->name;
    if (!callee || op.num_regions)
      source_.fail(op.at, "call", "the attribute callee names a function", "it does not", kDamaged);
    std::string symbol = *callee;
    attrs.erase("callee");
    std::vector<Type> types;
    for (ValueId v : operands) types.push_back(body.graph->type(v));
    Function& f = (*functions_)[symbol];
    if (function_)
      function_->calls.push_back({symbol, op.at, region_depth_, std::move(types), results, true});
    attrs.set("name", symbol);
    out.regions.push_back(f.graph);
  } else {
    finish_regions(body, op, def, operands, attrs, out.regions);
    add_functions(body, op, attrs, operands, results, out.regions);
    spread_structures(*def, attrs);
    if (name == "stablehlo.convolution" || name == "stablehlo.dynamic_conv") {
      // Without spatial dimensions there is nothing to list.
      for (std::string_view list :
           {"window_strides", "lhs_dilation", "rhs_dilation", "window_reversal"})
        if (const Attr* a = attrs.find(list); a && a->get<Dims>() && a->get<Dims>()->empty())
          attrs.erase(list);
      const Attr* padding = attrs.find("padding");
      const HostArray* pairs = padding ? padding->get<HostArray>() : nullptr;
      if (pairs && pairs->rank() == 2 && pairs->dims()[0] == 0) attrs.erase("padding");
    }
    attrs = text::to_inherent(*def, std::move(attrs), results,
                              [&](std::string_view expected, std::string_view given) {
                                report(op, name, expected, given, "Correct the attribute");
                              });
    record_result_types(*def, attrs, results);
    if (name == "stablehlo.composite") {
      // Its decomposition may stand further down.
      deferred_.push_back({body.graph, body.graph->ops.size(), op.at});
    } else if (num_errors_ == before) {
      check_types(body, op, *def, operands, out.regions, results, attrs);
    }
  }
  out.def = def;
  out.operands = ValueIds(operands);
  out.attrs = attrs;  // copied, for a copy has no spare room
  out.loc = op.loc;
  Graph& g = *body.graph;
  auto index = static_cast<std::int32_t>(g.ops.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto v = static_cast<ValueId>(g.values.size());
    out.results.push_back(v);
    g.values.push_back({std::move(results[i]), index, static_cast<std::int32_t>(i), nullptr});
    define(body, next, limit, v, op.at);
  }
  g.ops.push_back(std::move(out));
}

}  // namespace xylem::ir::bytecode
