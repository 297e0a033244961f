#include "xylem/ir/ops/sort.h"

#include <fmt/format.h>

#include <bit>
#include <functional>

#include "xylem/ir/builder.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/movement.h"

namespace xylem::ir::ops {
namespace {

using Kind = DimMap::FactorKind;
using Order = std::vector<std::int64_t>;
using Before = std::function<bool(std::int64_t, std::int64_t)>;

// Stable merge sort of a range. Unlike the standard library's it stays inside the range whatever
// the comparator says, which here is a program's region.
void merge_sort(Order& v, std::size_t first, std::size_t last, const Before& before) {
  if (last - first < 2) return;
  std::size_t middle = first + (last - first) / 2;
  merge_sort(v, first, middle, before);
  merge_sort(v, middle, last, before);
  Order merged;
  merged.reserve(last - first);
  std::size_t i = first, j = middle;
  while (i < middle && j < last) merged.push_back(before(v[j], v[i]) ? v[j++] : v[i++]);
  merged.insert(merged.end(), v.begin() + static_cast<std::ptrdiff_t>(i),
                v.begin() + static_cast<std::ptrdiff_t>(middle));
  merged.insert(merged.end(), v.begin() + static_cast<std::ptrdiff_t>(j),
                v.begin() + static_cast<std::ptrdiff_t>(last));
  std::copy(merged.begin(), merged.end(), v.begin() + static_cast<std::ptrdiff_t>(first));
}

// sort -------------------------------------------------------------------------------------------

std::int64_t sort_axis(const Attrs& attrs, int rank) {
  std::int64_t axis = attrs.i64_or("dimension", -1);
  return axis < 0 ? axis + rank : axis;
}

std::vector<Type> sort_shape_rule(const OpCall& call) {
  int n = static_cast<int>(call.operands.size()) - num_captures(call);
  if (n < 1)
    fail(call, "c1", "at least one input is needed", "every operand is a capture",
         "Pass inputs, or lower num_captures");
  std::vector<Type> results;
  std::vector<Type> params;
  for (int i = 0; i < n; ++i) {
    const Type& t = tensor_operand(call, i, kElAny, "i1");
    if (!dims_fit(t.dims(), call.operands[0].dims()))
      fail(call, "c3", "inputs must have one shape",
           differ("input 0", call.operands[0].with_dtype(t.dtype()), fmt::format("input {}", i), t),
           "Broadcast or reshape one of them");
    results.push_back(t);
    params.insert(params.end(), 2, Type::tensor(t.dtype()));
  }
  int rank = results[0].rank();
  std::int64_t axis = call.attrs.i64_or("dimension", -1);
  if (axis < -rank || axis >= rank)
    fail(call, "c4", fmt::format("dimension must lie in [{}, {})", -rank, rank),
         fmt::format("it is {}", axis), "Name a dimension of the inputs");
  params.insert(params.end(), call.operands.begin() + n, call.operands.end());
  std::vector<Type> predicate{Type::tensor(DType::kBool)};
  check_region(call, "c5", 0, params, &predicate);
  return results;
}

std::vector<HostArray> sort_eval(const EvalCall& call) {
  std::size_t n = call.result_types.size();
  auto inputs = call.operands.first(n);
  const Dims& dims = inputs[0].dims();
  std::int64_t axis = sort_axis(call.op.attrs, inputs[0].rank());
  std::int64_t stride = row_major_strides(dims)[axis];
  std::vector<HostArray> args(2 * n);
  args.insert(args.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(n),
              call.operands.end());
  std::vector<HostArray> results;
  for (const HostArray& x : inputs) results.push_back(x.clone());
  for_each_line(dims, axis, [&](std::int64_t start) {
    Order order(static_cast<std::size_t>(dims[axis]));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    merge_sort(order, 0, order.size(), [&](std::int64_t a, std::int64_t b) {
      for (std::size_t k = 0; k < n; ++k) {
        args[2 * k] = element(inputs[k], start + a * stride);
        args[2 * k + 1] = element(inputs[k], start + b * stride);
      }
      return *call.regions.run(*call.op.regions[0], args)[0].as<bool>();
    });
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::size_t k = 0; k < n; ++k)
        set_element(results[k], start + static_cast<std::int64_t>(i) * stride,
                    element(inputs[k], start + order[i] * stride));
  });
  return results;
}

DimMap sort_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  Dims d = add_factors(m, results[0].dims(), Kind::kParallel);
  m.factors[static_cast<std::size_t>(sort_axis(call.attrs, results[0].rank()))].kind =
      Kind::kOpaque;
  m.results.assign(results.size(), d);
  m.operands.assign(results.size(), d);
  for (std::size_t i = results.size(); i < call.operands.size(); ++i)
    m.operands.push_back(add_factors(m, call.operands[i].dims(), Kind::kOpaque));
  return m;
}

// top_k ------------------------------------------------------------------------------------------

std::vector<Type> top_k_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0, kElReal | kElBool);
  std::int64_t k = call.attrs.i64("k");
  if (x.rank() == 0)
    fail(call, "c1", "the operand must have a last dimension", "it is " + x.to_string(),
         "Reshape it to a vector");
  Dims shape = x.dims();
  if (k < 0 || (shape.back() != kDynamic && k > shape.back()))
    fail(call, "c2", fmt::format("k must lie in [0, {}]", shape.back()), fmt::format("it is {}", k),
         "Ask for at most as many values as there are");
  shape.back() = k;
  return {x.with_dims(shape), Type::tensor(DType::kI32, shape)};
}

template <class C>
bool greater(C a, C b) {
  return a > b;
}
bool greater(double a, double b) {
  auto key = [](double x) {
    auto bits = std::bit_cast<std::int64_t>(x);
    return bits < 0 ? bits ^ INT64_MAX : bits;
  };
  return key(a) > key(b);
}

std::vector<HostArray> top_k_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  std::int64_t n = x.dims().back(), k = call.op.attrs.i64("k");
  HostArray values(x.dtype(), call.result_types[0].dims());
  HostArray indices(DType::kI32, call.result_types[1].dims());
  const DType order_as = is_bool(x.dtype()) ? DType::kU8 : x.dtype();
  with_compute_type<kElReal, false>(order_as, [&](auto c) {
    auto v = load_all<decltype(c)>(x);
    for (std::int64_t line = 0; n > 0 && line < x.size() / n; ++line) {
      const auto* row = v.data() + line * n;
      Order order(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
      merge_sort(order, 0, order.size(),
                 [&](std::int64_t a, std::int64_t b) { return greater(row[a], row[b]); });
      for (std::int64_t i = 0; i < k; ++i) {
        std::int64_t from = order[static_cast<std::size_t>(i)];
        set_element(values, line * k + i, element(x, line * n + from));
        indices.as<std::int32_t>()[line * k + i] = static_cast<std::int32_t>(from);
      }
    }
  });
  return {std::move(values), std::move(indices)};
}

DimMap top_k_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  Dims from = add_factors(m, call.operands[0].dims(), Kind::kParallel), to = from;
  m.factors.back().kind = Kind::kOpaque;
  to.back() = static_cast<std::int64_t>(m.factors.size());
  m.factors.push_back({Kind::kOpaque, results[0].dims().back()});
  m.operands.push_back(from);
  m.results.assign(2, to);
  return m;
}

// top_k(x) -> the first k of sort(x, iota) by descending total order, stable.
std::vector<ValueId> expand_top_k(Builder& b, const Op& op, std::span<const ValueId> operands) {
  const ValueId x = operands[0];
  const Type t = b.type(x);
  const std::int64_t k = op.attrs.i64("k");
  const int last = t.rank() - 1;
  Builder region("greater");
  const Type scalar = Type::tensor(t.dtype());
  const ValueId l = region.param(scalar), r = region.param(scalar);
  region.param(Type::tensor(DType::kI32));
  region.param(Type::tensor(DType::kI32));
  Attrs compare{{"comparison_direction", Attr(EnumAttr("GT"))}};
  if (is_float(t.dtype())) compare.set("compare_type", Attr(EnumAttr("TOTALORDER")));
  const ValueId greater = region.one(kCompare, {l, r}, compare);
  const GraphPtr graph = region.finish({greater});
  const ValueId iota = b.one(kIota, {},
                             Attrs{{"iota_dimension", Attr(last)},
                                   {"shape", Attr(t.dims())},
                                   {"result_dtype", Attr(DType::kI32)}});
  const ValueIds sorted =
      b.op(kSort, {x, iota}, Attrs{{"dimension", Attr(last)}, {"is_stable", Attr(true)}}, {graph});
  Dims start(t.dims().size(), 0), limit = t.dims();
  limit[last] = k;
  std::vector<ValueId> out;
  for (ValueId v : sorted)
    out.push_back(b.one(kSlice, {v},
                        Attrs{{"start_indices", start},
                              {"limit_indices", limit},
                              {"strides", Dims(start.size(), 1)}}));
  return out;
}

}  // namespace

const OpDef kSort = {.name = "stablehlo.sort",
                     .min_operands = 1,
                     .max_operands = -1,
                     .num_regions = 1,
                     .attrs = {{"dimension", AttrKind::kInt, false},
                               {"is_stable", AttrKind::kBool, false},
                               {"num_captures", AttrKind::kInt, false}},
                     .shape = sort_shape_rule,
                     .eval = sort_eval,
                     .dims = sort_dims,
                     .labels = "sort_i1 sort_c1 sort_c3 sort_c4 sort_c5 sort_captures",
                     .quant = QuantSupport::kPerTensor,
                     .result_labels = "c2 c3"};
const OpDef kTopK = {.name = "chlo.top_k",
                     .traits = kExact,
                     .min_operands = 1,
                     .max_operands = 1,
                     .attrs = {{"k", AttrKind::kInt}},
                     .shape = top_k_shape_rule,
                     .eval = top_k_eval,
                     .dims = top_k_dims,
                     .labels = "top_k_i1 top_k_c1 top_k_c2",
                     .expand = expand_top_k};

Family sort_family() {
  static const OpDef* const kOps[] = {&kSort, &kTopK};
  return kOps;
}

}  // namespace xylem::ir::ops
