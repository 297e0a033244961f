#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode/artifact_writer.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/enums.h"
#include "xylem/ir/bytecode/structure_text.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// The attributes that VHLO's ops have.

namespace xylem::ir::bytecode {
namespace {

std::string code(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

std::int64_t integer(const Attr& a) {
  if (auto* s = a.get<ScalarAttr>()) return s->integer;
  if (auto* b = a.get<bool>()) return *b;
  return a.get<std::int64_t>() ? *a.get<std::int64_t>() : 0;
}

bool truth(const Attr& a) { return a.is_unit() || (a.get<bool>() && *a.get<bool>()); }

// How many spatial dimensions the op's windows have.
std::int64_t spatial_rank(const Graph& g, const Op& op) {
  if (const Attr* w = op.attrs.find("window_dimensions"); w && w->get<Dims>())
    return w->get<Dims>()->ssize();
  int rank = op.operands.empty() ? 0 : g.type(op.operands[0]).rank();
  bool convolution = op.def->name.ends_with("conv") || op.def->name.ends_with("convolution");
  return convolution ? std::max(0, rank - 2) : rank;
}

// Whether an attribute that is there says what its absence says.
bool says_nothing(const AttrForm& f, const Attr& a) {
  switch (f.coding) {
    case Coding::kBool:
    case Coding::kFlag: return !truth(a);
    case Coding::kDims: return a.get<Dims>() && a.get<Dims>()->empty();
    case Coding::kElements: return a.get<HostArray>() && a.get<HostArray>()->size() == 0;
    case Coding::kList:
    case Coding::kSymbols:
    case Coding::kAliases: return a.list() && a.list()->empty();
    case Coding::kAccuracy: {
      const OpaqueAttr* text = a.get<OpaqueAttr>();
      if (text)
        return text->text ==
               "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>";
      const Attr* mode = a.dict() ? a.dict()->find("mode") : nullptr;
      return mode && a.dict()->size() == 1 && mode->get<EnumAttr>() &&
             mode->get<EnumAttr>()->value == "DEFAULT";
    }
    default: return false;
  }
}

}  // namespace

// The fields of a structure attribute, however the op table has it.
Attrs ArtifactWriter::structure_of(const Op& op, std::string_view name) {
  const Attr* a = op.attrs.find(name);
  if (!a) return {};
  Attr parsed = *a;
  if (auto* text = a->get<OpaqueAttr>()) parsed = parse_inherent(text->text);
  if (parsed.dict()) return *parsed.dict();
  refuse(op.loc, op.def->name, fmt::format("attribute '{}' is a structure", name), a->to_string(),
         "Correct the attribute");
  return {};
}

std::size_t ArtifactWriter::absent_attr(const Graph& g, const Op& op, const AttrForm& a) {
  std::int64_t n = spatial_rank(g, op);
  Dims ones(static_cast<std::size_t>(n), 1);
  switch (a.absent) {
    case Absent::kOnes:
    case Absent::kKeptOnes: return dims_attr(ones);
    case Absent::kZeros: {
      HostArray zeros = a.coding == Coding::kBools ? HostArray::zeros(DType::kBool, {n})
                                                   : HostArray::zeros(DType::kI64, {n, 2});
      return tensor_attr(zeros, type(Type::tensor(zeros.dtype(), zeros.dims())));
    }
    case Absent::kMinusOne: return int_attr(-1);
    case Absent::kTwoDefaults: {
      std::size_t e = enum_attr(a.enumeration, "DEFAULT");
      return array_attr({e, e});
    }
    case Absent::kOriginal: return enum_attr(a.enumeration, "API_VERSION_ORIGINAL");
    case Absent::kRequired:
      refuse(op.loc, op.def->name, fmt::format("attribute '{}' is there", a.name), "it is absent",
             "Add it");
      return 0;
    case Absent::kZero: break;
  }
  switch (a.coding) {
    case Coding::kDims:
    case Coding::kElements: return dims_attr({});
    case Coding::kBool:
    case Coding::kFlag: return bool_attr(false);
    case Coding::kInt32: return int_attr(0, DType::kI32);
    case Coding::kString:
    case Coding::kConfig: return string_attr("");
    case Coding::kDict: return dict_attr({});
    case Coding::kEnum:
      return enum_attr(a.enumeration, enumeration_of_mnemonic(a.enumeration)->members[0]);
    case Coding::kAccuracy: {
      std::string b = code(20);
      append_signed_varint(b, 0);
      append_signed_varint(b, 0);
      append_signed_varint(b, 0);
      append_varint(b, enum_attr("result_accuracy_mode", "DEFAULT"));
      return vhlo(std::move(b));
    }
    case Coding::kAlgorithmType:
    case Coding::kAlgorithmInt:
    case Coding::kAlgorithmBool: return type_attr(named_type("none"));
    case Coding::kSymbols:
    case Coding::kIndexTensors:
    case Coding::kList:
    case Coding::kAliases: return array_attr({});
    default: return int_attr(0);
  }
}

std::size_t ArtifactWriter::own_attr(const Graph& g, const Op& op, const AttrForm& form,
                                     bool& needed) {
  needed = false;
  if (form.coding == Coding::kDummyPadding) return absent_attr(g, op, form);
  auto wrong = [&](const Attr& a, std::string_view expected) -> std::size_t {
    refuse(op.loc, op.def->name, fmt::format("attribute '{}' is {}", form.name, expected),
           fmt::format("it is {}", a.to_string()), "Correct the attribute");
    return 0;
  };
  if (form.coding == Coding::kChannelId || form.coding == Coding::kChannelType) {
    if (!op.attrs.has("channel_handle")) {
      if (const Attr* flat = op.attrs.find(form.name)) return int_attr(integer(*flat));
      return absent_attr(g, op, form);
    }
    return int_attr(structure_of(op, "channel_handle")
                        .i64_or(form.coding == Coding::kChannelId ? "handle" : "type", 0));
  }
  if (form.structure == "algorithm") {
    if (!op.attrs.has("algorithm")) return absent_attr(g, op, form);
    needed = true;
    const Attrs fields = structure_of(op, "algorithm");
    const Attr* v = fields.find(form.name);
    if (!v) return wrong(op.attrs.at("algorithm"), "complete");
    if (form.coding == Coding::kAlgorithmInt) return int_attr(integer(*v));
    if (form.coding == Coding::kAlgorithmBool) return bool_attr(truth(*v));
    return attr(*v);
  }
  const Attr* given = op.attrs.find(form.name);
  if (!given) return absent_attr(g, op, form);
  Attr a = *given;
  needed = !says_nothing(form, a);
  // What the op table keeps as text.
  if (auto* text = a.get<OpaqueAttr>();
      text && form.coding != Coding::kReplicaGroups && form.coding != Coding::kAccuracy)
    a = parse_inherent(text->text);
  switch (form.coding) {
    case Coding::kDims:
      if (auto* d = a.get<Dims>()) return dims_attr(*d);
      if (auto* h = a.get<HostArray>(); h && h->rank() == 1) {
        HostArray wide = h->astype(DType::kI64);
        return dims_attr(Dims(wide.span<std::int64_t>()));
      }
      return wrong(a, "a list of integers");
    case Coding::kBools: {
      const Dims* d = a.get<Dims>();
      if (!d) return wrong(a, "a list of bools");
      HostArray bools(DType::kBool, {d->ssize()});
      for (std::size_t i = 0; i < d->size(); ++i) bools.data()[i] = std::byte{(*d)[i] != 0};
      return tensor_attr(bools, type(Type::tensor(DType::kBool, bools.dims())));
    }
    case Coding::kElements:
    case Coding::kReplicaGroups: {
      if (auto* h = a.get<HostArray>())
        return tensor_attr(*h, type(Type::tensor(h->dtype(), h->dims())));
      if (form.coding == Coding::kElements) return wrong(a, "a dense array");
      std::string text;
      text::append_inherent_attr(text, *op.def, form.name, a);
      return mesh_attr(std::string_view(text).substr(form.name.size() + 3));
    }
    case Coding::kInt: return int_attr(integer(a));
    case Coding::kInt32: return int_attr(integer(a), DType::kI32);
    case Coding::kBool:
    case Coding::kFlag: return bool_attr(truth(a));
    case Coding::kFloat32: {
      if (auto* s = a.get<ScalarAttr>()) return float_attr(s->real, DType::kF32);
      if (auto* d = a.get<double>()) return float_attr(*d, DType::kF32);
      return wrong(a, "a float");
    }
    case Coding::kString:
      return a.get<std::string>() ? string_attr(*a.get<std::string>()) : wrong(a, "a string");
    case Coding::kConfig:
      if (a.dict()) require({1, 3, 0}, fmt::format("a dictionary as '{}'", form.name), op.loc);
      return attr(a);
    case Coding::kDict: return a.dict() ? dict_attr(*a.dict()) : wrong(a, "a dictionary");
    case Coding::kSymbol: {
      const SymbolAttr* s = a.get<SymbolAttr>();
      const std::string_view wanted = s ? std::string_view(s->name) : "";
      if (op.regions.empty()) return string_attr(wanted);
      return string_attr(functions_->symbol_of(op.regions[0], wanted));
    }
    case Coding::kSymbols: {
      if (!a.list()) return wrong(a, "a list of symbols");
      std::vector<std::size_t> list;
      for (std::size_t i = 0; i < a.list()->size(); ++i) {
        const SymbolAttr* s = (*a.list())[i].get<SymbolAttr>();
        std::string_view wanted = s ? std::string_view(s->name) : "";
        list.push_back(string_attr(
            i < op.regions.size() ? functions_->symbol_of(op.regions[i], wanted) : wanted));
      }
      return array_attr(list);
    }
    case Coding::kEnum: {
      std::string_view member;
      if (auto* e = a.get<EnumAttr>()) {
        member = e->value;
      } else {
        const Enumeration* e2 = enumeration_of_mnemonic(form.enumeration);
        auto n = static_cast<std::size_t>(integer(a));
        if (integer(a) >= 0 && n < e2->members.size()) member = e2->members[n];
      }
      return enum_attr(form.enumeration, member);
    }
    case Coding::kEnums: {
      if (!a.list()) return wrong(a, "a list");
      std::vector<std::size_t> list;
      for (const Attr& e : *a.list()) {
        Attr member = e.get<OpaqueAttr>() ? parse_inherent(e.get<OpaqueAttr>()->text) : e;
        list.push_back(enum_attr(form.enumeration, member.get<EnumAttr>()
                                                       ? member.get<EnumAttr>()->value
                                                       : std::string_view()));
      }
      return array_attr(list);
    }
    case Coding::kIndexTensors: {
      if (!a.list()) return wrong(a, "a list of layouts");
      std::vector<std::size_t> list;
      for (const Attr& e : *a.list()) {
        if (auto* h = e.get<HostArray>()) {
          list.push_back(index_tensor(h->dims(), h->astype(DType::kI64)));
        } else if (auto* d = e.get<Dims>()) {
          HostArray line(DType::kI64, {d->ssize()});
          std::copy(d->begin(), d->end(), line.as<std::int64_t>());
          list.push_back(index_tensor(line.dims(), line));
        } else {
          list.push_back(attr(e));
        }
      }
      return array_attr(list);
    }
    case Coding::kAliases: {
      if (!a.list()) return wrong(a, "a list of aliases");
      std::vector<std::size_t> list;
      for (const Attr& e : *a.list()) {
        Attr alias = e.get<OpaqueAttr>() ? parse_inherent(e.get<OpaqueAttr>()->text) : e;
        if (!alias.dict()) return wrong(a, "a list of aliases");
        list.push_back(structure_attr("output_operand_alias", *alias.dict()));
      }
      return array_attr(list);
    }
    case Coding::kAccuracy: {
      if (!needed) return absent_attr(g, op, form);
      return structure_attr("result_accuracy", structure_of(op, form.name));
    }
    default: return attr(a);
  }
}

// What no attribute tells.
void ArtifactWriter::check_limits(const Graph& g, const Op& op, const OpForm& form) {
  auto need = [&](Version v, std::string_view what) { require(v, std::string(what), op.loc); };
  if (form.since > kMinimumVersion) require(form.since, std::string(op.def->name), op.loc);
  std::size_t captures = text::num_captures(op);
  if (form.before == OpForm::Limit::kOneOperand && op.operands.size() - captures != 1)
    need(form.revisions[0], "several operands");
  if (form.before == OpForm::Limit::kNoRegions && op.regions.size() > 1)
    need(form.revisions[0], "regions");
  if (form.promotes && !op.regions.empty()) {
    const Graph& r = *op.regions.back();
    std::size_t own = r.params.size() - std::min(captures, r.params.size());
    std::size_t n = std::max<std::size_t>(1, own / 2);
    for (std::size_t i = 0; i < own; ++i) {
      std::size_t operand = i % n;
      if (operand < op.operands.size() &&
          r.type(r.params[i]).dtype() != g.type(op.operands[operand]).dtype()) {
        need({0, 17, 0}, "a body that widens the element type");
        break;
      }
    }
  }
  if (op.def->name == "stablehlo.custom_call") {
    auto future = [&](ValueId v) { return g.type(v).is_future(); };
    if (std::any_of(op.operands.begin(), op.operands.end(), future) ||
        std::any_of(op.results.begin(), op.results.end(), future))
      need({1, 17, 0}, "futures");
  }
}

void ArtifactWriter::own_attrs(const Graph& g, const Op& op, const OpForm& form, OpBytes& out) {
  check_limits(g, op, form);
  for (const AttrForm& a : form.attrs) {
    bool there = form.has(a, target_);
    if (!there && a.until < target_) continue;
    bool needed = false;
    if (!there) {
      // Looked at only for what it needs.
      if (!op.attrs.has(a.structure == "algorithm" ? a.structure : a.name)) continue;
      Pools scratch(format_);
      std::swap(scratch, pools_);
      own_attr(g, op, a, needed);
      std::swap(scratch, pools_);
    } else {
      std::size_t index = own_attr(g, op, a, needed);
      out.own.emplace_back(a.name, index);
    }
    if (needed && a.since > kMinimumVersion)
      require(a.since,
              fmt::format("the attribute '{}'", a.structure == "algorithm" ? a.structure : a.name),
              op.loc);
  }
}

}  // namespace xylem::ir::bytecode
