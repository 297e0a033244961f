#include "xylem/ir/interpreter.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/accuracy.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/process.h"
#include "xylem/ir/quant.h"

namespace xylem::ir {
namespace {

bool fits(const Type& given, const HostArray& a) {
  Type t = storage_type(given);
  if (a.dtype() != t.dtype() || a.rank() != t.rank()) return false;
  for (int d = 0; d < t.rank(); ++d) {
    std::int64_t n = a.dims()[d];
    if (t.dim(d) != kDynamic && t.dim(d) != n) return false;
    std::int64_t bound = t.extra() && !t.extra()->bounds.empty() ? t.extra()->bounds[d] : kDynamic;
    if (bound != kDynamic && n > bound) return false;
  }
  return true;
}

void check_args(const Graph& g, std::span<const HostArray> args) {
  std::vector<Type> leaves;
  for (ValueId v : g.params) append_leaves(g.type(v), leaves);
  if (args.size() != leaves.size())
    throw_user_error({fmt::format("evaluate {}", g.name),
                      fmt::format("the graph takes {} arguments", leaves.size()),
                      fmt::format("{} were given", args.size()), "Pass one array per parameter"});
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Type& t = leaves[i];
    if (t.is_token() || t.is_future() || fits(t, args[i])) continue;
    throw_user_error({fmt::format("evaluate {}: argument {}", g.name, i),
                      fmt::format("expected {}", storage_type(t).to_string()),
                      fmt::format("given {}", args[i].type_string()),
                      "Convert or reshape the argument"});
  }
}

class Evaluator : public RegionRunner {
 public:
  explicit Evaluator(Process* process) : process_(process) {}

  Process* process() override { return process_; }

  std::vector<HostArray> run(const Graph& g, std::span<const HostArray> args) override {
    Slots slots(g);
    std::vector<std::int32_t> last_use(g.values.size(), -1);
    for (std::size_t i = 0; i < g.ops.size(); ++i)
      for (ValueId v : g.ops[i].operands)
        last_use[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(i);
    for (ValueId v : g.results)
      last_use[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(g.ops.size());
    std::vector<HostArray> env(slots.total);
    std::size_t next = 0;
    for (ValueId v : g.params)
      for (std::size_t k = 0; k < slots.count(v); ++k) env[slots.first(v) + k] = args[next++];
    std::vector<HostArray> operands;
    std::vector<Type> operand_types, types;
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
      const Op& op = g.ops[i];
      operands.clear();
      operand_types.clear();
      for (ValueId v : op.operands) {
        for (std::size_t k = 0; k < slots.count(v); ++k)
          operands.push_back(env[slots.first(v) + k]);
        operand_types.push_back(g.type(v));
      }
      types.clear();
      for (ValueId v : op.results) append_leaves(g.type(v), types);
      if (!op.def->eval)
        throw UserError(ErrorParts{op.def->name, "the interpreter needs a reference evaluation",
                                   "this op has none", "Legalise the op before evaluating"},
                        op.loc.source);
      std::vector<HostArray> results = eval(op, operands, operand_types, types);
      XYLEM_CHECK(results.size() == types.size(), op.def->name);
      std::size_t k = 0;
      for (ValueId v : op.results)
        for (std::size_t j = 0; j < slots.count(v); ++j)
          env[slots.first(v) + j] = results[k++].to_contiguous();
      for (ValueId v : op.operands)
        if (last_use[static_cast<std::size_t>(v)] == static_cast<std::int32_t>(i))
          for (std::size_t j = 0; j < slots.count(v); ++j) env[slots.first(v) + j] = HostArray();
    }
    std::vector<HostArray> out;
    out.reserve(g.results.size());
    for (ValueId v : g.results)
      for (std::size_t k = 0; k < slots.count(v); ++k) out.push_back(env[slots.first(v) + k]);
    return out;
  }

 private:
  // Where the arrays of a value stand: at its own number unless the graph has tuples.
  struct Slots {
    std::vector<std::size_t> start;
    std::size_t total;

    explicit Slots(const Graph& g) : total(g.values.size()) {
      bool tuples = false;
      for (const Value& v : g.values) tuples = tuples || v.type.is_tuple() || v.type.is_future();
      if (!tuples) return;
      total = 0;
      for (const Value& v : g.values) {
        start.push_back(total);
        total += num_leaves(v.type);
      }
      start.push_back(total);
    }
    std::size_t first(ValueId v) const {
      return start.empty() ? static_cast<std::size_t>(v) : start[static_cast<std::size_t>(v)];
    }
    std::size_t count(ValueId v) const {
      auto i = static_cast<std::size_t>(v);
      return start.empty() ? 1 : start[i + 1] - start[i];
    }
  };

  std::vector<HostArray> eval(const Op& op, const std::vector<HostArray>& operands,
                              const std::vector<Type>& operand_types, std::vector<Type>& types) {
    bool dynamic = false;
    for (const Type& t : types) dynamic = dynamic || (t.is_tensor() && !t.is_static());
    if (dynamic) make_static(op, operands, operand_types, types);
    EvalCall call{op, operands, types, *this, operand_types};
    if (has_quant(operand_types) || has_quant(types)) return evaluate_quantised(call);
    if (!types.empty()) check_accuracy(op, types[0].dtype());
    return op.def->eval(call);
  }

  // Result types from the operands' actual sizes. Ops whose results do not follow from operand
  // types find the sizes themselves, and control flow passes on what it gets.
  static void make_static(const Op& op, const std::vector<HostArray>& operands,
                          const std::vector<Type>& operand_types, std::vector<Type>& types) {
    if (op.def->is(kControlFlow) || op.def->find_attr("result_types") ||
        operands.size() != operand_types.size())
      return;
    std::vector<Type> actual = operand_types;
    for (std::size_t i = 0; i < actual.size(); ++i)
      if (actual[i].is_tensor()) actual[i] = without_quant(actual[i]).with_dims(operands[i].dims());
    Attrs attrs = op.attrs;
    attrs.erase("result_types");
    std::vector<Type> inferred = infer_types({*op.def, actual, attrs, op.regions, op.loc});
    for (std::size_t i = 0; i < types.size() && i < inferred.size(); ++i)
      if (types[i].is_tensor()) types[i] = types[i].with_dims(inferred[i].dims());
  }

  Process* process_;
};

}  // namespace

std::size_t num_leaves(const Type& t) {
  if (!t.is_tuple() && !t.is_future()) return 1;
  std::size_t n = 0;
  for (const Type& e : t.elements()) n += num_leaves(e);
  return n;
}

void append_leaves(const Type& t, std::vector<Type>& out) {
  if (!t.is_tuple() && !t.is_future()) return out.push_back(t);
  for (const Type& e : t.elements()) append_leaves(e, out);
}

std::vector<HostArray> evaluate_in(const Graph& graph, std::span<const HostArray> args,
                                   Process* process) {
  check_args(graph, args);
  std::vector<HostArray> inputs;
  inputs.reserve(args.size());
  for (const HostArray& a : args) inputs.push_back(a.to_contiguous());
  return Evaluator(process).run(graph, inputs);
}

std::vector<HostArray> evaluate(const Graph& graph, std::span<const HostArray> args) {
  RunOptions options;
  Session session(options);
  Process process(session);
  return evaluate_in(graph, args, &process);
}

std::vector<std::vector<HostArray>> run_parallel(const std::vector<std::vector<GraphPtr>>& programs,
                                                 std::span<const std::vector<HostArray>> args,
                                                 const RunOptions& options, RunEffects* effects) {
  std::size_t columns = programs.empty() ? 0 : programs[0].size();
  bool even = columns > 0;
  for (const auto& row : programs) even = even && row.size() == columns;
  if (!even || args.size() != programs.size() * columns)
    throw_user_error({"run_parallel", "programs are rows of one length, and each has arguments",
                      fmt::format("{} rows, {} lists of arguments", programs.size(), args.size()),
                      "Give a rectangular grid"});
  Session session(options);
  Grid grid(static_cast<int>(programs.size()), static_cast<int>(columns));
  for (const auto& values : options.infeed) grid.feed(values);
  std::vector<std::vector<HostArray>> results = run_grid(programs, args, session, grid);
  if (effects) effects->outfeed = grid.take_outfeed();
  return results;
}

std::vector<HostArray> run(const Graph& graph, std::span<const HostArray> args,
                           const RunOptions& options, RunEffects* effects) {
  if (options.num_replicas < 1 || options.num_partitions < 1)
    throw_user_error({"run", "the process grid has at least one replica and partition",
                      fmt::format("{} by {}", options.num_replicas, options.num_partitions),
                      "Give positive sizes"});
  GraphPtr shared(std::shared_ptr<void>(), &graph);
  auto rows = static_cast<std::size_t>(options.num_replicas);
  auto columns = static_cast<std::size_t>(options.num_partitions);
  std::vector<std::vector<GraphPtr>> programs(rows, std::vector<GraphPtr>(columns, shared));
  std::vector<std::vector<HostArray>> inputs(rows * columns,
                                             std::vector<HostArray>(args.begin(), args.end()));
  return run_parallel(programs, inputs, options, effects)[0];
}

}  // namespace xylem::ir
