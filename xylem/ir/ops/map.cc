// map of the control family: a region applied to each element.

#include <fmt/format.h>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/control.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

std::vector<Type> map_shape_rule(const OpCall& call) {
  int n = static_cast<int>(call.operands.size()) - num_captures(call);
  if (n < 1) fail(call, "c2", "at least one input is needed", "there is none", "Pass inputs");
  std::vector<Type> params;
  Dims shape = call.operands[0].dims();
  for (int i = 0; i < n; ++i) {
    const Type& t = tensor_operand(call, i, kElAny, "i1");
    if (!dims_fit(t.dims(), shape))
      fail(call, "c1", "inputs must have one shape",
           differ("input 0", call.operands[0].with_dtype(t.dtype()), fmt::format("input {}", i), t),
           "Broadcast or reshape one of them");
    shape = refine(shape, t.dims());
    params.push_back(Type::tensor(t.dtype()));
  }
  const Dims& dims = call.attrs.dims("dimensions");
  bool all = dims.size() == shape.size();
  for (std::size_t d = 0; all && d < dims.size(); ++d)
    all = dims[d] == static_cast<std::int64_t>(d);
  if (!all)
    fail(call, "c3", fmt::format("dimensions must be 0 … {}", shape.ssize() - 1),
         fmt::format("dimensions = {}", list(dims)), "Name every dimension in order");
  params.insert(params.end(), call.operands.begin() + n, call.operands.end());
  check_region(call, "c4", 0, params, nullptr);
  std::vector<Type> results = call.regions[0]->result_types();
  if (results.size() != 1 || !results[0].is_scalar())
    fail(call, "c4", "the computation must return one scalar",
         fmt::format("it returns {}", types_text(results)), "Return a scalar");
  return {results[0].with_dims(shape)};
}

std::vector<HostArray> map_eval(const EvalCall& call) {
  std::size_t n =
      call.operands.size() - static_cast<std::size_t>(call.op.attrs.i64_or("num_captures", 0));
  HostArray out(call.result_types[0].dtype(), call.operands[0].dims());
  std::vector<HostArray> args(call.operands.begin(), call.operands.end());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    for (std::size_t k = 0; k < n; ++k) args[k] = element(call.operands[k], i);
    set_element(out, i, call.regions.run(*call.op.regions[0], args)[0]);
  }
  return {std::move(out)};
}

DimMap map_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  Dims d = add_factors(m, results[0].dims(), DimMap::FactorKind::kParallel);
  m.results.push_back(d);
  std::size_t n = call.operands.size() - static_cast<std::size_t>(num_captures(call));
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    m.operands.push_back(
        i < n ? d : add_factors(m, call.operands[i].dims(), DimMap::FactorKind::kOpaque));
  return m;
}

}  // namespace

const OpDef kMap = {
    .name = "stablehlo.map",
    .max_operands = -1,
    .num_regions = 1,
    .attrs = {{"dimensions", AttrKind::kDims}, {"num_captures", AttrKind::kInt, false}},
    .shape = map_shape_rule,
    .eval = map_eval,
    .dims = map_dims,
    .labels = "map_i1 map_c1 map_c2 map_c3 map_c4 map_captures",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c4 c1"};

}  // namespace xylem::ir::ops
