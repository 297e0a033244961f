#include <fmt/format.h>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/gather_scatter.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/gather_dims.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

Dims joined(Dims a, const Dims& b) {
  for (std::int64_t d : b) a.push_back(d);
  return a;
}

std::vector<Type> gather_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& indices = tensor_operand(call, 1, kElInt);
  GatherDims g = GatherDims::of_gather(call.attrs);
  const Dims& sizes = call.attrs.dims("slice_sizes");
  if (x.rank() !=
      static_cast<int>(g.window.size() + g.collapsed.size() + g.operand_batching.size()))
    fail(call, "c1", "every operand dimension must be an offset, collapsed or batching dimension",
         fmt::format("rank {}, but {} offset, {} collapsed and {} batching dimensions", x.rank(),
                     g.window.size(), g.collapsed.size(), g.operand_batching.size()),
         "Change the dimension lists");
  if (g.index_vector_dim < 0 || g.index_vector_dim > indices.rank())
    fail(call, "c2", fmt::format("index_vector_dim must lie in [0, {}]", indices.rank()),
         fmt::format("it is {}", g.index_vector_dim),
         "Name a dimension of the indices or its rank");
  std::int64_t components =
      g.index_vector_dim < indices.rank() ? indices.dims()[g.index_vector_dim] : 1;
  if (!size_fits(components, g.index_map.ssize()))
    fail(call, "c3",
         fmt::format("start_index_map must have one entry for each index component ({})",
                     components),
         fmt::format("start_index_map = {}", list(g.index_map)), "Map every component");
  check_unique(call, "c4", "offset_dims", g.window);
  check_sorted(call, "c4", "offset_dims", g.window);
  Dims index_batch = g.index_batch_dims(indices.rank());
  int rank = static_cast<int>(index_batch.size() + g.window.size());
  check_in_range(call, "c5", "offset_dims", g.window, rank);
  check_unique(call, "c6", "collapsed and batching dimensions",
               joined(g.collapsed, g.operand_batching));
  check_sorted(call, "c7", "collapsed_slice_dims", g.collapsed);
  check_in_range(call, "c8", "collapsed_slice_dims", g.collapsed, x.rank());
  check_size(call, "c20", "slice_sizes", sizes, x.rank(), "operand dimension");
  auto at_most_one = [&](std::string_view what, const Dims& dims, std::string_view word) {
    for (std::int64_t d : dims)
      if (sizes[d] > 1)
        fail(call, what, fmt::format("the slice size of {} dimensions must be at most 1", word),
             fmt::format("dimension {} has {}", d, sizes[d]), "Set it to 1 or keep the dimension");
  };
  at_most_one("c9", g.collapsed, "collapsed");
  check_sorted(call, "c10", "operand_batching_dims", g.operand_batching);
  check_in_range(call, "c11", "operand_batching_dims", g.operand_batching, x.rank());
  at_most_one("c12", g.operand_batching, "batching");
  check_unique(call, "c13", "start_indices_batching_dims", g.index_batching);
  check_in_range(call, "c14", "start_indices_batching_dims", g.index_batching, indices.rank());
  if (contains(g.index_batching, g.index_vector_dim))
    fail(call, "c15", "index_vector_dim must not be a batching dimension",
         fmt::format("start_indices_batching_dims = {}", list(g.index_batching)),
         "Leave it out of the list");
  check_size(call, "c16", "start_indices_batching_dims", g.index_batching,
             g.operand_batching.ssize(), "operand batching dimension");
  for (std::size_t k = 0; k < g.operand_batching.size(); ++k)
    if (!size_fits(x.dims()[g.operand_batching[k]], indices.dims()[g.index_batching[k]]))
      fail(call, "c17", "paired batching dimensions must have one size",
           fmt::format("operand {} dimension {}, indices {} dimension {}", x.to_string(),
                       g.operand_batching[k], indices.to_string(), g.index_batching[k]),
           "Broadcast one of them");
  check_unique(call, "c18", "start_index_map and operand_batching_dims",
               joined(g.index_map, g.operand_batching));
  check_in_range(call, "c19", "start_index_map", g.index_map, x.rank());
  for (int d = 0; d < x.rank(); ++d)
    if (sizes[d] < 0 || (x.dim(d) != kDynamic && sizes[d] > x.dim(d)))
      fail(call, "c21", "0 <= slice size <= operand size must hold in every dimension",
           fmt::format("slice_sizes = {} of {}", list(sizes), x.to_string()),
           fmt::format("Change slice size {}", d));
  Dims shape(static_cast<std::size_t>(rank), 0);
  Dims window_operand = g.window_operand_dims(x.rank()), batch = g.batch_dims(rank);
  for (std::size_t k = 0; k < g.window.size(); ++k) shape[g.window[k]] = sizes[window_operand[k]];
  for (std::size_t k = 0; k < batch.size(); ++k) shape[batch[k]] = indices.dims()[index_batch[k]];
  return {x.with_dims(shape)};
}

std::vector<HostArray> gather_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  const Type& t = call.result_types[0];
  GatherDims g = GatherDims::of_gather(call.op.attrs);
  const Dims& sizes = call.op.attrs.dims("slice_sizes");
  GatherWalker walker(g, x.dims(), call.operands[1], t.dims());
  Dims strides = row_major_strides(x.dims());
  HostArray out(t.dtype(), t.dims());
  std::vector<std::int64_t> index(t.dims().size(), 0);
  for (std::int64_t i = 0; i < out.size(); ++i, next_index(index, t.dims())) {
    walker.locate(index);
    std::int64_t from = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) {
      std::int64_t room = x.dims()[d] - sizes[d];
      from +=
          (std::clamp<std::int64_t>(walker.start()[d], 0, room) + walker.offset()[d]) * strides[d];
    }
    set_element(out, i, element(x, from));
  }
  return {std::move(out)};
}

DimMap gather_dims(const OpCall& call, std::span<const Type> results) {
  return gather_dim_map(GatherDims::of_gather(call.attrs), call.operands[0], call.operands[1],
                        results[0], call.attrs.dims("slice_sizes"), false);
}

}  // namespace

const OpDef kGather = {
    .name = "stablehlo.gather",
    .traits = kStructural | kExact,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"offset_dims", AttrKind::kDims, false},
              {"collapsed_slice_dims", AttrKind::kDims, false},
              {"operand_batching_dims", AttrKind::kDims, false},
              {"start_indices_batching_dims", AttrKind::kDims, false},
              {"start_index_map", AttrKind::kDims, false},
              {"index_vector_dim", AttrKind::kInt, false},
              {"slice_sizes", AttrKind::kDims},
              {"indices_are_sorted", AttrKind::kBool, false}},
    .shape = gather_shape_rule,
    .eval = gather_eval,
    .dims = gather_dims,
    .labels =
        "gather_i1 gather_i2 gather_c1 gather_c2 gather_c3 gather_c4 gather_c5 gather_c6 "
        "gather_c7 gather_c8 gather_c9 gather_c10 gather_c11 gather_c12 gather_c13 "
        "gather_c14 gather_c15 gather_c16 gather_c17 gather_c18 gather_c19 gather_c20 "
        "gather_c21",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c23 c22"};

Family gather_scatter_family() {
  static const OpDef* const kOps[] = {&kGather, &kScatter};
  return kOps;
}

}  // namespace xylem::ir::ops
