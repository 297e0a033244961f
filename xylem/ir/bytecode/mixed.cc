#include "xylem/ir/bytecode/mixed.h"

#include <algorithm>

#include "xylem/ir/text/stablehlo_printer.h"

namespace xylem::ir::bytecode {
namespace {

constexpr std::string_view kMark = "builtin";

Type builtin_typed(const Type& t) {
  TypeExtra extra = t.extra() ? *t.extra() : TypeExtra();
  extra.name = kMark;
  return Type::with_extra(t, std::move(extra));
}

}  // namespace

const OpDef kTypeCast = {.name = "builtin.unrealized_conversion_cast"};

bool is_builtin_typed(const Type& t) { return t.extra() && t.extra()->name == kMark; }

bool needs_casts(const Graph& g) {
  return std::any_of(g.ops.begin(), g.ops.end(), [](const Op& op) { return is_shardy(*op.def); });
}

Graph with_casts(const Graph& g, bool body, std::size_t own) {
  Graph out;
  out.values = g.values;
  out.params = g.params;
  out.results = g.results;
  out.locations = g.locations;
  // The values that ops of VHLO, captures and results of functions use. Between two ops of Shardy
  // there must be no cast: their verifiers look at each other.
  std::vector<bool> plain(g.values.size(), false);
  auto use = [&](ValueId v) { plain[static_cast<std::size_t>(v)] = true; };
  for (const Op& op : g.ops) {
    std::size_t given = is_shardy(*op.def) ? op.operands.size() - text::num_captures(op) : 0;
    for (std::size_t i = given; i < op.operands.size(); ++i) use(op.operands[i]);
  }
  if (!body)
    for (ValueId v : g.results) use(v);

  std::vector<ValueId> twins(g.values.size(), kNoValue);  // with MLIR's own type
  auto cast = [&](ValueId from, ValueId to, const Location& loc) {
    Op op;
    op.def = &kTypeCast;
    op.operands = {from};
    op.results = {to};
    op.loc = loc;
    out.ops.push_back(std::move(op));
  };
  auto add_twin = [&](ValueId v) {
    out.values.push_back({builtin_typed(g.type(v)), -1, 0, nullptr});
    return twins[static_cast<std::size_t>(v)] = static_cast<ValueId>(out.values.size() - 1);
  };
  auto twin = [&](ValueId v, const Location& loc) {
    ValueId& t = twins[static_cast<std::size_t>(v)];
    if (t == kNoValue) cast(v, add_twin(v), loc);
    return t;
  };
  for (std::size_t i = 0; body && i < own; ++i) {
    out.params[i] = add_twin(g.params[i]);
    if (plain[static_cast<std::size_t>(g.params[i])]) cast(out.params[i], g.params[i], {});
  }
  for (const Op& op : g.ops) {
    if (!is_shardy(*op.def)) {
      out.ops.push_back(op);
      continue;
    }
    Op changed = op;
    std::size_t given = op.operands.size() - text::num_captures(op);
    for (std::size_t i = 0; i < given; ++i) changed.operands[i] = twin(op.operands[i], op.loc);
    for (std::size_t i = 0; i < op.results.size(); ++i)
      changed.results[i] = add_twin(op.results[i]);
    out.ops.push_back(std::move(changed));
    for (ValueId v : op.results)
      if (plain[static_cast<std::size_t>(v)]) cast(twins[static_cast<std::size_t>(v)], v, op.loc);
  }
  for (std::size_t i = 0; body && i < out.results.size(); ++i)
    out.results[i] = twin(g.results[i], {});
  return out;
}

}  // namespace xylem::ir::bytecode
