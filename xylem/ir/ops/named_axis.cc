#include "xylem/ir/ops/named_axis.h"

#include <fmt/format.h>

#include <set>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Types = std::vector<Type>;

std::int64_t axis_size(const OpCall& call) {
  std::int64_t n = call.attrs.i64("axis_size");
  if (n < 1 || n > INT32_MAX)
    fail(call, "c1", "axis_size must be positive and less than 2^31", fmt::format("it is {}", n),
         "Give the number of mapped positions");
  return n;
}

// Dimension `name`, in [0, limit).
int dimension(const OpCall& call, std::string_view name, int limit) {
  std::int64_t d = call.attrs.i64(name);
  if (d < 0 || d >= limit)
    fail(call, "c2", fmt::format("{} must be in [0, {})", name, limit), fmt::format("it is {}", d),
         "Name a dimension of the operand");
  return static_cast<int>(d);
}

void check_divides(const OpCall& call, const Type& t, int d, bool tiled) {
  std::int64_t n = axis_size(call);
  if (tiled ? t.dim(d) % n != 0 : t.dim(d) != n)
    fail(call, "c3",
         tiled ? fmt::format("dimension {} must be a multiple of the axis size {}", d, n)
               : fmt::format("dimension {} must have the axis size {}", d, n),
         fmt::format("the operand is {}", t.to_string()), "Pad it, or choose another dimension");
}

Types same_shape_rule(const OpCall& call) {
  axis_size(call);
  return {tensor_operand(call, 0)};
}

Types all_gather_shape_rule(const OpCall& call) {
  const Type& t = tensor_operand(call, 0);
  std::int64_t n = axis_size(call);
  bool tiled = call.attrs.flag("tiled");
  int d = dimension(call, "dimension", t.rank() + (tiled ? 0 : 1));
  Dims dims = t.dims();
  if (tiled)
    dims[d] *= n;
  else
    dims.insert(static_cast<std::size_t>(d), n);
  return {t.with_dims(dims)};
}

Types psum_scatter_shape_rule(const OpCall& call) {
  const Type& t = tensor_operand(call, 0, kElNumber);
  bool tiled = call.attrs.flag("tiled");
  int d = dimension(call, "dimension", t.rank());
  check_divides(call, t, d, tiled);
  Dims dims = t.dims();
  if (tiled)
    dims[d] /= axis_size(call);
  else
    dims.erase(static_cast<std::size_t>(d));
  return {t.with_dims(dims)};
}

Types all_to_all_shape_rule(const OpCall& call) {
  const Type& t = tensor_operand(call, 0);
  bool tiled = call.attrs.flag("tiled");
  int split = dimension(call, "split_dimension", t.rank());
  int concat = dimension(call, "concat_dimension", t.rank());
  check_divides(call, t, split, tiled);
  Dims dims = t.dims();
  if (tiled) {
    dims[split] /= axis_size(call);
    dims[concat] *= axis_size(call);
  } else {
    dims.erase(static_cast<std::size_t>(split));
    dims.insert(static_cast<std::size_t>(concat), axis_size(call));
  }
  return {t.with_dims(dims)};
}

Types ppermute_shape_rule(const OpCall& call) {
  std::int64_t n = axis_size(call);
  const Dims& pairs = call.attrs.dims("pairs");
  std::set<std::int64_t> seen[2];  // sources, targets
  bool ok = pairs.size() % 2 == 0;
  for (std::size_t i = 0; ok && i < pairs.size(); ++i)
    ok = pairs[i] >= 0 && pairs[i] < n && seen[i % 2].insert(pairs[i]).second;
  if (!ok)
    fail(call, "c2", fmt::format("pairs must name different sources and targets in [0, {})", n),
         fmt::format("they are {}", list(pairs)), "Give (source, target) once for each");
  return {tensor_operand(call, 0)};
}

Types axis_index_shape_rule(const OpCall& call) {
  axis_size(call);
  return {Type::tensor(DType::kI32)};
}

std::vector<HostArray> unbound(const EvalCall& call) {
  throw UserError(
      ErrorParts{call.op.def->name, "the axis must be mapped by vmap or shard_map around the call",
                 fmt::format("unbound axis name: {}", call.op.attrs.str_or("axis_name", "")),
                 "Call it inside vmap(f, {.axis_name = …})"},
      call.op.loc.source);
}

// Every dimension is whole where the op runs.
DimMap whole(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  auto add = [&](const Type& t) {
    Dims d;
    for (std::int64_t n : t.dims()) {
      d.push_back(static_cast<std::int64_t>(m.factors.size()));
      m.factors.push_back({DimMap::FactorKind::kOpaque, n});
    }
    return d;
  };
  for (const Type& t : call.operands) m.operands.push_back(add(t));
  for (const Type& t : results) m.results.push_back(add(t));
  return m;
}

OpDef collective(std::string_view name, ShapeRule shape, std::vector<AttrDef> more,
                 std::string_view labels, int operands = 1) {
  OpDef d;
  d.name = name;
  d.traits = kXylem;
  d.min_operands = d.max_operands = operands;
  d.attrs = {{"axis_name", AttrKind::kString}, {"axis_size", AttrKind::kInt}};
  d.attrs.insert(d.attrs.end(), more.begin(), more.end());
  d.shape = shape;
  d.eval = unbound;
  d.dims = whole;
  d.labels = labels;
  return d;
}

const std::vector<AttrDef> kPlace = {{"dimension", AttrKind::kInt}, {"tiled", AttrKind::kBool}};

}  // namespace

const OpDef kPsum = collective("xylem.psum", same_shape_rule, {}, "psum_i1 psum_c1");
const OpDef kPmax = collective("xylem.pmax", same_shape_rule, {}, "pmax_i1 pmax_c1");
const OpDef kPmin = collective("xylem.pmin", same_shape_rule, {}, "pmin_i1 pmin_c1");
const OpDef kAllGatherAxis = collective("xylem.all_gather", all_gather_shape_rule, kPlace,
                                        "all_gather_i1 all_gather_c1 all_gather_c2");
const OpDef kPsumScatter =
    collective("xylem.psum_scatter", psum_scatter_shape_rule, kPlace,
               "psum_scatter_i1 psum_scatter_c1 psum_scatter_c2 psum_scatter_c3");
const OpDef kAllToAllAxis = collective("xylem.all_to_all", all_to_all_shape_rule,
                                       {{"split_dimension", AttrKind::kInt},
                                        {"concat_dimension", AttrKind::kInt},
                                        {"tiled", AttrKind::kBool}},
                                       "all_to_all_i1 all_to_all_c1 all_to_all_c2 all_to_all_c3");
const OpDef kPpermute =
    collective("xylem.ppermute", ppermute_shape_rule, {{"pairs", AttrKind::kDims}},
               "ppermute_i1 ppermute_c1 ppermute_c2");
const OpDef kAxisIndex =
    collective("xylem.axis_index", axis_index_shape_rule, {}, "axis_index_c1", 0);

}  // namespace xylem::ir::ops
