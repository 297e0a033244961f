#include "xylem/core/internal/staged.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/cost.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/text.h"

namespace xylem::internal {

StagedPtr stage(const JitCache& cache, const Structure& structure, std::span<const Array> args,
                FlatFunction traced, SourceLoc where) {
  CallSite site(where);
  auto s = std::make_shared<Staged>();
  s->name = name_of(cache);
  s->structure = structure;
  for (const Array& a : args)
    if (a.defined()) s->types.push_back(abstract(a));
  s->traced = trace_flat(TraceKind::kJit, s->name, args, traced);
  return s;
}

ir::GraphPtr closed_graph(const Staged& s) {
  const FlatTrace& t = s.traced;
  if (t.captures.empty()) return t.graph;
  const ir::Graph& g = *t.graph;
  ir::Builder b(g.name);
  std::vector<ir::ValueId> args;
  std::size_t own = g.params.size() - t.captures.size();
  for (std::size_t i = 0; i < own; ++i) args.push_back(b.param(g.type(g.params[i])));
  for (const Array& a : t.captures) {
    if (a.is_traced())
      throw UserError(ErrorParts{fmt::format("lower {}", s.name),
                                 "a function that closes over concrete arrays only",
                                 fmt::format("it closes over a traced {}", a.type_string()),
                                 "Pass the traced value as an argument"},
                      CallSite::outermost({}));
    args.push_back(b.constant(a.to_host().to_contiguous()));
  }
  return b.finish(b.inline_graph(g, args));
}

ir::Module stablehlo_module(const std::string& name, const ir::GraphPtr& graph) {
  ir::Module m;
  m.name = name == "jit" ? name : "jit_" + name;
  for (char& c : m.name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  ir::Graph main = *graph;
  main.name = "main";
  m.functions.push_back({"main", false, std::make_shared<const ir::Graph>(std::move(main))});
  return ir::legalize(m);
}

std::string stablehlo_text(const Staged& s, bool debug_info) {
  return ir::print_stablehlo(stablehlo_module(s.name, closed_graph(s)),
                             {.generic = false, .locations = debug_info});
}

std::string native_text(const Staged& s) { return ir::print(*s.traced.graph); }

CostAnalysis cost_analysis(const Staged& s) {
  ir::Cost c = ir::cost_of(*s.traced.graph);
  return {c.flops, c.transcendentals, c.bytes};
}

// --- compiled --------------------------------------------------------------------------------

class CompiledProgram {
 public:
  StagedPtr staged;
  runtime::ExecutablePtr executable;
};

CompiledPtr compile(StagedPtr s) {
  auto c = std::make_shared<CompiledProgram>();
  for (const Array& a : s->traced.captures)
    if (a.is_traced()) closed_graph(*s);  // throws
  c->executable = runtime::default_client().compile(
      s->traced.graph, {.quick = false, .name = s->name, .donated = {}});
  c->staged = std::move(s);
  return c;
}

std::vector<Array> call(const CompiledProgram& c, const Structure& structure,
                        std::span<const Array> args, SourceLoc where) {
  CallSite site(where);
  const Staged& s = *c.staged;
  if (current_trace())
    throw UserError(
        ErrorParts{fmt::format("call of the compiled '{}'", s.name),
                   "a call with concrete arrays: compiled code cannot be transformed",
                   fmt::format("it is called inside '{}'", current_trace()->name()),
                   "Call the function that was jitted instead of what compile() returned"},
        where);
  if (!(structure == s.structure))
    throw UserError(ErrorParts{fmt::format("call of the compiled '{}'", s.name),
                               "the structure that it was lowered for",
                               s.structure.describe_difference(structure),
                               "Lower and compile again for these arguments"},
                    where);
  std::size_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].defined()) continue;
    const ir::Type& want = s.types[next++].type;
    if (args[i].node()->type == want) continue;
    throw UserError(
        ErrorParts{fmt::format("call of the compiled '{}': argument leaf '{}'", s.name,
                               structure.paths()[i]),
                   fmt::format("expected {}, which it was compiled for", want.to_string()),
                   fmt::format("given {}", args[i].type_string()),
                   "Convert the argument, or lower and compile again for this type"},
        where);
  }
  std::vector<runtime::BufferPtr> buffers;
  for (const Array& a : s.traced.call_args(args)) buffers.push_back(buffer_of(a, where));
  std::vector<Array> results;
  for (runtime::BufferPtr& b : c.executable->execute(buffers))
    results.push_back(make_concrete(std::move(b)));
  return s.traced.expand(std::move(results));
}

std::string optimized_text(const CompiledProgram& c) { return c.executable->text(); }

CostAnalysis cost_analysis(const CompiledProgram& c) {
  CostAnalysis r = cost_analysis(*c.staged);
  const runtime::CostAnalysis done = c.executable->cost();
  if (done.flops > 0) r.flops = done.flops;
  if (done.bytes > 0) r.bytes_accessed = done.bytes;
  return r;
}

MemoryAnalysis memory_analysis(const CompiledProgram& c) {
  const runtime::MemoryAnalysis m = c.executable->memory();
  return {m.arguments, m.results, m.temporaries, m.aliased, m.code};
}

}  // namespace xylem::internal
