#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/bytecode/artifact_writer.h"
#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/mixed.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/text/mlir_reader.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Ops, regions, functions and modules.

namespace xylem::ir::bytecode {
namespace {

constexpr std::string_view kMeshPrefix = "sdy.mesh @";

std::string code(std::uint64_t v) {
  std::string s;
  append_varint(s, v);
  return s;
}

// Regions that are functions of their own, which the op names by symbol.
std::size_t num_symbol_regions(const Op& op) {
  if (op.def == &ops::kCall || op.def->name == "stablehlo.custom_call") return op.regions.size();
  return op.def->name == "stablehlo.composite" ? std::min<std::size_t>(1, op.regions.size()) : 0;
}

// Attributes that an artifact does not have, since types or regions say the same.
bool is_implied(std::string_view attr) { return text::is_derived(attr) || attr == "result_types"; }

}  // namespace

// Appends an op whose regions' bytes are complete.
void ArtifactWriter::finish(std::string& out, OpBytes& op) {
  // Before format 5 there are no property records.
  std::vector<std::pair<std::string_view, std::size_t>> entries = op.discardable;
  std::string record = std::move(op.record);
  bool has_record = op.has_record;
  if (format_ >= 5) {
    for (const auto& [name, index] : op.own) {
      append_varint(record, index);
      has_record = true;
    }
  } else {
    has_record = false;
    entries.insert(entries.end(), op.own.begin(), op.own.end());
  }
  std::size_t dictionary = 0;
  if (!entries.empty()) {
    std::sort(entries.begin(), entries.end());
    std::string b = code(1) + code(entries.size());
    for (const auto& [name, index] : entries) {
      append_varint(b, builtin_string(name));
      append_varint(b, index);
    }
    dictionary = pools_.attr("builtin", std::move(b));
  }
  append_varint(out, op.name);
  unsigned mask = (entries.empty() ? 0u : 0x01u) | (op.result_types.empty() ? 0u : 0x02u) |
                  (op.operands.empty() ? 0u : 0x04u) | (op.num_regions ? 0x10u : 0u) |
                  (has_record ? 0x40u : 0u);
  out += static_cast<char>(mask);
  append_varint(out, op.location);
  if (!entries.empty()) append_varint(out, dictionary);
  if (has_record) append_varint(out, pools_.record(std::move(record)));
  for (const auto* list : {&op.result_types, &op.operands}) {
    if (list->empty()) continue;
    append_varint(out, list->size());
    for (std::size_t v : *list) append_varint(out, v);
  }
  if (!op.num_regions) return;
  append_varint(out, op.num_regions << 1 | op.isolated);
  if (op.isolated && format_ >= 2) {
    out += '\4';
    append_varint(out, op.regions.size());
  }
  out += op.regions;
}

std::string ArtifactWriter::region_bytes(const Graph& given_graph, std::size_t base,
                                         const Numbers* outer, std::span<const ValueId> captures,
                                         bool shardy) {
  std::size_t own =
      given_graph.params.size() - std::min(captures.size(), given_graph.params.size());
  Graph cast;
  bool mixed = shardy || needs_casts(given_graph);
  if (mixed) cast = with_casts(given_graph, shardy, own);
  const Graph& g = mixed ? cast : given_graph;
  Numbers numbers(g.values.size(), 0);
  std::size_t next = base;
  for (std::size_t i = 0; i < g.params.size(); ++i)
    numbers[static_cast<std::size_t>(g.params[i])] =
        i < own ? next++ : (*outer)[static_cast<std::size_t>(captures[i - own])];
  std::size_t end = base + own;
  for (const Op& op : g.ops) end += op.results.size();

  const GraphLocations* given = g.locations.get();
  std::string out = code(1) + code(end - base);
  append_varint(out, (g.ops.size() + 1) << 1 | (own > 0));
  if (own > 0) {
    append_varint(out, own);
    for (std::size_t i = 0; i < own; ++i) {
      std::size_t t = type(g.type(g.params[i]));
      std::size_t loc =
          given && i < given->params.size() ? location(given->params[i]) : unknown_location();
      append_varint(out, format_ >= 4 ? t << 1 | 1 : t);
      append_varint(out, loc);
    }
    if (format_ >= 3) out += '\0';
  }
  for (const Op& op : g.ops) {
    for (ValueId v : op.results) numbers[static_cast<std::size_t>(v)] = next++;
    here_ = &op;
    out += op_bytes(g, op, numbers, end);
  }
  OpBytes terminator;
  terminator.name = shardy ? pools_.op_name("sdy", "return") : pools_.op_name("vhlo", "return_v1");
  terminator.location = given ? location(given->terminator) : unknown_location();
  for (ValueId v : g.results) terminator.operands.push_back(numbers[static_cast<std::size_t>(v)]);
  finish(out, terminator);
  return out;
}

// A CHLO op as the composite that jaxlib makes of it; its decomposition is a private function.
void ArtifactWriter::composite_bytes(const Graph& g, const Op& op, OpBytes& out) {
  std::string name(op.def->name);
  Builder b(name + ".impl");
  std::vector<ValueId> params;
  for (ValueId v : op.operands) params.push_back(b.param(g.type(v)));
  GraphPtr body = spell_out(b.finish(op.def->expand(b, op, params)));
  Attrs attrs;
  for (const AttrDef& a : op.def->attrs)
    if (const Attr* v = op.attrs.find(a.name); v && !is_implied(a.name)) attrs.set(a.name, *v);
  out.name = pools_.op_name("vhlo", target_ >= Version{1, 14, 0} ? "composite_v2" : "composite_v1");
  out.own = {{"composite_attributes", dict_attr(attrs)},
             {"decomposition", string_attr(functions_->symbol_of(body, name + ".impl"))},
             {"name", string_attr(name)},
             {"version", int_attr(1, DType::kI32)}};
}

std::string ArtifactWriter::op_bytes(const Graph& g, const Op& op, const Numbers& numbers,
                                     std::size_t end) {
  std::string out;
  OpBytes o;
  o.location = location(op.loc);
  std::size_t captures = text::num_captures(op);
  std::size_t own = op.operands.size() - captures;
  for (std::size_t i = 0; i < own; ++i)
    o.operands.push_back(numbers[static_cast<std::size_t>(op.operands[i])]);
  for (ValueId v : op.results) o.result_types.push_back(type(g.type(v)));

  const OpForm* form = find_form(op.def->name);
  bool call = op.def == &ops::kCall;
  bool composite = op.def->name.starts_with("chlo.") && op.def->expand;
  auto is_own = [&](std::string_view name) {
    if (op.def->find_attr(name) || is_implied(name) || (call && name == "name")) return true;
    if (!form) return false;
    return std::any_of(form->attrs.begin(), form->attrs.end(),
                       [&](const AttrForm& a) { return a.name == name || a.structure == name; });
  };
  const bool shardy = is_shardy(*op.def);
  for (const auto& [name, value] : op.attrs.entries())
    if (!is_own(name)) o.discardable.emplace_back(name, shardy ? builtin_attr(value) : attr(value));

  if (op.def == &kTypeCast) {
    o.name = pools_.op_name("builtin", "unrealized_conversion_cast");
  } else if (shardy) {
    shardy_attrs(op, o);
  } else if (call) {
    std::string wanted = op.attrs.str_or("name", op.regions[0]->name);
    o.name = pools_.op_name("vhlo", "call_v1");
    o.own = {{"callee", string_attr(functions_->symbol_of(op.regions[0], wanted))}};
  } else if (composite) {
    composite_bytes(g, op, o);
  } else if (form && op.def->name.starts_with("stablehlo.")) {
    o.name =
        pools_.op_name("vhlo", fmt::format("{}_v{}", form->vhlo_name(), form->revision(target_)));
    own_attrs(g, op, *form, o);
  } else {
    refuse(op.loc, op.def->name, "the ops are those of StableHLO and CHLO",
           op.def->name.starts_with("chlo.") ? "this one has no decomposition" : "this is another",
           "Legalise the program first");
    return out;
  }

  std::size_t symbols = num_symbol_regions(op);
  auto captured = std::span<const ValueId>(op.operands.data() + own, captures);
  o.num_regions = op.regions.size() - symbols;
  o.isolated = captures == 0;
  for (std::size_t i = symbols; i < op.regions.size(); ++i) {
    o.regions += region_bytes(*op.regions[i], o.isolated ? 0 : end, &numbers, captured, shardy);
    here_ = &op;
  }
  finish(out, o);
  return out;
}

// Shardy's ops as MLIR has them: a record of their attributes by name.
void ArtifactWriter::shardy_attrs(const Op& op, OpBytes& out) {
  std::string_view name = op.def->name.substr(op.def->name.find('.') + 1);
  require({1, 11, 0}, std::string(op.def->name), op.loc);
  out.name = pools_.op_name("sdy", name);
  for (const PlainAttr& a : *plain_attrs(op.def->name)) {
    const Attr* value = op.attrs.find(a.name);
    std::size_t index = value ? builtin_attr(*value) : 0;
    out.own.emplace_back(a.name, !a.optional ? index : value ? index << 1 | 1 : 0);
  }
}

std::string ArtifactWriter::function_bytes(const Graph& g, std::string_view symbol,
                                           bool is_private) {
  place_ = fmt::format("function @{}", symbol);
  here_ = nullptr;
  OpBytes o;
  o.name = pools_.op_name("vhlo", "func_v1");
  o.location = g.locations ? location(g.locations->graph) : unknown_location();
  auto dicts = [&](const std::vector<Attrs>& attrs) {
    std::vector<std::size_t> list;
    for (const Attrs& a : attrs) list.push_back(dict_attr(a));
    return array_attr(list);
  };
  bool declared = text::is_declaration(g);
  o.own = {{"arg_attrs", dicts(g.param_attrs)},
           {"function_type", type_attr(function_type(g.param_types(), g.result_types()))},
           {"res_attrs", dicts(g.result_attrs)},
           {"sym_name", string_attr(symbol)},
           {"sym_visibility", string_attr(is_private ? "private" : "public")}};
  for (const auto& [name, value] : g.attrs.entries())
    if (name != text::kDeclaration) o.discardable.emplace_back(name, attr(value));
  o.num_regions = 1;
  o.regions = declared ? code(0) : region_bytes(g, 0, nullptr, {});
  std::string out;
  finish(out, o);
  return out;
}

std::string ArtifactWriter::module_bytes(const Module& given) {
  // CHLO ops that the target has no form for are spelled out first.
  Module module = given;
  for (Module::Function& f : module.functions)
    if (f.graph) f.graph = spell_out(f.graph);
  text::FunctionNames functions(module);
  text::FunctionNames* outer = functions_;
  functions_ = &functions;
  std::string body;
  std::size_t count = 0;
  Attrs attrs;
  for (const auto& [name, value] : module.attrs.entries()) {
    if (!name.starts_with(kMeshPrefix)) {
      attrs.set(name, value);
      continue;
    }
    require({1, 11, 0}, "sdy.mesh", module.loc);
    OpBytes mesh;
    mesh.name = pools_.op_name("sdy", "mesh");
    mesh.location = unknown_location();
    std::string text;
    text::append_mlir_attr(text, value);
    // "<[…]> {…}": attributes of the op may follow the mesh.
    if (std::size_t dict = text.find("> {"); dict != std::string::npos) {
      const Attrs more =
          text::MlirReader(std::string_view(text).substr(dict + 2), "mesh", {}).read_dict(nullptr);
      for (const auto& [key, own] : more.entries())
        mesh.discardable.emplace_back(key, builtin_attr(own));
      text.resize(dict + 1);
    }
    mesh.own = {{"mesh", pools_.attr_text("sdy", "#sdy.mesh" + text)},
                {"sym_name", builtin_string(name.substr(kMeshPrefix.size()))}};
    finish(body, mesh);
    ++count;
  }
  for (const Module::Function& f : module.functions) {
    if (!f.graph) continue;
    body += function_bytes(*f.graph, f.name, f.is_private);
    ++count;
  }
  while (!functions.pending.empty()) {
    text::FunctionNames::Pending next = std::move(functions.pending.front());
    functions.pending.pop_front();
    GraphPtr graph = spell_out(next.graph);
    body += function_bytes(*graph, next.name, true);
    ++count;
  }
  for (const auto& nested : module.modules) {
    body += module_bytes(*nested);
    ++count;
  }
  functions_ = outer;

  OpBytes o;
  o.name = pools_.op_name("builtin", "module");
  o.location = location(module.loc);
  for (const auto& [name, value] : attrs.entries())
    o.discardable.emplace_back(name, builtin_attr(value));
  if (format_ >= 5) {
    // Optional name and visibility.
    o.has_record = true;
    o.record = module.name.empty() ? code(0) : code(builtin_string(module.name) << 1 | 1);
    append_varint(o.record, 0);
  } else if (!module.name.empty()) {
    o.own = {{"sym_name", builtin_string(module.name)}};
  }
  o.num_regions = 1;
  o.regions = code(1) + code(0) + code(count << 1) + body;
  std::string out;
  finish(out, o);
  return out;
}

}  // namespace xylem::ir::bytecode
