#include "xylem/ir/testing/minimise.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/text.h"

namespace xylem::ir::testing {
namespace {

// The values of all ops.
std::unordered_map<ValueId, HostArray> values_of(const ProgramCase& c) {
  auto all = std::make_shared<Graph>(*c.graph);
  all->result_attrs.clear();
  all->results.clear();
  for (const Op& op : all->ops)
    for (ValueId v : op.results)
      if (all->type(v).is_tensor()) all->results.push_back(v);
  std::vector<HostArray> values = evaluate(*all, c.args);
  std::unordered_map<ValueId, HostArray> out;
  for (std::size_t i = 0; i < values.size(); ++i) out.emplace(all->results[i], values[i]);
  return out;
}

// The program that computes `results`, taking the values of `cut` as arguments.
ProgramCase rebuilt(const ProgramCase& c, const std::vector<ValueId>& results,
                    const std::vector<bool>& cut,
                    const std::unordered_map<ValueId, HostArray>& values) {
  const Graph& g = *c.graph;
  std::vector<bool> needed(g.values.size(), false);
  for (ValueId v : results) needed[static_cast<std::size_t>(v)] = true;
  std::vector<bool> kept(g.ops.size(), false);
  for (std::size_t i = g.ops.size(); i-- > 0;) {
    const Op& op = g.ops[i];
    bool used = std::any_of(op.results.begin(), op.results.end(),
                            [&](ValueId v) { return needed[static_cast<std::size_t>(v)]; });
    kept[i] = used && !cut[i];
    if (!kept[i]) continue;
    for (ValueId v : op.operands) needed[static_cast<std::size_t>(v)] = true;
  }
  ProgramCase out;
  Builder b(g.name);
  std::vector<ValueId> map(g.values.size(), kNoValue);
  auto param = [&](ValueId v, const HostArray& value) {
    map[static_cast<std::size_t>(v)] = b.param(g.type(v));
    out.args.push_back(value);
  };
  for (std::size_t i = 0; i < g.params.size(); ++i)
    if (needed[static_cast<std::size_t>(g.params[i])]) param(g.params[i], c.args[i]);
  for (std::size_t i = 0; i < g.ops.size(); ++i)
    for (ValueId v : g.ops[i].results)
      if (cut[i] && needed[static_cast<std::size_t>(v)]) param(v, values.at(v));
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    if (!kept[i]) continue;
    const Op& op = g.ops[i];
    std::vector<ValueId> operands;
    for (ValueId v : op.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
    ValueIds made = b.clone(op, operands);
    for (std::size_t k = 0; k < op.results.size(); ++k)
      map[static_cast<std::size_t>(op.results[k])] = made[k];
  }
  std::vector<ValueId> final_results;
  for (ValueId v : results) final_results.push_back(map[static_cast<std::size_t>(v)]);
  out.graph = b.finish(std::move(final_results));
  return out;
}

}  // namespace

ProgramCase minimise(ProgramCase c, const std::function<bool(const ProgramCase&)>& fails) {
  const std::unordered_map<ValueId, HostArray> values = values_of(c);
  const Graph& g = *c.graph;
  std::vector<bool> cut(g.ops.size(), false);
  // A program that cannot be built or run is none that fails.
  auto still = [&](const std::vector<ValueId>& results, const std::vector<bool>& at,
                   ProgramCase& out) {
    try {
      out = rebuilt(c, results, at, values);
      return fails(out);
    } catch (const std::exception&) {
      return false;
    }
  };
  ProgramCase best = c, next;
  std::vector<ValueId> results = g.results;
  // The earliest value that differs by itself.
  for (const Op& op : g.ops) {
    bool found = false;
    for (ValueId v : op.results)
      if (!found && values.contains(v) && still({v}, cut, next)) {
        results = {v};
        best = next;
        found = true;
      }
    if (found) break;
  }
  if (results.size() > 1)
    for (ValueId v : g.results)
      if (still({v}, cut, next)) {
        results = {v};
        best = next;
        break;
      }
  for (std::size_t i = g.ops.size(); i-- > 0;) {
    const Op& op = g.ops[i];
    bool tensors = std::all_of(op.results.begin(), op.results.end(),
                               [&](ValueId v) { return values.contains(v); });
    if (!tensors || std::find(op.results.begin(), op.results.end(), results[0]) != op.results.end())
      continue;
    cut[i] = true;
    if (still(results, cut, next)) {
      best = next;
    } else {
      cut[i] = false;
    }
  }
  return best;
}

std::string case_text(const ProgramCase& c) {
  std::string out;
  for (std::size_t i = 0; i < c.args.size(); ++i) {
    std::string value = print_dense(c.args[i], c.graph->type(c.graph->params[i]));
    if (value.size() > 400) value = value.substr(0, 400) + "…";
    out += fmt::format("// argument {}: {}\n", i, value);
  }
  try {
    Module m;
    m.functions.push_back({"main", false, legalize(c.graph)});
    return out + print_stablehlo(m);
  } catch (const UserError&) {
    return out + print(*c.graph);
  }
}

}  // namespace xylem::ir::testing
