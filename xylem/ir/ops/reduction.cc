#include "xylem/ir/ops/reduction.h"

#include <fmt/format.h>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/fold.h"
#include "xylem/ir/ops/internal/reduction_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {

const OpDef* single_op_reducer(const Graph& region) {
  if (region.params.size() != 2 || region.ops.size() != 1 || region.results.size() != 1)
    return nullptr;
  if (region.type(region.params[0]).quant()) return nullptr;  // stored values add up otherwise
  const Op& op = region.ops[0];
  if (op.operands.size() != 2 || op.results.size() != 1 || op.results[0] != region.results[0])
    return nullptr;
  bool straight = op.operands[0] == region.params[0] && op.operands[1] == region.params[1];
  bool crossed = op.operands[0] == region.params[1] && op.operands[1] == region.params[0];
  return op.def->is(kCommutative | kAssociative) && (straight || crossed) ? op.def : nullptr;
}

bool is_promotable(DType from, DType to) {
  return from == to ||
         (dtype_info(from).kind == dtype_info(to).kind && dtype_bits(from) <= dtype_bits(to));
}

std::vector<DType> check_reducer(const OpCall& call, std::size_t n, std::string_view what) {
  if (!call.regions[0])
    fail(call, what, "the body must be a graph", "it is null", "Build the body first");
  std::vector<Type> results = call.regions[0]->result_types();
  std::vector<DType> dtypes;
  bool ok = results.size() == n;
  for (std::size_t i = 0; ok && i < n; ++i) {
    ok = results[i].is_scalar() && is_promotable(call.operands[i].dtype(), results[i].dtype());
    dtypes.push_back(results[i].dtype());
  }
  if (!ok)
    fail(call, what,
         fmt::format("the body must return {} scalars of the inputs' dtypes or wider ones", n),
         fmt::format("it returns {}", types_text(results)), "Convert the body's results");
  std::vector<Type> params;
  for (int side = 0; side < 2; ++side)
    for (DType t : dtypes) params.push_back(Type::tensor(t));
  params.insert(params.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(2 * n),
                call.operands.end());
  check_region(call, what, 0, params, nullptr);
  return dtypes;
}

std::size_t check_inputs_and_inits(const OpCall& call, const ReduceLabels& labels) {
  std::size_t inputs = call.operands.size() - static_cast<std::size_t>(num_captures(call));
  if (inputs < 2 || inputs % 2 != 0)
    fail(call, labels.count, "inputs and as many init values are needed",
         fmt::format("{} operands that are no captures", inputs),
         "Pass one init value for each input, and set num_captures");
  std::size_t n = inputs / 2;
  for (std::size_t i = 0; i < n; ++i) {
    const Type& x = tensor_operand(call, static_cast<int>(i), kElAny, "i1");
    const Type& init = tensor_operand(call, static_cast<int>(n + i), kElAny, "i2");
    if (!dims_fit(x.dims(), call.operands[0].dims()))
      fail(call, labels.shapes, "inputs must have one shape",
           differ("input 0", call.operands[0].with_dtype(x.dtype()), fmt::format("input {}", i), x),
           "Broadcast or reshape one of them");
    if (init.rank() != 0 || init.dtype() != x.dtype())
      fail(call, labels.dtypes, "an init value must be a scalar of its input's dtype",
           fmt::format("input {} is {}, its init value {}", i, x.to_string(), init.to_string()),
           "Convert the init value");
  }
  return n;
}

namespace {

std::vector<Type> reduce_shape_rule(const OpCall& call) {
  std::size_t n = check_inputs_and_inits(call, {"c3", "c1", "c2"});
  const Type& x = call.operands[0];
  const Dims& dims = call.attrs.dims("dimensions");
  check_in_range(call, "c4", "dimensions", dims, x.rank());
  check_unique(call, "c5", "dimensions", dims);
  Dims shape;
  for (std::int64_t d : other_dims(x.rank(), dims)) shape.push_back(x.dims()[d]);
  std::vector<Type> results;
  for (DType t : check_reducer(call, n, "c6")) results.push_back(Type::tensor(t, shape));
  return results;
}

std::vector<HostArray> reduce_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  Dims result_strides = row_major_strides(call.result_types[0].dims());
  Dims strides(x.dims().size(), 0);
  Dims kept = other_dims(x.rank(), call.op.attrs.dims("dimensions"));
  for (std::size_t i = 0; i < kept.size(); ++i) strides[kept[i]] = result_strides[i];
  return fold(call, true, [&](auto&& fn) {
    std::vector<std::int64_t> index(x.dims().size(), 0);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      fn(flat_index(index, strides), i);
      next_index(index, x.dims());
    }
  });
}

DimMap reduce_dims(const OpCall& call, std::span<const Type> results) {
  using Kind = DimMap::FactorKind;
  DimMap m;
  std::size_t n = results.size();
  Dims input = add_factors(m, call.operands[0].dims(), Kind::kParallel);
  const Dims& reduced = call.attrs.dims("dimensions");
  for (std::int64_t d : reduced) m.factors[static_cast<std::size_t>(d)].kind = Kind::kReduced;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    m.operands.push_back(i < n ? input : add_factors(m, call.operands[i].dims(), Kind::kOpaque));
  m.results.assign(n, other_dims(call.operands[0].rank(), reduced));
  return m;
}

}  // namespace

const OpDef kReduce = {
    .name = "stablehlo.reduce",
    .min_operands = 2,
    .max_operands = -1,
    .num_regions = 1,
    .attrs = {{"dimensions", AttrKind::kDims}, {"num_captures", AttrKind::kInt, false}},
    .shape = reduce_shape_rule,
    .eval = reduce_eval,
    .dims = reduce_dims,
    .labels =
        "reduce_i1 reduce_i2 reduce_c1 reduce_c2 reduce_c3 reduce_c4 reduce_c5 reduce_c6 "
        "reduce_captures",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c8 c7"};

Family reduction_family() {
  static const OpDef* const kOps[] = {&kReduce, &kReduceWindow, &kSelectAndScatter};
  return kOps;
}

}  // namespace xylem::ir::ops
