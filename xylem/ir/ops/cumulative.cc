#include "xylem/ir/ops/cumulative.h"

#include <fmt/format.h>

#include <memory>

#include "xylem/base/dtype_cast.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/ops/elementwise_binary.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/scalar_ops.h"
#include "xylem/ir/ops/internal/shape_util.h"
#include "xylem/ir/ops/movement.h"
#include "xylem/ir/ops/reduction.h"

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
  DefaultFpEnvironment fp;
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

// The least or largest value of a type, as a scalar: neutral for max and min. Floats: infinities.
// The largest or smallest value of a format that may lack infinities, or a sign.
double extreme_narrow(DType t, bool largest) {
  double best = largest ? -INFINITY : INFINITY;
  for (int bits = 0; bits < 1 << dtype_bits(t); ++bits) {
    auto pattern = static_cast<std::uint8_t>(bits);
    double v = element_to_double(t, reinterpret_cast<const std::byte*>(&pattern));
    if (largest ? v > best : v < best) best = v;
  }
  return best;
}

ValueId extreme(Builder& b, DType t, bool largest) {
  double v = largest ? INFINITY : -INFINITY;
  if (is_complex(t)) {
    ValueId part = b.splat(real_dtype(t), {}, v);
    return b.one(kComplex, {part, part});
  }
  if (is_bool(t)) v = largest;
  if (is_float(t) && dtype_bits(t) <= 8) v = extreme_narrow(t, largest);
  return b.splat(t, {}, v);  // conversion saturates integers
}

ValueId neutral(Builder& b, const OpDef& op, DType t) {
  if (&op == &kAdd || &op == &kMultiply) return b.splat(t, {}, &op == &kMultiply);
  return extreme(b, t, &op == &kMinimum);
}

// A window that ends (begins) at every element; what lies outside is the neutral element.
std::vector<ValueId> expand_cumulative(Builder& b, const Op& op, const OpDef& combine, ValueId x) {
  const Type t = b.type(x);
  if (!t.is_static() || t.size() == 0) return {x};
  std::int64_t axis = op.attrs.i64("dimension"), n = t.dims()[axis];
  Dims window(t.dims().size(), 1);
  window[axis] = n;
  HostArray padding = HostArray::zeros(DType::kI64, {t.rank(), 2});
  padding.as<std::int64_t>()[2 * axis + (op.attrs.flag("reverse") ? 1 : 0)] = n - 1;
  Builder body("body");
  ValueId p = body.param(Type::tensor(t.dtype())), q = body.param(Type::tensor(t.dtype()));
  GraphPtr region = body.finish({body.one(combine, {p, q})});
  return b
      .op(kReduceWindow, {x, neutral(b, combine, t.dtype())},
          {{"window_dimensions", window}, {"padding", padding}}, {region})
      .to_vector();
}
template <const OpDef& Combine>
std::vector<ValueId> expand_cumulative(Builder& b, const Op& op,
                                       std::span<const ValueId> operands) {
  return expand_cumulative(b, op, Combine, operands[0]);
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
  DefaultFpEnvironment fp;
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

// The comparison of pairs (value, index): the better value, the lower index of equals, NaN first.
GraphPtr arg_body(DType value, DType index, bool max) {
  auto compare = [](const char* direction) {
    return Attrs{{"comparison_direction", EnumAttr(direction)}};
  };
  Builder b("body");
  ValueId v0 = b.param(Type::tensor(value)), i0 = b.param(Type::tensor(index));
  ValueId v1 = b.param(Type::tensor(value)), i1 = b.param(Type::tensor(index));
  ValueId better = b.one(kCompare, {v0, v1}, compare(max ? "GT" : "LT"));
  ValueId equal = b.one(kCompare, {v0, v1}, compare("EQ"));
  if (is_float(value)) {
    ValueId nan0 = b.one(kCompare, {v0, v0}, compare("NE"));
    ValueId nan1 = b.one(kCompare, {v1, v1}, compare("NE"));
    better = b.one(kOr, {better, nan0});
    equal = b.one(kOr, {equal, b.one(kAnd, {nan0, nan1})});
    // NaN against NaN is decided by the index below.
    better = b.one(kXor, {better, b.one(kAnd, {nan0, nan1})});
  }
  ValueId lower = b.one(kCompare, {i0, i1}, compare("LT"));
  ValueId first = b.one(kOr, {better, b.one(kAnd, {equal, lower})});
  return b.finish({b.one(kSelect, {better, v0, b.one(kSelect, {equal, v0, v1})}),
                   b.one(kSelect, {first, i0, i1})});
}

template <bool Max>
std::vector<ValueId> expand_arg(Builder& b, const Op& op, std::span<const ValueId> operands) {
  const Type t = b.type(operands[0]);
  std::int64_t axis = op.attrs.i64("dimension");
  DType index = *op.attrs.at("index_dtype").get<DType>();
  ValueId iota =
      b.one(kIota, {}, {{"iota_dimension", axis}, {"shape", t.dims()}, {"result_dtype", index}});
  ValueIds r =
      b.op(kReduce, {operands[0], iota, extreme(b, t.dtype(), !Max), b.splat(index, {}, 0)},
           {{"dimensions", Dims{axis}}}, {arg_body(t.dtype(), index, Max)});
  return {r[1]};
}

OpDef cumulative(std::string_view name, std::uint32_t traits, EvalRule eval, ExpandRule expand,
                 std::string_view labels) {
  return {.name = name,
          .traits = kXylem | traits,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {{"dimension", AttrKind::kInt}, {"reverse", AttrKind::kBool, false}},
          .shape = cumulative_shape_rule,
          .eval = eval,
          .dims = cumulative_dims,
          .labels = labels,
          .expand = expand};
}

OpDef arg(std::string_view name, EvalRule eval, ExpandRule expand, std::string_view labels) {
  return {.name = name,
          .traits = kXylem | kExact,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {{"dimension", AttrKind::kInt}, {"index_dtype", AttrKind::kDType}},
          .shape = arg_shape_rule,
          .eval = eval,
          .dims = arg_dims,
          .labels = labels,
          .expand = expand};
}

}  // namespace

const OpDef kCumsum = cumulative("xylem.cumsum", kLinear, cumulative_eval<Add, true>,
                                 expand_cumulative<kAdd>, "cumsum_i1 cumsum_c1");
const OpDef kCumprod = cumulative("xylem.cumprod", 0, cumulative_eval<Multiply, true>,
                                  expand_cumulative<kMultiply>, "cumprod_i1 cumprod_c1");
const OpDef kCummax = cumulative("xylem.cummax", kExact, cumulative_eval<Maximum, false>,
                                 expand_cumulative<kMaximum>, "cummax_i1 cummax_c1");
const OpDef kCummin = cumulative("xylem.cummin", kExact, cumulative_eval<Minimum, false>,
                                 expand_cumulative<kMinimum>, "cummin_i1 cummin_c1");
const OpDef kArgmax = arg("xylem.argmax", arg_eval<true>, expand_arg<true>,
                          "argmax_i1 argmax_c1 argmax_c2 argmax_c3");
const OpDef kArgmin = arg("xylem.argmin", arg_eval<false>, expand_arg<false>,
                          "argmin_i1 argmin_c1 argmin_c2 argmin_c3");

Family cumulative_family() {
  static const OpDef* const kOps[] = {&kCumsum, &kCumprod, &kCummax, &kCummin, &kArgmax, &kArgmin};
  return kOps;
}

}  // namespace xylem::ir::ops
