#include <fmt/format.h>

#include "xylem/ir/ops/internal/fold.h"
#include "xylem/ir/ops/internal/reduction_util.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir::ops {
namespace {

struct Windows {
  Dims size, stride, base_dilation, dilation, low, high;

  Windows(const Attrs& a, std::size_t rank)
      : size(a.dims("window_dimensions")),
        stride(a.dims_or("window_strides", Dims(rank, 1))),
        base_dilation(a.dims_or("base_dilations", Dims(rank, 1))),
        dilation(a.dims_or("window_dilations", Dims(rank, 1))),
        low(rank, 0),
        high(rank, 0) {
    const Attr* padding = a.find("padding");
    if (!padding) return;
    const HostArray p = padding->get<HostArray>()->to_contiguous();
    for (std::size_t d = 0; d < rank; ++d) {
      low[d] = integer_scalar(p, static_cast<std::int64_t>(2 * d));
      high[d] = integer_scalar(p, static_cast<std::int64_t>(2 * d + 1));
    }
  }
};

std::vector<Type> reduce_window_shape_rule(const OpCall& call) {
  std::size_t n = check_inputs_and_inits(call, {"c1", "c2", "c3"});
  const Type& x = call.operands[0];
  auto rank = static_cast<std::size_t>(x.rank());
  auto check = [&](std::string_view name, std::string_view count, std::string_view positive) {
    const Attr* a = call.attrs.find(name);
    if (!a) return;
    const Dims& v = *a->get<Dims>();
    check_size(call, count, name, v, x.rank(), "operand dimension");
    for (std::int64_t e : v)
      if (e <= 0 || e > (std::int64_t{1} << 61))
        fail(call, positive, fmt::format("{} must be positive", name),
             fmt::format("{} = {}", name, list(v)), "Use 1 for dimensions without a window");
  };
  check("window_dimensions", "c4", "c5");
  check("window_strides", "c6", "c7");
  check("base_dilations", "c8", "c9");
  check("window_dilations", "c10", "c11");
  if (const Attr* padding = call.attrs.find("padding")) {
    const HostArray& p = *padding->get<HostArray>();
    if (!is_integer(p.dtype()) || !(p.dims() == Dims{x.rank(), 2}))
      fail(call, "c12", fmt::format("padding must be i64[{},2]", rank), "it is " + p.type_string(),
           "Give (low, high) for each dimension");
  }
  Windows w(call.attrs, rank);
  Dims shape;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t size = x.dims()[d];
    if (size == kDynamic) {
      shape.push_back(kDynamic);
      continue;
    }
    __int128 padded = size == 0 ? 0 : static_cast<__int128>(size - 1) * w.base_dilation[d] + 1;
    padded += static_cast<__int128>(w.low[d]) + w.high[d];
    __int128 window = static_cast<__int128>(w.size[d] - 1) * w.dilation[d] + 1;
    if (window > (static_cast<__int128>(1) << 62))
      fail(call, "c15", "a dilated window must be at most 2^62 long", "it is longer",
           "Use a smaller window or dilation");
    bool none = padded <= 0 || window > padded;
    shape.push_back(none ? 0 : result_size(call, "c15", (padded - window) / w.stride[d] + 1));
  }
  std::vector<Type> results;
  for (DType t : check_reducer(call, n, "c13")) results.push_back(Type::tensor(t, shape));
  return results;
}

std::vector<HostArray> reduce_window_eval(const EvalCall& call) {
  const HostArray& x = call.operands[0];
  const Dims& shape = call.result_types[0].dims();
  Windows w(call.op.attrs, x.dims().size());
  Dims strides = row_major_strides(x.dims());
  return fold(call, false, [&](auto&& fn) {
    std::int64_t total = num_elements(shape);
    std::int64_t window = num_elements(w.size);
    std::vector<std::int64_t> at(shape.size(), 0), in(shape.size(), 0);
    for (std::int64_t o = 0; o < total; ++o, next_index(at, shape)) {
      for (std::int64_t k = 0; k < window; ++k, next_index(in, w.size)) {
        std::int64_t from = 0;
        bool inside = true;
        for (std::size_t d = 0; inside && d < shape.size(); ++d) {
          std::int64_t p = at[d] * w.stride[d] + in[d] * w.dilation[d] - w.low[d];
          inside = p >= 0 && p % w.base_dilation[d] == 0 && p / w.base_dilation[d] < x.dims()[d];
          from += p / w.base_dilation[d] * strides[d];
        }
        if (inside) fn(o, from);
      }
    }
  });
}

DimMap reduce_window_dims(const OpCall& call, std::span<const Type> results) {
  using Kind = DimMap::FactorKind;
  DimMap m;
  const Type& x = call.operands[0];
  Windows w(call.attrs, x.dims().size());
  Dims from = add_factors(m, x.dims(), Kind::kParallel), to = from;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (w.size[d] == 1 && w.stride[d] == 1 && w.base_dilation[d] == 1 && w.low[d] == 0 &&
        w.high[d] == 0)
      continue;
    m.factors[d].kind = Kind::kOpaque;
    to[d] = static_cast<std::int64_t>(m.factors.size());
    m.factors.push_back({Kind::kOpaque, results[0].dims()[d]});
  }
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    m.operands.push_back(
        i < results.size() ? from : add_factors(m, call.operands[i].dims(), Kind::kOpaque));
  m.results.assign(results.size(), to);
  return m;
}

}  // namespace

const OpDef kReduceWindow = {
    .name = "stablehlo.reduce_window",
    .min_operands = 2,
    .max_operands = -1,
    .num_regions = 1,
    .attrs = {{"window_dimensions", AttrKind::kDims},
              {"window_strides", AttrKind::kDims, false},
              {"base_dilations", AttrKind::kDims, false},
              {"window_dilations", AttrKind::kDims, false},
              {"padding", AttrKind::kArray, false},
              {"num_captures", AttrKind::kInt, false}},
    .shape = reduce_window_shape_rule,
    .eval = reduce_window_eval,
    .dims = reduce_window_dims,
    .labels =
        "reduce_window_i1 reduce_window_i2 reduce_window_c1 reduce_window_c2 reduce_window_c3 "
        "reduce_window_c4 reduce_window_c5 reduce_window_c6 reduce_window_c7 "
        "reduce_window_c8 reduce_window_c9 reduce_window_c10 reduce_window_c11 "
        "reduce_window_c12 reduce_window_c13 reduce_window_c15 reduce_window_captures",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c16 c15"};

}  // namespace xylem::ir::ops
