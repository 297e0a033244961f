#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/text.h"
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

StablehloParser::StablehloParser(std::string_view text, std::string_view file)
    : r_(text, file), c_(r_.cursor()), file_(intern_c_string(std::string(file))) {}

void StablehloParser::report_line(std::size_t pos, std::string_view message) {
  if (!errors_.empty()) errors_ += '\n';
  errors_ += fmt::format("{}: error: {}", c_.place(pos), message);
  if (++num_errors_ == kMaxErrors) throw UserError(errors_ + "\nfurther errors are not shown");
}

void StablehloParser::report(std::size_t pos, std::string_view operation, std::string_view expected,
                             std::string_view given, std::string_view advice) {
  report_line(pos, UserError(ErrorParts{operation, expected, given, advice}).message());
}

Module StablehloParser::parse() {
  Module module;
  try {
    while (r_.accept_top_level_extra()) {
    }
    if (c_.looking_at_word("module") || c_.looking_at("\"builtin.module\"")) {
      read_module(module);
    } else {
      read_module_body(module, false);
    }
    while (r_.accept_top_level_extra()) {
    }
    if (!c_.at_end())
      c_.fail_here("module", "nothing follows the module",
                   "Split the file where another module starts");
    check_calls();
    if (num_errors_) throw UserError(errors_);
  } catch (const UserError& e) {
    break_cycles();
    // What was found before an error of form is told too.
    if (num_errors_ == 0 || e.message().starts_with(errors_)) throw;
    throw UserError(fmt::format("{}\n{}", errors_, e.message()));
  } catch (...) {
    break_cycles();
    throw;
  }
  return module;
}

// Calls that form a cycle would keep their graphs alive for ever.
void StablehloParser::break_cycles() {
  for (auto& [name, f] : functions_) f.graph->ops.clear();
}

void StablehloParser::read_module(Module& module) {
  if (c_.accept("\"builtin.module\"")) return read_generic_module(module);
  c_.expect_word("module", "module");
  if (c_.peek() == '@') module.name = r_.read_symbol();
  if (c_.accept_word("attributes")) module.attrs = r_.read_dict(nullptr);
  c_.expect('{', "module");
  read_module_body(module, true);
  Location loc;
  r_.accept_location(loc);
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
  if (c_.peek() == '{') module.attrs = r_.read_dict(nullptr);
  if (auto* name = module.attrs.find("sym_name"); name && name->get<std::string>()) {
    module.name = *name->get<std::string>();
    module.attrs.erase("sym_name");
  }
  c_.expect(':', "module");
  c_.expect('(', "module");
  c_.expect(')', "module");
  c_.expect("->", "module");
  r_.read_result_types();
  Location loc;
  r_.accept_location(loc);
}

void StablehloParser::read_module_body(Module& module, bool braces) {
  for (;;) {
    if (braces ? c_.accept('}') : c_.at_end()) return;
    if (!braces && r_.accept_top_level_extra()) continue;
    if (c_.accept_word("func.func") || c_.accept_word("func")) {
      read_function(module);
    } else if (c_.accept("\"func.func\"")) {
      read_generic_function(module);
    } else if (c_.accept_word("sdy.mesh")) {
      read_mesh(module);
    } else if (c_.looking_at_word("module")) {
      c_.fail_here("module", "a module holds functions", "Take the nested module out");
    } else {
      c_.fail_here("module", "expected func.func", "A module holds functions");
    }
  }
}

// sdy.mesh @mesh = <["x"=2]>: kept as an attribute of the module.
void StablehloParser::read_mesh(Module& module) {
  std::string name = r_.read_symbol();
  c_.expect('=', "mesh");
  std::size_t start = c_.token_pos();
  c_.expect('<', "mesh");
  c_.balanced('<', '>', "mesh");
  std::string_view text = c_.text().substr(start, c_.pos() - start);
  if (c_.peek() == '{') r_.read_dict(nullptr);
  Location loc;
  r_.accept_location(loc);
  module.attrs.set("sdy.mesh @" + name, OpaqueAttr{std::string(text)});
}

StablehloParser::Function& StablehloParser::declare(Module& module, const std::string& name,
                                                    std::size_t at, bool is_private) {
  Function& f = functions_[name];
  if (f.defined)
    c_.fail(at, "function", "every function has a name of its own",
            fmt::format("@{} is defined again", name), "Rename one of them");
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

void StablehloParser::read_function(Module& module) {
  bool is_private = c_.accept_word("private");
  if (!is_private && !c_.accept_word("public")) c_.accept_word("nested");
  std::size_t at = c_.token_pos();
  std::string name = r_.read_symbol();
  Function& f = declare(module, name, at, is_private);
  Graph& g = *f.graph;
  Scope scope(nullptr, f.graph);
  Location loc;

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
    r_.accept_location(loc);
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
  if (c_.accept_word("attributes")) g.attrs = r_.read_dict(nullptr);
  if (c_.accept('{')) {
    read_block(scope);
    c_.expect('}', "function");
    finish_function(f, scope, results);
    module.functions.back().graph = f.graph;
  }
  r_.accept_location(loc);
}

// "func.func"() <{function_type = (T) -> U, sym_name = "f"}> ({ ^bb0(%a: T): … }) : () -> ()
void StablehloParser::read_generic_function(Module& module) {
  std::size_t at = c_.token_pos();
  c_.expect('(', "function");
  c_.expect(')', "function");
  Attrs properties;
  if (c_.accept("<{")) {
    properties = r_.read_entries(nullptr, "}");
    c_.expect('>', "function");
  }
  auto text_of = [&](std::string_view attr) {
    const Attr* a = properties.find(attr);
    const std::string* s = a ? a->get<std::string>() : nullptr;
    return s ? *s : std::string();
  };
  std::string name = text_of("sym_name");
  if (name.empty())
    c_.fail(at, "function", "the property sym_name names the function", "it is absent", "Add it");
  Function& f = declare(module, name, at, text_of("sym_visibility") == "private");
  Graph& g = *f.graph;
  Scope scope(nullptr, f.graph);
  c_.expect('(', "function");
  c_.expect('{', "function");
  if (!c_.accept('}')) {
    read_block_args(scope);
    read_block(scope);
    c_.expect('}', "function");
    finish_function(f, scope, g.result_types());
    module.functions.back().graph = f.graph;
  }
  c_.expect(')', "function");
  auto spread = [&](std::string_view attr, std::vector<Attrs>& to, std::size_t n) {
    const Attr* a = properties.find(attr);
    const AttrList* list = a ? a->list() : nullptr;
    if (!list || list->size() != n) return;
    for (const Attr& e : *list) to.push_back(e.dict() ? *e.dict() : Attrs());
    if (!any(to)) to.clear();
  };
  spread("arg_attrs", g.param_attrs, g.params.size());
  spread("res_attrs", g.result_attrs, g.results.size());
  if (c_.peek() == '{') g.attrs = r_.read_dict(nullptr);
  c_.expect(':', "function");
  c_.expect('(', "function");
  c_.expect(')', "function");
  c_.expect("->", "function");
  r_.read_result_types();
  Location loc;
  r_.accept_location(loc);
}

void StablehloParser::finish_function(Function& f, Scope& scope, const std::vector<Type>& results) {
  const Graph& g = *scope.graph;
  f.has_body = true;
  bool same = g.results.size() == results.size();
  for (std::size_t i = 0; same && i < results.size(); ++i)
    same = g.type(g.results[i]) == results[i];
  if (same) return;
  std::string want, have;
  for (const Type& t : results) want += (want.empty() ? "" : ", ") + t.to_mlir();
  for (ValueId v : g.results) have += (have.empty() ? "" : ", ") + g.type(v).to_mlir();
  report(f.pos, fmt::format("function @{}", g.name), fmt::format("it returns ({})", want),
         fmt::format("its return has ({})", have), "Make them agree");
}

void StablehloParser::check_calls() {
  for (auto& [name, f] : functions_) {
    for (const CallSite& call : f.calls) {
      Function& callee = functions_[call.callee];
      std::string operation = fmt::format("call @{}", call.callee);
      if (!callee.has_body) {
        report(call.pos, operation, "the callee is defined in the module",
               callee.defined ? "it is only declared" : "there is no such function", "Define it");
        continue;
      }
      auto check = [&](const char* what, const std::vector<Type>& have,
                       const std::vector<Type>& want) {
        if (have == want) return;
        std::string w, h;
        for (const Type& t : want) w += (w.empty() ? "" : ", ") + t.to_mlir();
        for (const Type& t : have) h += (h.empty() ? "" : ", ") + t.to_mlir();
        report(call.pos, operation, fmt::format("the {} are ({})", what, w),
               fmt::format("the call has ({})", h), "Make them agree");
      };
      check("arguments", call.operands, callee.graph->param_types());
      check("results", call.results, callee.graph->result_types());
    }
  }
  // The depth of regions with their calls resolved, by walking the calls without recursion.
  std::unordered_map<Function*, int> total;  // -1: being walked
  for (auto& [name, root] : functions_) {
    std::vector<std::pair<Function*, std::size_t>> stack{{&root, 0}};
    if (total.contains(&root)) continue;
    total[&root] = -1;
    while (!stack.empty()) {
      auto& [f, next] = stack.back();
      if (next < f->calls.size()) {
        const CallSite& call = f->calls[next++];
        Function* callee = &functions_[call.callee];
        auto it = total.find(callee);
        if (it == total.end()) {
          total[callee] = -1;
          stack.push_back({callee, 0});
        } else if (it->second < 0) {
          c_.fail(call.pos, fmt::format("call @{}", call.callee),
                  "functions do not call themselves", "this call closes a cycle", "Use while");
        }
        continue;
      }
      int depth = f->depth;
      for (const CallSite& call : f->calls)
        depth = std::max(depth, call.depth + 1 + total[&functions_[call.callee]]);
      if (depth > kMaxDepth)
        c_.fail(f->pos, fmt::format("function @{}", f->graph->name),
                fmt::format("calls and regions nest at most {} deep", kMaxDepth),
                fmt::format("these nest {} deep", depth), "Flatten the program");
      total[f] = depth;
      stack.pop_back();
    }
  }
}

}  // namespace text

Module parse_stablehlo(std::string_view text, std::string_view file) {
  return text::StablehloParser(text, file).parse();
}

}  // namespace xylem::ir
