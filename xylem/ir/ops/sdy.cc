#include "xylem/ir/ops/sdy.h"

#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Values = std::vector<HostArray>;

// Attributes of Shardy are its own text, whichever of its two spellings ("#sdy.x<…>", "#sdy<x…>")
// or the alias that stood for it.
void check_shardy_text(const OpCall& call, std::string_view name) {
  const Attr* a = call.attrs.find(name);
  if (!a) return;
  const OpaqueAttr* text = a->get<OpaqueAttr>();
  if (!text || !text->text.starts_with("#sdy"))
    fail(call, name, fmt::format("attribute '{}' must be one of Shardy's", name),
         "it is " + a->to_string(), "Write it as \"#sdy.…<…>\"");
}

std::vector<Type> identity_shape_rule(const OpCall& call) {
  for (const AttrDef& a : call.def.attrs)
    if (a.name != "allowed_direction") check_shardy_text(call, a.name);
  const Type& t = call.operands[0];
  if (!t.is_tensor() && !t.is_token())
    fail(call, "i1", "the operand must be a tensor", "it is " + t.to_string(), "Pass a tensor");
  if (call.def.name == "sdy.propagation_barrier") {
    const ScalarAttr* direction = call.attrs.at("allowed_direction").get<ScalarAttr>();
    if (!direction || direction->dtype != DType::kI32 || direction->integer < 0 ||
        direction->integer > 3)
      fail(call, "allowed_direction", "directions are 0 to 3 : i32 (none, forward, backward, both)",
           "it is " + call.attrs.at("allowed_direction").to_string(), "Use one of them");
  }
  return {t};
}

Values identity_eval(const EvalCall& call) { return {call.operands[0]}; }

std::vector<ValueId> expand_identity(Builder&, const Op&, std::span<const ValueId> v) {
  return {v[0]};
}

DimMap identity_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  Dims d = add_factors(m, call.operands[0].dims(), DimMap::FactorKind::kParallel);
  m.operands = {d};
  m.results = {d};
  return m;
}

OpDef identity(std::string_view name, std::vector<AttrDef> attrs, std::string_view labels) {
  return {.name = name,
          .traits = kExact,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = std::move(attrs),
          .shape = identity_shape_rule,
          .eval = identity_eval,
          .dims = identity_dims,
          .labels = labels,
          .expand = expand_identity,
          .quant = QuantSupport::kPerAxis};
}

std::vector<Type> group_shape_rule(const OpCall& call) {
  if (!call.operands[0].is_tensor())
    fail(call, "i1", "the operand must be a tensor", "it is " + call.operands[0].to_string(),
         "Pass a tensor");
  if (call.attrs.i64("group_id") < 0)
    fail(call, "group_id", "groups have numbers from 0",
         fmt::format("it is {}", call.attrs.i64("group_id")), "Use 0 or more");
  return {};
}

Values group_eval(const EvalCall&) { return {}; }

std::vector<ValueId> expand_group(Builder&, const Op&, std::span<const ValueId>) { return {}; }

std::vector<Type> constant_shape_rule(const OpCall& call) {
  const HostArray& value = call.attrs.array("value");
  if (!value.defined())
    fail(call, "value", "the value must be an array", "it is undefined", "Give it one");
  return {Type::tensor(value.dtype(), value.dims())};
}

Values constant_eval(const EvalCall& call) { return {call.op.attrs.array("value")}; }

std::vector<ValueId> expand_constant(Builder& b, const Op& op, std::span<const ValueId>) {
  return {b.constant(op.attrs.array("value"))};
}

// A body over operands and captures --------------------------------------------------------------

const Graph& body_of(const OpCall& call) {
  if (!call.regions[0])
    fail(call, "body", "the body must be a graph", "it is null", "Build the body first");
  return *call.regions[0];
}

std::vector<Type> named_shape_rule(const OpCall& call) {
  for (std::string_view name : {"in_shardings", "out_shardings"}) check_shardy_text(call, name);
  check_region(call, "body", 0, call.operands, nullptr);
  return body_of(call).result_types();
}

std::vector<Type> manual_shape_rule(const OpCall& call) {
  for (std::string_view name : {"in_shardings", "out_shardings", "manual_axes"})
    check_shardy_text(call, name);
  const Graph& body = body_of(call);
  std::vector<Type> results = written_results(call);
  // Ranks and element types are those of the parts, sizes need not be.
  auto parts_of = [](const Type& part, const Type& whole) {
    return part.kind() == whole.kind() && part.dtype() == whole.dtype() &&
           part.rank() == whole.rank();
  };
  bool same = body.params.size() == call.operands.size() && body.results.size() == results.size();
  for (std::size_t i = 0; same && i < call.operands.size(); ++i)
    same = parts_of(body.type(body.params[i]), call.operands[i]);
  for (std::size_t i = 0; same && i < results.size(); ++i)
    same = parts_of(body.type(body.results[i]), results[i]);
  if (!same)
    fail(call, "body", "the body must take and return parts of operands and results",
         fmt::format("it takes {} and returns {}, for {} and {}", types_text(body.param_types()),
                     types_text(body.result_types()), types_text(call.operands),
                     types_text(results)),
         "Make ranks and element types agree");
  return results;
}

Values body_eval(const EvalCall& call) {
  const Graph& body = *call.op.regions[0];
  std::vector<Type> params = body.param_types();
  bool whole =
      body.result_types() == std::vector<Type>(call.result_types.begin(), call.result_types.end());
  for (std::size_t i = 0; whole && i < params.size(); ++i)
    whole = params[i].is_tensor() ? dims_fit(params[i].dims(), call.operands[i].dims()) : true;
  if (!whole)
    throw UserError(ErrorParts{call.op.def->name, "the parts are the whole values on one device",
                               "the body computes on smaller parts",
                               "Partition the program, or use manual axes of size 1"},
                    call.op.loc.source);
  return call.regions.run(body, call.operands);
}

std::vector<ValueId> expand_body(Builder& b, const Op& op, std::span<const ValueId> v) {
  const Graph& body = *op.regions[0];
  bool whole = body.params.size() == v.size();
  for (std::size_t i = 0; whole && i < v.size(); ++i)
    whole = types_compatible(b.type(v[i]), body.type(body.params[i]));
  if (const Attr* types = op.attrs.find("result_types"); whole && types && types->list())
    for (std::size_t i = 0; whole && i < body.results.size(); ++i) {
      const Type* t = (*types->list())[i].get<Type>();
      whole = t && types_compatible(*t, body.type(body.results[i]));
    }
  if (!whole)
    throw UserError(ErrorParts{op.def->name, "the parts are the whole values on one device",
                               "the body computes on smaller parts",
                               "Partition the program, or use manual axes of size 1"},
                    op.loc.source);
  return b.inline_graph(body, v);
}

OpDef with_body(std::string_view name, std::vector<AttrDef> attrs, ShapeRule shape,
                std::string_view labels) {
  attrs.push_back({"num_captures", AttrKind::kInt, false});
  return {.name = name,
          .traits = kControlFlow,
          .max_operands = -1,
          .num_regions = 1,
          .attrs = std::move(attrs),
          .shape = shape,
          .eval = body_eval,
          .labels = labels,
          .expand = expand_body,
          .quant = QuantSupport::kPerAxis};
}

constexpr AttrDef kOut = {"out_sharding", AttrKind::kAny};

}  // namespace

const OpDef kSdyShardingConstraint =
    identity("sdy.sharding_constraint", {{"sharding"}},
             "sharding_constraint_i1 sharding_constraint_sharding");
const OpDef kSdyReshard = identity("sdy.reshard", {{"sharding"}}, "reshard_i1 reshard_sharding");
const OpDef kSdyPropagationBarrier =
    identity("sdy.propagation_barrier", {{"allowed_direction"}},
             "propagation_barrier_i1 propagation_barrier_allowed_direction");
const OpDef kSdyDataFlowEdge = identity("sdy.data_flow_edge", {{"sharding", AttrKind::kAny, false}},
                                        "data_flow_edge_i1 data_flow_edge_sharding");
const OpDef kSdyFuncDataFlowEdge =
    identity("sdy.func_data_flow_edge", {}, "func_data_flow_edge_i1");
const OpDef kSdyAllGather =
    identity("sdy.all_gather", {{"gathering_axes"}, kOut},
             "all_gather_i1 all_gather_gathering_axes all_gather_out_sharding");
const OpDef kSdyAllSlice = identity("sdy.all_slice", {{"slicing_axes"}, kOut},
                                    "all_slice_i1 all_slice_slicing_axes all_slice_out_sharding");
const OpDef kSdyAllToAll = identity("sdy.all_to_all", {{"params"}, kOut},
                                    "all_to_all_i1 all_to_all_params all_to_all_out_sharding");
const OpDef kSdyCollectivePermute = identity(
    "sdy.collective_permute", {kOut}, "collective_permute_i1 collective_permute_out_sharding");
const OpDef kSdyAllReduce =
    identity("sdy.all_reduce", {{"reduction_axes"}, kOut},
             "all_reduce_i1 all_reduce_reduction_axes all_reduce_out_sharding");
const OpDef kSdyReduceScatter =
    identity("sdy.reduce_scatter", {{"reduce_scatter_axes"}, kOut},
             "reduce_scatter_i1 reduce_scatter_reduce_scatter_axes reduce_scatter_out_sharding");
const OpDef kSdyReplicatedToUnreduced = identity(
    "sdy.replicated_to_unreduced", {{"axes"}, kOut},
    "replicated_to_unreduced_i1 replicated_to_unreduced_axes replicated_to_unreduced_out_sharding");
const OpDef kSdyShardedToUnreduced =
    identity("sdy.sharded_to_unreduced", {{"axes"}, kOut},
             "sharded_to_unreduced_i1 sharded_to_unreduced_axes sharded_to_unreduced_out_sharding");
const OpDef kSdyShardingGroup = {
    .name = "sdy.sharding_group",
    .traits = kEffect,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"group_id", AttrKind::kInt}, {"type", AttrKind::kAny, false}},
    .shape = group_shape_rule,
    .eval = group_eval,
    .dims =
        [](const OpCall& call, std::span<const Type>) {
          DimMap m;
          m.operands = {add_factors(m, call.operands[0].dims(), DimMap::FactorKind::kParallel)};
          return m;
        },
    .labels = "sharding_group_i1 sharding_group_group_id",
    .expand = expand_group,
    .quant = QuantSupport::kPerAxis};
const OpDef kSdyConstant = {
    .name = "sdy.constant",
    .traits = kConstant | kExact,
    .attrs = {{"value", AttrKind::kArray}},
    .shape = constant_shape_rule,
    .eval = constant_eval,
    .dims =
        [](const OpCall&, std::span<const Type> results) {
          DimMap m;
          m.results = {add_factors(m, results[0].dims(), DimMap::FactorKind::kParallel)};
          return m;
        },
    .labels = "constant_value",
    .expand = expand_constant};
const OpDef kSdyNamedComputation = with_body(
    "sdy.named_computation",
    {{"name", AttrKind::kString},
     {"in_shardings", AttrKind::kAny, false},
     {"out_shardings", AttrKind::kAny, false}},
    named_shape_rule,
    "named_computation_body named_computation_in_shardings named_computation_out_shardings");
const OpDef kSdyManualComputation = with_body(
    "sdy.manual_computation",
    {{"in_shardings"}, {"out_shardings"}, {"manual_axes"}, {"result_types", AttrKind::kList}},
    manual_shape_rule,
    "manual_computation_body manual_computation_in_shardings "
    "manual_computation_out_shardings manual_computation_manual_axes");

Family sdy_family() {
  static const OpDef* const kOps[] = {
      &kSdyShardingConstraint, &kSdyReshard,          &kSdyPropagationBarrier,
      &kSdyDataFlowEdge,       &kSdyFuncDataFlowEdge, &kSdyAllGather,
      &kSdyAllSlice,           &kSdyAllToAll,         &kSdyCollectivePermute,
      &kSdyAllReduce,          &kSdyReduceScatter,    &kSdyReplicatedToUnreduced,
      &kSdyShardedToUnreduced, &kSdyShardingGroup,    &kSdyConstant,
      &kSdyNamedComputation,   &kSdyManualComputation};
  return kOps;
}

}  // namespace xylem::ir::ops
