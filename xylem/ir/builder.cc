#include "xylem/ir/builder.h"

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/ir/ops/movement.h"

namespace xylem::ir {

Builder::Builder(std::string name) { graph_.name = std::move(name); }

ValueId Builder::param(Type type, Attrs attrs) {
  auto id = static_cast<ValueId>(graph_.values.size());
  graph_.values.push_back(
      {std::move(type), -1, static_cast<std::int32_t>(graph_.params.size()), nullptr});
  graph_.params.push_back(id);
  if (!attrs.empty() || !graph_.param_attrs.empty()) {
    graph_.param_attrs.resize(graph_.params.size());
    graph_.param_attrs.back() = std::move(attrs);
  }
  return id;
}

ValueIds Builder::op(const OpDef& def, std::span<const ValueId> operands, Attrs attrs,
                     std::vector<GraphPtr> regions) {
  std::vector<Type> types;
  types.reserve(operands.size());
  for (ValueId v : operands) {
    XYLEM_CHECK(v >= 0 && static_cast<std::size_t>(v) < graph_.values.size(), def.name);
    types.push_back(type(v));
  }
  std::vector<Type> results = infer_types({def, types, attrs, regions, loc_});
  Op op;
  op.def = &def;
  op.operands = ValueIds(operands);
  op.attrs = std::move(attrs);
  op.regions = std::move(regions);
  op.loc = loc_;
  auto index = static_cast<std::int32_t>(graph_.ops.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    op.results.push_back(static_cast<ValueId>(graph_.values.size()));
    graph_.values.push_back({std::move(results[i]), index, static_cast<std::int32_t>(i), nullptr});
  }
  graph_.ops.push_back(std::move(op));
  return graph_.ops.back().results;
}

ValueIds Builder::clone(const Op& source, std::span<const ValueId> operands) {
  Location saved = loc_;
  if (source.loc.source.known() || !source.loc.path.empty()) loc_ = source.loc;
  ValueIds results = op(*source.def, operands, source.attrs, source.regions);
  loc_ = saved;
  return results;
}

ValueId Builder::constant(HostArray value) {
  return one(ops::kConstant, {}, Attrs{{"value", Attr(value.to_contiguous())}});
}

ValueId Builder::splat(DType dtype, const Dims& dims, double value) {
  HostArray scalar(dtype, {});
  convert_elements(DType::kF64, &value, dtype, scalar.data(), 1);
  ValueId c = constant(std::move(scalar));
  if (dims.empty()) return c;
  return one(ops::kBroadcastInDim, {c},
             Attrs{{"broadcast_dimensions", Attr(Dims{})}, {"shape", Attr(dims)}});
}

std::vector<ValueId> Builder::inline_graph(const Graph& g, std::span<const ValueId> args) {
  XYLEM_CHECK(args.size() == g.params.size(), g.name);
  std::vector<ValueId> map(g.values.size(), kNoValue);
  for (std::size_t i = 0; i < args.size(); ++i)
    map[static_cast<std::size_t>(g.params[i])] = args[i];
  ValueIds operands;
  for (const Op& op : g.ops) {
    operands.clear();
    for (ValueId v : op.operands) operands.push_back(map[static_cast<std::size_t>(v)]);
    ValueIds results = clone(op, operands);
    for (std::size_t i = 0; i < results.size(); ++i)
      map[static_cast<std::size_t>(op.results[i])] = results[i];
  }
  std::vector<ValueId> out;
  out.reserve(g.results.size());
  for (ValueId v : g.results) out.push_back(map[static_cast<std::size_t>(v)]);
  return out;
}

GraphPtr Builder::finish(std::vector<ValueId> results) {
  graph_.results = std::move(results);
  auto g = std::make_shared<const Graph>(std::move(graph_));
  graph_ = Graph();
  return g;
}

}  // namespace xylem::ir
