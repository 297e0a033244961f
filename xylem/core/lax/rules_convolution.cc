// Derivatives, transposes and batching of convolution. The rules work in one layout, lhs [N, C, …],
// rhs [O, I, …], result [N, O, …], without window reversal: for group g of features
//   z[n, gO' + o, p] = sum_{i, k} x[n, gI + i, stride p + dilation k - low] y[gO' + o, i, k]
// with holes between the elements of x. Batch groups split n and o together.

#include <algorithm>

#include "xylem/core/lax/through.h"
#include "xylem/core/transform/passes.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/convolution.h"

namespace xylem::transform {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Expr;
using ir::kNoValue;
using ir::ValueId;
namespace ops = ir::ops;

struct Conv {
  Dims lhs_order, rhs_order, out_order;  // dimension of the op at each place of the one layout
  Dims stride, low, high, lhs_dilation, rhs_dilation, reversed;
  std::int64_t feature_groups, batch_groups;

  explicit Conv(const Attrs& a)
      : lhs_order(order(a, "input_batch_dimension", "input_feature_dimension",
                        "input_spatial_dimensions")),
        rhs_order(order(a, "kernel_output_feature_dimension", "kernel_input_feature_dimension",
                        "kernel_spatial_dimensions")),
        out_order(order(a, "output_batch_dimension", "output_feature_dimension",
                        "output_spatial_dimensions")),
        feature_groups(a.i64_or("feature_group_count", 1)),
        batch_groups(a.i64_or("batch_group_count", 1)) {
    std::size_t n = lhs_order.size() - 2;
    stride = a.dims_or("window_strides", Dims(n, 1));
    lhs_dilation = a.dims_or("lhs_dilation", Dims(n, 1));
    rhs_dilation = a.dims_or("rhs_dilation", Dims(n, 1));
    reversed = a.dims_or("window_reversal", Dims(n, 0));
    low = high = Dims(n, 0);
    if (a.has("padding")) {
      HostArray p = a.array("padding").astype(DType::kI64);
      for (std::size_t d = 0; d < n; ++d) {
        low[d] = p.as<std::int64_t>()[2 * d];
        high[d] = p.as<std::int64_t>()[2 * d + 1];
      }
    }
  }

  // In the one layout. `from` gives what is kept (precision).
  Attrs attrs(const Attrs& from, DType result) const {
    Attrs a;
    if (const Attr* precision = from.find("precision_config"))
      a.set("precision_config", *precision);
    Dims spatial(stride.size(), 0);
    std::vector<std::int64_t> padding;
    for (std::size_t d = 0; d < spatial.size(); ++d) {
      spatial[d] = static_cast<std::int64_t>(d) + 2;
      padding.push_back(low[d]);
      padding.push_back(high[d]);
    }
    for (const char* name :
         {"input_batch_dimension", "kernel_output_feature_dimension", "output_batch_dimension"})
      a.set(name, Attr(0));
    for (const char* name :
         {"input_feature_dimension", "kernel_input_feature_dimension", "output_feature_dimension"})
      a.set(name, Attr(1));
    for (const char* name :
         {"input_spatial_dimensions", "kernel_spatial_dimensions", "output_spatial_dimensions"})
      a.set(name, Attr(spatial));
    a.set("window_strides", Attr(stride));
    a.set("padding", Attr(HostArray::from(padding, {spatial.ssize(), 2})));
    a.set("lhs_dilation", Attr(lhs_dilation));
    a.set("rhs_dilation", Attr(rhs_dilation));
    a.set("feature_group_count", Attr(feature_groups));
    a.set("batch_group_count", Attr(batch_groups));
    a.set("result_dtype", Attr(result));
    return a;
  }

  Expr run(Expr lhs, Expr rhs, const Attrs& from, DType result) const {
    return {lhs.b, lhs.b->one(ops::kConvolution, {lhs.v, rhs.v}, attrs(from, result))};
  }

 private:
  static Dims order(const Attrs& a, const char* first, const char* second, const char* rest) {
    Dims r{a.i64_or(first, 0), a.i64_or(second, 1)};
    for (std::int64_t d : a.dims_or(rest, {})) r.push_back(d);
    return r;
  }
};

Dims inverse(const Dims& order) {
  Dims r(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) r[order[i]] = static_cast<std::int64_t>(i);
  return r;
}

Expr reverse(Expr x, const Dims& dimensions) {
  if (dimensions.empty()) return x;
  return {x.b, x.b->one(ops::kReverse, {x.v}, Attrs{{"dimensions", Attr(dimensions)}})};
}

// The spatial dimensions of the kernel, all of them or those that the op reverses.
Dims spatial(const Conv& c, bool all) {
  Dims r;
  for (std::size_t d = 0; d < c.reversed.size(); ++d)
    if (all || c.reversed[d] != 0) r.push_back(static_cast<std::int64_t>(d) + 2);
  return r;
}

// Splits dimension `dim` into (groups, rest).
Expr split(Expr x, int dim, std::int64_t groups) {
  Dims d = x.dims();
  d[dim] /= groups;
  d.insert(static_cast<std::size_t>(dim), groups);
  return ir::reshape(x, d);
}
// Joins dimensions dim and dim + 1.
Expr join(Expr x, int dim) {
  Dims d = x.dims();
  d[dim] *= d[dim + 1];
  d.erase(static_cast<std::size_t>(dim) + 1);
  return ir::reshape(x, d);
}
// [a', (groups, b), …] -> [(groups, a'), b, …].
Expr groups_to_first(Expr x, std::int64_t groups) {
  return join(ir::move_dim(split(x, 1, groups), 1, 0), 0);
}

std::int64_t dilated(std::int64_t n, std::int64_t dilation) {
  return n == 0 ? 0 : (n - 1) * dilation + 1;
}

void conv_jvp(JvpCall& c) {
  c.primal_out = {c.b.clone(c.op, c.primals)[0]};
  Attrs attrs = c.op.attrs;
  attrs.set("result_dtype", Attr(c.b.type(c.primal_out[0]).dtype()));
  Expr sum{&c.b, kNoValue};
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.tangents[i] == kNoValue) continue;
    ValueId operands[2] = {c.primals[0], c.primals[1]};
    operands[i] = c.tangents[i];
    Expr part{&c.b, c.b.one(ops::kConvolution, operands, attrs)};
    sum = sum.defined() ? sum + part : part;
  }
  c.tangent_out = {sum.v};
}

// The cotangent, holes between its elements where the op strides, convolved with the turned kernel.
Expr transpose_lhs(const Conv& c, Expr ct, Expr kernel, const Attrs& from, const ir::Type& lhs) {
  Conv t = c;
  Dims x = lhs.dims(), k = kernel.dims(), z = ct.dims();
  std::int64_t groups = std::max(c.feature_groups, c.batch_groups);
  // [(g, O'), I, …] -> [(g, I), O', …]
  kernel = split(kernel, 0, groups);
  kernel = join(ir::move_dim(kernel, 1, 2), 0);
  t.stride = c.lhs_dilation;
  t.lhs_dilation = c.stride;
  t.feature_groups = groups;
  t.batch_groups = 1;
  for (std::size_t d = 0; d < c.stride.size(); ++d) {
    std::int64_t window = dilated(k[d + 2], c.rhs_dilation[d]);
    t.low[d] = window - c.low[d] - 1;
    t.high[d] = dilated(x[c.lhs_order[d + 2]], c.lhs_dilation[d]) + window - 1 -
                dilated(z[d + 2], c.stride[d]) - t.low[d];
  }
  Expr r = t.run(ct, reverse(kernel, spatial(c, true)), from, lhs.dtype());
  return c.batch_groups > 1 ? groups_to_first(r, c.batch_groups) : r;
}

// The operand convolved with the cotangent; batch and features change places.
Expr transpose_rhs(const Conv& c, Expr lhs, Expr ct, const Attrs& from, const ir::Type& rhs) {
  Conv t = c;
  Dims x = lhs.dims(), z = ct.dims();
  t.stride = c.rhs_dilation;
  t.rhs_dilation = c.stride;
  t.feature_groups = c.batch_groups;
  t.batch_groups = c.feature_groups;
  for (std::size_t d = 0; d < c.stride.size(); ++d) {
    std::int64_t window = dilated(rhs.dim(static_cast<int>(c.rhs_order[d + 2])), c.rhs_dilation[d]);
    t.high[d] = dilated(z[d + 2], c.stride[d]) + window - 1 - dilated(x[d + 2], c.lhs_dilation[d]) -
                c.low[d];
  }
  Expr r = t.run(ir::move_dim(lhs, 0, 1), ir::move_dim(ct, 0, 1), from, rhs.dtype());
  return ir::move_dim(r, 0, 1);  // [I, O, …] -> [O, I, …]
}

void conv_transpose(TransposeCall& c) {
  Conv conv(c.op.attrs);
  std::size_t lin = c.linear[0] ? 0 : 1;
  XYLEM_CHECK(!c.linear[1 - lin], "a convolution of two linear values is not linear");
  Expr ct{&c.b, c.cotangents[0]}, other{&c.b, c.operands[1 - lin]};
  const ir::Type& mine = c.types[lin];
  if (ct.type().size() == 0 || other.type().size() == 0 || mine.size() == 0) {
    c.operand_ct[lin] = ir::zeros(c.b, mine).v;
    return;
  }
  ct = ir::transpose(ir::convert(ct, other.dtype()), conv.out_order);
  other = ir::transpose(other, lin == 0 ? conv.rhs_order : conv.lhs_order);
  Dims turned = spatial(conv, false);
  Expr r = lin == 0 ? transpose_lhs(conv, ct, reverse(other, turned), c.op.attrs, mine)
                    : reverse(transpose_rhs(conv, other, ct, c.op.attrs, mine), turned);
  c.operand_ct[lin] = ir::transpose(r, inverse(lin == 0 ? conv.lhs_order : conv.rhs_order)).v;
}

Dims behind_batch(const Dims& order) {
  Dims r{0};
  for (std::int64_t d : order) r.push_back(d + 1);
  return r;
}

// A mapped lhs joins the batch, a mapped rhs the output features, both make groups.
void conv_batch(BatchCall& c) {
  Conv conv(c.op.attrs);
  bool l = c.dims[0] != kNotMapped, r = c.dims[1] != kNotMapped;
  Expr x{&c.b, c.operands[0]}, y{&c.b, c.operands[1]};
  if (l) x = ir::move_dim(x, c.dims[0], 0);
  if (r) y = ir::move_dim(y, c.dims[1], 0);
  x = ir::transpose(x, l ? behind_batch(conv.lhs_order) : conv.lhs_order);
  y = ir::transpose(y, r ? behind_batch(conv.rhs_order) : conv.rhs_order);
  if (r) {
    Dims turned = spatial(conv, false);
    for (std::int64_t& d : turned) ++d;
    y = reverse(y, turned);
  } else {
    y = reverse(y, spatial(conv, false));
  }
  const ir::Type result = unbatched_results(c)[0];
  std::int64_t groups = std::max(conv.feature_groups, conv.batch_groups), size = c.size;
  if (size == 0) {
    Dims d = result.dims();
    d.insert(0, 0);
    c.results = {ir::zeros(c.b, result.with_dims(d)).v};
    c.result_dims = {0};
    return;
  }
  Expr z{&c.b, kNoValue};
  if (l && r) {
    bool by_batch = conv.batch_groups > 1;
    x = by_batch ? join(x, 0) : join(ir::move_dim(x, 0, 1), 1);
    y = join(y, 0);
    (by_batch ? conv.batch_groups : conv.feature_groups) *= size;
    z = ir::move_dim(split(conv.run(x, y, c.op.attrs, result.dtype()), 1, size), 1, 0);
  } else if (l) {
    if (conv.batch_groups > 1) {
      // [s, (g, n), …] -> [(g, s, n), …]
      x = join(join(ir::move_dim(split(x, 1, groups), 1, 0), 0), 0);
    } else {
      x = join(x, 0);
    }
    z = split(conv.run(x, y, c.op.attrs, result.dtype()), 0, size);
  } else {
    // [s, (g, o), …] -> [(g, s, o), …]
    y = join(join(ir::move_dim(split(y, 1, groups), 1, 0), 0), 0);
    z = split(split(conv.run(x, y, c.op.attrs, result.dtype()), 1, groups), 2, size);
    z = join(ir::move_dim(z, 2, 0), 2);
  }
  c.results = {ir::transpose(z, behind_batch(inverse(conv.out_order))).v};
  c.result_dims = {0};
}

}  // namespace

void register_convolution_rules(RuleTable& t) {
  t[ops::kConvolution].jvp = conv_jvp;
  t[ops::kConvolution].transpose = conv_transpose;
  t[ops::kConvolution].batch = conv_batch;
}

}  // namespace xylem::transform
