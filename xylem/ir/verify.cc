#include "xylem/ir/verify.h"

#include <fmt/format.h>

#include "xylem/ir/op_def.h"
#include "xylem/ir/static_check.h"

namespace xylem::ir {
namespace {

class Verifier {
 public:
  std::vector<Diagnostic> diagnostics;

  void graph(const Graph& g, const std::string& path) {
    std::vector<bool> defined(g.values.size(), false);
    auto define = [&](ValueId v, std::int32_t def, std::size_t index, const Location& loc) {
      if (v < 0 || static_cast<std::size_t>(v) >= g.values.size() ||
          defined[static_cast<std::size_t>(v)] || g.value(v).def != def ||
          g.value(v).index != static_cast<std::int32_t>(index)) {
        report("graph: every value is defined once, at the place its record names",
               fmt::format("value {} breaks this", v), "Rebuild the graph with Builder", "", loc,
               path);
        return;
      }
      defined[static_cast<std::size_t>(v)] = true;
    };
    for (std::size_t i = 0; i < g.params.size(); ++i) define(g.params[i], -1, i, {});
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
      const Op& op = g.ops[i];
      std::string here = fmt::format("{}/op {}", path, i);
      bool ok = op.def != nullptr;
      for (ValueId v : op.operands)
        ok = ok && in_range(g, v) && defined[static_cast<std::size_t>(v)];
      if (!ok) {
        report(fmt::format("{}: operands must be defined before their use",
                           op.def ? op.def->name : "op"),
               "an operand is not", "Order the ops by their dependencies", "", op.loc, here);
      } else {
        check_op(g, op, here);
      }
      for (std::size_t k = 0; k < op.results.size(); ++k)
        define(op.results[k], static_cast<std::int32_t>(i), k, op.loc);
      for (std::size_t k = 0; k < op.regions.size(); ++k)
        graph(*op.regions[k], fmt::format("{}/region {}", here, k));
    }
    for (ValueId v : g.results)
      if (!in_range(g, v) || !defined[static_cast<std::size_t>(v)])
        report("graph: results must be defined values", fmt::format("value {} is not", v),
               "Return values of this graph", "", {}, path);
  }

 private:
  static bool in_range(const Graph& g, ValueId v) {
    return v >= 0 && static_cast<std::size_t>(v) < g.values.size();
  }

  void report(std::string expected, std::string given, std::string advice, std::string label,
              const Location& loc, const std::string& path) {
    diagnostics.push_back(
        {fmt::format("{}; {}. {}.", expected, given, advice), std::move(label), loc, path});
  }

  void check_op(const Graph& g, const Op& op, const std::string& path) {
    std::vector<Type> types;
    for (ValueId v : op.operands) types.push_back(g.type(v));
    try {
      std::vector<Type> inferred = infer_types({*op.def, types, op.attrs, op.regions, op.loc});
      bool same = inferred.size() == op.results.size();
      std::string want, have;
      for (const Type& t : inferred) want += (want.empty() ? "" : ", ") + t.to_string();
      for (ValueId v : op.results) have += (have.empty() ? "" : ", ") + g.type(v).to_string();
      for (std::size_t i = 0; same && i < inferred.size(); ++i)
        same = inferred[i] == g.type(op.results[i]);
      OpCall call{*op.def, types, op.attrs, op.regions, op.loc};
      if (same) check_static(call, inferred, g, op.operands);
      if (!same)
        report(fmt::format("{}: the result types must be ({})", op.def->name, want),
               fmt::format("the graph records ({})", have), "Use the inferred types", "", op.loc,
               path);
    } catch (const ConstraintError& e) {
      diagnostics.push_back({e.message(), e.label(), op.loc, path});
    } catch (const UserError& e) {
      diagnostics.push_back({e.message(), "", op.loc, path});
    }
  }
};

}  // namespace

std::vector<Diagnostic> verify(const Graph& graph) {
  Verifier v;
  v.graph(graph, graph.name.empty() ? "graph" : graph.name);
  return std::move(v.diagnostics);
}

void verify_or_throw(const Graph& graph) {
  std::vector<Diagnostic> d = verify(graph);
  if (d.empty()) return;
  std::string text = fmt::format("verify: {} errors\n", d.size());
  for (const Diagnostic& e : d) text += fmt::format("  {}: {}\n", e.path, e.message);
  throw UserError(text);
}

}  // namespace xylem::ir
