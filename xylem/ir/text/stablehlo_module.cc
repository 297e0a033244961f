#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/stablehlo_attrs.h"
#include "xylem/ir/text/stablehlo_parser.h"

// Modules, functions and the resolution of calls.

namespace xylem::ir {
namespace text {
namespace {

constexpr int kMaxErrors = 100;

bool any(const std::vector<Attrs>& attrs) {
  for (const Attrs& a : attrs)
    if (!a.empty()) return true;
  return false;
}

}  // namespace

StablehloParser::StablehloParser(std::string_view text, std::string_view file,
                                 const ParseOptions& options)
    : r_(text, file, options),
      c_(r_.cursor()),
      allow_unregistered_(options.allow_unregistered),
      file_(intern_c_string(std::string(file))) {}

void StablehloParser::report_line(std::size_t pos, std::string_view message) {
  errors_.emplace_back(pos, fmt::format("{}: error: {}", c_.place(pos), message));
  if (++num_errors_ == kMaxErrors) throw Stop();
}

void StablehloParser::report_thrown(const UserError& e) {
  errors_.emplace_back(c_.failed_pos(), e.message());
  if (++num_errors_ == kMaxErrors) throw Stop();
}

// In the order of the text.
void StablehloParser::throw_errors() {
  std::stable_sort(errors_.begin(), errors_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [pos, line] : errors_) text += (text.empty() ? "" : "\n") + line;
  if (num_errors_ >= kMaxErrors) text += "\nfurther errors are not shown";
  throw UserError(text);
}

void StablehloParser::report(std::size_t pos, std::string_view operation, std::string_view expected,
                             std::string_view given, std::string_view advice) {
  report_line(pos, UserError(ErrorParts{operation, expected, given, advice}).message());
}

Module StablehloParser::parse() {
  Module module;
  functions_ = &tables_.emplace_back();
  try {
    try {
      while (r_.accept_top_level_extra()) {
      }
      if (c_.looking_at_word("module") || c_.looking_at("\"builtin.module\"")) {
        read_module(module);
        check_calls();
        check_meshes(module);
        while (r_.accept_top_level_extra()) {
        }
        if (!c_.at_end()) {
          // More at the top level: all of it is inside one unnamed module.
          Module outer;
          outer.modules.push_back(std::make_shared<const Module>(std::move(module)));
          module = std::move(outer);
          functions_ = &tables_.emplace_back();
          read_module_body(module, false);
          check_calls();
          check_meshes(module);
        }
      } else {
        read_module_body(module, false);
        check_calls();
        check_meshes(module);
      }
    } catch (const UserError& e) {
      report_thrown(e);
    }
  } catch (const Stop&) {
  } catch (...) {
    break_cycles();
    throw;
  }
  if (num_errors_) {
    break_cycles();
    throw_errors();
  }
  return module;
}

// Calls that form a cycle would keep their graphs alive for ever.
void StablehloParser::break_cycles() {
  for (Functions& table : tables_)
    for (auto& [name, f] : table) f.graph->ops.clear();
}

void StablehloParser::read_module(Module& module) {
  if (c_.accept("\"builtin.module\"")) return read_generic_module(module);
  c_.expect_word("module", "module");
  if (c_.peek() == '@') module.name = r_.read_symbol();
  if (c_.accept_word("attributes")) module.attrs = r_.read_dict(nullptr);
  c_.expect('{', "module");
  read_module_body(module, true);
  r_.accept_location(module.loc);
}

// "builtin.module"() <{sym_name = "m"}> ({ … }) {…} : () -> ()
void StablehloParser::read_generic_module(Module& module) {
  c_.expect('(', "module");
  c_.expect(')', "module");
  if (c_.accept("<{")) {
    Attrs properties = r_.read_entries(nullptr, "}");
    c_.expect('>', "module");
    const Attr* name = properties.find("sym_name");
    if (name && name->get<std::string>()) module.name = *name->get<std::string>();
  }
  c_.expect('(', "module");
  c_.expect('{', "module");
  read_module_body(module, true);
  c_.expect(')', "module");
  // The body has set the meshes already.
  if (c_.peek() == '{') {
    const Attrs given = r_.read_dict(nullptr);
    for (const auto& [name, value] : given.entries()) module.attrs.set(name, value);
  }
  if (auto* name = module.attrs.find("sym_name"); name && name->get<std::string>()) {
    module.name = *name->get<std::string>();
    module.attrs.erase("sym_name");
  }
  c_.expect(':', "module");
  c_.expect('(', "module");
  c_.expect(')', "module");
  c_.expect("->", "module");
  r_.read_result_types();
  r_.accept_location(module.loc);
}

void StablehloParser::read_module_body(Module& module, bool braces) {
  Cursor::Depth depth(c_);
  for (;;) {
    if (braces ? c_.accept('}') : c_.at_end()) return;
    try {
      if (braces || !r_.accept_top_level_extra()) read_module_item(module);
    } catch (const UserError& e) {
      report_thrown(e);
      skip_broken_item();
    }
  }
}

void StablehloParser::read_module_item(Module& module) {
  std::size_t at = c_.token_pos();
  if (c_.accept_word("func.func") || c_.accept_word("func")) {
    read_function(module, at);
  } else if (c_.accept("\"func.func\"")) {
    read_generic_function(module, at);
  } else if (c_.accept_word("sdy.mesh")) {
    read_mesh(module);
  } else if (c_.accept("\"sdy.mesh\"")) {
    read_generic_mesh(module);
  } else if (c_.looking_at_word("module") || c_.looking_at("\"builtin.module\"")) {
    read_nested_module(module);
  } else {
    c_.fail_here("module", "expected func.func", "A module holds functions");
  }
}

void StablehloParser::read_nested_module(Module& module) {
  Functions* outer = functions_;
  functions_ = &tables_.emplace_back();
  auto nested = std::make_shared<Module>();
  read_module(*nested);
  check_calls();
  check_meshes(*nested);
  functions_ = outer;
  module.modules.push_back(std::move(nested));
}

namespace {

// The end of a line's comment-free text is of no matter here: brackets in comments are rare, and
// a wrong guess costs a further message only.
bool starts_item(std::string_view line) {
  for (std::string_view start : {"func.func", "\"func.func\"", "func @", "sdy.mesh", "\"sdy.mesh\"",
                                 "module", "\"builtin.module\""})
    if (line.starts_with(start)) return true;
  return false;
}

bool starts_op(std::string_view line) {
  if (line.empty()) return false;
  if (line[0] == '%' || line[0] == '"') return true;
  std::size_t end = 0;
  while (end < line.size() && is_identifier_char(line[end])) ++end;
  std::string_view word = line.substr(0, end);
  return word == "return" || word == "call" ||
         (is_identifier_start(line[0]) && word.find('.') != std::string_view::npos);
}

}  // namespace

// An op ends with a line outside of its braces, and the next line starts another.
void StablehloParser::skip_broken_op(std::size_t op_pos) {
  std::string_view text = c_.text();
  std::size_t failed = std::max(c_.failed_pos(), op_pos);
  int depth = 0;
  bool comment = false, string = false;
  for (std::size_t p = op_pos; p < text.size(); ++p) {
    char ch = text[p];
    if (ch == '\n') {
      comment = string = false;  // strings end with their line
      if (depth > 0) continue;
      std::size_t next = text.find_first_not_of(" \t\r\n", p);
      if (next == std::string_view::npos) break;
      if (next < failed) continue;
      std::string_view line = text.substr(next, 80);
      if (starts_op(line) || line[0] == '}' || line[0] == '^') {
        c_.seek(next);
        return;
      }
      if (starts_item(line)) break;
    } else if (comment) {
    } else if (string) {
      if (ch == '\\') ++p;
      if (ch == '"') string = false;
    } else if (ch == '"') {
      string = true;
    } else if (ch == '/' && p + 1 < text.size() && text[p + 1] == '/') {
      comment = true;
    } else if (ch == '{') {
      ++depth;
    } else if (ch == '}' && --depth < 0) {
      if (p >= failed) {
        c_.seek(p);
        return;
      }
      depth = 0;
    }
  }
  throw Stop();
}

void StablehloParser::skip_broken_item() {
  std::string_view text = c_.text();
  std::size_t p = c_.failed_pos();
  while ((p = text.find('\n', p)) != std::string_view::npos) {
    std::size_t next = text.find_first_not_of(" \t\r\n", p);
    if (next == std::string_view::npos) break;
    if (starts_item(text.substr(next, 20))) {
      c_.seek(next);
      return;
    }
    p = next;
  }
  throw Stop();
}

// sdy.mesh @mesh = <["x"=2]>: kept as an attribute of the module.
void StablehloParser::read_mesh(Module& module) {
  std::string name = r_.read_symbol();
  c_.expect('=', "mesh");
  std::size_t start = c_.token_pos();
  c_.expect('<', "mesh");
  c_.balanced('<', '>', "mesh");
  std::size_t end = c_.pos();
  if (c_.peek() == '{') {
    r_.read_dict(nullptr);
    end = c_.pos();
  }
  std::string_view text = c_.text().substr(start, end - start);
  Location loc;
  r_.accept_location(loc);
  module.attrs.set("sdy.mesh @" + name, OpaqueAttr{std::string(text)});
}

// "sdy.mesh"() <{mesh = #sdy.mesh<…>, sym_name = "mesh"}> : () -> ()
void StablehloParser::read_generic_mesh(Module& module) {
  std::size_t at = c_.token_pos();
  c_.expect('(', "mesh");
  c_.expect(')', "mesh");
  Attrs attrs;
  if (c_.accept("<{")) {
    attrs = r_.read_entries(nullptr, "}");
    c_.expect('>', "mesh");
  }
  std::string more;
  if (c_.peek() == '{') {
    std::size_t start = c_.token_pos();
    Attrs dict = r_.read_dict(nullptr);
    if (attrs.empty()) {
      attrs = std::move(dict);  // an older form
    } else {
      more = " " + std::string(c_.text().substr(start, c_.pos() - start));
    }
  }
  c_.expect(':', "mesh");
  c_.expect('(', "mesh");
  c_.expect(')', "mesh");
  c_.expect("->", "mesh");
  r_.read_result_types();
  Location loc;
  r_.accept_location(loc);
  constexpr std::string_view kPrefix = "#sdy.mesh";
  const Attr* mesh = attrs.find("mesh");
  const OpaqueAttr* text = mesh ? mesh->get<OpaqueAttr>() : nullptr;
  if (!text || !text->text.starts_with(kPrefix) || attrs.str_or("sym_name", "").empty())
    c_.fail(at, "sdy.mesh", "it has a name and a mesh", "it lacks one of them",
            "Write <{mesh = #sdy.mesh<…>, sym_name = \"…\"}>");
  module.attrs.set("sdy.mesh @" + attrs.str("sym_name"),
                   OpaqueAttr{text->text.substr(kPrefix.size()) + more});
}

StablehloParser::Function& StablehloParser::declare(Module& module, const std::string& name,
                                                    std::size_t at, bool is_private) {
  auto known = functions_->find(name);
  bool again = known != functions_->end() && known->second.defined;
  if (again)
    report(at, "function", "every function has a name of its own",
           fmt::format("@{} is defined again", name), "Rename one of them");
  // A second one is read for its errors, under a name that no call can have.
  Function& f = (*functions_)[again ? fmt::format("{}\n{}", name, at) : name];
  f.defined = true;
  f.pos = at;
  f.is_private = is_private;
  f.graph->name = name;
  f.depth = 1;
  function_ = &f;
  region_depth_ = 0;
  module.functions.push_back({name, is_private, nullptr});
  return f;
}

void StablehloParser::read_function(Module& module, std::size_t op_pos) {
  bool is_private = c_.accept_word("private");
  if (!is_private && !c_.accept_word("public")) is_private = c_.accept_word("nested");
  std::string name = r_.read_symbol();
  Function& f = declare(module, name, op_pos, is_private);
  f.broken = true;
  Graph& g = *f.graph;
  Scope scope(nullptr, f.graph);

  c_.expect('(', "function arguments");
  bool first = true;
  while (!c_.accept(')')) {
    if (!first) c_.expect(',', "function arguments");
    first = false;
    std::string_view arg;
    std::size_t arg_at = c_.token_pos();
    if (c_.accept('%')) {
      arg = c_.suffix_name("argument");
      c_.expect(':', "function arguments");
    }
    ValueId v = scope.add_param(r_.read_type());
    if (!arg.empty()) define(scope, arg, arg_at, {v, 1});
    g.param_attrs.push_back(c_.peek() == '{' ? r_.read_dict(nullptr) : Attrs());
    read_param_location(scope);
  }
  if (!any(g.param_attrs)) g.param_attrs.clear();

  std::vector<Type> results;
  if (c_.accept("->")) {
    if (c_.accept('(')) {
      while (!c_.accept(')')) {
        if (!results.empty()) c_.expect(',', "function results");
        results.push_back(r_.read_type());
        g.result_attrs.push_back(c_.peek() == '{' ? r_.read_dict(nullptr) : Attrs());
      }
      if (!any(g.result_attrs)) g.result_attrs.clear();
    } else {
      results.push_back(r_.read_type());
    }
  }
  check_dialect_attrs(f, "arguments", g.param_attrs);
  check_dialect_attrs(f, "results", g.result_attrs);
  f.results = results;
  f.broken = false;
  if (c_.accept_word("attributes")) g.attrs = r_.read_dict(nullptr);
  if (c_.accept('{')) {
    reserve_body(scope, op_pos);
    read_block(scope);
    c_.expect('}', "function");
    finish_function(f, scope, results);
    module.functions.back().graph = f.graph;
  } else {
    finish_declaration(module, f, scope, results);
  }
  Location loc;
  if (r_.accept_location(loc)) scope.locations().graph = loc;
}

void StablehloParser::check_dialect_attrs(const Function& f, std::string_view what,
                                          const std::vector<Attrs>& all) {
  for (const Attrs& attrs : all)
    for (const auto& [name, value] : attrs.entries())
      if (name.find('.') == std::string_view::npos)
        report(f.pos, fmt::format("function @{}", f.graph->name),
               fmt::format("attributes of {} belong to a dialect", what),
               fmt::format("'{}' has no prefix", name), "Write it like jax.name");
}

// "(T, U) -> V"
void StablehloParser::read_function_type(std::vector<Type>& params, std::vector<Type>& results) {
  c_.expect('(', "function type");
  if (!c_.accept(')')) {
    params = r_.read_type_list();
    c_.expect(')', "function type");
  }
  c_.expect("->", "function type");
  results = r_.read_result_types();
}

// The entries of a generic function's dictionary; the function's type is taken out.
Attrs StablehloParser::read_function_properties(std::vector<Type>& params,
                                                std::vector<Type>& results,
                                                std::string_view close) {
  Attrs attrs;
  bool first = true;
  while (!c_.accept(close)) {
    if (!first) c_.expect(',', "attributes");
    first = false;
    std::string name = c_.peek() == '"' ? c_.string("attribute name")
                                        : std::string(c_.identifier("attribute name"));
    if (!c_.accept('=')) {
      attrs.set(name, {});
    } else if (name == "function_type") {
      read_function_type(params, results);
    } else {
      attrs.set(name, r_.read_attr(MlirReader::Mode::kForeign));
    }
  }
  return attrs;
}

// "func.func"() <{function_type = (T) -> U, sym_name = "f"}> ({ ^bb0(%a: T): … }) : () -> ()
void StablehloParser::read_generic_function(Module& module, std::size_t op_pos) {
  c_.expect('(', "function");
  c_.expect(')', "function");
  Attrs properties;
  std::vector<Type> params, results;
  bool old = !c_.accept("<{");
  if (old) {
    // The attributes stand behind the region.
    std::size_t back = c_.token_pos();
    c_.expect('(', "function");
    c_.balanced('(', ')', "function");
    c_.expect('{', "function");
    properties = read_function_properties(params, results, "}");
    c_.seek(back);
  } else {
    properties = read_function_properties(params, results, "}");
    c_.expect('>', "function");
  }
  auto text_of = [&](std::string_view attr) {
    const Attr* a = properties.find(attr);
    const std::string* s = a ? a->get<std::string>() : nullptr;
    return s ? *s : std::string();
  };
  std::string name = text_of("sym_name");
  if (name.empty())
    c_.fail(op_pos, "function", "the property sym_name names the function", "it is absent",
            "Add it");
  std::string visibility = text_of("sym_visibility");
  Function& f = declare(module, name, op_pos, visibility == "private" || visibility == "nested");
  Graph& g = *f.graph;
  f.results = results;
  Scope scope(nullptr, f.graph);
  c_.expect('(', "function");
  c_.expect('{', "function");
  bool has_body = !c_.accept('}');
  if (has_body) {
    read_block_args(scope);
    if (g.param_types() != params)
      report(op_pos, fmt::format("function @{}", name),
             fmt::format("its arguments are ({})", join_types(params)),
             fmt::format("its block has ({})", join_types(g.param_types())), "Make them agree");
    read_block(scope);
    c_.expect('}', "function");
    finish_function(f, scope, results);
    module.functions.back().graph = f.graph;
  } else {
    for (const Type& t : params) scope.add_param(t);
  }
  c_.expect(')', "function");
  auto spread = [&](std::string_view attr, std::vector<Attrs>& to, std::size_t n) {
    const Attr* a = properties.find(attr);
    const AttrList* list = a ? a->list() : nullptr;
    if (!list || list->size() != n) return;
    for (const Attr& e : *list) to.push_back(e.dict() ? *e.dict() : Attrs());
    if (!any(to)) to.clear();
  };
  spread("arg_attrs", g.param_attrs, params.size());
  spread("res_attrs", g.result_attrs, results.size());
  check_dialect_attrs(f, "arguments", g.param_attrs);
  check_dialect_attrs(f, "results", g.result_attrs);
  if (c_.peek() == '{') g.attrs = r_.read_dict(nullptr);
  if (old)
    for (const char* own :
         {"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})
      g.attrs.erase(own);
  if (!has_body) finish_declaration(module, f, scope, results);
  c_.expect(':', "function");
  c_.expect('(', "function");
  c_.expect(')', "function");
  c_.expect("->", "function");
  r_.read_result_types();
  Location loc;
  if (r_.accept_location(loc)) scope.locations().graph = loc;
}

// Makes room for a function's ops, about one a line up to the line that closes it: a long body that
// grows step by step would hold twice its memory.
void StablehloParser::reserve_body(Scope& scope, std::size_t op_pos) {
  constexpr std::size_t kLong = 1000;
  std::string_view text = c_.text();
  std::size_t line = text.rfind('\n', op_pos);
  std::string close =
      "\n" + std::string(op_pos - (line == std::string_view::npos ? 0 : line + 1), ' ');
  close += '}';
  std::size_t end = std::min(text.find(close, c_.pos()), text.size());
  auto lines =
      static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(c_.pos()),
                                          text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  // A line of an op has some twenty characters at least.
  lines = std::min(lines, (end - c_.pos()) / 20);
  if (lines < kLong) return;
  scope.graph->ops.reserve(lines);
  scope.graph->values.reserve(lines + scope.graph->values.size());
  scope.names.reserve(lines);
}

void StablehloParser::finish_function(Function& f, Scope& scope, const std::vector<Type>& results) {
  const Graph& g = *scope.graph;
  f.has_body = true;
  bool same = g.results.size() == results.size(), poison = false;
  for (ValueId v : g.results) poison = poison || is_poison(g.type(v));
  for (std::size_t i = 0; same && i < results.size(); ++i)
    same = g.type(g.results[i]) == results[i];
  if (same || poison) return;
  report(return_pos_, "return",
         fmt::format("function @{} returns ({})", g.name, join_types(results)),
         fmt::format("this return has ({})", join_types(g.result_types())), "Make them agree");
}

// A graph whose one op, which has no meaning, gives the results.
void StablehloParser::finish_declaration(Module& module, Function& f, Scope& scope,
                                         const std::vector<Type>& results) {
  Graph& g = *scope.graph;
  f.has_body = true;
  g.attrs.set(kDeclaration, {});
  if (!f.is_private)
    report(f.pos, fmt::format("function @{}", g.name), "a declaration is private",
           "this one is public", "Write func.func private, or give it a body");
  Op op;
  op.def = &ops::kForeign;
  op.attrs.set("op", "func.func");
  AttrList types;
  for (const Type& t : results) {
    types.push_back(t);
    auto v = static_cast<ValueId>(g.values.size());
    g.values.push_back({t, 0, static_cast<std::int32_t>(op.results.size()), nullptr});
    op.results.push_back(v);
    g.results.push_back(v);
  }
  op.attrs.set("result_types", std::move(types));
  g.ops.push_back(std::move(op));
  module.functions.back().graph = f.graph;
}

void StablehloParser::note_mesh(const ParsedOp& op) {
  const Attr* groups = op.attrs.find("replica_groups");
  const Attr* mesh = groups && groups->dict() ? groups->dict()->find("mesh") : nullptr;
  if (const SymbolAttr* name = mesh ? mesh->get<SymbolAttr>() : nullptr)
    meshes_.emplace_back(op.pos, name->name);
}

void StablehloParser::check_meshes(const Module& module) {
  for (const auto& [at, name] : meshes_)
    if (!module.attrs.has("sdy.mesh @" + name) && !functions_->contains(name))
      report(at, "replica_groups", "the mesh is defined in the module",
             fmt::format("there is no @{}", name), "Define it with sdy.mesh");
  meshes_.clear();
}

void StablehloParser::check_calls() {
  for (auto& [name, f] : *functions_) {
    for (const CallSite& call : f.calls) {
      Function& callee = (*functions_)[call.callee];
      std::string operation = fmt::format("call @{}", call.callee);
      if (call.reference) continue;
      if (!callee.defined) {
        report(call.pos, operation, "the callee is defined in the module",
               "there is no such function", "Define it");
        continue;
      }
      if (callee.broken || !callee.has_body) continue;
      auto check = [&](const char* what, const std::vector<Type>& have,
                       const std::vector<Type>& want) {
        if (have == want || std::any_of(have.begin(), have.end(), is_poison)) return;
        report(call.pos, operation, fmt::format("the {} are ({})", what, join_types(want)),
               fmt::format("the call has ({})", join_types(have)), "Make them agree");
      };
      check("arguments", call.operands, callee.graph->param_types());
      check("results", call.results, callee.results);
    }
  }
  for (auto& [name, f] : *functions_)
    for (const Deferred& d : f.deferred) check_deferred(d);
  check_recursion();
}

// The rule of an op that names functions, now that these are read.
void StablehloParser::check_deferred(const Deferred& d) {
  const Op& op = d.graph->ops[d.op];
  std::vector<GraphPtr> regions = op.regions;
  for (std::size_t i = 0; i < d.functions.size(); ++i) {
    const Function& f = (*functions_)[d.functions[i]];
    if (f.broken) return;
    if (!f.defined) regions[i] = nullptr;
  }
  std::vector<Type> operands;
  for (ValueId v : op.operands) operands.push_back(d.graph->type(v));
  if (std::any_of(operands.begin(), operands.end(), is_poison)) return;
  try {
    infer_types({*op.def, operands, op.attrs, regions, {}});
  } catch (const Error& e) {
    report_line(d.pos, e.message());
  }
}

// The depth of regions with their calls resolved, by walking the calls without recursion.
void StablehloParser::check_recursion() {
  std::unordered_map<Function*, int> total;  // -1: being walked
  for (auto& [name, root] : *functions_) {
    std::vector<std::pair<Function*, std::size_t>> stack{{&root, 0}};
    if (total.contains(&root)) continue;
    total[&root] = -1;
    while (!stack.empty()) {
      auto& [f, next] = stack.back();
      if (next < f->calls.size()) {
        const CallSite& call = f->calls[next++];
        Function* callee = &(*functions_)[call.callee];
        auto it = total.find(callee);
        if (it == total.end()) {
          total[callee] = -1;
          stack.push_back({callee, 0});
        } else if (it->second < 0) {
          report(call.pos, fmt::format("call @{}", call.callee), "functions do not call themselves",
                 "this call closes a cycle", "Use while");
        }
        continue;
      }
      int depth = f->depth;
      for (const CallSite& call : f->calls)
        depth = std::max(depth, call.depth + 1 + total[&(*functions_)[call.callee]]);
      if (depth > kMaxDepth)
        report(f->pos, fmt::format("function @{}", f->graph->name),
               fmt::format("calls and regions nest at most {} deep", kMaxDepth),
               fmt::format("these nest {} deep", depth), "Flatten the program");
      total[f] = depth;
      stack.pop_back();
    }
  }
}

}  // namespace text

Module parse_stablehlo(std::string_view text, std::string_view file, const ParseOptions& options) {
  return text::StablehloParser(text, file, options).parse();
}

}  // namespace xylem::ir
