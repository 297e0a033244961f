#include "xylem/ir/ops/convolution.h"

#include <fmt/format.h>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/call_util.h"
#include "xylem/ir/ops/internal/constant_rules.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/scalar_ops.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/quant.h"

namespace xylem::ir::ops {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 61;

// Dimension numbers and windows of a convolution, with defaults in place of absent attributes.
struct Conv {
  std::int64_t input_batch, input_feature, kernel_in, kernel_out, output_batch, output_feature;
  Dims input, kernel, output;  // spatial dimensions
  Dims stride, lhs_dilation, rhs_dilation, reversal, low, high;
  std::int64_t feature_groups, batch_groups;

  Conv(const Attrs& a, std::size_t n)
      : input_batch(a.i64_or("input_batch_dimension", 0)),
        input_feature(a.i64_or("input_feature_dimension", 0)),
        kernel_in(a.i64_or("kernel_input_feature_dimension", 0)),
        kernel_out(a.i64_or("kernel_output_feature_dimension", 0)),
        output_batch(a.i64_or("output_batch_dimension", 0)),
        output_feature(a.i64_or("output_feature_dimension", 0)),
        input(a.dims_or("input_spatial_dimensions", {})),
        kernel(a.dims_or("kernel_spatial_dimensions", {})),
        output(a.dims_or("output_spatial_dimensions", {})),
        stride(a.dims_or("window_strides", Dims(n, 1))),
        lhs_dilation(a.dims_or("lhs_dilation", Dims(n, 1))),
        rhs_dilation(a.dims_or("rhs_dilation", Dims(n, 1))),
        reversal(a.dims_or("window_reversal", Dims(n, 0))),
        low(n, 0),
        high(n, 0),
        feature_groups(a.i64_or("feature_group_count", 1)),
        batch_groups(a.i64_or("batch_group_count", 1)) {
    if (const Attr* padding = a.find("padding"))
      if (const HostArray* p = padding->get<HostArray>()) add_padding(*p);
  }

  void add_padding(const HostArray& given) {
    HostArray p = given.to_contiguous();
    for (std::size_t d = 0; d < low.size() && p.size() == static_cast<std::int64_t>(2 * low.size());
         ++d) {
      low[d] += integer_scalar(p, static_cast<std::int64_t>(2 * d));
      high[d] += integer_scalar(p, static_cast<std::int64_t>(2 * d + 1));
    }
  }
};

Dims with_ends(std::int64_t first, const Dims& middle, std::int64_t last) {
  Dims d{first};
  for (std::int64_t v : middle) d.push_back(v);
  d.push_back(last);
  return d;
}

// Size of a dimension with holes.
__int128 dilated(std::int64_t n, std::int64_t dilation) {
  return n == 0 ? 0 : static_cast<__int128>(n - 1) * dilation + 1;
}

std::vector<Type> conv_shape_rule(const OpCall& call) {
  bool dynamic = call.def.find_attr("result_types") != nullptr;
  const Type& lhs = tensor_operand(call, 0);
  const Type& rhs = tensor_operand(call, 1);
  if (lhs.rank() != rhs.rank() || lhs.rank() < 2)
    fail(call, "c1", "lhs and rhs must have one rank of at least 2",
         fmt::format("lhs is {}, rhs is {}", lhs.to_string(), rhs.to_string()),
         "Reshape one of them");
  std::int64_t n = lhs.rank() - 2;
  auto window = [&](std::string_view name, std::string_view count, std::string_view positive) {
    const Attr* a = call.attrs.find(name);
    if (!a) return;
    const Dims& v = *a->get<Dims>();
    check_size(call, count, name, v, n, "spatial dimension");
    for (std::int64_t e : v)
      if (!positive.empty() && (e <= 0 || e > kLimit))
        fail(call, positive, fmt::format("{} must be positive", name),
             fmt::format("{} = {}", name, list(v)), "Use 1 for dimensions that are not changed");
  };
  window("window_strides", "c2", "c3");
  window("lhs_dilation", "c5", "c6");
  window("rhs_dilation", "c7", "c8");
  window("window_reversal", "c9", "");
  if (const Attr* padding = call.attrs.find("padding")) {
    const HostArray& p = *padding->get<HostArray>();
    if (!is_integer(p.dtype()) || !(p.dims() == Dims{n, 2}))
      fail(call, "c4", fmt::format("padding must be i64[{},2]", n), "it is " + p.type_string(),
           "Give (low, high) for each spatial dimension");
  }
  if (dynamic) {
    const Type& p = tensor_operand(call, 2, kElInt);
    if (p.rank() != 2 || !size_fits(p.dim(0), n) || !size_fits(p.dim(1), 2))
      fail(call, "c4", fmt::format("padding must be a tensor of [{},2]", n),
           "it is " + p.to_string(), "Give (low, high) for each spatial dimension");
  }
  Conv c(call.attrs, static_cast<std::size_t>(n));
  check_size(call, "c12", "input_spatial_dimensions", c.input, n, "spatial dimension");
  check_size(call, "c17", "kernel_spatial_dimensions", c.kernel, n, "spatial dimension");
  check_size(call, "c19", "output_spatial_dimensions", c.output, n, "spatial dimension");
  auto numbers = [&](std::string_view what, std::string_view name, const Dims& d) {
    check_in_range(call, what, name, d, lhs.rank());
    check_unique(call, what, name, d);
  };
  numbers("c13", "dimensions of lhs", with_ends(c.input_batch, c.input, c.input_feature));
  numbers("c18", "dimensions of rhs", with_ends(c.kernel_in, c.kernel, c.kernel_out));
  numbers("c20", "dimensions of the result", with_ends(c.output_batch, c.output, c.output_feature));
  if (c.feature_groups <= 0)
    fail(call, "c21", "feature_group_count must be positive",
         fmt::format("it is {}", c.feature_groups), "Use 1 for no groups");
  if (c.batch_groups <= 0)
    fail(call, "c22", "batch_group_count must be positive", fmt::format("it is {}", c.batch_groups),
         "Use 1 for no groups");
  if (c.feature_groups > 1 && c.batch_groups > 1)
    fail(call, "c23", "only one of feature_group_count and batch_group_count may be over 1",
         fmt::format("they are {} and {}", c.feature_groups, c.batch_groups),
         "Split the convolution");
  auto divisible = [&](std::string_view what, const Type& t, std::int64_t dim, std::int64_t by,
                       std::string_view name, std::string_view group) {
    if (t.dims()[dim] != kDynamic && t.dims()[dim] % by != 0)
      fail(call, what, fmt::format("{} must be a multiple of {}", name, group),
           fmt::format("size {} of {}, {} = {}", t.dims()[dim], t.to_string(), group, by),
           "Pad it, or use other groups");
  };
  divisible("c10", lhs, c.input_batch, c.batch_groups, "the batch", "batch_group_count");
  divisible("c11", lhs, c.input_feature, c.feature_groups, "input features", "feature_group_count");
  std::int64_t features = lhs.dims()[c.input_feature];
  if (features != kDynamic && !size_fits(rhs.dims()[c.kernel_in], features / c.feature_groups))
    fail(call, "c14", "kernel input features must be input features / feature_group_count",
         fmt::format("{} of {} and {} of {} in {} groups", rhs.dims()[c.kernel_in], rhs.to_string(),
                     features, lhs.to_string(), c.feature_groups),
         "Change the kernel or the groups");
  divisible("c15", rhs, c.kernel_out, c.batch_groups, "kernel output features",
            "batch_group_count");
  divisible("c16", rhs, c.kernel_out, c.feature_groups, "kernel output features",
            "feature_group_count");
  if (const Attr* precision = call.attrs.find("precision_config");
      precision && precision->list()->size() > 2)
    fail(call, "c24", "precision_config must have one entry for each operand",
         fmt::format("it has {}", precision->list()->size()), "Give two entries");
  const Attr* result = call.attrs.find("result_dtype");
  DType dtype = result ? *result->get<DType>() : lhs.dtype();
  if (dynamic)
    if (std::vector<Type> types = written_results(call); types.size() == 1 && types[0].is_tensor())
      dtype = types[0].dtype();
  if (lhs.dtype() != rhs.dtype())
    fail(call, "c27", "operands must have one dtype", differ("lhs", lhs, "rhs", rhs),
         "Convert one of them");
  if (!in_elements(dtype, kElAny) ||
      (is_complex(lhs.dtype()) || is_complex(rhs.dtype())) != is_complex(dtype))
    fail(call, "c27", "the result dtype must be complex exactly when the operands are",
         fmt::format("{} and {} to {}", lhs.to_string(), rhs.to_string(), dtype_name(dtype)),
         "Choose another result_dtype");
  Dims shape(static_cast<std::size_t>(lhs.rank()), 0);
  std::int64_t batch = lhs.dims()[c.input_batch];
  shape[c.output_batch] = batch == kDynamic ? kDynamic : batch / c.batch_groups;
  shape[c.output_feature] = rhs.dims()[c.kernel_out];
  for (std::size_t d = 0; d < c.input.size(); ++d) {
    std::int64_t x = lhs.dims()[c.input[d]], k = rhs.dims()[c.kernel[d]];
    std::int64_t& size = shape[c.output[d]];
    size = kDynamic;
    if (dynamic || x == kDynamic || k == kDynamic) continue;
    if (c.low[d] < -kLimit || c.low[d] > kLimit || c.high[d] < -kLimit || c.high[d] > kLimit)
      fail(call, "c25", "paddings must be at most 2^61",
           fmt::format("({}, {})", c.low[d], c.high[d]), "Pad by less");
    __int128 padded = dilated(x, c.lhs_dilation[d]) + c.low[d] + c.high[d];
    __int128 kernel = dilated(k, c.rhs_dilation[d]);
    size = padded <= 0 || kernel > padded
               ? 0
               : result_size(call, "c25", (padded - kernel) / c.stride[d] + 1);
  }
  Type inferred = Type::tensor(dtype, shape);
  if (!dynamic) return {inferred};
  // Sizes and element type stand in the type that the op was written with.
  const AttrList* types = call.attrs.at("result_types").list();
  const Type* t = types && types->size() == 1 ? (*types)[0].get<Type>() : nullptr;
  if (!t || !t->is_tensor() || t->rank() != lhs.rank())
    fail(call, "c26", fmt::format("the result must be a tensor of rank {}", lhs.rank()),
         t ? "it is " + t->to_string() : "it is absent", "Give that type");
  if (!types_compatible(without_quant(*t), inferred))
    fail(call, t->dtype() == dtype ? "c25" : "c27", "the result must be " + inferred.to_string(),
         "it is " + t->to_string(), "Correct the result's type");
  return {*t};
}

// A: the type in which products are summed.
template <class A>
void convolve(const Conv& c, const HostArray& lhs, const HostArray& rhs, HostArray& out) {
  std::vector<A> x(static_cast<std::size_t>(lhs.size())), w(static_cast<std::size_t>(rhs.size()));
  load(lhs, 0, lhs.size(), x.data());
  load(rhs, 0, rhs.size(), w.data());
  std::vector<A> y(static_cast<std::size_t>(out.size()));
  Dims xs = row_major_strides(lhs.dims()), ws = row_major_strides(rhs.dims());
  std::size_t n = c.input.size();
  std::int64_t in_group = rhs.dims()[c.kernel_in];
  std::int64_t out_features = rhs.dims()[c.kernel_out];
  std::int64_t out_group = out_features / c.feature_groups;
  std::int64_t batch_group_out = out_features / c.batch_groups;
  std::int64_t batch = out.dims()[c.output_batch];
  Dims window;
  for (std::int64_t d : c.kernel) window.push_back(rhs.dims()[d]);
  std::vector<std::int64_t> at(out.dims().size(), 0), k(n);
  for (A& sum : y) {
    sum = A();
    std::int64_t f = at[static_cast<std::size_t>(c.output_feature)];
    std::int64_t b = at[static_cast<std::size_t>(c.output_batch)];
    // Output features are split over batch groups, and take their part of the batch.
    std::int64_t from_batch = b + (f / std::max<std::int64_t>(batch_group_out, 1)) * batch;
    if (c.batch_groups == 1) from_batch = b;
    std::int64_t first_feature =
        c.feature_groups == 1 ? 0 : f / std::max<std::int64_t>(out_group, 1) * in_group;
    std::fill(k.begin(), k.end(), 0);
    if (num_elements(window) > 0) do {
        std::int64_t xi = from_batch * xs[c.input_batch], wi = f * ws[c.kernel_out];
        bool inside = true;
        for (std::size_t d = 0; d < n && inside; ++d) {
          std::int64_t tap = c.reversal[d] ? window[d] - 1 - k[d] : k[d];
          std::int64_t p = at[static_cast<std::size_t>(c.output[d])] * c.stride[d] +
                           k[d] * c.rhs_dilation[d] - c.low[d];
          inside = p >= 0 && p % c.lhs_dilation[d] == 0 &&
                   p / c.lhs_dilation[d] < lhs.dims()[c.input[d]];
          xi += p / c.lhs_dilation[d] * xs[c.input[d]];
          wi += tap * ws[c.kernel[d]];
        }
        for (std::int64_t i = 0; inside && i < in_group; ++i)
          sum = Add()(
              sum, Multiply()(
                       x[static_cast<std::size_t>(xi + (first_feature + i) * xs[c.input_feature])],
                       w[static_cast<std::size_t>(wi + i * ws[c.kernel_in])]));
      } while (next_index(k, window));
    next_index(at, out.dims());
  }
  store(out, 0, out.size(), y.data());
}

std::vector<HostArray> conv_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& lhs = call.operands[0];
  const HostArray& rhs = call.operands[1];
  Conv c(call.op.attrs, lhs.dims().size() - 2);
  Type t = call.result_types[0];
  if (call.op.def == &kDynamicConv) {
    c.add_padding(call.operands[2]);
    Dims shape = t.dims();
    shape[c.output_batch] = lhs.dims()[c.input_batch] / c.batch_groups;
    shape[c.output_feature] = rhs.dims()[c.kernel_out];
    for (std::size_t d = 0; d < c.input.size(); ++d) {
      __int128 padded = dilated(lhs.dims()[c.input[d]], c.lhs_dilation[d]) + c.low[d] + c.high[d];
      __int128 kernel = dilated(rhs.dims()[c.kernel[d]], c.rhs_dilation[d]);
      shape[c.output[d]] = padded <= 0 || kernel > padded
                               ? 0
                               : static_cast<std::int64_t>((padded - kernel) / c.stride[d] + 1);
    }
    t = t.with_dims(shape);
  }
  HostArray out(t.dtype(), t.dims());
  // The types in which products are summed: as dot_general.
  bool wide = lhs.dtype() == DType::kF64 || rhs.dtype() == DType::kF64 ||
              lhs.dtype() == DType::kC128 || rhs.dtype() == DType::kC128;
  DType operand =
      dtype_info(lhs.dtype()).kind >= dtype_info(rhs.dtype()).kind ? lhs.dtype() : rhs.dtype();
  if (is_complex(operand) || is_float(operand) || is_float(t.dtype())) {
    DType sum = wide ? (is_complex(operand) ? DType::kC128 : DType::kF64) : t.dtype();
    if (is_complex(operand) && !is_complex(sum)) sum = DType::kC64;
    with_accumulator(sum, [&](auto a) { convolve<decltype(a)>(c, lhs, rhs, out); });
  } else if (is_bool(operand) && is_bool(t.dtype())) {
    convolve<std::uint64_t>(c, lhs, rhs, out);
  } else {
    convolve<std::int64_t>(c, lhs, rhs, out);
  }
  return {std::move(out)};
}

DimMap conv_dims(const OpCall& call, std::span<const Type> results) {
  using Kind = DimMap::FactorKind;
  const Type &lhs = call.operands[0], &rhs = call.operands[1];
  Conv c(call.attrs, static_cast<std::size_t>(lhs.rank() - 2));
  DimMap m;
  Dims l = add_factors(m, lhs.dims(), Kind::kOpaque), r = add_factors(m, rhs.dims(), Kind::kOpaque);
  Dims o = add_factors(m, results[0].dims(), Kind::kOpaque);
  auto kind = [&](std::int64_t factor, Kind k) {
    m.factors[static_cast<std::size_t>(factor)].kind = k;
  };
  if (c.batch_groups == 1) {
    o[c.output_batch] = l[c.input_batch];
    kind(l[c.input_batch], Kind::kParallel);
    if (c.feature_groups == 1) {
      o[c.output_feature] = r[c.kernel_out];
      kind(r[c.kernel_out], Kind::kParallel);
      r[c.kernel_in] = l[c.input_feature];
      kind(l[c.input_feature], Kind::kReduced);
    }
  }
  m.operands = {l, r};
  for (std::size_t i = 2; i < call.operands.size(); ++i)
    m.operands.push_back(add_factors(m, call.operands[i].dims(), Kind::kOpaque));
  m.results.push_back(o);
  return m;
}

constexpr std::string_view kLabels[] = {
    "convolution_i1 convolution_i2 convolution_c1 convolution_c2 convolution_c3 convolution_c4 "
    "convolution_c5 convolution_c6 convolution_c7 convolution_c8 convolution_c9 convolution_c10 "
    "convolution_c11 convolution_c12 convolution_c13 convolution_c14 convolution_c15 "
    "convolution_c16 convolution_c17 convolution_c18 convolution_c19 convolution_c20 "
    "convolution_c21 convolution_c22 convolution_c23 convolution_c24 convolution_c25 "
    "convolution_c27",
    "dynamic_conv_i1 dynamic_conv_i2 dynamic_conv_i3 dynamic_conv_c1 dynamic_conv_c2 "
    "dynamic_conv_c3 dynamic_conv_c4 dynamic_conv_c5 dynamic_conv_c6 dynamic_conv_c7 "
    "dynamic_conv_c8 dynamic_conv_c9 dynamic_conv_c10 dynamic_conv_c11 dynamic_conv_c12 "
    "dynamic_conv_c13 dynamic_conv_c14 dynamic_conv_c15 dynamic_conv_c16 dynamic_conv_c17 "
    "dynamic_conv_c18 dynamic_conv_c19 dynamic_conv_c20 dynamic_conv_c21 dynamic_conv_c22 "
    "dynamic_conv_c23 dynamic_conv_c24 dynamic_conv_c25 dynamic_conv_c26 dynamic_conv_c27"};

OpDef conv(std::string_view name, int operands, AttrDef last, std::string_view labels) {
  return {.name = name,
          .min_operands = operands,
          .max_operands = operands,
          .attrs = {{"window_strides", AttrKind::kDims, false},
                    {"padding", AttrKind::kArray, false},
                    {"lhs_dilation", AttrKind::kDims, false},
                    {"rhs_dilation", AttrKind::kDims, false},
                    {"window_reversal", AttrKind::kDims, false},
                    {"input_batch_dimension", AttrKind::kInt},
                    {"input_feature_dimension", AttrKind::kInt},
                    {"input_spatial_dimensions", AttrKind::kDims},
                    {"kernel_input_feature_dimension", AttrKind::kInt},
                    {"kernel_output_feature_dimension", AttrKind::kInt},
                    {"kernel_spatial_dimensions", AttrKind::kDims},
                    {"output_batch_dimension", AttrKind::kInt},
                    {"output_feature_dimension", AttrKind::kInt},
                    {"output_spatial_dimensions", AttrKind::kDims},
                    {"feature_group_count", AttrKind::kInt},
                    {"batch_group_count", AttrKind::kInt},
                    {"precision_config", AttrKind::kList, false},
                    last},
          .shape = conv_shape_rule,
          .eval = conv_eval,
          .dims = conv_dims,
          .labels = labels,
          .quant = QuantSupport::kPerAxis,
          .result_labels = "c27 c25"};
}

}  // namespace

const OpDef kConvolution =
    conv("stablehlo.convolution", 2, {"result_dtype", AttrKind::kDType, false}, kLabels[0]);
const OpDef kDynamicConv =
    conv("stablehlo.dynamic_conv", 3, {"result_types", AttrKind::kList}, kLabels[1]);

namespace {

void dynamic_conv_constants(const OpCall& call, std::span<const Type> results,
                            Constants constants) {
  if (!constants[2]) return;
  Attrs attrs = call.attrs;
  attrs.erase("result_types");
  attrs.set("padding", constants[2]->astype(DType::kI64));
  check_static_counterpart(call, results[0], kConvolution, 2, attrs, "c25");
}

}  // namespace

ConstantRuleOf dynamic_conv_constant_rule() { return {&kDynamicConv, dynamic_conv_constants}; }

Family convolution_family() {
  static const OpDef* const kOps[] = {&kConvolution, &kDynamicConv};
  return kOps;
}

}  // namespace xylem::ir::ops
