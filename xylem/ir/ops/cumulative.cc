#include "xylem/ir/ops/cumulative.h"

#include <fmt/format.h>

#include <memory>

#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/scalar_ops.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Kind = DimMap::FactorKind;

std::vector<Type> cumulative_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0, kElNumber);
  check_in_range(call, "c1", "dimension", Dims{call.attrs.i64("dimension")}, x.rank());
  return {x};
}

template <class F, bool Wide>
std::vector<HostArray> cumulative_eval(const EvalCall& call) {
  xylem::internal::DefaultFpEnvironment fp;
  const HostArray& x = call.operands[0];
  std::int64_t axis = call.op.attrs.i64("dimension");
  std::int64_t n = x.dims()[axis], stride = row_major_strides(x.dims())[axis];
  bool reverse = call.op.attrs.flag("reverse");
  HostArray out(x.dtype(), x.dims());
  with_compute_type<kElNumber, Wide>(x.dtype(), [&](auto c) {
    auto v = load_all<decltype(c)>(x);
    F f;
    if (n == 0) return;
    for_each_line(x.dims(), axis, [&](std::int64_t start) {
      auto at = [&](std::int64_t i) -> auto& {
        return v[static_cast<std::size_t>(start + (reverse ? n - 1 - i : i) * stride)];
      };
      for (std::int64_t i = 1; i < n; ++i) at(i) = f(at(i - 1), at(i));
    });
    store(out, 0, out.size(), v.data());
  });
  return {std::move(out)};
}

DimMap cumulative_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  m.operands.push_back(add_factors(m, call.operands[0].dims(), Kind::kParallel));
  m.factors[static_cast<std::size_t>(call.attrs.i64("dimension"))].kind = Kind::kOpaque;
  m.results = m.operands;
  return m;
}

std::vector<Type> arg_shape_rule(const OpCall& call) {
  const Type& x = tensor_operand(call, 0, kElReal | kElBool);
  std::int64_t axis = call.attrs.i64("dimension");
  check_in_range(call, "c1", "dimension", Dims{axis}, x.rank());
  if (x.dims()[axis] == 0)
    fail(call, "c2", "the dimension must not be empty",
         fmt::format("dimension {} of {}", axis, x.to_string()), "Pad it or skip the op");
  DType dtype = *call.attrs.at("index_dtype").get<DType>();
  if (!is_integer(dtype))
    fail(call, "c3", "index_dtype must be an integer type",
         fmt::format("it is {}", dtype_name(dtype)), "Use i32 or i64");
  Dims shape = x.dims();
  shape.erase(static_cast<std::size_t>(axis));
  return {Type::tensor(dtype, shape)};
}

template <bool Max>
std::vector<HostArray> arg_eval(const EvalCall& call) {
  xylem::internal::DefaultFpEnvironment fp;
  const HostArray& x = call.operands[0];
  std::int64_t axis = call.op.attrs.i64("dimension");
  std::int64_t n = x.dims()[axis], stride = row_major_strides(x.dims())[axis];
  HostArray out(call.result_types[0].dtype(), call.result_types[0].dims());
  with_compute_type<kElReal | kElBool, false>(x.dtype(), [&](auto c) {
    using C = decltype(c);
    auto v = std::make_unique<C[]>(static_cast<std::size_t>(x.size()));
    load(x, 0, x.size(), v.get());
    std::int64_t line = 0;
    for_each_line(x.dims(), axis, [&](std::int64_t start) {
      const C* p = v.get() + start;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < n && !is_nan(p[best * stride]); ++i) {
        C a = p[i * stride], b = p[best * stride];
        if (is_nan(a) || (Max ? b < a : a < b)) best = i;
      }
      store(out, line++, 1, &best);
    });
  });
  return {std::move(out)};
}

DimMap arg_dims(const OpCall& call, std::span<const Type>) {
  DimMap m;
  Dims d = add_factors(m, call.operands[0].dims(), Kind::kParallel);
  auto axis = static_cast<std::size_t>(call.attrs.i64("dimension"));
  m.factors[axis].kind = Kind::kOpaque;
  m.operands.push_back(d);
  d.erase(axis);
  m.results.push_back(d);
  return m;
}

OpDef cumulative(std::string_view name, std::uint32_t traits, EvalRule eval,
                 std::string_view labels) {
  return {.name = name,
          .traits = kXylem | traits,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {{"dimension", AttrKind::kInt}, {"reverse", AttrKind::kBool, false}},
          .shape = cumulative_shape_rule,
          .eval = eval,
          .dims = cumulative_dims,
          .labels = labels};
}

OpDef arg(std::string_view name, EvalRule eval, std::string_view labels) {
  return {.name = name,
          .traits = kXylem | kExact,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {{"dimension", AttrKind::kInt}, {"index_dtype", AttrKind::kDType}},
          .shape = arg_shape_rule,
          .eval = eval,
          .dims = arg_dims,
          .labels = labels};
}

}  // namespace

const OpDef kCumsum =
    cumulative("xylem.cumsum", kLinear, cumulative_eval<Add, true>, "cumsum_i1 cumsum_c1");
const OpDef kCumprod =
    cumulative("xylem.cumprod", 0, cumulative_eval<Multiply, true>, "cumprod_i1 cumprod_c1");
const OpDef kCummax =
    cumulative("xylem.cummax", kExact, cumulative_eval<Maximum, false>, "cummax_i1 cummax_c1");
const OpDef kCummin =
    cumulative("xylem.cummin", kExact, cumulative_eval<Minimum, false>, "cummin_i1 cummin_c1");
const OpDef kArgmax =
    arg("xylem.argmax", arg_eval<true>, "argmax_i1 argmax_c1 argmax_c2 argmax_c3");
const OpDef kArgmin =
    arg("xylem.argmin", arg_eval<false>, "argmin_i1 argmin_c1 argmin_c2 argmin_c3");

Family cumulative_family() {
  static const OpDef* const kOps[] = {&kCumsum, &kCumprod, &kCummax, &kCummin, &kArgmax, &kArgmin};
  return kOps;
}

}  // namespace xylem::ir::ops
