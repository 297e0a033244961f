// select_and_scatter of the reduction family.

#include <fmt/format.h>

#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/reduction_util.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/reduction.h"

namespace xylem::ir::ops {
namespace {

struct Windows {
  Dims size, stride, low, high;

  Windows(const Attrs& a, std::size_t rank)
      : size(a.dims_or("window_dimensions", Dims(rank, 1))),
        stride(a.dims_or("window_strides", Dims(rank, 1))),
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

std::vector<Type> select_and_scatter_shape_rule(const OpCall& call) {
  std::size_t own = call.operands.size() - static_cast<std::size_t>(num_captures(call));
  if (own != 3)
    fail(call, "captures", "the operands are three and captures",
         fmt::format("{} are no captures", own), "Set num_captures");
  const Type& x = tensor_operand(call, 0);
  const Type& source = tensor_operand(call, 1);
  const Type& init = tensor_operand(call, 2);
  if (x.dtype() != source.dtype())
    fail(call, "c1", "operand and source must have one dtype",
         differ("the operand", x, "the source", source), "Convert one of them");
  if (init.rank() != 0)
    fail(call, "i3", "the init value must be a scalar", "it is " + init.to_string(),
         "Pass a scalar");
  if (init.dtype() != x.dtype())
    fail(call, "c3", "operand and init value must have one dtype",
         differ("the operand", x, "the init value", init), "Convert the init value");
  auto check = [&](std::string_view name, std::string_view count, std::string_view positive) {
    const Attr* a = call.attrs.find(name);
    if (!a && (x.rank() == 0 || name != "window_dimensions")) return;
    if (!a)
      fail(call, count, fmt::format("{} must have {} entries", name, x.rank()), "it is absent",
           "Give the window's size");
    const Dims& v = *a->get<Dims>();
    check_size(call, count, name, v, x.rank(), "operand dimension");
    for (std::int64_t e : v)
      if (e <= 0 || e > (std::int64_t{1} << 61))
        fail(call, positive, fmt::format("{} must be positive", name),
             fmt::format("{} = {}", name, list(v)), "Use 1 for dimensions without a window");
  };
  check("window_dimensions", "c4", "c5");
  check("window_strides", "c6", "c7");
  if (const Attr* padding = call.attrs.find("padding")) {
    const HostArray& p = *padding->get<HostArray>();
    if (!is_integer(p.dtype()) || !(p.dims() == Dims{x.rank(), 2}))
      fail(call, "c8", fmt::format("padding must be i64[{},2]", x.rank()),
           "it is " + p.type_string(), "Give (low, high) for each dimension");
  }
  Windows w(call.attrs, x.dims().size());
  Dims windows;
  for (std::size_t d = 0; d < x.dims().size(); ++d) {
    __int128 padded = static_cast<__int128>(x.dims()[d]) + w.low[d] + w.high[d];
    bool none = padded <= 0 || w.size[d] > padded;
    windows.push_back(x.dims()[d] == kDynamic ? kDynamic
                      : none                  ? 0
                             : result_size(call, "c2", (padded - w.size[d]) / w.stride[d] + 1));
  }
  if (!dims_fit(windows, source.dims()))
    fail(call, "c2", fmt::format("the source must have one element per window, {}", list(windows)),
         "it is " + source.to_string(), "Change the windows or the source");
  auto captures = call.operands.subspan(3);
  Type element = Type::tensor(x.dtype());
  std::vector<Type> params{element, element}, predicate{Type::tensor(DType::kBool)};
  params.insert(params.end(), captures.begin(), captures.end());
  check_region(call, "c9", 0, params, &predicate);
  // The scatter region may compute in a wider type.
  std::vector<Type> results =
      call.regions[1] ? call.regions[1]->result_types() : std::vector<Type>{};
  if (results.size() != 1 || !results[0].is_scalar() ||
      !is_promotable(x.dtype(), results[0].dtype()))
    fail(call, "c10",
         "the scatter region must return a scalar of the operand's dtype or a wider one",
         fmt::format("it returns {}", types_text(results)), "Convert its result");
  params[0] = params[1] = results[0];
  check_region(call, "c10", 1, params, nullptr);
  return {Type::tensor(results[0].dtype(), x.dims())};
}

std::vector<HostArray> select_and_scatter_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& x = call.operands[0];
  const HostArray& source = call.operands[1];
  const Type& t = call.result_types[0];
  Windows w(call.op.attrs, x.dims().size());
  HostArray out(t.dtype(), x.dims());
  HostArray init = call.operands[2].astype(t.dtype());
  for (std::int64_t i = 0; i < out.size(); ++i) set_element(out, i, init);
  Dims strides = row_major_strides(x.dims());
  std::vector<std::int64_t> at(x.dims().size(), 0), in(x.dims().size(), 0);
  std::vector<HostArray> args(2);
  args.insert(args.end(), call.operands.begin() + 3, call.operands.end());
  std::int64_t window = num_elements(w.size);
  for (std::int64_t s = 0; s < source.size(); ++s, next_index(at, source.dims())) {
    std::int64_t selected = -1;
    for (std::int64_t k = 0; k < window; ++k, next_index(in, w.size)) {
      std::int64_t from = 0;
      bool inside = true;
      for (std::size_t d = 0; inside && d < in.size(); ++d) {
        std::int64_t p = at[d] * w.stride[d] + in[d] - w.low[d];
        inside = p >= 0 && p < x.dims()[d];
        from += p * strides[d];
      }
      if (!inside) continue;
      if (selected >= 0) {
        args[0] = element(x, selected);
        args[1] = element(x, from);
        if (*call.regions.run(*call.op.regions[0], args)[0].as<bool>()) continue;
      }
      selected = from;
    }
    if (selected < 0) continue;  // a window of padding alone
    args[0] = element(out, selected);
    args[1] = element(source, s).astype(t.dtype());
    set_element(out, selected, call.regions.run(*call.op.regions[1], args)[0]);
  }
  return {std::move(out)};
}

DimMap select_and_scatter_dims(const OpCall& call, std::span<const Type>) {
  using Kind = DimMap::FactorKind;
  DimMap m;
  const Type& x = call.operands[0];
  Windows w(call.attrs, x.dims().size());
  Dims to = add_factors(m, x.dims(), Kind::kParallel), from = to;
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (w.size[d] == 1 && w.stride[d] == 1 && w.low[d] == 0 && w.high[d] == 0) continue;
    m.factors[d].kind = Kind::kOpaque;
    from[d] = static_cast<std::int64_t>(m.factors.size());
    m.factors.push_back({Kind::kOpaque, call.operands[1].dims()[d]});
  }
  m.operands = {to, from};
  for (std::size_t i = 2; i < call.operands.size(); ++i)
    m.operands.push_back(add_factors(m, call.operands[i].dims(), Kind::kOpaque));
  m.results.push_back(to);
  return m;
}

}  // namespace

const OpDef kSelectAndScatter = {
    .name = "stablehlo.select_and_scatter",
    .min_operands = 3,
    .max_operands = -1,
    .num_regions = 2,
    .attrs = {{"window_dimensions", AttrKind::kDims, false},
              {"window_strides", AttrKind::kDims, false},
              {"padding", AttrKind::kArray, false},
              {"num_captures", AttrKind::kInt, false}},
    .shape = select_and_scatter_shape_rule,
    .eval = select_and_scatter_eval,
    .dims = select_and_scatter_dims,
    .labels =
        "select_and_scatter_i1 select_and_scatter_i2 select_and_scatter_i3 "
        "select_and_scatter_c1 select_and_scatter_c2 select_and_scatter_c3 "
        "select_and_scatter_c4 select_and_scatter_c5 select_and_scatter_c6 "
        "select_and_scatter_c7 select_and_scatter_c8 select_and_scatter_c9 "
        "select_and_scatter_c10 select_and_scatter_captures",
    .quant = QuantSupport::kPerTensor,
    .result_labels = "c12 c11"};

}  // namespace xylem::ir::ops
