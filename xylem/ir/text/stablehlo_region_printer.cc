#include <fmt/format.h>

#include <algorithm>

#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_printer.h"

// Ops with regions, and the generic form.

namespace xylem::ir::text {
namespace {

// The op that a reduction applies, if the compact form can say all of it.
const OpDef* compact_reducer(const Graph& g, const Op& op) {
  const Graph& r = *op.regions[0];
  if (op.operands.size() != 2 || r.params.size() != 2 || r.ops.size() != 1 || r.results.size() != 1)
    return nullptr;
  const Op& body = r.ops[0];
  Type t = Type::tensor(g.type(op.operands[0]).dtype());
  bool plain = body.def->is(kCommutative) && body.def->name.starts_with("stablehlo.") &&
               body.operands.size() == 2 && body.results.size() == 1 && body.attrs.empty() &&
               body.operands[0] == r.params[0] && body.operands[1] == r.params[1] &&
               r.results[0] == body.results[0] && r.type(body.results[0]) == t &&
               r.type(r.params[0]) == t && r.type(r.params[1]) == t;
  return plain ? body.def : nullptr;
}

}  // namespace

std::size_t num_captures(const Op& op) {
  if (op.def == &ops::kIf || op.def == &ops::kCase) return op.operands.size() - 1;
  auto n = static_cast<std::size_t>(std::max<std::int64_t>(0, op.attrs.i64_or("num_captures", 0)));
  return std::min(n, op.operands.size());
}

FunctionPrinter::Names FunctionPrinter::region_names(const Graph& region, const Op& op,
                                                     const Names& outer, std::size_t captures) {
  Names names(region.values.size());
  std::size_t own = region.params.size() - std::min(captures, region.params.size());
  for (std::size_t i = own; i < region.params.size(); ++i) {
    ValueId from = op.operands[op.operands.size() - captures + (i - own)];
    names[static_cast<std::size_t>(region.params[i])] = outer[static_cast<std::size_t>(from)];
  }
  return names;
}

void FunctionPrinter::print_block_arg(const Graph& region, std::size_t i, const Names& names) {
  ValueId v = region.params[i];
  fmt::format_to(std::back_inserter(out_), "{}: {}", names[static_cast<std::size_t>(v)],
                 region.type(v).to_mlir());
  if (region.locations && i < region.locations->params.size())
    print_location(region.locations->params[i]);
}

void FunctionPrinter::print_generic(const Graph& g, const Op& op, const Names& names, int indent) {
  bool foreign = op.def == &ops::kForeign, call = op.def == &ops::kCall;
  fmt::format_to(std::back_inserter(out_), "\"{}\"(",
                 foreign ? op.attrs.str("op")
                 : call  ? std::string_view("func.call")
                         : op.def->name);
  std::size_t captures = num_captures(op);
  print_operands(op, names, 0, op.operands.size() - captures);
  out_ += ')';
  if (call) {
    out_ += " <{callee = ";
    append_symbol(
        out_, functions_.symbol_of(op.regions[0], op.attrs.str_or("name", op.regions[0]->name)));
    out_ += "}>";
    print_discardable(op);
    return print_function_type(g, op);
  }
  if (foreign) {
    if (const Attr* properties = op.attrs.find("properties")) {
      out_ += " <";
      append_mlir_attr(out_, *properties);
      out_ += '>';
    }
  } else {
    Attrs attrs = op.attrs;
    for (std::string_view name : {"decomposition", "called_computations", "programs", "infeed"})
      if (op.attrs.has(name) && op.def->find_attr(name))
        attrs.set(name, function_attr(op, name, op.attrs.at(name)));
    append_properties(out_, *op.def, attrs);
  }
  print_regions(op, names, indent);
  if (const Attr* attributes = foreign ? op.attrs.find("attributes") : nullptr) {
    out_ += ' ';
    append_mlir_attr(out_, *attributes);
  }
  if (!foreign) print_discardable(op);
  print_function_type(g, op);
}

void FunctionPrinter::print_regions(const Op& op, const Names& names, int indent) {
  std::size_t captures = num_captures(op), first = num_function_regions(op);
  ++region_depth_;
  for (std::size_t k = first; k < op.regions.size(); ++k) {
    const Graph& region = *op.regions[k];
    out_ += k > first ? ", {\n" : " ({\n";
    Names inner = region_names(region, op, names, captures);
    std::size_t own = region.params.size() - std::min(captures, region.params.size());
    if (own > 0) {
      line(indent);
      out_ += "^bb0(";
      for (std::size_t i = 0; i < own; ++i) {
        if (i) out_ += ", ";
        inner[static_cast<std::size_t>(region.params[i])] = new_arg_name();
        print_block_arg(region, i, inner);
      }
      out_ += "):\n";
    }
    print_ops(region, inner, indent + 2,
              op.def->name.starts_with("sdy.") ? "sdy.return" : "stablehlo.return");
    line(indent);
    out_ += '}';
  }
  if (op.regions.size() > first) out_ += ')';
  --region_depth_;
}

void FunctionPrinter::print_discardable(const Op& op) {
  bool first = true;
  for (const auto& [name, value] : op.attrs.entries()) {
    if (op.def->find_attr(name) || is_derived(name)) continue;
    out_ += first ? " {" : ", ";
    first = false;
    append_mlir_name(out_, name);
    if (value.is_unit()) continue;
    out_ += " = ";
    append_mlir_attr(out_, value);
  }
  if (!first) out_ += '}';
}

void FunctionPrinter::print_reduce(const Graph& g, const Op& op, const Names& names, int indent) {
  std::size_t captures = num_captures(op);
  std::size_t inputs = (op.operands.size() - captures) / 2;
  out_ += "stablehlo.reduce(";
  for (std::size_t i = 0; i < inputs; ++i) {
    if (i) out_ += "), (";
    print_operands(op, names, i, 1);
    out_ += " init: ";
    print_operands(op, names, inputs + i, 1);
  }
  out_ += ')';
  const OpDef* compact = captures == 0 ? compact_reducer(g, op) : nullptr;
  if (compact) fmt::format_to(std::back_inserter(out_), " applies {}", compact->name);
  fmt::format_to(std::back_inserter(out_), " across dimensions = {}",
                 Attr(op.attrs.dims("dimensions")).to_string());
  print_attrs(op);
  print_function_type(g, op);
  if (compact) return;
  const Graph& region = *op.regions[0];
  Names inner = region_names(region, op, names, captures);
  for (std::size_t i = 0; i < 2 * inputs; ++i)
    inner[static_cast<std::size_t>(region.params[i])] = new_arg_name();
  out_ += '\n';
  line(indent);
  out_ += " reducer";
  for (std::size_t i = 0; i < inputs; ++i) {
    out_ += i ? " (" : "(";
    print_block_arg(region, i, inner);
    out_ += ", ";
    print_block_arg(region, inputs + i, inner);
    out_ += ')';
  }
  out_ += " {\n";
  ++region_depth_;
  print_ops(region, inner, indent + 2, "stablehlo.return");
  --region_depth_;
  line(indent);
  out_ += '}';
}

void FunctionPrinter::print_while(const Graph& g, const Op& op, const Names& names, int indent) {
  std::size_t captures = num_captures(op);
  std::size_t carried = op.operands.size() - captures;
  std::vector<std::string> args;
  out_ += "stablehlo.while(";
  for (std::size_t i = 0; i < carried; ++i) {
    args.push_back(next_iter_arg_ ? fmt::format("%iterArg_{}", next_iter_arg_ - 1) : "%iterArg");
    ++next_iter_arg_;
    fmt::format_to(std::back_inserter(out_), "{}{} = ", i ? ", " : "", args.back());
    print_operands(op, names, i, 1);
  }
  out_ += ')';
  for (std::size_t i = 0; i < carried; ++i) {
    out_ += i ? ", " : " : ";
    out_ += g.type(op.operands[i]).to_mlir();
  }
  std::size_t before = out_.size();
  print_attrs(op);
  if (out_.size() > before) out_.insert(before, " attributes");
  out_ += '\n';
  ++region_depth_;
  for (std::size_t k = 0; k < 2; ++k) {
    const Graph& region = *op.regions[k];
    Names inner = region_names(region, op, names, captures);
    for (std::size_t i = 0; i < carried; ++i)
      inner[static_cast<std::size_t>(region.params[i])] = args[i];
    if (k == 0) line(indent);
    out_ += k ? " do {\n" : " cond {\n";
    print_ops(region, inner, indent + 2, "stablehlo.return");
    line(indent);
    out_ += '}';
  }
  --region_depth_;
}

}  // namespace xylem::ir::text
