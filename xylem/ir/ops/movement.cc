#include "xylem/ir/ops/movement.h"

#include <fmt/format.h>

#include <cstring>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/internal/strided.h"

namespace xylem::ir::ops {
namespace {

using Kind = DimMap::FactorKind;

// constant ---------------------------------------------------------------------------------------

std::vector<Type> constant_shape_rule(const OpCall& call) {
  const HostArray& v = call.attrs.array("value");
  if (!v.defined())
    fail(call, "c1", "the value must be an array", "it is undefined", "Give the array");
  return {Type::tensor(v.dtype(), v.dims())};
}

std::vector<HostArray> constant_eval(const EvalCall& call) {
  return {call.op.attrs.array("value").to_contiguous()};
}

DimMap parallel_result_dims(const OpCall&, std::span<const Type> results) {
  DimMap m;
  m.results.push_back(add_factors(m, results[0].dims(), Kind::kParallel));
  return m;
}

// iota -------------------------------------------------------------------------------------------

std::vector<Type> iota_shape_rule(const OpCall& call) {
  const Dims& shape = shape_attr(call);
  check_in_range(call, "c1", "iota_dimension", Dims{call.attrs.i64("iota_dimension")},
                 shape.ssize());
  DType dtype = *call.attrs.at("result_dtype").get<DType>();
  if (!in_elements(dtype, kElNumber))
    fail(call, "o1", "the result must hold numbers",
         fmt::format("result_dtype is {}", dtype_name(dtype)), "Use an integer, float or complex");
  return {Type::tensor(dtype, shape)};
}

std::vector<HostArray> iota_eval(const EvalCall& call) {
  const Type& t = call.result_types[0];
  auto axis = static_cast<int>(call.op.attrs.i64("iota_dimension"));
  std::int64_t n = t.dim(axis);
  HostArray line(t.dtype(), {n});
  for (std::int64_t i = 0; i < n; ++i) store(line, i, 1, &i);
  Dims strides(t.dims().size(), 0);
  strides[axis] = dtype_bytes(t.dtype());
  return {strided_view(line, 0, t.dims(), strides)};
}

DimMap iota_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m = parallel_result_dims(call, results);
  // A part of this dimension would have to know where it starts.
  m.factors[static_cast<std::size_t>(call.attrs.i64("iota_dimension"))].kind = Kind::kOpaque;
  return m;
}

// broadcast_in_dim -------------------------------------------------------------------------------

std::vector<Type> broadcast_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Dims& shape = shape_attr(call);
  const Dims& to = call.attrs.dims("broadcast_dimensions");
  check_size(call, "c2", "broadcast_dimensions", to, x.rank(), "operand dimension");
  check_in_range(call, "c3", "broadcast_dimensions", to, shape.ssize());
  check_unique(call, "c4", "broadcast_dimensions", to);
  for (int d = 0; d < x.rank(); ++d)
    if (x.dim(d) != 1 && !size_fits(x.dim(d), shape[to[d]]))
      fail(call, "c5",
           fmt::format("operand dimension {} must have size 1 or that of result dimension {}", d,
                       to[d]),
           fmt::format("the operand is {}, the result shape {}", x.to_string(), list(shape)),
           "Change the shape or the dimension it goes to");
  return {x.with_dims(shape)};
}

std::vector<HostArray> broadcast_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  const Dims& shape = call.result_types[0].dims();
  const Dims& to = call.op.attrs.dims("broadcast_dimensions");
  Dims strides(shape.size(), 0);
  for (int d = 0; d < x.rank(); ++d)
    if (x.dims()[d] != 1) strides[to[d]] = x.byte_strides()[d];
  return {strided_view(x, 0, shape, strides)};
}

DimMap broadcast_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m = parallel_result_dims(call, results);
  const Type& x = call.operands[0];
  const Dims& to = call.attrs.dims("broadcast_dimensions");
  Dims operand;
  for (int d = 0; d < x.rank(); ++d)
    operand.push_back(x.dim(d) == results[0].dim(static_cast<int>(to[d])) ? to[d] : -1);
  m.operands.push_back(operand);
  return m;
}

// reshape ----------------------------------------------------------------------------------------

std::vector<Type> reshape_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  Type result = x.with_dims(shape_attr(call));
  if (x.is_static() && result.is_static() && x.size() != result.size())
    fail(call, "c2",
         fmt::format("the result must have as many elements as the operand ({})", x.size()),
         fmt::format("{} to {} with {}", x.to_string(), result.to_string(), result.size()),
         "Give a shape with the same product");
  return {result};
}

std::vector<HostArray> reshape_eval(const EvalCall& call) {
  return {call.operands[0].reshape(call.result_types[0].dims())};
}

// Dimensions that stand alone on both sides go through; those that are split or joined are opaque.
DimMap reshape_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m;
  const Dims& a = call.operands[0].dims();
  const Dims& b = results[0].dims();
  Dims from, to;
  std::size_t i = 0, j = 0;
  bool known = call.operands[0].is_static() && results[0].is_static() && results[0].size() > 0;
  auto opaque = [&](Dims& side, std::int64_t size) {
    side.push_back(static_cast<std::int64_t>(m.factors.size()));
    m.factors.push_back({Kind::kOpaque, size});
  };
  while (known && (i < a.size() || j < b.size())) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      from.push_back(static_cast<std::int64_t>(m.factors.size()));
      to.push_back(static_cast<std::int64_t>(m.factors.size()));
      m.factors.push_back({Kind::kParallel, a[i]});
      ++i, ++j;
    } else if (i < a.size() && a[i] == 1) {
      from.push_back(-1), ++i;
    } else if (j < b.size() && b[j] == 1) {
      to.push_back(-1), ++j;
    } else {
      std::int64_t p = a[i], q = b[j];
      opaque(from, a[i++]);
      opaque(to, b[j++]);
      while (p != q) {
        if (p < q) {
          p *= a[i];
          opaque(from, a[i++]);
        } else {
          q *= b[j];
          opaque(to, b[j++]);
        }
      }
    }
  }
  while (from.size() < a.size()) opaque(from, a[from.size()]);
  while (to.size() < b.size()) opaque(to, b[to.size()]);
  m.operands.push_back(from);
  m.results.push_back(to);
  return m;
}

// transpose --------------------------------------------------------------------------------------

std::vector<Type> transpose_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Dims& p = call.attrs.dims("permutation");
  check_size(call, "c2", "permutation", p, x.rank(), "operand dimension");
  check_in_range(call, "c2", "permutation", p, x.rank());
  check_unique(call, "c2", "permutation", p);
  Dims shape;
  for (std::int64_t d : p) shape.push_back(x.dims()[d]);
  return {x.with_dims(shape)};
}

std::vector<HostArray> transpose_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  Dims strides;
  for (std::int64_t d : call.op.attrs.dims("permutation")) strides.push_back(x.byte_strides()[d]);
  return {strided_view(x, 0, call.result_types[0].dims(), strides)};
}

DimMap transpose_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  m.operands.push_back(add_factors(m, call.operands[0].dims(), Kind::kParallel));
  m.results.push_back(call.attrs.dims("permutation"));
  return m;
}

// reverse ----------------------------------------------------------------------------------------

std::vector<Type> reverse_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Dims& dims = call.attrs.dims("dimensions");
  check_unique(call, "c2", "dimensions", dims);
  check_in_range(call, "c3", "dimensions", dims, x.rank());
  return {x};
}

std::vector<HostArray> reverse_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  Dims strides = x.byte_strides();
  std::int64_t offset = 0;
  for (std::int64_t d : call.op.attrs.dims("dimensions")) {
    offset += (x.dims()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return {strided_view(x, offset, x.dims(), strides)};
}

DimMap reverse_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  m.operands.push_back(add_factors(m, call.operands[0].dims(), Kind::kParallel));
  m.results = m.operands;
  for (std::int64_t d : call.attrs.dims("dimensions"))
    m.factors[static_cast<std::size_t>(d)].kind = Kind::kOpaque;
  return m;
}

// concatenate ------------------------------------------------------------------------------------

std::vector<Type> concatenate_shape_rule(const OpCall& call) {
  if (call.operands.empty())
    fail(call, "c3", "at least one operand is needed", "none is given", "Pass the parts");
  Type out = tensor_operand(call, 0);
  std::int64_t axis = call.attrs.i64("dimension");
  check_in_range(call, "c4", "dimension", Dims{axis}, out.rank());
  __int128 size = 0;
  bool dynamic = false;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Type& t = tensor_operand(call, static_cast<int>(i), kElAny, "i1");
    if (t.dtype() != out.dtype())
      fail(call, "c1", "operands must have one dtype",
           differ("operand 0", out, fmt::format("operand {}", i), t), "Convert one of them");
    Dims a = out.dims(), b = t.dims();
    bool same_rank = a.size() == b.size();
    if (same_rank) {
      dynamic = dynamic || b[axis] == kDynamic;
      size += b[axis] == kDynamic ? 0 : b[axis];
      a[axis] = b[axis] = 0;
    }
    if (!same_rank || !dims_fit(a, b))
      fail(call, "c2",
           fmt::format("operands must agree in every dimension but the concatenated one (axis {})",
                       axis),
           differ("operand 0", tensor_operand(call, 0), fmt::format("operand {}", i), t),
           fmt::format("Pad, slice or reshape operand {}", i));
    Dims shape = refine(a, b);
    shape[axis] = out.dim(static_cast<int>(axis));
    out = out.with_dims(shape);
  }
  Dims shape = out.dims();
  shape[axis] = dynamic ? kDynamic : result_size(call, "c6", size);
  return {out.with_dims(shape)};
}

std::vector<HostArray> concatenate_eval(const EvalCall& call) {
  const Type& t = call.result_types[0];
  HostArray out(t.dtype(), t.dims());
  std::int64_t stride = out.byte_strides()[call.op.attrs.i64("dimension")];
  std::int64_t at = 0;
  for (const HostArray& x : call.operands) {
    write_strided(out, at * stride, out.byte_strides(), x);
    at += x.dims()[call.op.attrs.i64("dimension")];
  }
  return {std::move(out)};
}

DimMap concatenate_dims(const OpCall& call, std::span<const Type> results) {
  DimMap m = parallel_result_dims(call, results);
  std::int64_t axis = call.attrs.i64("dimension");
  m.factors[static_cast<std::size_t>(axis)].kind = Kind::kOpaque;
  for (const Type& t : call.operands) {
    Dims d = m.results[0];
    d[axis] = static_cast<std::int64_t>(m.factors.size());
    m.factors.push_back({Kind::kOpaque, t.dims()[axis]});
    m.operands.push_back(d);
  }
  return m;
}

// One operand; dimensions that come through whole are parallel, those that are cut are opaque.
DimMap cut_dims(const Type& x, const Type& result, const Dims& whole) {
  DimMap m;
  Dims from, to;
  for (int d = 0; d < x.rank(); ++d) {
    from.push_back(static_cast<std::int64_t>(m.factors.size()));
    m.factors.push_back({whole[d] ? Kind::kParallel : Kind::kOpaque, x.dim(d)});
    if (!whole[d]) m.factors.push_back({Kind::kOpaque, result.dim(d)});
    to.push_back(static_cast<std::int64_t>(m.factors.size()) - 1);
  }
  m.operands.push_back(from);
  m.results.push_back(to);
  return m;
}

// slice ------------------------------------------------------------------------------------------

std::vector<Type> slice_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Dims& start = call.attrs.dims("start_indices");
  const Dims& limit = call.attrs.dims("limit_indices");
  const Dims& strides = call.attrs.dims("strides");
  check_size(call, "c2", "start_indices", start, x.rank(), "operand dimension");
  check_size(call, "c2", "limit_indices", limit, x.rank(), "operand dimension");
  check_size(call, "c2", "strides", strides, x.rank(), "operand dimension");
  Dims shape;
  for (int d = 0; d < x.rank(); ++d) {
    bool inside = x.dim(d) == kDynamic || limit[d] <= x.dim(d);
    if (start[d] < 0 || start[d] > limit[d] || !inside)
      fail(call, "c3", "0 <= start <= limit <= size must hold in every dimension",
           fmt::format("start {}, limit {} in dimension {} of {}", start[d], limit[d], d,
                       x.to_string()),
           "Cut inside the operand");
    if (strides[d] <= 0)
      fail(call, "c4", "strides must be positive", fmt::format("strides = {}", list(strides)),
           "Reverse first for a negative step");
    shape.push_back(limit[d] == start[d] ? 0 : (limit[d] - start[d] - 1) / strides[d] + 1);
  }
  return {x.with_dims(shape)};
}

std::vector<HostArray> slice_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  const Dims& start = call.op.attrs.dims("start_indices");
  const Dims& step = call.op.attrs.dims("strides");
  const Dims& shape = call.result_types[0].dims();
  Dims strides;
  std::int64_t offset = 0;
  for (int d = 0; d < x.rank(); ++d) {
    offset += start[d] * x.byte_strides()[d];
    strides.push_back(shape[d] > 1 ? x.byte_strides()[d] * step[d] : x.byte_strides()[d]);
  }
  return {strided_view(x, offset, shape, strides)};
}

DimMap slice_dims(const OpCall& call, std::span<const Type> results) {
  const Type& x = call.operands[0];
  Dims whole;
  for (int d = 0; d < x.rank(); ++d) whole.push_back(x.dim(d) == results[0].dim(d));
  return cut_dims(x, results[0], whole);
}

// pad --------------------------------------------------------------------------------------------

std::vector<Type> pad_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0);
  const Type& value = tensor_operand(call, 1);
  if (value.rank() != 0)
    fail(call, "i2", "the padding value must be a scalar", "it is " + value.to_string(),
         "Pass a scalar");
  if (value.dtype() != x.dtype())
    fail(call, "c1", "operand and padding value must have one dtype",
         differ("the operand", x, "the padding value", value), "Convert the padding value");
  const Dims& low = call.attrs.dims("edge_padding_low");
  const Dims& high = call.attrs.dims("edge_padding_high");
  const Dims& interior = call.attrs.dims("interior_padding");
  check_size(call, "c2", "edge_padding_low", low, x.rank(), "operand dimension");
  check_size(call, "c2", "edge_padding_high", high, x.rank(), "operand dimension");
  check_size(call, "c2", "interior_padding", interior, x.rank(), "operand dimension");
  Dims shape;
  for (int d = 0; d < x.rank(); ++d) {
    if (interior[d] < 0)
      fail(call, "c3", "interior_padding must not be negative",
           fmt::format("interior_padding = {}", list(interior)), "Use a strided slice to thin out");
    constexpr std::int64_t kLimit = std::int64_t{1} << 61;  // sums of two stay in 63 bits
    bool small = -kLimit <= low[d] && low[d] <= kLimit && -kLimit <= high[d] && high[d] <= kLimit &&
                 interior[d] <= kLimit;
    if (!small)
      fail(call, "c4", "paddings must be at most 2^61",
           fmt::format("dimension {}: low {}, high {}, interior {}", d, low[d], high[d],
                       interior[d]),
           "Pad by less");
    if (x.dim(d) == kDynamic) {
      shape.push_back(kDynamic);
      continue;
    }
    __int128 n = x.dim(d);
    n += static_cast<__int128>(low[d]) + high[d];
    n += static_cast<__int128>(std::max<std::int64_t>(x.dim(d) - 1, 0)) * interior[d];
    shape.push_back(result_size(call, "c4", n));
  }
  return {x.with_dims(shape)};
}

std::vector<HostArray> pad_eval(const EvalCall& call) {
  HostArray x = call.operands[0];
  const Type& t = call.result_types[0];
  const Dims& low = call.op.attrs.dims("edge_padding_low");
  const Dims& interior = call.op.attrs.dims("interior_padding");
  HostArray out = strided_view(call.operands[1], 0, t.dims(), Dims(t.dims().size(), 0)).clone();
  // The part of the operand that falls inside the result.
  Dims kept, from, to;
  std::int64_t read = 0, write = 0;
  for (int d = 0; d < x.rank(); ++d) {
    std::int64_t step = interior[d] + 1;
    std::int64_t first = low[d] >= 0 ? 0 : (-low[d] + step - 1) / step;
    std::int64_t last =
        (t.dim(d) - 1 - low[d]) / step;  // may round up below zero: then cut to none
    if (t.dim(d) - 1 - low[d] < 0) last = -1;
    last = std::min(last, x.dims()[d] - 1);
    kept.push_back(std::max<std::int64_t>(last - first + 1, 0));
    if (kept.back() == 0) return {std::move(out)};
    read += first * x.byte_strides()[d];
    write += (low[d] + first * step) * out.byte_strides()[d];
    from.push_back(x.byte_strides()[d]);
    to.push_back(out.byte_strides()[d] * step);
  }
  write_strided(out, write, to, strided_view(x, read, kept, from).to_contiguous());
  return {std::move(out)};
}

DimMap pad_dims(const OpCall& call, std::span<const Type> results) {
  const Type& x = call.operands[0];
  Dims whole;
  for (int d = 0; d < x.rank(); ++d)
    whole.push_back(call.attrs.dims("edge_padding_low")[d] == 0 &&
                    call.attrs.dims("edge_padding_high")[d] == 0 &&
                    call.attrs.dims("interior_padding")[d] == 0);
  DimMap m = cut_dims(x, results[0], whole);
  m.operands.push_back({});
  return m;
}

constexpr std::uint32_t kMoves = kStructural | kExact;

}  // namespace

const OpDef kConstant = {.name = "stablehlo.constant",
                         .traits = ir::kConstant | kExact,
                         .attrs = {{"value", AttrKind::kArray}},
                         .shape = constant_shape_rule,
                         .eval = constant_eval,
                         .dims = parallel_result_dims,
                         .labels = "constant_c1",
                         .quant = QuantSupport::kPerAxis,
                         .result_labels = "c1"};
const OpDef kIota = {.name = "stablehlo.iota",
                     .traits = kExact,
                     .attrs = {{"iota_dimension", AttrKind::kInt},
                               {"shape", AttrKind::kDims},
                               {"result_dtype", AttrKind::kDType}},
                     .shape = iota_shape_rule,
                     .eval = iota_eval,
                     .dims = iota_dims,
                     .labels = "iota_c1 iota_o1 iota_shape",
                     .result_labels = "o1"};
const OpDef kBroadcastInDim = {
    .name = "stablehlo.broadcast_in_dim",
    .traits = kMoves | kLinear,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"broadcast_dimensions", AttrKind::kDims}, {"shape", AttrKind::kDims}},
    .shape = broadcast_shape_rule,
    .eval = broadcast_eval,
    .dims = broadcast_dims,
    .labels =
        "broadcast_in_dim_i1 broadcast_in_dim_c2 broadcast_in_dim_c3 broadcast_in_dim_c4 "
        "broadcast_in_dim_c5 broadcast_in_dim_shape",
    .quant = QuantSupport::kPerAxis,
    .result_labels = "c1 c5"};
const OpDef kReshape = {.name = "stablehlo.reshape",
                        .traits = kMoves | kLinear,
                        .min_operands = 1,
                        .max_operands = 1,
                        .attrs = {{"shape", AttrKind::kDims}},
                        .shape = reshape_shape_rule,
                        .eval = reshape_eval,
                        .dims = reshape_dims,
                        .labels = "reshape_i1 reshape_c2 reshape_shape",
                        .quant = QuantSupport::kPerAxis,
                        .result_labels = "c1 c2"};
const OpDef kTranspose = {.name = "stablehlo.transpose",
                          .traits = kMoves | kLinear,
                          .min_operands = 1,
                          .max_operands = 1,
                          .attrs = {{"permutation", AttrKind::kDims}},
                          .shape = transpose_shape_rule,
                          .eval = transpose_eval,
                          .dims = transpose_dims,
                          .labels = "transpose_i1 transpose_c2",
                          .quant = QuantSupport::kPerAxis,
                          .result_labels = "c1 c3"};
const OpDef kReverse = {.name = "stablehlo.reverse",
                        .traits = kMoves | kLinear,
                        .min_operands = 1,
                        .max_operands = 1,
                        .attrs = {{"dimensions", AttrKind::kDims}},
                        .shape = reverse_shape_rule,
                        .eval = reverse_eval,
                        .dims = reverse_dims,
                        .labels = "reverse_i1 reverse_c2 reverse_c3",
                        .quant = QuantSupport::kPerTensor,
                        .result_labels = "c1"};
const OpDef kConcatenate = {
    .name = "stablehlo.concatenate",
    .traits = kMoves | kLinear,
    .max_operands = -1,
    .attrs = {{"dimension", AttrKind::kInt}},
    .shape = concatenate_shape_rule,
    .eval = concatenate_eval,
    .dims = concatenate_dims,
    .labels =
        "concatenate_i1 concatenate_c1 concatenate_c2 concatenate_c3 concatenate_c4 "
        "concatenate_c6",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c5 c6"};
const OpDef kSlice = {.name = "stablehlo.slice",
                      .traits = kMoves | kLinear,
                      .min_operands = 1,
                      .max_operands = 1,
                      .attrs = {{"start_indices", AttrKind::kDims},
                                {"limit_indices", AttrKind::kDims},
                                {"strides", AttrKind::kDims}},
                      .shape = slice_shape_rule,
                      .eval = slice_eval,
                      .dims = slice_dims,
                      .labels = "slice_i1 slice_c2 slice_c3 slice_c4",
                      .quant = QuantSupport::kPerTensor,
                      .result_labels = "c1 c5"};
const OpDef kPad = {.name = "stablehlo.pad",
                    .traits = kMoves | kLinear,
                    .min_operands = 2,
                    .max_operands = 2,
                    .attrs = {{"edge_padding_low", AttrKind::kDims},
                              {"edge_padding_high", AttrKind::kDims},
                              {"interior_padding", AttrKind::kDims}},
                    .shape = pad_shape_rule,
                    .eval = pad_eval,
                    .dims = pad_dims,
                    .labels = "pad_i1 pad_i2 pad_c1 pad_c2 pad_c3 pad_c4",
                    .quant = QuantSupport::kPerTensor,
                    .result_labels = "c1 c4"};

Family movement_family() {
  static const OpDef* const kOps[] = {
      &kConstant, &kIota,        &kBroadcastInDim, &kReshape,      &kTranspose,
      &kReverse,  &kConcatenate, &kSlice,          &kDynamicSlice, &kDynamicUpdateSlice,
      &kPad};
  return kOps;
}

}  // namespace xylem::ir::ops
