#include "xylem/compiler/compile.h"

#include <fmt/format.h>

#include <chrono>

#include "xylem/base/error.h"
#include "xylem/compiler/compile_internal.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/program/assign.h"
#include "xylem/ir/accuracy.h"
#include "xylem/ir/refine.h"

namespace xylem::compiler {
namespace {

double ms_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

// What stays with the interpreter is refused before any pass meets it.
void check_values(const ir::Graph& graph) {
  for (const ir::Value& v : graph.values)
    if (v.type.extra() && v.type.extra()->quant)
      throw UserError(ErrorParts{fmt::format("compile {}", graph.name),
                                 "element types that are not quantised", v.type.to_string(),
                                 "Run it with the interpreter, or dequantise first."});
  for (const ir::Op& op : graph.ops)
    for (const ir::GraphPtr& r : op.regions) check_values(*r);
}

void check_types(const ir::Graph& graph) {
  const auto check = [&](ir::ValueId v) {
    const ir::Type& t = graph.type(v);
    if (t.is_token() || (t.is_tensor() && t.is_static())) return;
    throw UserError(ErrorParts{fmt::format("compile {}", graph.name),
                               "parameters and results that are tensors of static shape",
                               t.to_string(), "Refine the program to one shape first."});
  };
  for (ir::ValueId v : graph.params) check(v);
  for (ir::ValueId v : graph.results) check(v);
}

// What a process can address. Sizes and offsets of programs below it do not overflow.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 47;

void check_sizes(const ir::Graph& graph, const std::string& name) {
  for (const ir::Value& v : graph.values) {
    if (!v.type.is_tensor() || !v.type.is_static()) continue;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(v.type.size(), std::int64_t{dtype_bytes(v.type.dtype())}, &bytes) ||
        bytes > kMaxBytes)
      throw UserError(ErrorParts{fmt::format("compile {}", name), "arrays of at most 2^47 bytes",
                                 v.type.to_string(), "Use smaller dimensions"});
  }
  for (const ir::Op& op : graph.ops)
    for (const ir::GraphPtr& region : op.regions) check_sizes(*region, name);
}

}  // namespace

std::shared_ptr<const ProgramImpl> compile_program(ir::GraphPtr graph, const Options& options) {
  check_values(*graph);
  if (ir::has_dynamic_shapes(*graph)) {
    graph = inline_calls(graph);
    graph = ir::refine(graph, graph->param_types());
  }
  graph = flatten_tuples(graph);
  check_types(*graph);
  check_sizes(*graph, graph->name);
  ir::check_accuracy(*graph);
  const auto start = std::chrono::steady_clock::now();
  auto program = std::make_shared<ProgramImpl>();
  program->params = graph->param_types();
  program->results = graph->result_types();
  graph = optimize(graph, options.quick);
  const Plan plan = make_plan(*graph);
  const Lowered lowered = Lowering(graph, plan, options).run();
  assign_buffers(*graph, plan, options, lowered, program.get());
  program->graph = graph;
  program->info.passes_ms = ms_since(start);
  const auto codegen = std::chrono::steady_clock::now();
  program->kernels = get_kernels(lowered.kernels, options.quick);
  program->info.codegen_ms = ms_since(codegen);
  program->info.temporaries = program->arena;
  for (const auto& k : program->kernels) program->info.code += k->code_bytes;
  return program;
}

std::shared_ptr<const Program> compile(ir::GraphPtr graph, const Options& options) {
  return compile_program(std::move(graph), options);
}

}  // namespace xylem::compiler
