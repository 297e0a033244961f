#include <algorithm>
#include <numeric>
#include <utility>

#include "xylem/compiler/passes/passes.h"
#include "xylem/compiler/passes/rewriter.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/convolution.h"

namespace xylem::compiler {
namespace {

namespace o = ir::ops;
using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Op;
using ir::Type;
using ir::ValueId;

// A dimension is unfolded by so many slices at most; longer ones take a gather.
constexpr std::int64_t kMaxSlices = 24;

Dims with(Dims d, std::size_t at, std::int64_t size) {
  d.insert(at, size);
  return d;
}

// Fewer features than these are not worth the columns of a product.
constexpr std::int64_t kLeastFeatures = 4;

// One convolution as a product of matrices: the kernel [group, features, inputs · window] times
// the unfolded input [group, inputs · window, batch · output].
class Convolution {
 public:
  Convolution(Builder& b, const Op& op, const Type& result)
      : b_(b), a_(op.attrs), result_(result) {}

  ValueId expand(ValueId lhs, ValueId rhs) {
    in_ = a_.dims("input_spatial_dimensions");
    const Dims kernel_spatial = a_.dims("kernel_spatial_dimensions");
    const Dims out_spatial = a_.dims("output_spatial_dimensions");
    const std::size_t n = in_.size();
    const Dims ones(n, 1), none(n, 0);
    const Dims stride = a_.dims_or("window_strides", ones);
    const Dims lhs_dilation = a_.dims_or("lhs_dilation", ones);
    const Dims rhs_dilation = a_.dims_or("rhs_dilation", ones);
    const std::int64_t groups = a_.i64("feature_group_count");
    const std::int64_t batch_groups = a_.i64("batch_group_count");
    if (result_.size() == 0 || b_.type(lhs).size() == 0 || b_.type(rhs).size() == 0)
      return b_.splat(result_.dtype(), result_.dims(), 0);
    rhs = reverse(rhs, kernel_spatial, a_.dims_or("window_reversal", none));
    if (groups == 1 && batch_groups == 1 && !is_complex(result_.dtype()) &&
        b_.type(rhs).dims()[a_.i64("kernel_output_feature_dimension")] >= kLeastFeatures)
      return canonical(pad(lhs, in_, lhs_dilation), rhs);

    // x [features, batch, spatial…], w [outputs, inputs, spatial…].
    ValueId x = to_result_dtype(
        transpose(
            lhs, concat({a_.i64("input_feature_dimension"), a_.i64("input_batch_dimension")}, in_)),
        rhs);
    ValueId w = to_result_dtype(transpose(rhs, concat({a_.i64("kernel_output_feature_dimension"),
                                                       a_.i64("kernel_input_feature_dimension")},
                                                      kernel_spatial)),
                                lhs);
    Dims trailing;
    for (std::size_t d = 0; d < n; ++d) trailing.push_back(static_cast<std::int64_t>(d) + 2);
    x = pad(x, trailing, lhs_dilation);

    const Dims wd = b_.type(w).dims();
    Dims window, output;
    for (std::size_t d = 0; d < n; ++d) {
      window.push_back(wd[d + 2]);
      output.push_back(result_.dim(static_cast<int>(out_spatial[d])));
    }
    // [features, window…, batch, spatial…], one spatial dimension after the other.
    for (std::size_t d = 0; d < n; ++d)
      x = unfold(x, d, window[d], output[d], stride[d], rhs_dilation[d]);

    const std::int64_t taps = product(window), places = product(output);
    const std::int64_t features = b_.type(x).dim(0),
                       batch = b_.type(x).dim(static_cast<int>(n) + 1);
    const std::int64_t outputs = wd[0], inputs = wd[1];
    const std::int64_t g = groups * batch_groups;
    const std::int64_t group_batch = batch / batch_groups;
    if (batch_groups > 1) {
      // The group leads: [features · taps, groups, batch, places] -> [groups, …].
      x = reshape(x, {features * taps, batch_groups, group_batch * places});
      x = transpose(x, {1, 0, 2});
    } else {
      x = reshape(x, {groups, features / groups * taps, batch * places});
    }
    w = reshape(w, {g, outputs / g, inputs * taps});
    ValueId y = g == 1 ? product_of(reshape(w, {outputs, inputs * taps}),
                                    reshape(x, {features * taps, batch * places}), false)
                       : product_of(w, x, true);
    // [outputs, batch, spatial…] to the order of the result.
    y = reshape(y, concat({outputs, group_batch}, output));
    Dims order(n + 2, 0);
    order[a_.i64("output_feature_dimension")] = 0;
    order[a_.i64("output_batch_dimension")] = 1;
    for (std::size_t d = 0; d < n; ++d) order[out_spatial[d]] = static_cast<std::int64_t>(d) + 2;
    return transpose(y, order);
  }

 private:
  static std::int64_t product(const Dims& d) {
    return std::accumulate(d.begin(), d.end(), std::int64_t{1}, std::multiplies<>());
  }
  static Dims concat(std::initializer_list<std::int64_t> a, const Dims& b) {
    Dims out(a);
    for (std::int64_t v : b) out.push_back(v);
    return out;
  }
  ValueId reshape(ValueId v, const Dims& shape) {
    if (b_.type(v).dims() == shape) return v;
    return b_.one(o::kReshape, {v}, Attrs{{"shape", Attr(shape)}});
  }
  ValueId transpose(ValueId v, const Dims& order) {
    for (std::size_t i = 0; i < order.size(); ++i)
      if (order[i] != static_cast<std::int64_t>(i))
        return b_.one(o::kTranspose, {v}, Attrs{{"permutation", Attr(order)}});
    return v;
  }
  // Operands of two dtypes meet in the result's.
  ValueId to_result_dtype(ValueId v, ValueId other) {
    if (b_.type(v).dtype() == b_.type(other).dtype() || b_.type(v).dtype() == result_.dtype())
      return v;
    return b_.one(o::kConvert, {v}, Attrs{{"result_dtype", Attr(result_.dtype())}});
  }

  ValueId convert(ValueId v, DType to) {
    if (b_.type(v).dtype() == to) return v;
    return b_.one(o::kConvert, {v}, Attrs{{"result_dtype", Attr(to)}});
  }

  ValueId reverse(ValueId w, const Dims& spatial, const Dims& reversal) {
    Dims reversed;
    for (std::size_t d = 0; d < spatial.size(); ++d)
      if (reversal[d] != 0) reversed.push_back(spatial[d]);
    if (reversed.empty()) return w;
    return b_.one(o::kReverse, {w}, Attrs{{"dimensions", Attr(reversed)}});
  }

  ValueId pad(ValueId x, const Dims& spatial, const Dims& dilation) {
    const Attr* padding = a_.find("padding");
    const auto rank = static_cast<std::size_t>(b_.type(x).rank());
    Dims low(rank, 0), high(rank, 0), interior(rank, 0);
    bool any = false;
    for (std::size_t d = 0; d < spatial.size(); ++d) {
      const auto to = static_cast<std::size_t>(spatial[d]);
      if (padding) {
        const HostArray p = padding->get<HostArray>()->astype(DType::kI64);
        low[to] = p.as<std::int64_t>()[2 * d];
        high[to] = p.as<std::int64_t>()[2 * d + 1];
      }
      interior[to] = dilation[d] - 1;
      any = any || low[to] != 0 || high[to] != 0 || interior[to] != 0;
    }
    if (!any) return x;
    return b_.one(o::kPad, {x, b_.splat(b_.type(x).dtype(), {}, 0)},
                  Attrs{{"edge_padding_low", Attr(low)},
                        {"edge_padding_high", Attr(high)},
                        {"interior_padding", Attr(interior)}});
  }

  // Sums of narrow floats are taken in f32, of bool in i32, as products of matrices are.
  ValueId canonical(ValueId lhs, ValueId rhs) {
    const DType dtype = result_.dtype();
    const DType acc = is_bool(dtype)                              ? DType::kI32
                      : is_float(dtype) && dtype_bits(dtype) < 32 ? DType::kF32
                                                                  : dtype;
    Attrs attrs = a_;
    for (const char* name :
         {"padding", "lhs_dilation", "window_reversal", "precision_config", "result_dtype"})
      attrs.erase(name);
    const std::int64_t last = result_.rank() - 1, feature = a_.i64("output_feature_dimension");
    // Where dimension d of the result stands while the features are last.
    const auto moved = [&](std::int64_t d) { return d == feature ? last : d - (d > feature); };
    attrs.set("output_feature_dimension", Attr(last));
    attrs.set("output_batch_dimension", Attr(moved(a_.i64("output_batch_dimension"))));
    Dims out = a_.dims("output_spatial_dimensions"), order;
    for (std::int64_t& d : out) d = moved(d);
    attrs.set("output_spatial_dimensions", Attr(out));
    for (std::int64_t d = 0; d <= last; ++d) order.push_back(moved(d));
    ValueId y = b_.one(o::kConvolution, {convert(lhs, acc), convert(rhs, acc)}, std::move(attrs));
    y = transpose(y, order);
    if (is_bool(dtype))
      return b_.one(o::kCompare, {y, b_.splat_like(y, 0)},
                    Attrs{{"comparison_direction", Attr(ir::EnumAttr("NE"))}});
    return convert(y, dtype);
  }

  ValueId slice(ValueId v, std::size_t axis, std::int64_t start, std::int64_t count,
                std::int64_t stride) {
    const Dims dims = b_.type(v).dims();
    Dims from(dims.size(), 0), to = dims, step(dims.size(), 1);
    from[axis] = start;
    to[axis] = start + (count - 1) * stride + 1;
    step[axis] = stride;
    return b_.one(
        o::kSlice, {v},
        Attrs{{"start_indices", Attr(from)}, {"limit_indices", Attr(to)}, {"strides", Attr(step)}});
  }

  // x [f, w0 … w(d-1), batch, o0 … o(d-1), s_d, …] -> [f, w0 … w_d, batch, o0 … o_d, …]:
  // element (w, o) of the new dimensions is element w · dilation + o · stride of s_d.
  ValueId unfold(ValueId x, std::size_t d, std::int64_t window, std::int64_t output,
                 std::int64_t stride, std::int64_t dilation) {
    const std::size_t window_axis = 1 + d;  // where w_d goes
    const std::size_t axis = 2 + 2 * d;     // of s_d; behind the new one it is one further
    if (window == 1) {
      const ValueId s = slice(x, axis, 0, output, stride);
      return reshape(s, with(b_.type(s).dims(), window_axis, 1));
    }
    if (window <= output ? window <= kMaxSlices : output <= kMaxSlices) {
      std::vector<ValueId> parts;
      if (window <= output) {
        for (std::int64_t k = 0; k < window; ++k) {
          const ValueId s = slice(x, axis, k * dilation, output, stride);
          parts.push_back(reshape(s, with(b_.type(s).dims(), window_axis, 1)));
        }
        return concatenate(parts, window_axis);
      }
      for (std::int64_t k = 0; k < output; ++k) {
        const ValueId s = slice(x, axis, k * stride, window, dilation);
        parts.push_back(reshape(s, with(b_.type(s).dims(), axis, 1)));
      }
      // […, o_d, w_d, …]
      const ValueId joined = parts.size() == 1 ? parts[0] : concatenate(parts, axis);
      return move_axis(joined, axis + 1, window_axis);
    }
    // [w_d, o_d, rest…]
    const Dims dims = b_.type(x).dims();
    Dims sizes = dims, offset;
    sizes[axis] = 1;
    for (std::size_t i = 0; i + 1 < dims.size(); ++i)
      offset.push_back(static_cast<std::int64_t>(i) + 2);
    const Dims grid = {window, output};
    const auto scaled_iota = [&](std::int64_t dim, std::int64_t factor) {
      const ValueId i = b_.one(o::kIota, {},
                               Attrs{{"iota_dimension", Attr(dim)},
                                     {"shape", Attr(grid)},
                                     {"result_dtype", Attr(DType::kI64)}});
      return b_.one(o::kMultiply, {i, b_.splat(DType::kI64, grid, static_cast<double>(factor))});
    };
    const ValueId index = b_.one(o::kAdd, {scaled_iota(0, dilation), scaled_iota(1, stride)});
    const ValueId gathered =
        b_.one(o::kGather, {x, index},
               Attrs{{"offset_dims", Attr(offset)},
                     {"collapsed_slice_dims", Attr(Dims{static_cast<std::int64_t>(axis)})},
                     {"start_index_map", Attr(Dims{static_cast<std::int64_t>(axis)})},
                     {"index_vector_dim", Attr(2)},
                     {"slice_sizes", Attr(sizes)}});
    // Behind the first move the order is [o_d, f, w0 … w_d, rest…].
    return move_axis(move_axis(gathered, 0, window_axis + 1), 0, axis + 1);
  }

  ValueId concatenate(const std::vector<ValueId>& parts, std::size_t axis) {
    return b_.one(o::kConcatenate, std::span<const ValueId>(parts),
                  Attrs{{"dimension", Attr(static_cast<std::int64_t>(axis))}});
  }

  // Takes dimension `from` out and puts it in so that it stands at `to`.
  ValueId move_axis(ValueId v, std::size_t from, std::size_t to) {
    Dims order;
    for (int i = 0; i < b_.type(v).rank(); ++i)
      if (static_cast<std::size_t>(i) != from) order.push_back(i);
    order.insert(to, static_cast<std::int64_t>(from));
    return transpose(v, order);
  }

  ValueId product_of(ValueId l, ValueId r, bool batched) {
    const std::int64_t first = batched ? 1 : 0;
    Attrs attrs{{"lhs_contracting_dimensions", Attr(Dims{first + 1})},
                {"rhs_contracting_dimensions", Attr(Dims{first})},
                {"result_dtype", Attr(result_.dtype())}};
    if (batched) {
      attrs.set("lhs_batching_dimensions", Attr(Dims{0}));
      attrs.set("rhs_batching_dimensions", Attr(Dims{0}));
    }
    return b_.one(o::kDotGeneral, {l, r}, std::move(attrs));
  }

  Builder& b_;
  const Attrs& a_;
  const Type& result_;
  Dims in_;  // spatial dimensions of the input
};

}  // namespace

ir::GraphPtr expand_convolutions(const ir::GraphPtr& graph) {
  bool any = false;
  for (const Op& op : graph->ops) any = any || op.def == &o::kConvolution;
  if (!any) return graph;
  Rewriter rewriter(*graph);
  Builder& b = rewriter.builder();
  for (const Op& op : graph->ops) {
    if (op.def != &o::kConvolution) {
      rewriter.copy(op);
      continue;
    }
    b.set_location(op.loc);
    const Type result = graph->type(op.results[0]);
    const ValueId y =
        Convolution(b, op, result).expand(rewriter[op.operands[0]], rewriter[op.operands[1]]);
    rewriter.set(op.results[0], y);
  }
  return rewriter.finish();
}

}  // namespace xylem::compiler
