#include "xylem/ir/text/stablehlo_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_forms.h"

namespace xylem::ir {
namespace text {
namespace {

constexpr std::string_view kMeshPrefix = "sdy.mesh @";

// Ops that always print "(T) -> U", even if all types are equal.
bool functional_only(const OpDef& def) {
  static constexpr std::string_view kOps[] = {"stablehlo.convert", "stablehlo.bitcast_convert",
                                              "stablehlo.is_finite", "stablehlo.compare"};
  if (std::find(std::begin(kOps), std::end(kOps), def.name) != std::end(kOps)) return true;
  return !def.is(kPointwise) && def.name != "stablehlo.reverse" && def.name != "stablehlo.cholesky";
}

// Inherent attributes that a pretty form prints in its dictionary.
bool prints_in_dictionary(const OpDef& def, std::string_view attr) {
  if (is_derived(attr)) return false;
  return (def.name == "stablehlo.dynamic_broadcast_in_dim" && attr.starts_with("known_")) ||
         def.name.starts_with("chlo.broadcast_") || def.name == "chlo.scan";
}

void append_types(std::string& out, const Graph& g, const ValueIds& values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    out += g.type(values[i]).to_mlir();
  }
}

void append_function_attrs(std::string& out, std::string_view before, const Graph& g) {
  Attrs attrs = g.attrs;
  attrs.erase(kDeclaration);
  if (attrs.empty()) return;
  out += before;
  append_mlir_attr(out, Attr(std::move(attrs)));
}

}  // namespace

FunctionNames::FunctionNames(const Module& module) {
  for (const Module::Function& f : module.functions) {
    used_.insert(f.name);
    if (!f.graph) continue;
    by_graph_.emplace(f.graph.get(), f.name);
    unhashed_.push_back({f.graph, f.name});
  }
}

std::string_view FunctionNames::symbol_of(const GraphPtr& region, std::string_view wanted) {
  auto [it, added] = by_graph_.emplace(region.get(), std::string());
  if (!added) return it->second;
  // Hashes are needed only for regions that are no function's own graph.
  for (auto& [graph, name] : unhashed_)
    by_hash_[structural_hash(*graph)].push_back({graph, std::move(name)});
  unhashed_.clear();
  auto& same_hash = by_hash_[structural_hash(*region)];
  for (const auto& [graph, name] : same_hash)
    if (structurally_equal(*graph, *region)) return it->second = name;
  std::string name(wanted.empty() ? std::string_view("fn") : wanted);
  for (int i = 0; used_.contains(name); ++i)
    name = fmt::format("{}_{}", wanted.empty() ? std::string_view("fn") : wanted, i);
  used_.insert(name);
  same_hash.push_back({region, name});
  pending.push_back({name, region});
  return it->second = name;
}

void append_location(std::string& out, const Location& loc) {
  if (!loc.mlir.empty()) {
    fmt::format_to(std::back_inserter(out), " loc({})", loc.mlir);
    return;
  }
  bool place = loc.source.known() && !loc.implied;
  if (!place && loc.path.empty()) return;
  out += " loc(";
  if (!loc.path.empty()) append_quoted(out, loc.path);
  if (!loc.path.empty() && place) out += '(';
  if (place) {
    append_quoted(out, loc.source.file);
    fmt::format_to(std::back_inserter(out), ":{}:{}", loc.source.line, loc.source.column);
  }
  if (!loc.path.empty() && place) out += ')';
  out += ')';
}

void FunctionPrinter::print(const Graph& g, bool is_private) {
  Names names(g.values.size());
  const GraphLocations* locations = g.locations.get();
  line(indent_);
  if (options_.generic) {
    print_generic_head(g, is_private, names);
  } else {
    print_pretty_head(g, is_private, names);
  }
  if (!is_declaration(g)) {
    out_ += options_.generic ? "" : " {\n";
    print_ops(g, names, indent_ + 2, options_.generic ? "func.return" : "return");
    line(indent_);
    out_ += '}';
  }
  if (options_.generic) {
    out_ += ')';
    append_function_attrs(out_, " ", g);
    out_ += " : () -> ()";
  }
  if (locations) print_location(locations->graph);
  out_ += '\n';
}

// func.func public @main(%arg0: T {…}) -> (U {…}) attributes {…}
void FunctionPrinter::print_pretty_head(const Graph& g, bool is_private, Names& names) {
  fmt::format_to(std::back_inserter(out_), "func.func {} ", is_private ? "private" : "public");
  append_symbol(out_, symbol_);
  auto dict = [&](const std::vector<Attrs>& attrs, std::size_t i) {
    if (i >= attrs.size() || attrs[i].empty()) return;
    out_ += ' ';
    append_mlir_attr(out_, Attr(attrs[i]));
  };
  out_ += '(';
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    if (i) out_ += ", ";
    std::string& name = names[static_cast<std::size_t>(g.params[i])] = new_arg_name();
    if (!is_declaration(g)) fmt::format_to(std::back_inserter(out_), "{}: ", name);
    out_ += g.type(g.params[i]).to_mlir();
    dict(g.param_attrs, i);
    if (g.locations && i < g.locations->params.size()) print_location(g.locations->params[i]);
  }
  out_ += ')';
  // A function type in parentheses would be read as a list of results.
  bool parentheses = g.results.size() != 1 || !g.result_attrs.empty() ||
                     g.type(g.results[0]).to_mlir().starts_with('(');
  if (!g.results.empty()) {
    out_ += parentheses ? " -> (" : " -> ";
    for (std::size_t i = 0; i < g.results.size(); ++i) {
      if (i) out_ += ", ";
      out_ += g.type(g.results[i]).to_mlir();
      dict(g.result_attrs, i);
    }
    if (parentheses) out_ += ')';
  }
  append_function_attrs(out_, " attributes ", g);
}

// "func.func"() <{function_type = (T) -> U, sym_name = "main"}> ({ ^bb0(%arg0: T):
void FunctionPrinter::print_generic_head(const Graph& g, bool is_private, Names& names) {
  out_ += "\"func.func\"() <{";
  auto dicts = [&](std::string_view attr, const std::vector<Attrs>& list) {
    if (list.empty()) return;
    fmt::format_to(std::back_inserter(out_), "{} = ", attr);
    append_mlir_attr(out_, Attr(AttrList(list.begin(), list.end())));
    out_ += ", ";
  };
  dicts("arg_attrs", g.param_attrs);
  out_ += "function_type = (";
  append_types(out_, g, ValueIds(g.params), g.params.size());
  out_ += ") -> (";
  append_types(out_, g, ValueIds(g.results), g.results.size());
  out_ += "), ";
  dicts("res_attrs", g.result_attrs);
  out_ += "sym_name = ";
  append_quoted(out_, symbol_);
  fmt::format_to(std::back_inserter(out_), ", sym_visibility = \"{}\"}}> ({{",
                 is_private ? "private" : "public");
  if (is_declaration(g)) {
    out_ += '}';
    return;
  }
  out_ += '\n';
  if (g.params.empty()) return;
  line(indent_);
  out_ += "^bb0(";
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    if (i) out_ += ", ";
    std::string& name = names[static_cast<std::size_t>(g.params[i])] = new_arg_name();
    fmt::format_to(std::back_inserter(out_), "{}: {}", name, g.type(g.params[i]).to_mlir());
    if (g.locations && i < g.locations->params.size()) print_location(g.locations->params[i]);
  }
  out_ += "):\n";
}

void FunctionPrinter::print_location(const Location& loc) {
  if (options_.locations) append_location(out_, loc);
}

std::string FunctionPrinter::new_arg_name() { return fmt::format("%arg{}", next_arg_++); }

void FunctionPrinter::name_results(const Graph& g, const Op& op, Names& names) {
  if (op.results.empty()) return;
  std::string base;
  if (op.def->is(kConstant)) {
    const Type& t = g.type(op.results[0]);
    bool integer = is_integer(t.dtype()) || is_bool(t.dtype());
    int& n = next_constant_[integer];
    base = integer ? "%c" : "%cst";
    if (n) base += fmt::format("_{}", n - 1);
    ++n;
  } else {
    base = fmt::format("%{}", next_value_++);
  }
  out_ += base;
  if (op.results.size() == 1) {
    names[static_cast<std::size_t>(op.results[0])] = base;
  } else {
    fmt::format_to(std::back_inserter(out_), ":{}", op.results.size());
    for (std::size_t i = 0; i < op.results.size(); ++i)
      names[static_cast<std::size_t>(op.results[i])] = fmt::format("{}#{}", base, i);
  }
  out_ += " = ";
}

void FunctionPrinter::check_types(const Graph& g) const {
  for (const Value& v : g.values)
    if (v.type.is_key() || v.type.dtype() == DType::kFloat0)
      throw_user_error({fmt::format("print_stablehlo: function @{}", symbol_),
                        "the types are those of StableHLO",
                        fmt::format("found {}", v.type.to_string()), "Legalise the program first"});
}

void FunctionPrinter::print_ops(const Graph& g, Names& names, int indent,
                                std::string_view terminator) {
  check_types(g);
  for (const Op& op : g.ops) {
    line(indent);
    print_op(g, op, names, indent);
    print_location(op.loc);
    out_ += '\n';
  }
  if (!g.attrs.has(kOpenRegion)) print_terminator(g, names, indent, terminator);
}

void FunctionPrinter::print_terminator(const Graph& g, const Names& names, int indent,
                                       std::string_view name) {
  line(indent);
  out_ += options_.generic ? "\"" : "";
  out_ += name;
  out_ += options_.generic ? "\"(" : "";
  for (std::size_t i = 0; i < g.results.size(); ++i) {
    out_ += i ? ", " : options_.generic ? "" : " ";
    out_ += names[static_cast<std::size_t>(g.results[i])];
  }
  if (options_.generic) out_ += ") : (";
  for (std::size_t i = 0; i < g.results.size(); ++i) {
    out_ += i ? ", " : options_.generic ? "" : " : ";
    out_ += g.type(g.results[i]).to_mlir();
  }
  if (options_.generic) out_ += ") -> ()";
  if (g.locations) print_location(g.locations->terminator);
  out_ += '\n';
}

void FunctionPrinter::print_operands(const Op& op, const Names& names, std::size_t first,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out_ += ", ";
    out_ += names[static_cast<std::size_t>(op.operands[first + i])];
  }
}

// Discardable attributes, and the inherent ones that pretty forms print among them.
void FunctionPrinter::print_attrs(const Op& op, std::string_view skip) {
  bool first = true;
  for (const auto& [name, value] : op.attrs.entries()) {
    const AttrDef* a = op.def->find_attr(name);
    bool in_dict = !a || (a->kind == AttrKind::kAny && name != skip);
    if (!in_dict || is_derived(name)) {
      if (!a || !prints_in_dictionary(*op.def, name)) continue;
      out_ += first ? " {" : ", ";
      first = false;
      append_inherent_attr(out_, *op.def, name, value);
      continue;
    }
    out_ += first ? " {" : ", ";
    first = false;
    append_mlir_name(out_, name);
    if (value.is_unit()) continue;
    out_ += " = ";
    append_mlir_attr(out_, value);
  }
  if (!first) out_ += '}';
}

void FunctionPrinter::print_function_type(const Graph& g, const Op& op) {
  out_ += " : (";
  append_types(out_, g, op.operands, op.operands.size() - num_captures(op));
  out_ += ") -> ";
  bool parentheses = op.results.size() != 1;
  if (parentheses) out_ += '(';
  append_types(out_, g, op.results, op.results.size());
  if (parentheses) out_ += ')';
}

void FunctionPrinter::print_types(const Graph& g, const Op& op) {
  const std::string_view n = op.def->name;
  if (n.starts_with("chlo.broadcast_")) return print_function_type(g, op);
  if (n.starts_with("chlo.")) {
    out_ += " : ";
    append_types(out_, g, op.operands, op.operands.size());
    out_ += " -> ";
    if (op.results.size() != 1) out_ += '(';
    append_types(out_, g, op.results, op.results.size());
    if (op.results.size() != 1) out_ += ')';
    return;
  }
  if (n == "stablehlo.optimization_barrier") {
    if (op.operands.empty()) return;
    out_ += " : ";
    return append_types(out_, g, op.operands, op.operands.size());
  }
  const Type* result = op.results.empty() ? nullptr : &g.type(op.results[0]);
  bool all_equal = result && op.results.size() == 1;
  for (ValueId v : op.operands) all_equal = all_equal && g.type(v) == *result;
  bool result_only = n == "stablehlo.iota" || n == "stablehlo.after_all" ||
                     n == "stablehlo.tuple" || n == "stablehlo.replica_id" ||
                     n == "stablehlo.partition_id";
  if (n == "stablehlo.complex" && result)
    result_only = g.type(op.operands[0]) == result->with_dtype(real_dtype(result->dtype()));
  if (result &&
      (result_only || (all_equal && n != "stablehlo.select" && !functional_only(*op.def)))) {
    fmt::format_to(std::back_inserter(out_), " : {}", result->to_mlir());
  } else if (n == "stablehlo.select" && g.type(op.operands[1]) == *result &&
             g.type(op.operands[2]) == *result) {
    fmt::format_to(std::back_inserter(out_), " : {}, {}", g.type(op.operands[0]).to_mlir(),
                   result->to_mlir());
  } else {
    print_function_type(g, op);
  }
}

void FunctionPrinter::print_op(const Graph& g, const Op& op, Names& names, int indent) {
  const std::string_view n = op.def->name;
  if (op.def != &ops::kCall && op.def != &ops::kForeign &&
      (op.def->is(kXylem) || op.def->is(kKernelOnly) ||
       !(n.starts_with("stablehlo.") || n.starts_with("chlo.") || n.starts_with("check.") ||
         n.starts_with("interpreter.") || n.starts_with("sdy."))))
    throw_user_error({fmt::format("print_stablehlo: function @{}", symbol_),
                      "the ops are those of StableHLO and CHLO", fmt::format("found {}", n),
                      "Legalise the program first"},
                     op.loc.source);
  name_results(g, op, names);
  if (options_.generic || op.def == &ops::kForeign) return print_generic(g, op, names, indent);
  if (op.def == &ops::kCall) return print_call(g, op, names, region_depth_ > 0);
  if (is_generic_only(n)) return print_generic(g, op, names, indent);
  if (n.starts_with("sdy.") && n != "sdy.constant") {
    if (!print_sdy(g, op, names, indent)) print_generic(g, op, names, indent);
    return;
  }
  if (n == "chlo.scan" && op.attrs.has("operandSegmentSizes"))
    return print_scan(g, op, names, indent);
  if (n == "stablehlo.composite") return print_composite(g, op, names, indent);
  if (n == "stablehlo.custom_call") return print_custom_call(g, op, names);
  if (n == "stablehlo.convolution") return print_convolution(g, op, names);
  if (n == "stablehlo.get_tuple_element") return print_get_tuple_element(g, op, names);
  if (n.starts_with("check.") || n.starts_with("interpreter.")) return print_check(g, op, names);
  if (n == "stablehlo.reduce") return print_reduce(g, op, names, indent);
  if (n == "stablehlo.while") return print_while(g, op, names, indent);
  if (!op.regions.empty()) return print_generic(g, op, names, indent);
  if (n == "stablehlo.slice") return print_slice(g, op, names);
  if (n == "stablehlo.dot_general") return print_dot_general(g, op, names);
  out_ += n;
  if (n == "stablehlo.constant" || n == "chlo.constant" || n == "sdy.constant") {
    const HostArray& value = op.attrs.array("value");
    if (!(g.type(op.results[0]) == Type::tensor(value.dtype(), value.dims()))) {
      // Of another type than its value: quantised.
      out_ += "()";
      append_properties(out_, *op.def, op.attrs);
      print_attrs(op);
      return print_function_type(g, op);
    }
    print_attrs(op);
    out_ += ' ';
    return append_dense(out_, value, g.type(op.results[0]));
  }
  if (n == "stablehlo.compare") {
    fmt::format_to(std::back_inserter(out_), " {}, ", op.attrs.str_or("comparison_direction", ""));
    print_operands(op, names, 0, op.operands.size());
    if (op.attrs.has("compare_type"))
      fmt::format_to(std::back_inserter(out_), ", {}", op.attrs.str_or("compare_type", ""));
    print_attrs(op);
    return print_function_type(g, op);
  }
  if (n == "stablehlo.reduce_precision") {
    out_ += ' ';
    print_operands(op, names, 0, 1);
    fmt::format_to(std::back_inserter(out_), ", format = e{}m{}", op.attrs.i64("exponent_bits"),
                   op.attrs.i64("mantissa_bits"));
  } else if (!print_form(op, names)) {
    if (n == "stablehlo.optimization_barrier" && op.operands.empty()) {
      out_ += "()";
    } else {
      if (!op.operands.empty()) out_ += ' ';
      print_operands(op, names, 0, op.operands.size());
    }
  }
  print_attrs(op);
  print_types(g, op);
}

bool FunctionPrinter::print_form(const Op& op, const Names& names) {
  const Form* form = find_form(op.def->name);
  if (!form) return false;
  out_ += form->parentheses ? '(' : ' ';
  print_operands(op, names, 0, op.operands.size());
  bool first = op.operands.empty();
  for (const Clause& clause : form->clauses) {
    const Attr* value = op.attrs.find(clause.attr);
    if (clause.kind == Clause::Kind::kBool && (!value || !op.attrs.flag(clause.attr))) continue;
    if (!first) out_ += ", ";
    first = false;
    fmt::format_to(std::back_inserter(out_), "{} = ", clause.key);
    switch (clause.kind) {
      case Clause::Kind::kDims: out_ += Attr(op.attrs.dims(clause.attr)).to_string(); break;
      case Clause::Kind::kInt:
        fmt::format_to(std::back_inserter(out_), "{}", op.attrs.i64(clause.attr));
        break;
      case Clause::Kind::kBool: out_ += "true"; break;
      case Clause::Kind::kEnum: out_ += op.attrs.str_or(clause.attr, ""); break;
      case Clause::Kind::kString: append_quoted(out_, op.attrs.str_or(clause.attr, "")); break;
    }
  }
  if (form->parentheses) out_ += ')';
  return true;
}

void FunctionPrinter::print_slice(const Graph& g, const Op& op, const Names& names) {
  (out_ += op.def->name) += ' ';
  print_operands(op, names, 0, 1);
  const Dims& start = op.attrs.dims("start_indices");
  const Dims& limit = op.attrs.dims("limit_indices");
  const Dims& strides = op.attrs.dims("strides");
  out_ += " [";
  for (std::size_t i = 0; i < start.size(); ++i) {
    fmt::format_to(std::back_inserter(out_), "{}{}:{}", i ? ", " : "", start[i], limit[i]);
    if (strides[i] != 1) fmt::format_to(std::back_inserter(out_), ":{}", strides[i]);
  }
  out_ += ']';
  print_attrs(op);
  print_function_type(g, op);
}

void FunctionPrinter::print_dot_general(const Graph& g, const Op& op, const Names& names) {
  (out_ += op.def->name) += ' ';
  print_operands(op, names, 0, 2);
  auto pair = [&](std::string_view key, std::string_view kind, bool always) {
    Dims lhs = op.attrs.dims_or(fmt::format("lhs_{}_dimensions", kind), {});
    Dims rhs = op.attrs.dims_or(fmt::format("rhs_{}_dimensions", kind), {});
    if (!always && lhs.empty() && rhs.empty()) return;
    fmt::format_to(std::back_inserter(out_), ", {} = {} x {}", key, Attr(lhs).to_string(),
                   Attr(rhs).to_string());
  };
  pair("batching_dims", "batching", false);
  pair("contracting_dims", "contracting", true);
  if (const Attr* precision = op.attrs.find("precision_config")) {
    out_ += ", precision = [";
    bool first = true;
    for (const Attr& p : *precision->list()) {
      const EnumAttr* e = p.get<EnumAttr>();
      fmt::format_to(std::back_inserter(out_), "{}{}", first ? "" : ", ", e ? e->value : "DEFAULT");
      first = false;
    }
    out_ += ']';
  }
  if (const Attr* algorithm = op.attrs.find("algorithm")) {
    constexpr std::string_view kPrefix = "#stablehlo.dot_algorithm";
    const OpaqueAttr* text = algorithm->get<OpaqueAttr>();
    if (!text || !text->text.starts_with(kPrefix))
      throw_user_error(
          {"print_stablehlo: dot_general", "the attribute algorithm is #stablehlo.dot_algorithm<…>",
           fmt::format("it is {}", algorithm->to_string()), "Write it so"},
          op.loc.source);
    fmt::format_to(std::back_inserter(out_), ", algorithm = {}", text->text.substr(kPrefix.size()));
  }
  print_attrs(op, "algorithm");
  print_function_type(g, op);
}

void FunctionPrinter::print_call(const Graph& g, const Op& op, const Names& names, bool in_region) {
  const GraphPtr& region = op.regions[0];
  std::string wanted = op.attrs.str_or("name", region->name);
  out_ += in_region ? "func.call " : "call ";
  append_symbol(out_, functions_.symbol_of(region, wanted));
  out_ += '(';
  print_operands(op, names, 0, op.operands.size());
  out_ += ')';
  print_attrs(op);
  print_function_type(g, op);
}

}  // namespace text

namespace {

void print_module(std::string& out, const Module& module, const PrintOptions& options, int indent) {
  using namespace text;
  auto line = [&](int n) { out.append(static_cast<std::size_t>(n), ' '); };
  std::vector<std::pair<std::string_view, const Attr*>> meshes;
  Attrs attrs;
  for (const auto& [name, value] : module.attrs.entries()) {
    if (name.starts_with(kMeshPrefix)) {
      meshes.emplace_back(name.substr(kMeshPrefix.size()), &value);
    } else {
      attrs.set(name, value);
    }
  }
  line(indent);
  if (options.generic) {
    out += "\"builtin.module\"() ";
    if (!module.name.empty()) {
      out += "<{sym_name = ";
      append_quoted(out, module.name);
      out += "}> ";
    }
    out += "({\n";
  } else {
    out += "module";
    if (!module.name.empty()) {
      out += ' ';
      append_symbol(out, module.name);
    }
    if (!attrs.empty()) {
      out += " attributes ";
      append_mlir_attr(out, Attr(attrs));
    }
    out += " {\n";
  }
  for (const auto& [name, value] : meshes) {
    line(indent + 2);
    out += "sdy.mesh ";
    append_symbol(out, name);
    out += " = ";
    append_mlir_attr(out, *value);
    out += '\n';
  }
  FunctionNames functions(module);
  for (const Module::Function& f : module.functions)
    if (f.graph)
      FunctionPrinter(out, functions, f.name, options, indent + 2).print(*f.graph, f.is_private);
  while (!functions.pending.empty()) {
    FunctionNames::Pending next = std::move(functions.pending.front());
    functions.pending.pop_front();
    FunctionPrinter(out, functions, next.name, options, indent + 2).print(*next.graph, true);
  }
  for (const auto& nested : module.modules) print_module(out, *nested, options, indent + 2);
  line(indent);
  out += '}';
  if (options.generic) {
    out += ')';
    if (!attrs.empty()) {
      out += ' ';
      append_mlir_attr(out, Attr(attrs));
    }
    out += " : () -> ()";
  }
  if (options.locations) append_location(out, module.loc);
  out += '\n';
}

}  // namespace

std::string print_stablehlo(const Module& module, const PrintOptions& options) {
  std::string out;
  print_module(out, module, options, 0);
  return out;
}

std::string print_dense(const HostArray& array, const Type& type) {
  std::string out;
  text::append_dense(out, array, type, -1);
  return out;
}

}  // namespace xylem::ir
