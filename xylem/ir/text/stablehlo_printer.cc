#include "xylem/ir/text/stablehlo_printer.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/text.h"
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

void append_types(std::string& out, const Graph& g, const ValueIds& values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    out += g.type(values[i]).to_mlir();
  }
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

void FunctionPrinter::print(const Graph& g, bool is_private) {
  fmt::format_to(std::back_inserter(out_), "  func.func {} ", is_private ? "private" : "public");
  append_symbol(out_, symbol_);
  Names names(g.values.size());
  auto dict = [&](const std::vector<Attrs>& attrs, std::size_t i) {
    if (i >= attrs.size() || attrs[i].empty()) return;
    out_ += ' ';
    append_mlir_attr(out_, Attr(attrs[i]));
  };
  out_ += '(';
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    if (i) out_ += ", ";
    std::string& name = names[static_cast<std::size_t>(g.params[i])] = new_arg_name();
    fmt::format_to(std::back_inserter(out_), "{}: {}", name, g.type(g.params[i]).to_mlir());
    dict(g.param_attrs, i);
  }
  out_ += ')';
  bool parentheses = g.results.size() != 1 || !g.result_attrs.empty();
  if (!g.results.empty()) {
    out_ += parentheses ? " -> (" : " -> ";
    for (std::size_t i = 0; i < g.results.size(); ++i) {
      if (i) out_ += ", ";
      out_ += g.type(g.results[i]).to_mlir();
      dict(g.result_attrs, i);
    }
    if (parentheses) out_ += ')';
  }
  if (!g.attrs.empty()) {
    out_ += " attributes ";
    append_mlir_attr(out_, Attr(g.attrs));
  }
  out_ += " {\n";
  print_ops(g, names, 4, "return");
  out_ += "  }\n";
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
    out_ += '\n';
  }
  line(indent);
  out_ += terminator;
  for (std::size_t i = 0; i < g.results.size(); ++i) {
    out_ += i ? ", " : " ";
    out_ += names[static_cast<std::size_t>(g.results[i])];
  }
  for (std::size_t i = 0; i < g.results.size(); ++i) {
    out_ += i ? ", " : " : ";
    out_ += g.type(g.results[i]).to_mlir();
  }
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
    if (!in_dict || name == "num_captures") continue;
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
  bool result_only = n == "stablehlo.iota" || n == "stablehlo.after_all";
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
  if (op.def != &ops::kCall && (op.def->is(kXylem) || op.def->is(kKernelOnly) ||
                                !(n.starts_with("stablehlo.") || n.starts_with("chlo."))))
    throw_user_error({fmt::format("print_stablehlo: function @{}", symbol_),
                      "the ops are those of StableHLO and CHLO", fmt::format("found {}", n),
                      "Legalise the program first"},
                     op.loc.source);
  name_results(g, op, names);
  if (op.def == &ops::kCall) return print_call(g, op, names, region_depth_ > 0);
  if (is_generic_only(n)) return print_generic(g, op, names, indent);
  if (n == "stablehlo.reduce") return print_reduce(g, op, names, indent);
  if (n == "stablehlo.while") return print_while(g, op, names, indent);
  if (!op.regions.empty()) return print_generic(g, op, names, indent);
  if (n == "stablehlo.slice") return print_slice(g, op, names);
  if (n == "stablehlo.dot_general") return print_dot_general(g, op, names);
  out_ += n;
  if (n == "stablehlo.constant") {
    print_attrs(op);
    out_ += ' ';
    return append_dense(out_, op.attrs.array("value"), g.type(op.results[0]));
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

std::string print_stablehlo(const Module& module) {
  std::string out = "module";
  if (!module.name.empty()) {
    out += ' ';
    text::append_symbol(out, module.name);
  }
  Attrs attrs;
  std::string meshes;
  for (const auto& [name, value] : module.attrs.entries()) {
    if (name.starts_with(text::kMeshPrefix)) {
      meshes += "  sdy.mesh ";
      text::append_symbol(meshes, name.substr(text::kMeshPrefix.size()));
      meshes += " = ";
      text::append_mlir_attr(meshes, value);
      meshes += '\n';
    } else {
      attrs.set(name, value);
    }
  }
  if (!attrs.empty()) {
    out += " attributes ";
    text::append_mlir_attr(out, Attr(attrs));
  }
  out += " {\n";
  out += meshes;
  text::FunctionNames functions(module);
  for (const Module::Function& f : module.functions)
    if (f.graph) text::FunctionPrinter(out, functions, f.name).print(*f.graph, f.is_private);
  while (!functions.pending.empty()) {
    text::FunctionNames::Pending next = std::move(functions.pending.front());
    functions.pending.pop_front();
    text::FunctionPrinter(out, functions, next.name).print(*next.graph, true);
  }
  out += "}\n";
  return out;
}

}  // namespace xylem::ir
