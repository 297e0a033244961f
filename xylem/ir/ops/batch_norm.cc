#include "xylem/ir/ops/batch_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "xylem/ir/expr.h"
#include "xylem/ir/ops/elementwise_unary.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/eval_util.h"
#include "xylem/ir/ops/internal/shape_util.h"

namespace xylem::ir::ops {
namespace {

using Wide = std::vector<long double>;

struct Labels {
  std::string_view sizes[5];  // of each operand's size; empty for those of x's shape
};

// Operand 0 has any shape; the others have one entry per feature, or x's shape.
const Type& check_operands(const OpCall& call, const Labels& labels, int like_x) {
  const Type& x = tensor_operand(call, 0, kElFloat);
  std::int64_t feature = call.attrs.i64("feature_index");
  if (feature < 0 || feature >= x.rank())
    fail(call, "c1", fmt::format("feature_index must lie in [0, {})", x.rank()),
         fmt::format("it is {}", feature), "Name a dimension of the operand");
  for (int i = 1; i < static_cast<int>(call.operands.size()); ++i) {
    const Type& t = tensor_operand(call, i, kElFloat);
    if (i != like_x && t.rank() != 1)
      fail(call, fmt::format("i{}", i + 1), fmt::format("operand {} must have one dimension", i),
           "it is " + t.to_string(), "Reshape it");
    if (t.dtype() != x.dtype())
      fail(call, "c2", "all operands must have one dtype",
           differ("operand 0", x, fmt::format("operand {}", i), t), "Convert one of them");
  }
  for (int i = 1; i < static_cast<int>(call.operands.size()); ++i) {
    const Type& t = call.operands[static_cast<std::size_t>(i)];
    if (i == like_x ? !dims_fit(t.dims(), x.dims()) : !size_fits(t.dim(0), x.dims()[feature]))
      fail(call, labels.sizes[i],
           i == like_x ? "grad_output must have the operand's shape"
                       : fmt::format("operand {} must have one entry per feature ({})", i,
                                     x.dims()[feature]),
           fmt::format("the operand is {}, operand {} is {}", x.to_string(), i, t.to_string()),
           "Pass one of that shape");
  }
  return x;
}

Type per_feature(const OpCall& call) {
  const Type& x = call.operands[0];
  Dims features{x.dims()[call.attrs.i64("feature_index")]};
  return Type::tensor(x.dtype(), refine(features, call.operands[1].dims()));
}

std::vector<Type> training_shape_rule(const OpCall& call) {
  const Type& x = check_operands(call, {{"", "c3", "c4"}}, -1);
  Type f = per_feature(call);
  return {x, f, f};
}

std::vector<Type> inference_shape_rule(const OpCall& call) {
  return {check_operands(call, {{"", "c3", "c4", "c5", "c6"}}, -1)};
}

std::vector<Type> grad_shape_rule(const OpCall& call) {
  const Type& x = check_operands(call, {{"", "c5", "c4", "c4", "c3"}}, 4);
  Type f = per_feature(call);
  return {x, f, f};
}

// x as rows of features.
class Features {
 public:
  Features(const HostArray& x, std::int64_t axis)
      : n_(static_cast<std::size_t>(x.dims()[axis])),
        inner_(static_cast<std::size_t>(row_major_strides(x.dims())[axis])),
        count_(static_cast<std::size_t>(x.size())) {}

  std::size_t of(std::size_t i) const { return i / inner_ % n_; }
  std::size_t size() const { return n_; }
  long double elements() const {
    return n_ == 0 ? 0 : static_cast<long double>(count_) / static_cast<long double>(n_);
  }
  // The sum of value(i) over each feature's elements.
  template <class Fn>
  Wide sums(const Fn& value) const {
    Wide s(n_, 0);
    for (std::size_t i = 0; i < count_; ++i) s[of(i)] += value(i);
    return s;
  }

 private:
  std::size_t n_, inner_, count_;
};

HostArray stored(const Wide& v, const Type& t, const Dims& dims) {
  HostArray out(t.dtype(), dims);
  store(out, 0, out.size(), v.data());
  return out;
}

long double epsilon_of(const EvalCall& call) {
  return static_cast<float>(call.op.attrs.f64("epsilon"));
}

Wide normalise(const Features& f, const Wide& x, const Wide& scale, const Wide& offset,
               const Wide& mean, const Wide& variance, long double epsilon) {
  Wide y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t k = f.of(i);
    y[i] = scale[k] * ((x[i] - mean[k]) / std::sqrt(variance[k] + epsilon)) + offset[k];
  }
  return y;
}

std::vector<HostArray> training_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  Features f(a, call.op.attrs.i64("feature_index"));
  Wide x = load_all<long double>(a);
  Wide mean = f.sums([&](std::size_t i) { return x[i]; });
  for (long double& m : mean) m /= f.elements();
  Wide variance = f.sums([&](std::size_t i) {
    long double d = x[i] - mean[f.of(i)];
    return d * d;
  });
  for (long double& v : variance) v /= f.elements();
  Wide y = normalise(f, x, load_all<long double>(call.operands[1]),
                     load_all<long double>(call.operands[2]), mean, variance, epsilon_of(call));
  Dims features{static_cast<std::int64_t>(f.size())};
  return {stored(y, call.result_types[0], a.dims()), stored(mean, call.result_types[1], features),
          stored(variance, call.result_types[2], features)};
}

std::vector<HostArray> inference_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  Features f(a, call.op.attrs.i64("feature_index"));
  auto operand = [&](std::size_t i) { return load_all<long double>(call.operands[i]); };
  Wide y =
      normalise(f, operand(0), operand(1), operand(2), operand(3), operand(4), epsilon_of(call));
  return {stored(y, call.result_types[0], a.dims())};
}

std::vector<HostArray> grad_eval(const EvalCall& call) {
  DefaultFpEnvironment fp;
  const HostArray& a = call.operands[0];
  Features f(a, call.op.attrs.i64("feature_index"));
  auto operand = [&](std::size_t i) { return load_all<long double>(call.operands[i]); };
  Wide x = operand(0), scale = operand(1), mean = operand(2), variance = operand(3), g = operand(4);
  long double epsilon = epsilon_of(call), n = f.elements();
  auto centred = [&](std::size_t i) { return x[i] - mean[f.of(i)]; };
  Wide offset = f.sums([&](std::size_t i) { return g[i]; });
  Wide products = f.sums([&](std::size_t i) { return g[i] * centred(i); });
  Wide out(x.size()), grad_scale(f.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t k = f.of(i);
    long double v = variance[k] + epsilon;
    out[i] = scale[k] / std::sqrt(v) / n * (g[i] * n - offset[k] - products[k] * centred(i) / v);
  }
  for (std::size_t k = 0; k < f.size(); ++k)
    grad_scale[k] = products[k] / std::sqrt(variance[k] + epsilon);
  Dims features{static_cast<std::int64_t>(f.size())};
  return {stored(out, call.result_types[0], a.dims()),
          stored(grad_scale, call.result_types[1], features),
          stored(offset, call.result_types[2], features)};
}

// Decompositions: narrow floats are computed in f32.
struct Parts {
  Builder& b;
  std::int64_t feature;
  Dims shape, others;
  DType dtype, work;

  Parts(Builder& builder, const Op& op, ValueId x)
      : b(builder),
        feature(op.attrs.i64("feature_index")),
        shape(builder.type(x).dims()),
        others(other_dims(builder.type(x).rank(), {feature})),
        dtype(builder.type(x).dtype()),
        work(dtype_bits(dtype) < 32 ? DType::kF32 : dtype) {}

  Expr wide(ValueId v) const { return convert(Expr{&b, v}, work); }
  Expr spread(Expr per_feature) const { return broadcast_in_dim(per_feature, shape, {feature}); }
  Expr sum(Expr x) const { return reduce_sum(x, others); }
  double elements() const {
    double n = 1;
    for (std::int64_t d : others) n *= static_cast<double>(shape[d]);
    return n;
  }
  ValueId done(Expr x) const { return convert(x, dtype).v; }
  Expr normalise(Expr x, Expr scale, Expr offset, Expr mean, Expr variance, double epsilon) const {
    Expr deviation = unary(kSqrt, variance + epsilon);
    return spread(scale) * ((x - spread(mean)) / spread(deviation)) + spread(offset);
  }
};

double epsilon_of(const Op& op) { return static_cast<float>(op.attrs.f64("epsilon")); }

std::vector<ValueId> expand_training(Builder& b, const Op& op, std::span<const ValueId> v) {
  Parts p(b, op, v[0]);
  Expr x = p.wide(v[0]);
  Expr mean = p.sum(x) / p.elements();
  Expr centred = x - p.spread(mean);
  Expr variance = p.sum(centred * centred) / p.elements();
  Expr y = p.normalise(x, p.wide(v[1]), p.wide(v[2]), mean, variance, epsilon_of(op));
  return {p.done(y), p.done(mean), p.done(variance)};
}

std::vector<ValueId> expand_inference(Builder& b, const Op& op, std::span<const ValueId> v) {
  Parts p(b, op, v[0]);
  return {p.done(p.normalise(p.wide(v[0]), p.wide(v[1]), p.wide(v[2]), p.wide(v[3]), p.wide(v[4]),
                             epsilon_of(op)))};
}

std::vector<ValueId> expand_grad(Builder& b, const Op& op, std::span<const ValueId> v) {
  Parts p(b, op, v[0]);
  Expr scale = p.wide(v[1]), variance = p.wide(v[3]) + epsilon_of(op), g = p.wide(v[4]);
  Expr centred = p.wide(v[0]) - p.spread(p.wide(v[2]));
  double n = p.elements();
  Expr offset = p.sum(g), products = p.sum(g * centred);
  Expr deviation = unary(kSqrt, variance);
  Expr inner = g * n - p.spread(offset) - centred * p.spread(products / variance);
  return {p.done(p.spread(scale / deviation / n) * inner), p.done(products / deviation),
          p.done(offset)};
}

DimMap batch_norm_dims(const OpCall& call, std::span<const Type> results) {
  using Kind = DimMap::FactorKind;
  DimMap m;
  const Type& x = call.operands[0];
  std::int64_t feature = call.attrs.i64("feature_index");
  bool inference = call.def.name == "stablehlo.batch_norm_inference";
  Dims whole = add_factors(m, x.dims(), inference ? Kind::kParallel : Kind::kOpaque);
  m.factors[static_cast<std::size_t>(whole[feature])].kind = Kind::kParallel;
  Dims one{whole[feature]};
  for (const Type& t : call.operands) m.operands.push_back(t.rank() == x.rank() ? whole : one);
  for (const Type& t : results) m.results.push_back(t.rank() == x.rank() ? whole : one);
  return m;
}

OpDef batch_norm(std::string_view name, int operands, ShapeRule shape, EvalRule eval,
                 ExpandRule expand, std::string_view labels, std::string_view result_labels) {
  return {.name = name,
          .min_operands = operands,
          .max_operands = operands,
          .attrs = {{"epsilon", AttrKind::kFloat}, {"feature_index", AttrKind::kInt}},
          .shape = shape,
          .eval = eval,
          .dims = batch_norm_dims,
          .labels = labels,
          .expand = expand,
          .quant = QuantSupport::kPerTensor,
          .result_labels = result_labels};
}

}  // namespace

const OpDef kBatchNormTraining = batch_norm(
    "stablehlo.batch_norm_training", 3, training_shape_rule, training_eval, expand_training,
    "batch_norm_training_i1 batch_norm_training_i2 batch_norm_training_i3 batch_norm_training_c1 "
    "batch_norm_training_c2 batch_norm_training_c3 batch_norm_training_c4",
    "c2 c7");
const OpDef kBatchNormInference = batch_norm(
    "stablehlo.batch_norm_inference", 5, inference_shape_rule, inference_eval, expand_inference,
    "batch_norm_inference_i1 batch_norm_inference_i2 batch_norm_inference_i3 "
    "batch_norm_inference_i4 batch_norm_inference_i5 batch_norm_inference_c1 "
    "batch_norm_inference_c2 batch_norm_inference_c3 batch_norm_inference_c4 "
    "batch_norm_inference_c5 batch_norm_inference_c6",
    "c2 c7");
const OpDef kBatchNormGrad =
    batch_norm("stablehlo.batch_norm_grad", 5, grad_shape_rule, grad_eval, expand_grad,
               "batch_norm_grad_i1 batch_norm_grad_i2 batch_norm_grad_i3 batch_norm_grad_i4 "
               "batch_norm_grad_i5 batch_norm_grad_c1 batch_norm_grad_c2 batch_norm_grad_c3 "
               "batch_norm_grad_c4 batch_norm_grad_c5",
               "c2 c3");

Family batch_norm_family() {
  static const OpDef* const kOps[] = {&kBatchNormTraining, &kBatchNormInference, &kBatchNormGrad};
  return kOps;
}

}  // namespace xylem::ir::ops
