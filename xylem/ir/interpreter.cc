#include "xylem/ir/interpreter.h"

#include <fmt/format.h>

#include "xylem/ir/op_def.h"

namespace xylem::ir {
namespace {

void check_args(const Graph& g, std::span<const HostArray> args) {
  if (args.size() != g.params.size())
    throw_user_error({fmt::format("evaluate {}", g.name),
                      fmt::format("the graph takes {} arguments", g.params.size()),
                      fmt::format("{} were given", args.size()), "Pass one array per parameter"});
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Type& t = g.type(g.params[i]);
    if (t.is_token()) continue;
    bool dims_fit = args[i].rank() == t.rank();
    for (int d = 0; dims_fit && d < t.rank(); ++d)
      dims_fit = t.dim(d) == kDynamic || t.dim(d) == args[i].dims()[d];
    if (args[i].dtype() != t.dtype() || !dims_fit)
      throw_user_error({fmt::format("evaluate {}: argument {}", g.name, i),
                        fmt::format("expected {}", t.to_string()),
                        fmt::format("given {}", args[i].type_string()),
                        "Convert or reshape the argument"});
  }
}

class Evaluator : public RegionRunner {
 public:
  std::vector<HostArray> run(const Graph& g, std::span<const HostArray> args) override {
    std::vector<std::int32_t> last_use(g.values.size(), -1);
    for (std::size_t i = 0; i < g.ops.size(); ++i)
      for (ValueId v : g.ops[i].operands)
        last_use[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(i);
    for (ValueId v : g.results)
      last_use[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(g.ops.size());
    std::vector<HostArray> env(g.values.size());
    for (std::size_t i = 0; i < args.size(); ++i)
      env[static_cast<std::size_t>(g.params[i])] = args[i];
    std::vector<HostArray> operands;
    std::vector<Type> types;
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
      const Op& op = g.ops[i];
      operands.clear();
      for (ValueId v : op.operands) operands.push_back(env[static_cast<std::size_t>(v)]);
      types.clear();
      for (ValueId v : op.results) types.push_back(g.type(v));
      if (!op.def->eval)
        throw UserError(ErrorParts{op.def->name, "the interpreter needs a reference evaluation",
                                   "this op has none", "Legalise the op before evaluating"},
                        op.loc.source);
      std::vector<HostArray> results = op.def->eval({op, operands, types, *this});
      XYLEM_CHECK(results.size() == op.results.size(), op.def->name);
      for (std::size_t k = 0; k < results.size(); ++k)
        env[static_cast<std::size_t>(op.results[k])] = results[k].to_contiguous();
      for (ValueId v : op.operands)
        if (last_use[static_cast<std::size_t>(v)] == static_cast<std::int32_t>(i))
          env[static_cast<std::size_t>(v)] = HostArray();
    }
    std::vector<HostArray> out;
    out.reserve(g.results.size());
    for (ValueId v : g.results) out.push_back(env[static_cast<std::size_t>(v)]);
    return out;
  }
};

}  // namespace

std::vector<HostArray> evaluate(const Graph& graph, std::span<const HostArray> args) {
  check_args(graph, args);
  std::vector<HostArray> inputs;
  inputs.reserve(args.size());
  for (const HostArray& a : args) inputs.push_back(a.to_contiguous());
  return Evaluator().run(graph, inputs);
}

}  // namespace xylem::ir
