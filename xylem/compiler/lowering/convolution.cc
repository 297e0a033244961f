#include <algorithm>
#include <numeric>

#include "xylem/base/error.h"
#include "xylem/compiler/lowering/product.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/convolution.h"

namespace xylem::compiler {
namespace {

using ir::Op;
using ir::ValueId;

// A dimension of the product's rows or sums: its steps in the input and in the kernel.
struct Axis {
  std::int64_t size = 1, input = 0, kernel = 0;
};

// Joins neighbours that step alike: (outer, inner) as one index of outer · inner.
void join(std::vector<Axis>* axes) {
  std::vector<Axis> out;
  for (const Axis& a : *axes) {
    if (a.size == 1) continue;
    if (!out.empty() && out.back().input == a.input * a.size &&
        out.back().kernel == a.kernel * a.size)
      out.back() = {out.back().size * a.size, a.input, a.kernel};
    else
      out.push_back(a);
  }
  if (out.empty()) out.push_back({});
  *axes = std::move(out);
}

// The steps of v's dimensions in a buffer: where it lies, else in a dense copy.
Dims steps_of(Lowering& l, ValueId v, BufferId* buffer, std::int64_t* size) {
  const Dims& dims = l.graph().type(v).dims();
  Forms index(dims.size());
  Dims steps(dims.size(), 0);
  for (int d = 0; d < dims.ssize(); ++d)
    if (dims[d] != 1) index[static_cast<std::size_t>(d)] = Form::axis(d);
  Form place;
  if (find_place(l, v, index, dims, buffer, &place)) {
    for (int d = 0; d < dims.ssize(); ++d) steps[d] = place.coef(d);
    *size = l.graph().type(*buffer).size();
    return steps;
  }
  Dims order(dims.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  *buffer = make_dense(l, v, order);
  *size = num_elements(dims);
  return row_major_strides(dims);
}

}  // namespace

// One product over the windows where they lie: rows are the places of the result, sums run over the
// window and the input's features, columns are the result's features. The input is not unfolded:
// its steps per place and per tap add up.
void lower_convolution(Lowering& l, const Op& op) {
  const ir::Graph& g = l.graph();
  const ir::Attrs& at = op.attrs;
  const ir::Type &result = g.type(op.results[0]), &kernel = g.type(op.operands[1]);
  const Dims in = at.dims("input_spatial_dimensions"), taps = at.dims("kernel_spatial_dimensions"),
             out = at.dims("output_spatial_dimensions");
  const Dims ones(in.size(), 1);
  const Dims stride = at.dims_or("window_strides", ones),
             dilation = at.dims_or("rhs_dilation", ones);
  const std::int64_t out_batch = at.i64("output_batch_dimension");
  XYLEM_CHECK(at.i64("output_feature_dimension") == result.rank() - 1 && !at.find("padding") &&
                  !at.find("lhs_dilation") && !at.find("window_reversal"),
              "convolutions are canonical");

  Operand a, b;
  const Dims input_step = steps_of(l, op.operands[0], &a.buffer, &a.layout.size);
  const Dims kernel_step = steps_of(l, op.operands[1], &b.buffer, &b.layout.size);
  // Rows in the order of the result, so that it is written densely.
  std::vector<Axis> rows, sums;
  for (int d = 0; d + 1 < result.rank(); ++d) {
    if (d == out_batch) {
      rows.push_back({result.dim(d), input_step[at.i64("input_batch_dimension")]});
      continue;
    }
    for (int s = 0; s < out.ssize(); ++s)
      if (out[s] == d) rows.push_back({result.dim(d), input_step[in[s]] * stride[s]});
  }
  for (int s = 0; s < taps.ssize(); ++s)
    sums.push_back({kernel.dim(static_cast<int>(taps[s])), input_step[in[s]] * dilation[s],
                    kernel_step[taps[s]]});
  const std::int64_t feature = at.i64("kernel_input_feature_dimension");
  sums.push_back({kernel.dim(static_cast<int>(feature)),
                  input_step[at.i64("input_feature_dimension")], kernel_step[feature]});
  // Neighbours in memory follow each other.
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Axis& x, const Axis& y) { return x.input > y.input; });
  join(&rows);
  join(&sums);

  const std::int64_t features = at.i64("kernel_output_feature_dimension");
  GemmShape shape;
  shape.dtype = result.dtype();
  shape.n = kernel.dim(static_cast<int>(features));
  shape.rows.clear();
  shape.sums.clear();
  for (const Axis& x : rows) {
    shape.rows.push_back(x.size);
    a.layout.row.push_back(x.input);
  }
  for (const Axis& x : sums) {
    shape.sums.push_back(x.size);
    a.layout.column.push_back(x.input);
    b.layout.row.push_back(x.kernel);
  }
  b.layout.column = {kernel_step[features]};
  emit_product(l, shape, a, b, l.buffer(op.results[0]));
}

}  // namespace xylem::compiler
