#pragma once

#include "xylem/ir/graph.h"

// Passes from graph to graph. Each is linear in the number of ops, keeps the meaning bit for bit
// (but for what its comment names), and looks at the top level only: regions of control flow are
// optimised when they are compiled.
namespace xylem::compiler {

// xylem.call, custom_jvp, custom_vjp (primal region), remat -> their ops; a remat's arguments pass
// an optimization_barrier first, so that its ops are not merged with those of the forward pass.
// stop_gradient(x), checkpoint_name(x) -> x. Nested calls too.
ir::GraphPtr inline_calls(const ir::GraphPtr& graph);

// Removes ops without effect whose results nobody uses.
ir::GraphPtr eliminate_dead(const ir::GraphPtr& graph);

// Equal ops on equal operands -> one op.
ir::GraphPtr merge_common(const ir::GraphPtr& graph);

// Algebraic rules that are exact in every dtype they are applied to, and folding of small
// constants: x * 1 -> x, x + (-0.0) -> x, reshape(reshape(x)) -> reshape(x), …
ir::GraphPtr simplify(const ir::GraphPtr& graph);

// Ops without code of their own -> others: top_k of many -> sort + slice, rng_bit_generator THREE_FRY ->
// u32 arithmetic, custom calls with a meaning in ops -> those ops, others that lack code of their
// own by their decomposition (OpDef::expand).
ir::GraphPtr expand_ops(const ir::GraphPtr& graph);

// tuple and get_tuple_element -> the elements; parameters and results that are tuples become their
// elements one after the other.
ir::GraphPtr flatten_tuples(const ir::GraphPtr& graph);

// Regions that see single elements (of reductions, scatters, sorts) without calls, branches and ops
// that have no code: a branch becomes a select between the results of all.
ir::GraphPtr straighten_regions(const ir::GraphPtr& graph);

// select_and_scatter -> reduce_window of (value, place) and scatter; map of elementwise ops ->
// those ops on whole arrays; reduce_window over all that comes before a place -> cumsum, cumprod,
// cummax, cummin (sums in another order where it runs from the end).
ir::GraphPtr expand_windows(const ir::GraphPtr& graph);

// convolution of real numbers in one group with four features and more -> pad, reverse, one
// without padding, holes or reversal whose features come last, transpose. Others -> a product of
// the kernel with the unfolded input: pad, slices or a gather of each spatial dimension,
// dot_general, transpose.
ir::GraphPtr expand_convolutions(const ir::GraphPtr& graph);

// dot_general of narrow floats, bool and complex numbers -> products of f32, i32 and real parts;
// products with a vector, and outer products -> multiply and reduce, which fuse. What is left has
// M, N, K > 1 and operands of the result's dtype.
ir::GraphPtr canonicalize_dots(const ir::GraphPtr& graph);

// reduce over many elements with few results -> reduce(reduce over blocks), which gives the pool
// work, bounds the rounding error and fixes the order by the shape alone.
ir::GraphPtr split_reductions(const ir::GraphPtr& graph);

// All of the above in order. `quick` leaves out what only pays for programs that run often.
ir::GraphPtr optimize(const ir::GraphPtr& graph, bool quick);

}  // namespace xylem::compiler
