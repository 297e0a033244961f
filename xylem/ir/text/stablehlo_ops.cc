#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/ops/contraction.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/transform.h"
#include "xylem/ir/quant.h"
#include "xylem/ir/static_check.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_parser.h"

// Values, blocks, regions and the generic form of ops.

namespace xylem::ir::text {
namespace {

// Dialects whose ops we know all of, or should.
bool is_foreign_op(std::string_view name) {
  static constexpr std::string_view kKnown[] = {"stablehlo", "chlo",        "func",  "builtin",
                                                "check",     "interpreter", "xylem", "sdy"};
  std::size_t dot = name.find('.');
  return dot != std::string_view::npos && dot > 0 &&
         std::find(std::begin(kKnown), std::end(kKnown), name.substr(0, dot)) == std::end(kKnown);
}

// The op whose inherent attributes these are; null if they are all carried as they stand.
const OpDef* attrs_of(const ParsedOp& op) {
  if (op.foreign) return nullptr;
  return op.name == "stablehlo.dot" ? &ops::kDotGeneral : op.def;
}

// Ops that look into their regions before the regions' own ops are verified.
bool checks_regions_first(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "stablehlo.all_reduce",    "stablehlo.reduce",  "stablehlo.reduce_scatter",
      "stablehlo.reduce_window", "stablehlo.scatter", "stablehlo.select_and_scatter",
  };
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Empty lists stand for the defaults of windows.
void drop_empty_windows(Attrs& attrs) {
  for (std::string_view name : {"window_strides", "base_dilations", "window_dilations",
                                "lhs_dilation", "rhs_dilation", "window_reversal"}) {
    const Attr* a = attrs.find(name);
    const Dims* d = a ? a->get<Dims>() : nullptr;
    if (d && d->empty()) attrs.erase(name);
  }
  const Attr* padding = attrs.find("padding");
  const HostArray* p = padding ? padding->get<HostArray>() : nullptr;
  if (p && p->rank() == 2 && p->dims()[0] == 0) attrs.erase("padding");
}

bool returns_poison(const Graph& g) {
  return std::any_of(g.results.begin(), g.results.end(),
                     [&](ValueId v) { return is_poison(g.type(v)); });
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
  if (const Range* r = names.find(name)) return index < r->count ? r->first + index : kNoValue;
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
  bool added = scope.names.emplace(name, range);
  // Names of the regions around are seen here, so they cannot be used again.
  for (const Scope* s = scope.parent; s && added; s = s->parent) added = !s->names.contains(name);
  if (!added)
    report(at, "value", "a name is defined once where it is seen",
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
  const int depth_here = region_depth_;
  if (function_) function_->depth = std::max(function_->depth, region_depth_);
  std::size_t last = c_.pos();  // where the last op started
  const std::size_t owner = region_owner_;
  const bool owner_checks = owner_checks_regions_;
  bool done = false, recovered = false;
  for (;;) {
    if (c_.at_end()) c_.fail_here("region", "expected an op", "Close the region");
    if (c_.peek() == '}') break;
    std::size_t at = c_.pos();
    try {
      if (c_.peek() == '^')
        c_.fail_here("region", "regions of StableHLO have one block", "Use if, case and while");
      if (done) {
        report(last, "return", "it is the last op of its block", "more ops follow",
               "Move them in front of it");
        done = false;
        recovered = true;
      }
      last = at;
      done = read_terminator(scope);
      if (!done) last = read_op(scope);
    } catch (const UserError& e) {
      report_thrown(e);
      recovered = true;
      region_depth_ = depth_here;
      region_owner_ = owner;
      owner_checks_regions_ = owner_checks;
      skip_broken_op(at);
    }
  }
  if (!done && open) scope.graph->attrs.set(kOpenRegion, {});
  if (!done && !open && !recovered)
    report(owner_checks_regions_ ? owner : last, "region", "the last op is return", "there is none",
           "Write it");
  // What was lost may have been the return.
  if (!done && !open) scope.graph->results.push_back(poison_value(scope));
  --region_depth_;
}

bool StablehloParser::read_terminator(Scope& scope) {
  std::size_t start = c_.token_pos();
  char ch = c_.raw();
  if (ch != 's' && ch != 'r' && ch != 'f' && ch != '"') return false;
  bool pretty = c_.accept_word("stablehlo.return") || c_.accept_word("return") ||
                c_.accept_word("func.return") || c_.accept_word("sdy.return");
  bool generic = !pretty && (c_.accept("\"stablehlo.return\"") || c_.accept("\"func.return\"") ||
                             c_.accept("\"sdy.return\""));
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
  if (types.size() != op.operands.size()) {
    report(at, "return", fmt::format("{} values are returned", op.operands.size()),
           fmt::format("{} types are written", types.size()), "Write one for each");
    op.operands.assign(1, poison_value(scope));
    op.operand_pos.assign(1, at);
    types.assign(1, poison_type());
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const Type& have = scope.graph->type(op.operands[i]);
    if (have == types[i] || is_poison(have)) continue;
    report(op.operand_pos[i], "return", fmt::format("value {} is {}", i, have.to_mlir()),
           fmt::format("its written type is {}", types[i].to_mlir()), "Make them agree");
    op.operands[i] = poison_value(scope);
  }
  scope.graph->results = op.operands;
  Location loc;
  if (r_.accept_location(loc)) scope.locations().terminator = loc;
  return true;
}

std::size_t StablehloParser::read_op(Scope& scope) {
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
  std::size_t at = c_.token_pos();
  try {
    read_named_op(scope, names);
    return at;
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
    // CHLO had a tan before StableHLO.
    op.def = find_op(op.name == "chlo.tan" ? "stablehlo.tan" : op.name);
    if (op.def && op.def->is(kXylem)) op.def = nullptr;
    if (!op.def && generic && allow_unregistered_ && is_foreign_op(op.name)) {
      op.foreign = true;
      op.def = &ops::kForeign;
    }
  }
  const std::size_t outer_owner = std::exchange(region_owner_, op.pos);
  const bool outer_checks = std::exchange(owner_checks_regions_, checks_regions_first(op.name));
  r_.allow_large_splat(op.def == &ops::kConstant);
  if (generic) {
    read_generic(scope, op);
  } else {
    read_pretty(scope, op);
  }
  region_owner_ = outer_owner;
  owner_checks_regions_ = outer_checks;
  r_.accept_location(op.loc);
  if (std::optional<Type> t = r_.take_large_splat()) {
    if (!generic) op.result_types = {*t};  // the pretty form writes it once
    finish_large_splat(scope, op, names, std::move(*t));
  } else {
    finish_op(scope, op, names);
  }
}

// A constant of more equal elements than memory should hold: one element and its broadcast.
void StablehloParser::finish_large_splat(Scope& scope, ParsedOp& op,
                                         const std::vector<ResultName>& names, Type type) {
  ParsedOp broadcast;
  broadcast.pos = op.pos;
  broadcast.name = ops::kBroadcastInDim.name;
  broadcast.def = &ops::kBroadcastInDim;
  broadcast.loc = op.loc;
  Type scalar = Type::tensor(type.dtype());
  if (op.result_types.size() != 1 || op.result_types[0] != type) {
    if (!op.result_types.empty())
      report(op.pos, op.name, fmt::format("the result types are ({})", type.to_mlir()),
             fmt::format("the written ones are ({})", join_types(op.result_types)),
             "Correct the written types");
  }
  op.result_types = {scalar};
  finish_op(scope, op, {});
  broadcast.operands = {static_cast<ValueId>(scope.graph->values.size() - 1)};
  broadcast.operand_pos = {op.pos};
  broadcast.operand_types = {scalar};
  broadcast.attrs.set("broadcast_dimensions", Dims{});
  broadcast.result_types = {std::move(type)};
  finish_op(scope, broadcast, names);
}

// "name"(%a) <{…}> ({…}, {…}) {…} : (T) -> U
void StablehloParser::read_generic(Scope& scope, ParsedOp& op) {
  c_.expect('(', "operands");
  read_operands(scope, op);
  c_.expect(')', "operands");
  if (c_.peek() == '[')
    c_.fail_here("op", "ops of StableHLO have no successor blocks", "Use if, case and while");
  if (c_.accept("<{")) {
    op.attrs = r_.read_entries(attrs_of(op), "}");
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
  Attrs more = r_.read_dict(attrs_of(op));
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

// Whether the operands have the types that are written for them.
bool StablehloParser::check_written_operands(const ParsedOp& op,
                                             const std::vector<Type>& operands) {
  if (op.operand_types.size() != op.operand_pos.size()) {
    report(op.pos, op.name, "there is a type for every operand",
           fmt::format("{} operands have {} types", op.operand_pos.size(), op.operand_types.size()),
           "Write one for each");
    return false;
  }
  for (std::size_t i = 0; i < op.operand_types.size(); ++i) {
    if (op.operand_types[i] == operands[i] || is_poison(operands[i])) continue;
    report(op.operand_pos[i], op.name, fmt::format("operand {} is {}", i, operands[i].to_mlir()),
           fmt::format("its written type is {}", op.operand_types[i].to_mlir()), "Make them agree");
    return false;
  }
  return true;
}

std::vector<Type> StablehloParser::check_types(Scope& scope, ParsedOp& op,
                                               const std::vector<GraphPtr>& regions,
                                               bool deferred) {
  std::vector<Type> operands;
  for (ValueId v : op.operands) {
    operands.push_back(scope.graph->type(v));
    if (is_poison(operands.back())) return op.result_types;
  }
  if ((!op.operand_types.empty() || op.operand_pos.empty()) &&
      !check_written_operands(op, operands))
    return op.result_types;
  for (const auto& region : op.regions)
    if (returns_poison(*region->graph)) return op.result_types;
  if (deferred) return op.result_types;
  auto infer = [&] { return infer_types({*op.def, operands, op.attrs, regions, {}}); };
  // Ops such as dot_general name their element type only if it is not the operands'.
  Attrs before = op.attrs;
  bool derived = false;
  try {
    std::vector<Type> inferred;
    try {
      inferred = infer();
    } catch (const ConstraintError&) {
      derived = derive_result_dtype(*op.def, op.attrs, op.result_types);
      if (!derived) throw;
      inferred = infer();
    }
    auto accepted = [&] {
      check_static({*op.def, operands, op.attrs, regions, {}}, op.result_types, *scope.graph,
                   op.operands);
      return op.result_types;
    };
    if (refine_types(op, operands, regions, inferred)) return accepted();
    if (!derived && inferred.size() == op.result_types.size() &&
        derive_result_dtype(*op.def, op.attrs, op.result_types)) {
      std::vector<Type> again = infer();
      if (refine_types(op, operands, regions, again)) return accepted();
      op.attrs = std::move(before);
    }
    std::string label;
    for (std::size_t i = 0; i < inferred.size() && i < op.result_types.size() && label.empty(); ++i)
      if (!types_compatible(op.result_types[i], inferred[i]))
        label = result_label_at(*op.def, i, op.result_types[i], inferred[i]);
    if (label.empty() && inferred.size() != op.result_types.size() &&
        op.name == "stablehlo.collective_broadcast")
      label = "collective_broadcast_c5";
    if (label.empty() && !inferred.empty())
      label = result_label(*op.def, Type::token(), inferred[0]);
    ErrorParts parts{op.name, "", "", "Correct the written types"};
    std::string expected = fmt::format("the result types are ({})", join_types(inferred));
    std::string given = fmt::format("the written ones are ({})", join_types(op.result_types));
    parts.expected = expected;
    parts.given = given;
    report_line(op.pos, label.empty() ? UserError(parts).message()
                                      : ConstraintError(label, parts).message());
  } catch (const Error& e) {
    report_line(op.pos, e.message());
  }
  return op.result_types;
}

bool StablehloParser::refine_types(ParsedOp& op, const std::vector<Type>& operands,
                                   const std::vector<GraphPtr>& regions,
                                   const std::vector<Type>& inferred) {
  return refine_result_types(*op.def, op.attrs, operands, regions, op.result_types, inferred);
}

void StablehloParser::finish_op(Scope& scope, ParsedOp& op, const std::vector<ResultName>& names) {
  expand(scope, op);
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
    if (!check_written_operands(op, operands)) operands.assign(1, poison_type());
    if (function_)
      function_->calls.push_back(
          {op.callee, op.pos, region_depth_, std::move(operands), op.result_types});
    op.attrs.set("name", op.callee);
    out.regions.push_back(callee.graph);
  } else if (op.foreign) {
    std::vector<Type> operands;
    for (ValueId v : op.operands) operands.push_back(scope.graph->type(v));
    check_written_operands(op, operands);
    finish_regions(scope, op, out.regions);
    finish_foreign(op);
  } else {
    std::vector<std::string> functions = referenced_functions(*op.def, op.attrs);
    for (const std::string& name : functions) {
      out.regions.push_back((*functions_)[name].graph);
      if (function_) function_->calls.push_back({name, op.pos, region_depth_, {}, {}, true});
    }
    finish_regions(scope, op, out.regions);
    if (!op.attrs.empty() && op.def->find_attr("window_strides")) drop_empty_windows(op.attrs);
    op.attrs = to_inherent(*op.def, std::move(op.attrs), op.result_types,
                           [&](std::string_view expected, std::string_view given) {
                             report(op.pos, op.name, expected, given, "Correct the attribute");
                           });
    if (op.attrs.has("replica_groups")) note_mesh(op);
    if (num_errors_ == before)
      op.result_types = check_types(scope, op, out.regions, !functions.empty());
    if (num_errors_ == before && !functions.empty() && function_)
      function_->deferred.push_back(
          {op.pos, scope.graph, scope.graph->ops.size(), std::move(functions)});
  }
  out.def = op.def;
  out.operands = ValueIds(op.operands);
  out.attrs = op.attrs;  // copied, for a copy has no spare room
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

// broadcast puts dimensions of the given sizes in front of the operand's.
void StablehloParser::check_broadcast(Scope& scope, const ParsedOp& op) {
  const Type& operand = scope.graph->type(op.operands[0]);
  const Attr* given = op.attrs.find("broadcast_sizes");
  Attr value = given ? *given : Attr();
  if (!to_kind(AttrKind::kDims, value)) {
    report(op.pos, op.name, "attribute 'broadcast_sizes' is a list of integers",
           given ? fmt::format("it is {}", given->to_string()) : "it is absent",
           "Write the sizes of the new dimensions");
    return;
  }
  Dims dims = *value.get<Dims>();
  for (std::int64_t size : dims)
    if (size < 0)
      report(op.pos, op.name, "sizes are not negative", fmt::format("found {}", size),
             "Use 0 or more");
  for (std::int64_t size : operand.dims()) dims.push_back(size);
  bool same = op.result_types.size() == 1 && op.result_types[0].is_tensor() &&
              op.result_types[0].rank() == dims.ssize();
  for (int i = 0; same && i < dims.ssize(); ++i)
    same = dims[i] == op.result_types[0].dim(i) || dims[i] == kDynamic ||
           op.result_types[0].dim(i) == kDynamic;
  if (!same && operand.is_tensor())
    report(op.pos, op.name,
           fmt::format("the result type is {}", Type::tensor(operand.dtype(), dims).to_mlir()),
           fmt::format("the written one is ({})", join_types(op.result_types)),
           "Correct the written type");
}

// Ops that are read as others: deprecated ones, and those without a meaning on one device.
void StablehloParser::expand(Scope& scope, ParsedOp& op) {
  if (op.def) return;
  if (op.name == "stablehlo.create_token") {
    op.def = &ops::kAfterAll;
    return;
  }
  if (op.name == "stablehlo.broadcast" && op.operands.size() == 1) {
    // New dimensions in front.
    op.def = &ops::kBroadcastInDim;
    check_broadcast(scope, op);
    op.attrs.erase("broadcast_sizes");
    int rank = scope.graph->type(op.operands[0]).rank();
    int result_rank = op.result_types.size() == 1 ? op.result_types[0].rank() : rank;
    Dims dims;
    for (int i = 0; i < rank; ++i) dims.push_back(result_rank - rank + i);
    op.attrs.set("broadcast_dimensions", std::move(dims));
    return;
  }
  if (op.name == "stablehlo.dot" && op.operands.size() == 2) {
    op.def = &ops::kDotGeneral;
    std::int64_t last = scope.graph->type(op.operands[0]).rank() - 1;
    op.attrs.set("lhs_contracting_dimensions", Dims{std::max<std::int64_t>(last, 0)});
    op.attrs.set("rhs_contracting_dimensions", Dims{0});
    return;
  }
}

}  // namespace xylem::ir::text
