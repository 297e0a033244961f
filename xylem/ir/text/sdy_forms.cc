#include <fmt/format.h>

#include <iterator>

#include "xylem/base/error.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_parser.h"
#include "xylem/ir/text/stablehlo_printer.h"

// Pretty forms of Shardy's ops: "sdy.NAME PREFIX %x KEY=VALUE … : T", where a value's kind is told
// by its place: "[{}, {"x"}]" behind all_gather is #sdy<list_of_axis_ref_lists[{}, {"x"}]>.

namespace xylem::ir::text {
namespace {

// One attribute in a pretty form: the keyword in front of it, and what its own text has in front of
// the bracket that both forms share.
struct Part {
  std::string_view attr, key;
  std::string_view wrapper;  // "#sdy.sharding": the attribute is wrapper + text
  char open = '<';
  bool closes = false;  // the wrapper opened "#sdy<…": a '>' follows
  bool required = true;
};

struct SdyForm {
  std::string_view name;
  Part prefix, suffix;  // without an attribute: none
};

constexpr Part kNone = {};
constexpr Part sharding(std::string_view key, bool required = true) {
  return {key == "" ? "sharding" : key, key, "#sdy.sharding", '<', false, required};
}
constexpr Part kOut = sharding("out_sharding");
constexpr Part lists(std::string_view attr) {
  return {attr, "", "#sdy<list_of_axis_ref_lists", '[', true};
}
constexpr Part axes(std::string_view attr) { return {attr, "", "#sdy<axis_ref_list", '{', true}; }

constexpr SdyForm kForms[] = {
    {"sdy.sharding_constraint", kNone, sharding("")},
    {"sdy.reshard", kNone, sharding("")},
    {"sdy.data_flow_edge", kNone, sharding("sharding", false)},
    {"sdy.func_data_flow_edge", kNone, kNone},
    {"sdy.all_gather", lists("gathering_axes"), kOut},
    {"sdy.all_slice", lists("slicing_axes"), kOut},
    {"sdy.all_to_all", {"params", "", "#sdy<all_to_all_param_list", '[', true}, kOut},
    {"sdy.collective_permute", kNone, kOut},
    {"sdy.all_reduce", axes("reduction_axes"), kOut},
    {"sdy.reduce_scatter", lists("reduce_scatter_axes"), kOut},
    {"sdy.replicated_to_unreduced", axes("axes"), kOut},
    {"sdy.sharded_to_unreduced", lists("axes"), kOut},
};

constexpr Part kInShardings = {"in_shardings", "in_shardings", "#sdy.sharding_per_value<", '[',
                               true};
constexpr Part kOutShardings = {"out_shardings", "out_shardings", "#sdy.sharding_per_value<", '[',
                                true};
constexpr Part kManualAxes = {"manual_axes", "manual_axes", "#sdy<manual_axes", '{', true};

constexpr std::string_view kDirections[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};

const SdyForm* find_sdy_form(std::string_view name) {
  for (const SdyForm& f : kForms)
    if (f.name == name) return &f;
  return nullptr;
}

char closing(char open) { return open == '<' ? '>' : open == '[' ? ']' : '}'; }

// What the pretty form writes of an attribute's text; nothing if that has another spelling.
std::string_view pretty_part(const Op& op, const Part& part) {
  const Attr* a = op.attrs.find(part.attr);
  const OpaqueAttr* text = a ? a->get<OpaqueAttr>() : nullptr;
  if (!text || !text->text.starts_with(part.wrapper)) return {};
  std::string_view s = text->text;
  s.remove_prefix(part.wrapper.size());
  if (part.closes && !s.empty()) s.remove_suffix(1);
  bool whole = s.size() >= 2 && s.front() == part.open && s.back() == closing(part.open);
  return whole ? s : std::string_view();
}

}  // namespace

// Reads "KEY=[…]" or the bracket alone, if it is there.
bool StablehloParser::read_sdy_part(ParsedOp& op, std::string_view attr, std::string_view key,
                                    std::string_view wrapper, char open, bool closes) {
  if (!key.empty()) {
    if (!c_.accept_word(key)) return false;
    c_.expect('=', op.name);
  }
  if (c_.peek() != open) return false;
  std::size_t start = c_.token_pos();
  c_.step();
  c_.balanced(open, closing(open), op.name);
  std::string text(wrapper);
  text += c_.text().substr(start, c_.pos() - start);
  if (closes) text += '>';
  op.attrs.set(attr, OpaqueAttr{std::move(text)});
  return true;
}

bool StablehloParser::read_sdy(Scope& scope, ParsedOp& op) {
  const std::string_view n = op.name;
  auto part = [&](const Part& p) {
    if (p.attr.empty()) return;
    if (!read_sdy_part(op, p.attr, p.key, p.wrapper, p.open, p.closes) && p.required)
      c_.fail_here(n, fmt::format("expected {}{}{}", p.key, p.key.empty() ? "" : "=", p.open),
                   fmt::format("Write the attribute '{}'", p.attr));
  };
  if (const SdyForm* form = find_sdy_form(n)) {
    part(form->prefix);
    read_operand(scope, op);
    part(form->suffix);
  } else if (n == "sdy.propagation_barrier") {
    read_operand(scope, op);
    c_.expect_word("allowed_direction", n);
    c_.expect('=', n);
    std::size_t at = c_.token_pos();
    std::string_view word = c_.identifier(n);
    std::int64_t direction = 0;
    while (direction < 4 && kDirections[direction] != word) ++direction;
    if (direction == 4)
      c_.fail(at, n, "directions are NONE, FORWARD, BACKWARD and BOTH",
              fmt::format("found {}", word), "Use one of them");
    op.attrs.set("allowed_direction", ScalarAttr{DType::kI32, direction, 0});
  } else if (n == "sdy.sharding_group") {
    read_operand(scope, op);
    c_.expect_word("group_id", n);
    c_.expect('=', n);
    op.attrs.set("group_id", c_.integer(n));
    if (c_.accept_word("type")) {
      c_.expect('=', n);
      op.attrs.set("type", OpaqueAttr{std::string(c_.identifier(n))});
    }
    read_optional_attrs(op);
    c_.expect(':', n);
    op.operand_types = {r_.read_type()};
    return true;
  } else if (n == "sdy.named_computation" || n == "sdy.manual_computation") {
    if (n == "sdy.named_computation") {
      c_.expect('<', n);
      op.attrs.set("name", c_.string(n));
      c_.expect('>', n);
    }
    c_.expect('(', n);
    read_operands(scope, op);
    c_.expect(')', n);
    for (Part p : {kInShardings, kOutShardings}) {
      p.required = n == "sdy.manual_computation";
      part(p);
    }
    if (n == "sdy.manual_computation") part(kManualAxes);
    std::unique_ptr<Scope> region = new_region(scope);
    c_.expect('(', n);
    bool first = true;
    while (!c_.accept(')')) {
      if (!first) c_.expect(',', n);
      first = false;
      read_arg(*region);
    }
    c_.expect('{', n);
    read_block(*region);
    c_.expect('}', n);
    op.regions.push_back(std::move(region));
    read_optional_attrs(op);
    read_function_type(op);
    return true;
  } else {
    return false;
  }
  read_optional_attrs(op);
  read_types(scope, op);
  return true;
}

// False, and nothing written, where an attribute has a spelling that only the generic form keeps.
bool FunctionPrinter::print_sdy(const Graph& g, const Op& op, const Names& names, int indent) {
  const std::string_view n = op.def->name;
  auto out = std::back_inserter(out_);
  std::string before, after;
  auto part = [&](const Part& p, std::string& to) {
    if (p.attr.empty() || (!p.required && !op.attrs.has(p.attr))) return true;
    std::string_view text = pretty_part(op, p);
    if (text.empty()) return false;
    if (!to.empty() || !p.key.empty()) to += ' ';
    if (!p.key.empty()) to += fmt::format("{}=", p.key);
    to += text;
    return true;
  };
  if (const SdyForm* form = find_sdy_form(n)) {
    if (!part(form->prefix, before) || !part(form->suffix, after)) return false;
    fmt::format_to(out, "{} {}{}", n, before, before.empty() ? "" : " ");
    print_operands(op, names, 0, 1);
    if (!after.empty() && after[0] != ' ') out_ += ' ';
    out_ += after;
  } else if (n == "sdy.propagation_barrier") {
    const ScalarAttr* d = op.attrs.at("allowed_direction").get<ScalarAttr>();
    if (!d || d->integer < 0 || d->integer > 3) return false;
    fmt::format_to(out, "{} ", n);
    print_operands(op, names, 0, 1);
    fmt::format_to(out, " allowed_direction={}", kDirections[d->integer]);
  } else if (n == "sdy.sharding_group") {
    const Attr* type = op.attrs.find("type");
    if (type && !type->get<OpaqueAttr>()) return false;
    fmt::format_to(out, "{} ", n);
    print_operands(op, names, 0, 1);
    fmt::format_to(out, " group_id={}", op.attrs.i64("group_id"));
    if (type) fmt::format_to(out, " type={}", type->get<OpaqueAttr>()->text);
    print_discardable(op);
    out_ += " : ";
    out_ += g.type(op.operands[0]).to_mlir();
    return true;
  } else if (n == "sdy.named_computation" || n == "sdy.manual_computation") {
    bool manual = n == "sdy.manual_computation";
    for (Part p : {kInShardings, kOutShardings}) {
      p.required = manual;
      if (!part(p, after)) return false;
    }
    if (manual && !part(kManualAxes, after)) return false;
    out_ += n;
    if (!manual) {
      out_ += '<';
      append_quoted(out_, op.attrs.str("name"));
      out_ += '>';
    }
    out_ += '(';
    std::size_t captures = num_captures(op);
    print_operands(op, names, 0, op.operands.size() - captures);
    fmt::format_to(out, "){} (", after);
    const Graph& region = *op.regions[0];
    Names inner = region_names(region, op, names, captures);
    std::size_t own = region.params.size() - std::min(captures, region.params.size());
    for (std::size_t i = 0; i < own; ++i) {
      if (i) out_ += ", ";
      inner[static_cast<std::size_t>(region.params[i])] = new_arg_name();
      print_block_arg(region, i, inner);
    }
    out_ += ") {\n";
    ++region_depth_;
    print_ops(region, inner, indent + 2, "sdy.return");
    --region_depth_;
    line(indent);
    out_ += '}';
    print_discardable(op);
    print_function_type(g, op);
    return true;
  } else {
    return false;
  }
  print_discardable(op);
  const Type& result = g.type(op.results[0]);
  if (g.type(op.operands[0]) == result) {
    out_ += " : ";
    out_ += result.to_mlir();
  } else {
    print_function_type(g, op);
  }
  return true;
}

}  // namespace xylem::ir::text
