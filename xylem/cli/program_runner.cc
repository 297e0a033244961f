#include "xylem/cli/program_runner.h"

#include <fmt/format.h>

#include <chrono>

#include "xylem/base/error.h"
#include "xylem/compiler/passes/passes.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/refine.h"
#include "xylem/runtime/client.h"

namespace xylem::cli {
namespace {

using ir::GraphPtr;
using ir::Op;
using ir::ValueId;

double microseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

[[noreturn]] void unsupported(std::string_view what) {
  throw UserError(fmt::format("unsupported on cpu: {}; use --backend interpret", what));
}

bool is_check(const Op& op) {
  return op.def->name.starts_with("check.") ||
         (op.def->name == "stablehlo.custom_call" &&
          op.attrs.str_or("call_target_name", "").starts_with("check."));
}

bool any_check(const ir::Graph& g) {
  for (const Op& op : g.ops) {
    if (is_check(op)) return true;
    for (const GraphPtr& r : op.regions)
      if (any_check(*r)) return true;
  }
  return false;
}

// Checks have no regions.
class NoRegions : public ir::RegionRunner {
 public:
  std::vector<HostArray> run(const ir::Graph&, std::span<const HostArray>) override {
    XYLEM_CHECK(false, "a check with a region");
    return {};
  }
};

// The program with the shapes of these inputs.
GraphPtr for_inputs(const GraphPtr& graph, std::span<const HostArray> inputs) {
  if (!ir::has_dynamic_shapes(*graph)) return graph;
  std::vector<ir::Type> types = graph->param_types();
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].is_tensor() && !types[i].is_static())
      types[i] = ir::Type::tensor(types[i].dtype(), inputs[i].dims());
  return ir::refine(compiler::inline_calls(graph), types);
}

// The compiled program: checks are taken out of the graph, their operands become results, and they
// are made on the host after the run, in the program's order.
class CpuRunner : public ProgramRunner {
 public:
  explicit CpuRunner(const GraphPtr& graph) : client_(runtime::make_cpu_client(1)) {
    num_results_ = graph->results.size();
    GraphPtr compiled = any_check(*graph) ? take_checks(compiler::inline_calls(graph)) : graph;
    runtime::CompileOptions options;
    options.name = graph->name;
    try {
      executable_ = client_->compile(std::move(compiled), options);
    } catch (const UserError& e) {
      unsupported(e.message());
    }
  }

  std::vector<HostArray> run(std::span<const HostArray> inputs) override {
    std::vector<HostArray> values;
    for (const runtime::BufferPtr& b : executable_->execute(buffers(inputs)))
      values.push_back(b->to_host());
    NoRegions regions;
    for (const Check& c : checks_) {
      std::vector<HostArray> operands;
      for (std::size_t k : c.operands) operands.push_back(values[k].to_contiguous());
      c.op.def->eval({c.op, operands, c.result_types, regions, c.operand_types});
    }
    values.resize(num_results_);
    return values;
  }

  double time_us(std::span<const HostArray> inputs) override {
    const std::vector<runtime::BufferPtr> args = buffers(inputs);
    const auto start = std::chrono::steady_clock::now();
    for (const runtime::BufferPtr& b : executable_->execute(args)) b->ready().wait();
    return microseconds(std::chrono::steady_clock::now() - start);
  }

 private:
  struct Check {
    Op op;
    std::vector<std::size_t> operands;  // which results of the compiled program
    std::vector<ir::Type> result_types, operand_types;
  };

  std::vector<runtime::BufferPtr> buffers(std::span<const HostArray> inputs) {
    std::vector<runtime::BufferPtr> out;
    for (const HostArray& a : inputs) out.push_back(client_->from_host(a));
    return out;
  }

  GraphPtr take_checks(const GraphPtr& graph) {
    ir::Builder b(graph->name);
    std::vector<ValueId> map(graph->values.size(), ir::kNoValue);
    const auto at = [&](ValueId v) -> ValueId& { return map[static_cast<std::size_t>(v)]; };
    for (ValueId p : graph->params) at(p) = b.param(graph->type(p));
    std::vector<ValueId> kept;
    for (const Op& op : graph->ops) {
      b.set_location(op.loc);
      if (is_check(op)) {
        Check c{op, {}, {}, {}};
        for (ValueId v : op.operands) {
          c.operands.push_back(num_results_ + kept.size());
          kept.push_back(at(v));
          c.operand_types.push_back(graph->type(v));
        }
        for (ValueId v : op.results) {
          c.result_types.push_back(graph->type(v));
          // What follows runs only if the check held.
          at(v) = b.splat(graph->type(v).dtype(), graph->type(v).dims(), 1);
        }
        checks_.push_back(std::move(c));
        continue;
      }
      for (const GraphPtr& r : op.regions)
        if (any_check(*r)) unsupported(fmt::format("{}: a check inside its region", op.def->name));
      std::vector<ValueId> operands;
      for (ValueId v : op.operands) operands.push_back(at(v));
      const ir::ValueIds results = b.clone(op, operands);
      for (std::size_t i = 0; i < results.size(); ++i) at(op.results[i]) = results[i];
    }
    std::vector<ValueId> results;
    for (ValueId v : graph->results) results.push_back(at(v));
    results.insert(results.end(), kept.begin(), kept.end());
    return b.finish(std::move(results));
  }

  std::unique_ptr<runtime::Client> client_;
  runtime::ExecutablePtr executable_;
  std::size_t num_results_ = 0;
  std::vector<Check> checks_;
};

class InterpretRunner : public ProgramRunner {
 public:
  InterpretRunner(GraphPtr graph, const std::string& probe_dir) : graph_(std::move(graph)) {
    options_.probe_dir = probe_dir;
  }
  std::vector<HostArray> run(std::span<const HostArray> inputs) override {
    return ir::run(*graph_, inputs, options_);
  }
  double time_us(std::span<const HostArray> inputs) override {
    const auto start = std::chrono::steady_clock::now();
    run(inputs);
    return microseconds(std::chrono::steady_clock::now() - start);
  }

 private:
  GraphPtr graph_;
  ir::RunOptions options_;
};

}  // namespace

std::unique_ptr<ProgramRunner> make_runner(const GraphPtr& graph, Backend backend,
                                           std::span<const HostArray> inputs,
                                           const std::string& probe_dir) {
  if (backend == Backend::kCpu) return std::make_unique<CpuRunner>(for_inputs(graph, inputs));
  return std::make_unique<InterpretRunner>(graph, probe_dir);
}

}  // namespace xylem::cli
