#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/bytecode/program_reader.h"
#include "xylem/ir/ops/foreign.h"
#include "xylem/ir/text/cursor.h"
#include "xylem/ir/text/stablehlo_attrs.h"

// Modules, functions and the resolution of calls.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";

std::string join(const std::vector<Type>& types) {
  std::string s;
  for (const Type& t : types) s += (s.empty() ? "" : ", ") + t.to_mlir();
  return s;
}

bool any(const std::vector<Attrs>& attrs) {
  return std::any_of(attrs.begin(), attrs.end(), [](const Attrs& a) { return !a.empty(); });
}

}  // namespace

Module ProgramReader::read() {
  Module module;
  ByteCursor c(source_, frame_.ir.begin, frame_.ir.end);
  functions_ = &tables_.emplace_back();
  try {
    std::uint64_t head = c.varint("top block");
    if (head != 2)
      c.fail("module", "one module at the top", fmt::format("a block of {} ops", head >> 1),
             kDamaged);
    FileOp op = read_head(c);
    if (op.name->op != "builtin.module")
      source_.fail(op.at, op.name->op, "a module at the top", "another op",
                   "Put the program into a module");
    read_module(c, op, module);
    if (!c.done()) c.fail("module", "the file's ops end with it", "more bytes", kDamaged);
    if (num_errors_) throw UserError(errors_);
  } catch (const UserError& e) {
    // Calls that form a cycle would keep their graphs alive for ever.
    for (Functions& table : tables_)
      for (auto& [name, f] : table) f.graph->ops.clear();
    // What was found before an error of form is told too.
    if (num_errors_ == 0 || e.message().starts_with(errors_)) throw;
    throw UserError(fmt::format("{}\n{}", errors_, e.message()));
  } catch (...) {
    for (Functions& table : tables_)
      for (auto& [name, f] : table) f.graph->ops.clear();
    throw;
  }
  return module;
}

void ProgramReader::read_module(ByteCursor& c, FileOp& op, Module& module) {
  if (op.has_attrs) module.attrs = values_.dictionary(op.attrs, ValueReader::Mode::kForeign);
  for (const auto& [name, index] : record_of(op)) {
    const std::string* s = values_.attr(index, ValueReader::Mode::kForeign).get<std::string>();
    if (name == "sym_name" && s) module.name = *s;
    if (name == "sym_visibility") module.attrs.erase(name);
  }
  if (const Attr* name = module.attrs.find("sym_name"); name && name->get<std::string>()) {
    module.name = *name->get<std::string>();
    module.attrs.erase("sym_name");
  }
  if (is_given(op.loc)) module.loc = op.loc;
  if (op.num_regions != 1)
    source_.fail(op.at, "module", "it has one region", fmt::format("{} regions", op.num_regions),
                 kDamaged);
  if (region_depth_ >= text::kMaxDepth)
    source_.fail(op.at, "module", fmt::format("modules nest at most {} deep", text::kMaxDepth),
                 "these nest deeper", "Flatten the program");
  Functions* outer = functions_;
  functions_ = &tables_.emplace_back();
  int depth = ++region_depth_;
  with_regions(c, op, [&](ByteCursor& inner) {
    std::uint64_t blocks = inner.varint("blocks");
    if (blocks == 0) return;
    std::uint64_t values = inner.varint("values");
    std::uint64_t head = inner.varint("block");
    if (blocks != 1 || values != 0 || (head & 1))
      inner.fail("module", "one block without values", "something else", kDamaged);
    for (std::uint64_t i = 0; i < head >> 1; ++i) {
      region_depth_ = depth;
      read_module_item(inner, module);
    }
  });
  region_depth_ = depth - 1;
  check_calls();
  functions_ = outer;
}

void ProgramReader::read_module_item(ByteCursor& c, Module& module) {
  FileOp op = read_head(c);
  if (op.name->op == "func.func") return read_function(c, op, module);
  if (op.name->op == "sdy.mesh") return read_mesh(op, module);
  if (op.name->op == "builtin.module") {
    auto nested = std::make_shared<Module>();
    read_module(c, op, *nested);
    module.modules.push_back(std::move(nested));
    return;
  }
  source_.fail(op.at, op.name->op, "a module holds functions", "this is another op",
               "Put it into a function");
}

// sdy.mesh @mesh = <["x"=2]>: kept as an attribute of the module, as the text reader does.
void ProgramReader::read_mesh(FileOp& op, Module& module) {
  std::string name, text;
  for (const auto& [attr, index] : record_of(op)) {
    const Attr& value = values_.attr(index, ValueReader::Mode::kForeign);
    if (attr == "sym_name" && value.get<std::string>()) name = *value.get<std::string>();
    if (attr == "mesh" && value.get<OpaqueAttr>()) text = value.get<OpaqueAttr>()->text;
  }
  constexpr std::string_view kPrefix = "#sdy.mesh";
  if (name.empty() || !text.starts_with(kPrefix))
    source_.fail(op.at, "sdy.mesh", "a name and a mesh", "something else", kDamaged);
  text.erase(0, kPrefix.size());
  if (op.has_attrs) {
    Attrs more = values_.dictionary(op.attrs, ValueReader::Mode::kForeign);
    if (!more.empty()) {
      text += ' ';
      text::append_mlir_attr(text, Attr(std::move(more)));
    }
  }
  module.attrs.set("sdy.mesh @" + name, OpaqueAttr{std::move(text)});
}

void ProgramReader::read_function(ByteCursor& c, FileOp& op, Module& module) {
  using Mode = ValueReader::Mode;
  std::string name, visibility;
  const FileType* type = nullptr;
  const AttrList* arg_attrs = nullptr;
  const AttrList* result_attrs = nullptr;
  Attrs extra;
  auto text = [&](std::size_t index) {
    const std::string* s = values_.attr(index, Mode::kForeign).get<std::string>();
    if (!s) source_.fail(op.at, "function", "names are strings", "another attribute", kDamaged);
    return *s;
  };
  for (const auto& [attr, index] : record_of(op)) {
    if (attr == "sym_name") {
      name = text(index);
    } else if (attr == "sym_visibility") {
      visibility = text(index);
    } else if (attr == "function_type") {
      type = values_.type_of_attr(index);
    } else if (attr == "arg_attrs") {
      arg_attrs = values_.attr(index, Mode::kForeign).list();
    } else if (attr == "res_attrs") {
      result_attrs = values_.attr(index, Mode::kForeign).list();
    } else {
      extra.set(attr, values_.attr(index, Mode::kForeign));
    }
  }
  if (name.empty() || !type || type->kind != FileType::Kind::kFunction)
    source_.fail(op.at, "function", "a name and a function type", "something else", kDamaged);
  std::vector<Type> params, results;
  for (std::uint32_t t : type->inputs) params.push_back(values_.type(t, op.at));
  for (std::uint32_t t : type->results) results.push_back(values_.type(t, op.at));

  Function& f = (*functions_)[name];
  if (f.defined)
    source_.fail(op.at, "function", "every function has a name of its own",
                 fmt::format("@{} is defined again", name), "Rename one of them");
  f.defined = true;
  f.at = op.at;
  f.results = results;
  function_ = &f;
  region_depth_ = 0;
  Graph& g = *f.graph;
  g.name = name;
  bool is_private = visibility == "private" || visibility == "nested";
  module.functions.push_back({name, is_private, nullptr});

  Body body(nullptr);
  body.graph = f.graph;
  if (op.has_attrs) {
    g.attrs = values_.dictionary(op.attrs, Mode::kForeign);
    if (frame_.format < 5)
      for (std::string_view own :
           {"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})
        g.attrs.erase(own);
  }
  for (const auto& [attr, value] : extra.entries()) g.attrs.set(attr, value);
  auto spread = [&](const AttrList* list, std::vector<Attrs>& to, std::size_t n) {
    if (!list || list->size() != n) return;
    for (const Attr& e : *list) to.push_back(e.dict() ? *e.dict() : Attrs());
    if (!any(to)) to.clear();
  };
  spread(arg_attrs, g.param_attrs, params.size());
  spread(result_attrs, g.result_attrs, results.size());

  if (op.num_regions != 1)
    source_.fail(op.at, "function", "it has one region", fmt::format("{}", op.num_regions),
                 kDamaged);
  bool has_body = true;
  with_regions(c, op, [&](ByteCursor& inner) {
    ByteCursor ahead = inner;
    if (ahead.varint("blocks") == 0) {
      inner = ahead;
      has_body = false;
    } else {
      read_region(inner, body, true, op);
    }
  });
  function_ = nullptr;
  if (!has_body) {
    if (!is_private)
      report(op, fmt::format("function @{}", name), "a declaration is private",
             "this one is public", "Make it private, or give it a body");
    finish_declaration(module, f, body, params);
  } else {
    f.has_body = true;
    if (g.param_types() != params)
      report(op, fmt::format("function @{}", name),
             fmt::format("its arguments are ({})", join(params)),
             fmt::format("its block has ({})", join(g.param_types())), "Make them agree");
    if (g.result_types() != results)
      report(op, "return", fmt::format("function @{} returns ({})", name, join(results)),
             fmt::format("this return has ({})", join(g.result_types())), "Make them agree");
    module.functions.back().graph = f.graph;
  }
  if (is_given(op.loc)) body.locations().graph = op.loc;
}

// A graph whose one op, which has no meaning, gives the results.
void ProgramReader::finish_declaration(Module& module, Function& f, Body& body,
                                       const std::vector<Type>& params) {
  Graph& g = *body.graph;
  f.has_body = true;
  g.attrs.set(text::kDeclaration, {});
  for (const Type& t : params) body.add_param(t);
  Op op;
  op.def = &ops::kForeign;
  op.attrs.set("op", "func.func");
  AttrList types;
  for (const Type& t : f.results) {
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

void ProgramReader::check_calls() {
  for (auto& [name, f] : *functions_) {
    for (const CallSite& call : f.calls) {
      Function& callee = (*functions_)[call.callee];
      std::string operation = fmt::format("call @{}", call.callee);
      auto tell = [&](std::string expected, std::string given, const char* advice) {
        report_line(call.at, {},
                    UserError(ErrorParts{operation, expected, given, advice}).message());
      };
      if (!callee.defined && !options_.check) {
        // Taken as declared.
        callee.graph->name = call.callee;
        callee.graph->attrs.set(text::kDeclaration, {});
        continue;
      }
      if (!callee.defined) {
        tell("the callee is defined in the module", "there is no such function", "Define it");
        continue;
      }
      auto check = [&](const char* what, const std::vector<Type>& have,
                       const std::vector<Type>& want) {
        if (have != want)
          tell(fmt::format("the {} are ({})", what, join(want)),
               fmt::format("the call has ({})", join(have)), "Make them agree");
      };
      if (!call.typed) continue;
      check("arguments", call.operands, callee.graph->param_types());
      check("results", call.results, callee.results);
    }
  }
  if (num_errors_ == 0) check_recursion();
  for (const Deferred& d : deferred_) {
    const Op& op = d.graph->ops[d.op];
    std::vector<Type> operands;
    for (ValueId v : op.operands) operands.push_back(d.graph->type(v));
    if (num_errors_ || !options_.check) break;
    try {
      infer_types({*op.def, operands, op.attrs, op.regions, {}});
    } catch (const Error& e) {
      report_line(d.at, op.loc, e.message());
    }
  }
  deferred_.clear();
}

// The depth of regions with their calls resolved, by walking the calls without recursion.
void ProgramReader::check_recursion() {
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
          source_.fail(call.at, fmt::format("call @{}", call.callee),
                       "functions do not call themselves", "this call closes a cycle", "Use while");
        }
        continue;
      }
      int depth = f->depth;
      for (const CallSite& call : f->calls)
        depth = std::max(depth, call.depth + 1 + total[&(*functions_)[call.callee]]);
      if (depth > text::kMaxDepth)
        source_.fail(f->at, fmt::format("function @{}", f->graph->name),
                     fmt::format("calls and regions nest at most {} deep", text::kMaxDepth),
                     fmt::format("these nest {} deep", depth), "Flatten the program");
      total[f] = depth;
      stack.pop_back();
    }
  }
}

}  // namespace xylem::ir::bytecode
