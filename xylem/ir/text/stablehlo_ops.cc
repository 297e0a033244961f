#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_parser.h"

// Values, blocks, regions and the generic form of ops.

namespace xylem::ir::text {
namespace {

// Whether a written type may stand for the inferred one: equal, or dynamic sizes, bounds or
// encodings say more or less about the same tensor.
bool agrees(const Type& written, const Type& inferred) {
  if (written == inferred) return true;
  if (!written.is_tensor() || !inferred.is_tensor() || written.dtype() != inferred.dtype() ||
      written.rank() != inferred.rank())
    return false;
  const TypeExtra* a = written.extra();
  const TypeExtra* b = inferred.extra();
  if ((a && a->quant) || (b && b->quant)) {
    if (!a || !b || !a->quant || !b->quant || !(*a->quant == *b->quant)) return false;
  }
  for (int i = 0; i < written.rank(); ++i)
    if (written.dim(i) != inferred.dim(i) && written.dim(i) != kDynamic &&
        inferred.dim(i) != kDynamic)
      return false;
  return true;
}

// Dialects whose ops we know all of, or should.
bool is_foreign_op(std::string_view name) {
  static constexpr std::string_view kKnown[] = {"stablehlo", "chlo",        "func", "builtin",
                                                "check",     "interpreter", "xylem"};
  std::size_t dot = name.find('.');
  return dot != std::string_view::npos && dot > 0 &&
         std::find(std::begin(kKnown), std::end(kKnown), name.substr(0, dot)) == std::end(kKnown);
}

// Numbers the values of a region anew: parameters in the given order, undefined ones, results.
void renumber(Graph& g, std::vector<ValueId> params) {
  std::vector<ValueId> to(g.values.size(), kNoValue);
  std::vector<Value> values;
  values.reserve(g.values.size());
  auto move = [&](ValueId v) {
    to[static_cast<std::size_t>(v)] = static_cast<ValueId>(values.size());
    values.push_back(std::move(g.values[static_cast<std::size_t>(v)]));
    return to[static_cast<std::size_t>(v)];
  };
  auto rename = [&](auto& ids) {
    for (ValueId& v : ids) v = to[static_cast<std::size_t>(v)];
  };
  for (std::size_t i = 0; i < params.size(); ++i) {
    params[i] = move(params[i]);
    values.back().index = static_cast<std::int32_t>(i);
  }
  for (std::size_t v = 0; v < g.values.size(); ++v)
    if (to[v] == kNoValue && is_poison(g.values[v].type)) move(static_cast<ValueId>(v));
  for (Op& op : g.ops) {
    rename(op.operands);
    for (ValueId& v : op.results) v = move(v);
  }
  rename(g.results);
  g.values = std::move(values);
  g.params = std::move(params);
}

}  // namespace

std::string join_types(const std::vector<Type>& types) {
  std::string s;
  for (const Type& t : types) s += (s.empty() ? "" : ", ") + t.to_mlir();
  return s;
}

Type poison_type() {
  static const Type kPoison = Type::foreign("!xylem.poison");
  return kPoison;
}

bool is_poison(const Type& t) { return t.is_foreign() && t == poison_type(); }

GraphLocations& Scope::locations() {
  if (!given) graph->locations = given = std::make_shared<GraphLocations>();
  return *given;
}

ValueId Scope::add_param(Type type) {
  auto id = static_cast<ValueId>(graph->values.size());
  graph->values.push_back(
      {std::move(type), -1, static_cast<std::int32_t>(graph->params.size()), nullptr});
  graph->params.push_back(id);
  return id;
}

ValueId Scope::find(std::string_view name, int index) {
  auto it = names.find(name);
  if (it != names.end()) return index < it->second.count ? it->second.first + index : kNoValue;
  if (!parent) return kNoValue;
  ValueId outer = parent->find(name, index);
  if (outer == kNoValue) return kNoValue;
  auto [known, added] = captured.emplace(outer, static_cast<ValueId>(graph->values.size()));
  if (added) {
    graph->values.push_back({parent->graph->type(outer), -1, 0, nullptr});
    captures.push_back({outer, known->second});
  }
  return known->second;
}

void StablehloParser::define(Scope& scope, std::string_view name, std::size_t at,
                             Scope::Range range) {
  if (!scope.names.emplace(name, range).second)
    report(at, "value", "a region defines every name once",
           fmt::format("%{} is defined again", name), "Give it another name");
}

// A value without a meaning; an error is noted, so the graph will not be seen.
ValueId StablehloParser::poison_value(Scope& scope) {
  auto v = static_cast<ValueId>(scope.graph->values.size());
  scope.graph->values.push_back({poison_type(), -1, 0, nullptr});
  return v;
}

ValueId StablehloParser::read_use(Scope& scope) {
  std::size_t at = c_.token_pos();
  c_.expect('%', "operand");
  std::string_view name = c_.suffix_name("operand");
  std::int64_t index = 0;
  if (c_.raw() == '#') {
    c_.step();
    index = c_.integer("operand");
  }
  ValueId v = index < 0 || index > INT32_MAX ? kNoValue : scope.find(name, static_cast<int>(index));
  if (v != kNoValue) return v;
  report(at, "operand", "values are defined before their use",
         index ? fmt::format("%{}#{} is not", name, index) : fmt::format("%{} is not", name),
         "Define it above");
  // Told once a name.
  v = poison_value(scope);
  scope.names.emplace(name, Scope::Range{v, 1});
  return v;
}

void StablehloParser::read_operand(Scope& scope, ParsedOp& op) {
  op.operand_pos.push_back(c_.token_pos());
  op.operands.push_back(read_use(scope));
}

// "%a, %b": as long as values follow.
void StablehloParser::read_operands(Scope& scope, ParsedOp& op) {
  if (c_.peek() != '%') return;
  read_operand(scope, op);
  while (c_.peek() == ',') {
    std::size_t comma = c_.pos();
    c_.step();
    if (c_.peek() != '%') {
      c_.seek(comma);
      return;
    }
    read_operand(scope, op);
  }
}

void StablehloParser::read_arg(Scope& scope) {
  std::size_t at = c_.token_pos();
  c_.expect('%', "argument");
  std::string_view name = c_.suffix_name("argument");
  c_.expect(':', "argument");
  define(scope, name, at, {scope.add_param(r_.read_type()), 1});
  read_param_location(scope);
}

// The location of the parameter that was added last, if it has one.
void StablehloParser::read_param_location(Scope& scope) {
  Location loc;
  if (!r_.accept_location(loc)) return;
  std::vector<Location>& params = scope.locations().params;
  params.resize(scope.graph->params.size());
  params.back() = loc;
}

// "^bb0(%a: T, %b: U):" if it is there.
void StablehloParser::read_block_args(Scope& scope) {
  if (c_.peek() != '^') return;
  c_.step();
  c_.suffix_name("block");
  if (c_.accept('(')) {
    bool first = true;
    while (!c_.accept(')')) {
      if (!first) c_.expect(',', "block arguments");
      first = false;
      read_arg(scope);
    }
  }
  c_.expect(':', "block");
}

std::unique_ptr<Scope> StablehloParser::new_region(Scope& outer) {
  return std::make_unique<Scope>(&outer, std::make_shared<Graph>());
}

std::unique_ptr<Scope> StablehloParser::read_region(Scope& outer, bool open) {
  c_.expect('{', "region");
  std::unique_ptr<Scope> region = new_region(outer);
  read_block_args(*region);
  read_block(*region, open);
  c_.expect('}', "region");
  return region;
}

void StablehloParser::read_block(Scope& scope, bool open) {
  Cursor::Depth depth(c_);
  ++region_depth_;
  if (function_) function_->depth = std::max(function_->depth, region_depth_);
  const int depth_here = region_depth_;
  while (!read_terminator(scope)) {
    if (open && c_.peek() == '}') {
      scope.graph->attrs.set(kOpenRegion, {});
      break;
    }
    if (c_.at_end()) c_.fail_here("region", "expected an op", "Close the region");
    if (c_.peek() == '}') {
      report(c_.token_pos(), "region", "the last op is return", "there is none", "Write it");
      break;
    }
    std::size_t at = c_.pos();
    try {
      if (c_.peek() == '^')
        c_.fail_here("region", "regions of StableHLO have one block", "Use if, case and while");
      read_op(scope);
    } catch (const UserError& e) {
      report_thrown(e);
      region_depth_ = depth_here;
      skip_broken_op(at);
    }
  }
  --region_depth_;
}

bool StablehloParser::read_terminator(Scope& scope) {
  std::size_t start = c_.token_pos();
  bool pretty = c_.accept_word("stablehlo.return") || c_.accept_word("return") ||
                c_.accept_word("func.return");
  bool generic = !pretty && (c_.accept("\"stablehlo.return\"") || c_.accept("\"func.return\""));
  if (!pretty && !generic) return false;
  return_pos_ = start;
  ParsedOp op;
  if (generic) c_.expect('(', "return");
  read_operands(scope, op);
  if (generic) c_.expect(')', "return");
  if (c_.peek() == '{') r_.read_dict(nullptr);
  std::vector<Type> types;
  std::size_t at = c_.token_pos();
  if (generic) {
    c_.expect(':', "return");
    types = r_.read_result_types();
    c_.expect("->", "return");
    r_.read_result_types();
  } else if (!op.operands.empty()) {
    c_.expect(':', "return");
    types = r_.read_type_list();
  }
  bool same = types.size() == op.operands.size(), poison = false;
  std::vector<Type> have;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    have.push_back(scope.graph->type(op.operands[i]));
    same = same && have.back() == types[i];
    poison = poison || is_poison(have.back());
  }
  if (!same && !poison)
    report(at, "return",
           fmt::format("the written types are those of the values ({})", join_types(have)),
           fmt::format("they are ({})", join_types(types)), "Correct the types");
  scope.graph->results = op.operands;
  Location loc;
  if (r_.accept_location(loc)) scope.locations().terminator = loc;
  return true;
}

void StablehloParser::read_op(Scope& scope) {
  std::vector<ResultName> names;
  if (c_.peek() == '%') {
    do {
      std::size_t at = c_.token_pos();
      c_.expect('%', "result");
      ResultName n{c_.suffix_name("result"), 1, at};
      if (c_.raw() == ':') {
        c_.step();
        std::int64_t count = c_.integer("result");
        if (count < 1 || count > INT32_MAX)
          c_.fail(at, "result", "a pack of results has at least one",
                  fmt::format("found {}", count), "Write their number");
        n.count = static_cast<int>(count);
      }
      names.push_back(n);
    } while (c_.accept(','));
    c_.expect('=', "op");
  }
  try {
    read_named_op(scope, names);
  } catch (const UserError&) {
    for (const ResultName& n : names) {
      auto first = static_cast<ValueId>(scope.graph->values.size());
      for (int i = 0; i < std::min(n.count, 1024); ++i) poison_value(scope);
      scope.names.emplace(n.name, Scope::Range{first, std::min(n.count, 1024)});
    }
    throw;
  }
}

void StablehloParser::read_named_op(Scope& scope, const std::vector<ResultName>& names) {
  ParsedOp op;
  op.pos = c_.token_pos();
  bool generic = c_.raw() == '"';
  if (generic) {
    if (!c_.plain_string(op.name, "op"))
      c_.fail(op.pos, "op", "names of ops hold no escapes", "this one does", "Write it plainly");
  } else {
    op.name = c_.identifier("op");
    if (op.name == "call") op.name = "func.call";
  }
  LineCol at = c_.line_col(op.pos);
  op.loc.source.file = file_;
  op.loc.source.function = "";
  op.loc.source.line = at.line;
  op.loc.source.column = at.column;
  op.loc.implied = true;
  if (op.name == "func.call") {
    op.def = &ops::kCall;
  } else {
    op.def = find_op(op.name);
    if (op.def && op.def->is(kXylem)) op.def = nullptr;
    if (!op.def && generic && allow_unregistered_ && is_foreign_op(op.name)) {
      op.foreign = true;
      op.def = &ops::kForeign;
    }
  }
  if (generic) {
    read_generic(scope, op);
  } else {
    read_pretty(scope, op);
  }
  r_.accept_location(op.loc);
  finish_op(scope, op, names);
}

// "name"(%a) <{…}> ({…}, {…}) {…} : (T) -> U
void StablehloParser::read_generic(Scope& scope, ParsedOp& op) {
  c_.expect('(', "operands");
  read_operands(scope, op);
  c_.expect(')', "operands");
  if (c_.peek() == '[')
    c_.fail_here("op", "ops of StableHLO have no successor blocks", "Use if, case and while");
  if (c_.accept("<{")) {
    op.attrs = r_.read_entries(op.def, "}");
    c_.expect('>', "properties");
    if (op.foreign) op.attrs = {{"properties", Attr(std::move(op.attrs))}};
  }
  if (c_.accept('(')) {
    do op.regions.push_back(read_region(scope, op.foreign));
    while (c_.accept(','));
    c_.expect(')', "regions");
  }
  read_optional_attrs(op);
  read_function_type(op);
  if (op.name == "func.call") {
    const Attr* callee = op.attrs.find("callee");
    const SymbolAttr* symbol = callee ? callee->get<SymbolAttr>() : nullptr;
    if (!symbol)
      c_.fail(op.pos, "call", "the attribute callee names a function", "it does not",
              "Write callee = @name");
    op.callee = symbol->name;
    op.attrs.erase("callee");
  }
}

void StablehloParser::read_optional_attrs(ParsedOp& op) {
  if (c_.peek() != '{') return;
  std::size_t at = c_.token_pos();
  Attrs more = r_.read_dict(op.foreign ? nullptr : op.def);
  if (op.foreign) {
    if (!more.empty()) op.attrs.set("attributes", Attr(std::move(more)));
    return;
  }
  for (const auto& [name, value] : more.entries()) {
    if (op.attrs.has(name))
      c_.fail(at, "attributes", "every name stands once", fmt::format("'{}' is repeated", name),
              "Remove one of them");
    op.attrs.set(name, value);
  }
}

// Makes the captures of all regions operands of the op: each region takes all of them, behind its
// own arguments.
void StablehloParser::finish_regions(Scope& scope, ParsedOp& op, std::vector<GraphPtr>& regions) {
  std::vector<ValueId> captures;
  std::unordered_map<ValueId, std::size_t> place;
  for (auto& region : op.regions)
    for (const Scope::Capture& capture : region->captures)
      if (place.emplace(capture.outer, captures.size()).second) captures.push_back(capture.outer);
  for (auto& region : op.regions) {
    Graph& g = *region->graph;
    if (!captures.empty()) {
      std::vector<ValueId> params = g.params;
      std::size_t own = params.size();
      params.resize(own + captures.size(), kNoValue);
      for (const Scope::Capture& capture : region->captures)
        params[own + place[capture.outer]] = capture.local;
      for (std::size_t i = 0; i < captures.size(); ++i) {
        if (params[own + i] != kNoValue) continue;
        params[own + i] = static_cast<ValueId>(g.values.size());
        g.values.push_back({scope.graph->type(captures[i]), -1, 0, nullptr});
      }
      renumber(g, std::move(params));
    }
    regions.push_back(region->graph);
  }
  op.operands.insert(op.operands.end(), captures.begin(), captures.end());
  if (!captures.empty()) {
    if (op.def && !op.def->find_attr("num_captures"))
      report(op.pos, op.name, "its regions see their own arguments only",
             fmt::format("{} outer values are used", captures.size()),
             "Pass them as operands, or define them inside");
    op.attrs.set("num_captures", static_cast<std::int64_t>(captures.size()));
  }
}

std::vector<Type> StablehloParser::check_types(Scope& scope, ParsedOp& op,
                                               const std::vector<GraphPtr>& regions) {
  std::vector<Type> operands;
  for (ValueId v : op.operands) {
    operands.push_back(scope.graph->type(v));
    if (is_poison(operands.back())) return op.result_types;
  }
  if (!op.operand_types.empty() || op.operand_pos.empty()) {
    bool same = op.operand_types.size() == op.operand_pos.size();
    for (std::size_t i = 0; same && i < op.operand_types.size(); ++i) {
      if (op.operand_types[i] == operands[i]) continue;
      report(op.operand_pos[i], op.name, fmt::format("operand {} is {}", i, operands[i].to_mlir()),
             fmt::format("its written type is {}", op.operand_types[i].to_mlir()),
             "Make them agree");
      return op.result_types;
    }
    if (!same) {
      report(
          op.pos, op.name, "there is a type for every operand",
          fmt::format("{} operands have {} types", op.operand_pos.size(), op.operand_types.size()),
          "Write one for each");
      return op.result_types;
    }
  }
  auto infer = [&] { return infer_types({*op.def, operands, op.attrs, regions, {}}); };
  auto same = [&](const std::vector<Type>& inferred) {
    bool all = inferred.size() == op.result_types.size();
    for (std::size_t i = 0; all && i < inferred.size(); ++i)
      all = agrees(op.result_types[i], inferred[i]);
    return all;
  };
  try {
    std::vector<Type> inferred = infer();
    if (same(inferred)) return op.result_types;
    // Ops such as dot_general name their element type only if it is not the operands'.
    Attrs before = op.attrs;
    if (inferred.size() == op.result_types.size() &&
        derive_result_dtype(*op.def, op.attrs, op.result_types)) {
      std::vector<Type> again = infer();
      if (same(again)) return op.result_types;
      op.attrs = std::move(before);
    }
    report(op.pos, op.name, fmt::format("the result types are ({})", join_types(inferred)),
           fmt::format("the written ones are ({})", join_types(op.result_types)),
           "Correct the written types");
  } catch (const Error& e) {
    report_line(op.pos, e.message());
  }
  return op.result_types;
}

void StablehloParser::finish_op(Scope& scope, ParsedOp& op, const std::vector<ResultName>& names) {
  if (expand(scope, op, names)) return;
  if (!op.def)
    c_.fail(op.pos, op.name, "ops are those of StableHLO and CHLO that the op table knows",
            "this one is not in it", "Legalise the program to such ops");
  std::size_t total = 0;
  for (const ResultName& n : names) total += static_cast<std::size_t>(n.count);
  if (!names.empty() && total != op.result_types.size())
    c_.fail(names[0].pos, op.name, fmt::format("{} results have names", op.result_types.size()),
            fmt::format("{} are named", total), "Name every result");

  Op out;
  int before = num_errors_;
  if (op.name == "func.call") {
    std::vector<Type> operands;
    for (ValueId v : op.operands) operands.push_back(scope.graph->type(v));
    Function& callee = (*functions_)[op.callee];
    if (function_)
      function_->calls.push_back(
          {op.callee, op.pos, region_depth_, std::move(operands), op.result_types});
    op.attrs.set("name", op.callee);
    out.regions.push_back(callee.graph);
  } else if (op.foreign) {
    finish_regions(scope, op, out.regions);
    finish_foreign(op);
  } else {
    finish_regions(scope, op, out.regions);
    op.attrs = to_inherent(*op.def, std::move(op.attrs), op.result_types,
                           [&](std::string_view expected, std::string_view given) {
                             report(op.pos, op.name, expected, given, "Correct the attribute");
                           });
    if (num_errors_ == before) op.result_types = check_types(scope, op, out.regions);
  }
  out.def = op.def;
  out.operands = ValueIds(op.operands);
  out.attrs = std::move(op.attrs);
  out.loc = op.loc;
  Graph& g = *scope.graph;
  auto index = static_cast<std::int32_t>(g.ops.size());
  auto first = static_cast<ValueId>(g.values.size());
  for (std::size_t i = 0; i < op.result_types.size(); ++i) {
    out.results.push_back(static_cast<ValueId>(g.values.size()));
    g.values.push_back(
        {std::move(op.result_types[i]), index, static_cast<std::int32_t>(i), nullptr});
  }
  g.ops.push_back(std::move(out));
  for (const ResultName& n : names) {
    define(scope, n.name, n.pos, {first, n.count});
    first += n.count;
  }
}

// An op of another dialect keeps its name and the types it was written with.
void StablehloParser::finish_foreign(ParsedOp& op) {
  op.attrs.set("op", std::string(op.name));
  AttrList types;
  for (const Type& t : op.result_types) types.push_back(t);
  op.attrs.set("result_types", std::move(types));
}

// Ops that are read as others: deprecated ones, and those without a meaning on one device.
bool StablehloParser::expand(Scope& scope, ParsedOp& op, const std::vector<ResultName>& names) {
  if (op.def) return false;
  if (op.name == "stablehlo.create_token") {
    op.def = &ops::kAfterAll;
    return false;
  }
  if (op.name == "stablehlo.broadcast" && op.operands.size() == 1) {
    // New dimensions in front.
    op.def = &ops::kBroadcastInDim;
    op.attrs.erase("broadcast_sizes");
    int rank = scope.graph->type(op.operands[0]).rank();
    int result_rank = op.result_types.size() == 1 ? op.result_types[0].rank() : rank;
    Dims dims;
    for (int i = 0; i < rank; ++i) dims.push_back(result_rank - rank + i);
    op.attrs.set("broadcast_dimensions", std::move(dims));
    return false;
  }
  if (op.name == "stablehlo.dot" && op.operands.size() == 2) {
    op.def = &ops::kDotGeneral;
    std::int64_t last = scope.graph->type(op.operands[0]).rank() - 1;
    op.attrs.set("lhs_contracting_dimensions", Dims{std::max<std::int64_t>(last, 0)});
    op.attrs.set("rhs_contracting_dimensions", Dims{0});
    return false;
  }
  if (op.name == "sdy.sharding_constraint" && op.operands.size() == 1 && names.size() == 1) {
    // On one device the identity.
    define(scope, names[0].name, names[0].pos, {op.operands[0], 1});
    return true;
  }
  return false;
}

}  // namespace xylem::ir::text
