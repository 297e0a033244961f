// dynamic_slice and dynamic_update_slice of the movement family.

#include <fmt/format.h>

#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/internal/strided.h"
#include "xylem/ir/ops/movement.h"

namespace xylem::ir::ops {
namespace {

using Kind = DimMap::FactorKind;

// The start indices behind operand `first`: as many as dimensions, scalars of one integer type.
void check_starts(const OpCall& call, int first, int rank, std::string_view operand_label,
                  std::string_view count_label, std::string_view same_label) {
  int n = static_cast<int>(call.operands.size()) - first;
  if (n != rank)
    fail(call, count_label,
         fmt::format("one start index for each of {} dimensions is needed", rank),
         fmt::format("{} are given", n), "Pass one scalar for each dimension");
  for (int i = first; i < first + n; ++i) {
    const Type& t = tensor_operand(call, i, kElInt, operand_label);
    if (t.rank() != 0)
      fail(call, same_label, "start indices must be scalars",
           fmt::format("operand {} is {}", i, t.to_string()), "Pass scalars");
    if (t.dtype() != call.operands[static_cast<std::size_t>(first)].dtype())
      fail(call, same_label, "start indices must have one dtype", types_text(call.operands),
           "Convert them to one integer type");
  }
}

// Sum of start * stride, each start clamped so that the window of `size` stays inside.
std::int64_t clamped_offset(std::span<const HostArray> starts, const HostArray& x,
                            const Dims& size) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < size.size(); ++d) {
    std::int64_t room = x.dims()[d] - size[d];
    offset += std::clamp<std::int64_t>(integer_scalar(starts[d]), 0, room) * x.byte_strides()[d];
  }
  return offset;
}

std::vector<Type> dynamic_slice_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Dims& sizes = call.attrs.dims("slice_sizes");
  check_size(call, "c2", "slice_sizes", sizes, x.rank(), "operand dimension");
  check_starts(call, 1, x.rank(), "i2", "c2", "c3");
  for (int d = 0; d < x.rank(); ++d)
    if (sizes[d] < 0 || (x.dim(d) != kDynamic && sizes[d] > x.dim(d)))
      fail(call, "c4", "0 <= slice size <= operand size must hold in every dimension",
           fmt::format("slice_sizes = {} of {}", list(sizes), x.to_string()),
           fmt::format("Change slice size {}", d));
  return {x.with_dims(sizes)};
}

std::vector<HostArray> dynamic_slice_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  const Dims& sizes = call.op.attrs.dims("slice_sizes");
  return {
      strided_view(x, clamped_offset(call.operands.subspan(1), x, sizes), sizes, x.byte_strides())};
}

DimMap dynamic_slice_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  const Type& x = call.operands[0];
  Dims from, to;
  for (int d = 0; d < x.rank(); ++d) {
    bool whole = x.dim(d) == results[0].dim(d);
    from.push_back(static_cast<std::int64_t>(m.factors.size()));
    m.factors.push_back({whole ? Kind::kParallel : Kind::kOpaque, x.dim(d)});
    if (!whole) m.factors.push_back({Kind::kOpaque, results[0].dim(d)});
    to.push_back(static_cast<std::int64_t>(m.factors.size()) - 1);
  }
  m.operands.assign(call.operands.size(), {});
  m.operands[0] = from;
  m.results.push_back(to);
  return m;
}

std::vector<Type> dynamic_update_slice_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& u = tensor_operand(call, 1);
  if (u.dtype() != x.dtype())
    fail(call, "c2", "operand and update must have one dtype",
         differ("the operand", x, "the update", u), "Convert the update");
  if (u.rank() != x.rank())
    fail(call, "c3", "operand and update must have one rank",
         differ("the operand", x, "the update", u), "Reshape the update");
  check_starts(call, 2, x.rank(), "i3", "c4", "c5");
  for (int d = 0; d < x.rank(); ++d)
    if (x.dim(d) != kDynamic && u.dim(d) != kDynamic && u.dim(d) > x.dim(d))
      fail(call, "c6", "the update must not be larger than the operand in any dimension",
           fmt::format("the operand is {}, the update {}", x.to_string(), u.to_string()),
           fmt::format("Slice the update in dimension {}", d));
  return {x};
}

std::vector<HostArray> dynamic_update_slice_eval(const EvalCall& call) {
  HostArray out = call.operands[0].clone();
  const HostArray& u = call.operands[1];
  write_strided(out, clamped_offset(call.operands.subspan(2), out, u.dims()), out.byte_strides(),
                u);
  return {std::move(out)};
}

DimMap dynamic_update_slice_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  const Type& x = call.operands[0];
  const Type& u = call.operands[1];
  m.results.push_back(add_factors(m, x.dims(), Kind::kParallel));
  Dims update;
  for (int d = 0; d < x.rank(); ++d) {
    if (x.dim(d) == u.dim(d)) {
      update.push_back(d);
      continue;
    }
    m.factors[static_cast<std::size_t>(d)].kind = Kind::kOpaque;
    update.push_back(static_cast<std::int64_t>(m.factors.size()));
    m.factors.push_back({Kind::kOpaque, u.dim(d)});
  }
  m.operands.assign(call.operands.size(), {});
  m.operands[0] = m.results[0];
  m.operands[1] = update;
  return m;
}

}  // namespace

const OpDef kDynamicSlice = {
    .name = "stablehlo.dynamic_slice",
    .traits = kStructural | kExact,
    .min_operands = 1,
    .max_operands = -1,
    .attrs = {{"slice_sizes", AttrKind::kDims}},
    .shape = dynamic_slice_shape_rule,
    .eval = dynamic_slice_eval,
    .dims = dynamic_slice_dims,
    .labels =
        "dynamic_slice_i1 dynamic_slice_i2 dynamic_slice_c2 dynamic_slice_c3 dynamic_slice_c4",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c1 c5"};
const OpDef kDynamicUpdateSlice = {
    .name = "stablehlo.dynamic_update_slice",
    .traits = kStructural | kExact,
    .min_operands = 2,
    .max_operands = -1,
    .shape = dynamic_update_slice_shape_rule,
    .eval = dynamic_update_slice_eval,
    .dims = dynamic_update_slice_dims,
    .labels =
        "dynamic_update_slice_i1 dynamic_update_slice_i2 dynamic_update_slice_i3 "
        "dynamic_update_slice_c2 "
        "dynamic_update_slice_c3 dynamic_update_slice_c4 dynamic_update_slice_c5 "
        "dynamic_update_slice_c6",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c1"};

}  // namespace xylem::ir::ops
