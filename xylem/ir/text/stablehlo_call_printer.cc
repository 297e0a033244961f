#include <fmt/format.h>

#include <algorithm>

#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_printer.h"

// The pretty forms of convolution, of calls, and of the check and interpreter dialects.

namespace xylem::ir::text {

std::size_t num_function_regions(const Op& op) {
  return referenced_functions(*op.def, op.attrs).size();
}

// Names of functions come from the regions, whose functions may have been renamed.
Attr FunctionPrinter::function_attr(const Op& op, std::string_view name, const Attr& value) {
  bool names_functions = name == "decomposition" || name == "called_computations" ||
                         name == "programs" || name == "infeed";
  if (!names_functions || num_function_regions(op) == 0) return value;
  std::size_t next = 0;
  if (name == "infeed")
    if (const Attr* programs = op.attrs.find("programs"))
      for (const Attr& row : programs->list() ? *programs->list() : AttrList{})
        next += row.list() ? row.list()->size() : 0;
  auto rename = [&](auto&& self, const Attr& a) -> Attr {
    if (const SymbolAttr* s = a.get<SymbolAttr>()) {
      const GraphPtr& region = op.regions[next++];
      return SymbolAttr{std::string(functions_.symbol_of(region, s->name))};
    }
    if (!a.list()) return a;
    AttrList list;
    for (const Attr& e : *a.list()) list.push_back(self(self, e));
    return list;
  };
  return rename(rename, value);
}

// The dictionary of a pretty form: inherent attributes but `elided`, and discardable ones.
void FunctionPrinter::print_dict(const Op& op, std::initializer_list<std::string_view> elided) {
  bool first = true;
  for (const auto& [name, value] : op.attrs.entries()) {
    if (is_derived(name) || std::find(elided.begin(), elided.end(), name) != elided.end()) continue;
    const AttrDef* a = op.def->find_attr(name);
    if (a && a->kind == AttrKind::kUnit && value.get<bool>() && !*value.get<bool>()) continue;
    out_ += first ? " {" : ", ";
    first = false;
    if (a) {
      append_inherent_attr(out_, *op.def, name, function_attr(op, name, value));
      continue;
    }
    append_mlir_name(out_, name);
    if (value.is_unit()) continue;
    out_ += " = ";
    append_mlir_attr(out_, value);
  }
  if (!first) out_ += '}';
}

void FunctionPrinter::print_convolution(const Graph& g, const Op& op, const Names& names) {
  out_ += "stablehlo.convolution(";
  print_operands(op, names, 0, 2);
  out_ += ") dim_numbers = ";
  std::string structure;
  append_properties(structure, *op.def, op.attrs);
  // "… #stablehlo.conv<…>": the part in angle brackets.
  std::size_t from = structure.find("#stablehlo.conv<") + 16;
  out_ += structure.substr(from, structure.find(']', structure.find("->", from)) + 1 - from);
  out_ += ", window = {";
  bool first = true;
  auto key = [&](std::string_view k) {
    fmt::format_to(std::back_inserter(out_), "{}{} = ", first ? "" : ", ", k);
    first = false;
  };
  auto dims = [&](std::string_view k, std::string_view attr) {
    if (!op.attrs.has(attr)) return;
    key(k);
    out_ += Attr(op.attrs.dims(attr)).to_string();
  };
  dims("stride", "window_strides");
  if (op.attrs.has("padding")) {
    key("pad");
    HostArray p = op.attrs.array("padding").astype(DType::kI64);
    const auto* v = p.as<std::int64_t>();
    out_ += '[';
    for (std::int64_t i = 0; i < p.size() / 2; ++i)
      fmt::format_to(std::back_inserter(out_), "{}[{}, {}]", i ? ", " : "", v[2 * i], v[2 * i + 1]);
    out_ += ']';
  }
  dims("lhs_dilate", "lhs_dilation");
  dims("rhs_dilate", "rhs_dilation");
  if (op.attrs.has("window_reversal")) {
    key("reverse");
    out_ += '[';
    const Dims& d = op.attrs.dims("window_reversal");
    for (std::size_t i = 0; i < d.size(); ++i)
      fmt::format_to(std::back_inserter(out_), "{}{}", i ? ", " : "", d[i] ? "true" : "false");
    out_ += ']';
  }
  out_ += '}';
  print_dict(op, {"window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal",
                  "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
                  "kernel_input_feature_dimension", "kernel_output_feature_dimension",
                  "kernel_spatial_dimensions", "output_batch_dimension", "output_feature_dimension",
                  "output_spatial_dimensions"});
  print_function_type(g, op);
}

void FunctionPrinter::print_custom_call(const Graph& g, const Op& op, const Names& names) {
  out_ += "stablehlo.custom_call ";
  append_symbol(out_, op.attrs.str_or("call_target_name", ""));
  out_ += '(';
  print_operands(op, names, 0, op.operands.size());
  out_ += ')';
  print_dict(op, {"call_target_name"});
  print_function_type(g, op);
}

void FunctionPrinter::print_composite(const Graph& g, const Op& op, const Names& names,
                                      int indent) {
  out_ += "stablehlo.composite ";
  append_quoted(out_, op.attrs.str_or("name", ""));
  if (!op.operands.empty()) out_ += ' ';
  print_operands(op, names, 0, op.operands.size());
  print_regions(op, names, indent);
  print_dict(op, {"name"});
  print_function_type(g, op);
}

void FunctionPrinter::print_get_tuple_element(const Graph& g, const Op& op, const Names& names) {
  out_ += "stablehlo.get_tuple_element ";
  print_operands(op, names, 0, 1);
  fmt::format_to(std::back_inserter(out_), "[{}]", op.attrs.i64("index"));
  print_dict(op, {"index"});
  print_function_type(g, op);
}

void FunctionPrinter::print_scan(const Graph& g, const Op& op, const Names& names, int indent) {
  auto inputs = static_cast<std::size_t>(op.attrs.dims("operandSegmentSizes")[0]);
  inputs = std::min(inputs, op.operands.size());
  out_ += "chlo.scan(";
  print_operands(op, names, 0, inputs);
  out_ += ") inits(";
  print_operands(op, names, inputs, op.operands.size() - inputs);
  fmt::format_to(std::back_inserter(out_), ") dimension={}", op.attrs.i64("dimension"));
  std::size_t before = out_.size();
  print_dict(op, {"operandSegmentSizes", "resultSegmentSizes", "dimension"});
  if (out_.size() > before) out_.insert(before, " attributes");
  // The one region stands without parentheses.
  std::string region;
  std::swap(region, out_);
  print_regions(op, names, indent);
  std::swap(region, out_);
  out_ += ' ';
  out_ += region.substr(2, region.size() - 3);
  print_function_type(g, op);
}

void FunctionPrinter::print_check(const Graph& g, const Op& op, const Names& names) {
  const std::string_view n = op.def->name;
  (out_ += n) += ' ';
  print_operands(op, names, 0, op.operands.size());
  bool constant = op.attrs.has("value");
  if (constant) {
    out_ += ", ";
    append_dense(out_, op.attrs.array("value"), g.type(op.operands[0]));
  }
  for (const AttrDef& a : op.def->attrs) {
    const Attr* value = op.attrs.find(a.name);
    if (!value || a.name == "value" || a.name == "name") continue;
    fmt::format_to(std::back_inserter(out_), ", {} = ", a.name);
    if (const auto* i = value->get<std::int64_t>()) {
      if (a.name.ends_with("ulp_difference")) {
        fmt::format_to(std::back_inserter(out_), "{}", static_cast<std::uint64_t>(*i));
      } else {
        fmt::format_to(std::back_inserter(out_), "{}", *i);
      }
    } else {
      std::string text;
      append_mlir_attr(text, *value);
      out_ += text.substr(0, text.find(" : "));
    }
  }
  print_discardable(op);
  if (constant) return;
  out_ += " : ";
  std::size_t types = n == "check.expect_close" ? op.operands.size() : 1;
  for (std::size_t i = 0; i < types; ++i) {
    if (i) out_ += ", ";
    out_ += g.type(op.operands[i]).to_mlir();
  }
}

}  // namespace xylem::ir::text
