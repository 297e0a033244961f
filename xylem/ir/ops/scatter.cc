#include <fmt/format.h>

#include <cstring>

#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/gather_scatter.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/gather_dims.h"
#include "xylem/ir/ops/internal/reduction_util.h"
#include "xylem/ir/ops/internal/scalar_ops.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir::ops {
namespace {

Dims joined(Dims a, const Dims& b) {
  for (std::int64_t d : b) a.push_back(d);
  return a;
}

void check_updates(const OpCall& call, const GatherDims& g, std::size_t n) {
  const Type& x = call.operands[0];
  const Type& indices = call.operands[n];
  const Type& updates = call.operands[n + 1];
  Dims window_operand = g.window_operand_dims(x.rank());
  Dims batch = g.batch_dims(updates.rank()), index_batch = g.index_batch_dims(indices.rank());
  bool ok = batch.size() == index_batch.size();
  for (std::size_t k = 0; ok && k < batch.size(); ++k)
    ok = size_fits(updates.dims()[batch[k]], indices.dims()[index_batch[k]]);
  for (std::size_t k = 0; ok && k < g.window.size(); ++k) {
    std::int64_t u = updates.dims()[g.window[k]], limit = x.dims()[window_operand[k]];
    ok = u == kDynamic || limit == kDynamic || u <= limit;
  }
  if (!ok)
    fail(call, "c4",
         "the updates must have the shape of the indices (without the index vector) with the "
         "window inserted at update_window_dims, no larger than the input",
         fmt::format("input {}, indices {}, updates {}, update_window_dims {}", x.to_string(),
                     indices.to_string(), updates.to_string(), list(g.window)),
         "Reshape the updates or change the dimension lists");
}

std::vector<Type> scatter_shape_rule(const OpCall& call) {
  std::size_t plain = call.operands.size() - static_cast<std::size_t>(num_captures(call));
  if (plain < 3 || plain % 2 == 0)
    fail(call, "c5", "N inputs, the indices and N updates are needed",
         fmt::format("{} operands that are no captures", plain),
         "Pass one update for each input, and set num_captures");
  std::size_t n = plain / 2;
  const Type& x = tensor_operand(call, 0, kElAny, "i1");
  const Type& indices = tensor_operand(call, static_cast<int>(n), kElInt, "i2");
  const Type& updates = tensor_operand(call, static_cast<int>(n + 1), kElAny, "i3");
  for (std::size_t i = 0; i < n; ++i) {
    const Type& a = tensor_operand(call, static_cast<int>(i), kElAny, "i1");
    const Type& u = tensor_operand(call, static_cast<int>(n + 1 + i), kElAny, "i3");
    if (!dims_fit(a.dims(), x.dims()))
      fail(call, "c1", "inputs must have one shape",
           differ("input 0", x.with_dtype(a.dtype()), fmt::format("input {}", i), a),
           "Reshape one of them");
    if (!dims_fit(u.dims(), updates.dims()))
      fail(call, "c3", "updates must have one shape",
           differ("update 0", updates.with_dtype(u.dtype()), fmt::format("update {}", i), u),
           "Reshape one of them");
    if (u.dtype() != a.dtype())
      fail(call, "c6", "an update must have its input's dtype",
           fmt::format("input {} is {}, its update {}", i, a.to_string(), u.to_string()),
           "Convert the update");
  }
  GatherDims g = GatherDims::of_scatter(call.attrs);
  if (x.rank() !=
      static_cast<int>(g.window.size() + g.collapsed.size() + g.operand_batching.size()))
    fail(call, "c2", "every input dimension must be a window, inserted or batching dimension",
         fmt::format("rank {}, but {} window, {} inserted and {} batching dimensions", x.rank(),
                     g.window.size(), g.collapsed.size(), g.operand_batching.size()),
         "Change the dimension lists");
  check_unique(call, "c7", "update_window_dims", g.window);
  check_sorted(call, "c7", "update_window_dims", g.window);
  check_in_range(call, "c8", "update_window_dims", g.window, updates.rank());
  check_unique(call, "c9", "inserted and batching dimensions",
               joined(g.collapsed, g.operand_batching));
  check_sorted(call, "c10", "inserted_window_dims", g.collapsed);
  check_in_range(call, "c11", "inserted_window_dims", g.collapsed, x.rank());
  check_sorted(call, "c12", "input_batching_dims", g.operand_batching);
  check_in_range(call, "c13", "input_batching_dims", g.operand_batching, x.rank());
  check_unique(call, "c14", "scatter_indices_batching_dims", g.index_batching);
  check_in_range(call, "c15", "scatter_indices_batching_dims", g.index_batching, indices.rank());
  if (contains(g.index_batching, g.index_vector_dim))
    fail(call, "c16", "index_vector_dim must not be a batching dimension",
         fmt::format("scatter_indices_batching_dims = {}", list(g.index_batching)),
         "Leave it out of the list");
  check_size(call, "c17", "scatter_indices_batching_dims", g.index_batching,
             g.operand_batching.ssize(), "input batching dimension");
  for (std::size_t k = 0; k < g.operand_batching.size(); ++k)
    if (!size_fits(x.dims()[g.operand_batching[k]], indices.dims()[g.index_batching[k]]))
      fail(call, "c18", "paired batching dimensions must have one size",
           fmt::format("input {} dimension {}, indices {} dimension {}", x.to_string(),
                       g.operand_batching[k], indices.to_string(), g.index_batching[k]),
           "Broadcast one of them");
  if (g.index_vector_dim < 0 || g.index_vector_dim > indices.rank())
    fail(call, "c22", fmt::format("index_vector_dim must lie in [0, {}]", indices.rank()),
         fmt::format("it is {}", g.index_vector_dim),
         "Name a dimension of the indices or its rank");
  std::int64_t components =
      g.index_vector_dim < indices.rank() ? indices.dims()[g.index_vector_dim] : 1;
  if (!size_fits(components, g.index_map.ssize()))
    fail(call, "c19",
         fmt::format("scatter_dims_to_operand_dims must have one entry for each index component "
                     "({})",
                     components),
         fmt::format("it is {}", list(g.index_map)), "Map every component");
  check_unique(call, "c20", "scatter_dims_to_operand_dims and input_batching_dims",
               joined(g.index_map, g.operand_batching));
  check_in_range(call, "c21", "scatter_dims_to_operand_dims", g.index_map, x.rank());
  check_updates(call, g, n);

  // The region is a reducer whose captures stand behind the 2n + 1 other operands.
  std::vector<Type> operands(call.operands.begin(),
                             call.operands.begin() + static_cast<std::ptrdiff_t>(n));
  operands.insert(operands.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(n + 1),
                  call.operands.end());
  OpCall reducer{call.def, operands, call.attrs, call.regions, call.loc};
  std::vector<DType> dtypes = check_reducer(reducer, n, "c23");
  std::vector<Type> results;
  for (std::size_t i = 0; i < n; ++i) results.push_back(call.operands[i].with_dtype(dtypes[i]));
  return results;
}

// Combines element `to` of out with element `from` of updates by a binary op; false: not native.
template <class F, unsigned Set>
void combine(HostArray& out, std::int64_t to, const HostArray& updates, std::int64_t from) {
  with_compute_type<Set, false>(out.dtype(), [&](auto c) {
    decltype(c) a, b;
    load(out, to, 1, &a);
    load(updates, from, 1, &b);
    auto r = F()(a, b);
    store(out, to, 1, &r);
  });
}

using Combine = void (*)(HostArray&, std::int64_t, const HostArray&, std::int64_t);

void replace(HostArray& out, std::int64_t to, const HostArray& updates, std::int64_t from) {
  auto bytes = static_cast<std::size_t>(dtype_bytes(out.dtype()));
  std::memcpy(out.data() + static_cast<std::size_t>(to) * bytes,
              updates.data() + static_cast<std::size_t>(from) * bytes, bytes);
}

// The usual one-input bodies, done directly.
Combine native_body(const Graph& body) {
  if (body.params.size() == 2 && body.results.size() == 1 && body.results[0] == body.params[1])
    return replace;
  const OpDef* op = single_op_reducer(body);
  if (op == &kAdd) return combine<Add, kElAny>;
  if (op == &kMultiply) return combine<Multiply, kElAny>;
  if (op == &kMaximum) return combine<Maximum, kElAny>;
  if (op == &kMinimum) return combine<Minimum, kElAny>;
  return nullptr;
}

std::vector<HostArray> scatter_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  std::size_t n = call.result_types.size();
  const Graph& body = *call.op.regions[0];
  GatherDims g = GatherDims::of_scatter(call.op.attrs);
  std::vector<HostArray> out, updates;
  for (std::size_t i = 0; i < n; ++i) {
    DType t = call.result_types[i].dtype();
    out.push_back(call.operands[i].astype(t).clone());
    updates.push_back(call.operands[n + 1 + i].astype(t));
  }
  std::vector<HostArray> args(2 * n);
  args.insert(args.end(), call.operands.begin() + static_cast<std::ptrdiff_t>(2 * n + 1),
              call.operands.end());
  const Dims& dims = out[0].dims();
  const Dims& update_dims = updates[0].dims();
  // Sizes of the window in operand dimensions.
  Dims window(dims.size(), 1);
  Dims window_operand = g.window_operand_dims(dims.ssize());
  for (std::size_t k = 0; k < window_operand.size(); ++k)
    window[window_operand[k]] = update_dims[g.window[k]];
  Dims strides = row_major_strides(dims);
  GatherWalker walker(g, dims, call.operands[n], update_dims);
  Combine native = n == 1 ? native_body(body) : nullptr;
  std::vector<std::int64_t> index(update_dims.size(), 0);
  for (std::int64_t from = 0; from < updates[0].size(); ++from, next_index(index, update_dims)) {
    walker.locate(index);
    bool inside = true;
    std::int64_t to = 0;
    for (std::size_t d = 0; inside && d < dims.size(); ++d) {
      std::int64_t start = walker.start()[d];
      inside = start >= 0 && start <= dims[d] - window[d];
      if (inside) to += (start + walker.offset()[d]) * strides[d];
    }
    if (!inside) continue;
    if (native) {
      native(out[0], to, updates[0], from);
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) {
      args[i] = element(out[i], to);
      args[n + i] = element(updates[i], from);
    }
    std::vector<HostArray> next = call.regions.run(body, args);
    for (std::size_t i = 0; i < n; ++i) set_element(out[i], to, next[i]);
  }
  return out;
}

DimMap scatter_dims(const OpCall& call, std::span<const Type> results) {
  std::size_t n = results.size();
  GatherDims g = GatherDims::of_scatter(call.attrs);
  const Type& updates = call.operands[n + 1];
  Dims sizes(results[0].dims().size(), 1);
  Dims window_operand = g.window_operand_dims(results[0].rank());
  for (std::size_t k = 0; k < window_operand.size(); ++k)
    sizes[window_operand[k]] = updates.dims()[g.window[k]];
  DimMap m = gather_dim_map(g, call.operands[0], call.operands[n], updates, sizes, true);
  Dims input = m.operands[0], indices = m.operands[1], update = m.results[0];
  m.operands.assign(n, input);
  m.operands.push_back(indices);
  m.operands.insert(m.operands.end(), n, update);
  m.results.assign(n, input);
  for (std::size_t i = 2 * n + 1; i < call.operands.size(); ++i)
    m.operands.push_back(add_factors(m, call.operands[i].dims(), DimMap::FactorKind::kOpaque));
  return m;
}

}  // namespace

const OpDef kScatter = {
    .name = "stablehlo.scatter",
    .min_operands = 3,
    .max_operands = -1,
    .num_regions = 1,
    .attrs = {{"update_window_dims", AttrKind::kDims, false},
              {"inserted_window_dims", AttrKind::kDims, false},
              {"input_batching_dims", AttrKind::kDims, false},
              {"scatter_indices_batching_dims", AttrKind::kDims, false},
              {"scatter_dims_to_operand_dims", AttrKind::kDims, false},
              {"index_vector_dim", AttrKind::kInt, false},
              {"indices_are_sorted", AttrKind::kBool, false},
              {"unique_indices", AttrKind::kBool, false},
              {"num_captures", AttrKind::kInt, false}},
    .shape = scatter_shape_rule,
    .eval = scatter_eval,
    .dims = scatter_dims,
    .labels =
        "scatter_i1 scatter_i2 scatter_i3 scatter_c1 scatter_c2 scatter_c3 scatter_c4 "
        "scatter_c5 scatter_c6 scatter_c7 scatter_c8 scatter_c9 scatter_c10 scatter_c11 "
        "scatter_c12 scatter_c13 scatter_c14 scatter_c15 scatter_c16 scatter_c17 "
        "scatter_c18 scatter_c19 scatter_c20 scatter_c21 scatter_c22 scatter_c23 "
        "scatter_captures",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c25 c24"};

}  // namespace xylem::ir::ops
