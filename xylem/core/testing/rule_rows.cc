#include "xylem/core/testing/rule_rows.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/core/lax/indexing.h"
#include "xylem/core/transform/rules.h"
#include "xylem/ir/expr.h"
#include "xylem/ir/ops/all.h"

namespace xylem::transform::testing {
namespace {

using ir::Attr;
using ir::Attrs;
using ir::Builder;
using ir::Expr;
using ir::GraphPtr;
using ir::Type;
using ir::ValueId;
namespace ops = ir::ops;

constexpr DType kF64 = DType::kF64;

Row unary_row(const ir::OpDef& def, double lo, double hi) {
  Builder b;
  Expr x{&b, b.param(Type::tensor(kF64, {2, 3}))};
  return {std::string(def.name), b.finish({ir::unary(def, x).v}), lo, hi};
}

Row binary_row(const ir::OpDef& def, double lo, double hi) {
  Builder b;
  Expr x{&b, b.param(Type::tensor(kF64, {2, 3}))}, y{&b, b.param(Type::tensor(kF64, {2, 3}))};
  return {std::string(def.name), b.finish({ir::binary(def, x, y).v}), lo, hi};
}

// A program over f64 parameters of the given shapes.
Row program(std::string name, std::vector<Dims> shapes,
            const std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>& body,
            double lo = -2, double hi = 2, bool reverse = true) {
  Builder b;
  std::vector<Expr> args;
  for (const Dims& s : shapes) args.push_back({&b, b.param(Type::tensor(kF64, s))});
  std::vector<ValueId> results;
  for (Expr e : body(b, args)) results.push_back(e.v);
  return {std::move(name), b.finish(std::move(results)), lo, hi, reverse};
}

Expr index(Builder& b, std::vector<std::int64_t> v, Dims dims) {
  return {&b, b.constant(HostArray::from(v, std::move(dims)))};
}

GraphPtr region(std::vector<Type> params,
                const std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>& body) {
  Builder b;
  std::vector<Expr> args;
  for (const Type& t : params) args.push_back({&b, b.param(t)});
  std::vector<ValueId> results;
  for (Expr e : body(b, args)) results.push_back(e.v);
  return b.finish(std::move(results));
}

const Type kScalar = Type::tensor(kF64);
const Type kVector = Type::tensor(kF64, {3});

Row scan_row(bool reverse_order) {
  return program(reverse_order ? "scan reversed" : "scan", {{3}, {3}, {4, 3}},
                 [&](Builder& b, std::vector<Expr> a) {
                   GraphPtr body = region({kVector, kVector, kVector}, [](Builder&, auto p) {
                     Expr carry = ir::unary(ops::kSine, p[1] * p[0]) + p[2];
                     return std::vector<Expr>{carry, carry * p[2]};
                   });
                   ir::ValueIds r = b.op(ops::kScan, {a[0].v, a[1].v, a[2].v},
                                         Attrs{{"length", Attr(4)},
                                               {"num_consts", Attr(1)},
                                               {"num_carry", Attr(1)},
                                               {"reverse", Attr(reverse_order)}},
                                         {body});
                   return std::vector<Expr>{{&b, r[0]}, {&b, r[1]}};
                 });
}

Row branch_row(bool take) {
  return program(take ? "if true" : "if false", {{3}, {3}}, [&](Builder& b, std::vector<Expr> a) {
    GraphPtr yes = region({kVector, kVector}, [](Builder&, auto p) {
      return std::vector<Expr>{ir::unary(ops::kSine, p[0]) * p[1]};
    });
    GraphPtr no = region({kVector, kVector},
                         [](Builder&, auto p) { return std::vector<Expr>{p[0] * p[0] * 3.0}; });
    Expr p{&b, b.splat(DType::kBool, {}, take)};
    return std::vector<Expr>{
        {&b, b.one(ops::kIf, {p.v, a[0].v, a[1].v}, Attrs{{"num_captures", Attr(2)}}, {yes, no})}};
  });
}

Row while_row() {
  return program(
      "while", {{3}, {3}},
      [](Builder& b, std::vector<Expr> a) {
        Type i = Type::tensor(DType::kI32);
        GraphPtr cond = region({i, kVector, kVector}, [](Builder&, auto p) {
          return std::vector<Expr>{ir::compare(p[0], 3, "LT")};
        });
        GraphPtr body = region({i, kVector, kVector}, [](Builder&, auto p) {
          return std::vector<Expr>{p[0] + 1, ir::unary(ops::kSine, p[1] * p[2])};
        });
        ValueId zero = b.splat(DType::kI32, {}, 0);
        ir::ValueIds r = b.op(ops::kWhile, {zero, a[0].v, a[1].v}, Attrs{{"num_captures", Attr(1)}},
                              {cond, body});
        return std::vector<Expr>{{&b, r[1]}};
      },
      -2, 2, false);
}

Row remat_row(const char* policy) {
  return program(std::string("remat ") + policy, {{3}, {3}}, [&](Builder& b, std::vector<Expr> a) {
    GraphPtr body = region({kVector, kVector}, [](Builder& rb, auto p) {
      Expr named{&rb, rb.one(ops::kCheckpointName, {(p[0] * p[1]).v}, Attrs{{"name", Attr("a")}})};
      return std::vector<Expr>{ir::unary(ops::kSine, ir::unary(ops::kSine, named))};
    });
    return std::vector<Expr>{
        {&b, b.one(ops::kRemat, {a[0].v, a[1].v},
                   Attrs{{"policy", Attr(policy)}, {"prevent_cse", Attr(true)}}, {body})}};
  });
}

Attr padding(std::vector<std::int64_t> v) {
  auto n = static_cast<std::int64_t>(v.size() / 2);
  return Attr(HostArray::from(v, {n, 2}));
}

// A convolution of the layout [N, C, …], [O, I, …] unless `extra` says otherwise.
Row conv_row(std::string name, Dims lhs, Dims rhs, const Attrs& extra) {
  auto n = static_cast<std::int64_t>(lhs.size()) - 2;
  Dims spatial;
  for (std::int64_t d = 0; d < n; ++d) spatial.push_back(d + 2);
  Attrs a{{"input_batch_dimension", Attr(0)},
          {"input_feature_dimension", Attr(1)},
          {"input_spatial_dimensions", Attr(spatial)},
          {"kernel_output_feature_dimension", Attr(0)},
          {"kernel_input_feature_dimension", Attr(1)},
          {"kernel_spatial_dimensions", Attr(spatial)},
          {"output_batch_dimension", Attr(0)},
          {"output_feature_dimension", Attr(1)},
          {"output_spatial_dimensions", Attr(spatial)},
          {"feature_group_count", Attr(1)},
          {"batch_group_count", Attr(1)}};
  for (const auto& [key, value] : extra.entries()) a.set(key, value);
  return program("convolution " + name, {lhs, rhs}, [&](Builder& b, std::vector<Expr> v) {
    return std::vector<Expr>{{&b, b.one(ops::kConvolution, {v[0].v, v[1].v}, a)}};
  });
}

void add_conv_rows(std::vector<Row>& r) {
  r.push_back(conv_row("plain", {2, 3, 5}, {4, 3, 2}, {}));
  r.push_back(conv_row("of no window", {2, 3}, {4, 3}, {}));
  r.push_back(conv_row("strided and padded", {1, 2, 6, 5}, {3, 2, 3, 2},
                       {{"window_strides", Attr(Dims{2, 3})}, {"padding", padding({1, 2, 0, 3})}}));
  r.push_back(conv_row("cut", {1, 2, 7}, {2, 2, 3}, {{"padding", padding({-2, -1})}}));
  r.push_back(conv_row("cut and padded past the kernel", {1, 1, 4}, {1, 1, 2},
                       {{"padding", padding({4, -2})}, {"window_strides", Attr(Dims{2})}}));
  r.push_back(conv_row("dilated", {1, 2, 4}, {2, 2, 3},
                       {{"lhs_dilation", Attr(Dims{3})},
                        {"rhs_dilation", Attr(Dims{2})},
                        {"window_strides", Attr(Dims{2})},
                        {"padding", padding({1, 2})}}));
  r.push_back(
      conv_row("reversed", {1, 2, 4, 4}, {2, 2, 3, 2},
               {{"window_reversal", Attr(Dims{1, 0})}, {"padding", padding({0, 1, 1, 0})}}));
  r.push_back(conv_row("in feature groups", {2, 6, 4}, {4, 3, 2},
                       {{"feature_group_count", Attr(2)}, {"rhs_dilation", Attr(Dims{2})}}));
  r.push_back(conv_row("depthwise", {1, 3, 4}, {6, 1, 2}, {{"feature_group_count", Attr(3)}}));
  r.push_back(conv_row("in batch groups", {6, 2, 4}, {4, 2, 2},
                       {{"batch_group_count", Attr(2)}, {"window_strides", Attr(Dims{2})}}));
  r.push_back(conv_row("of another layout", {5, 4, 2, 3}, {2, 3, 3, 4},
                       {{"input_batch_dimension", Attr(2)},
                        {"input_feature_dimension", Attr(3)},
                        {"input_spatial_dimensions", Attr(Dims{1, 0})},
                        {"kernel_output_feature_dimension", Attr(3)},
                        {"kernel_input_feature_dimension", Attr(1)},
                        {"kernel_spatial_dimensions", Attr(Dims{0, 2})},
                        {"output_batch_dimension", Attr(1)},
                        {"output_feature_dimension", Attr(3)},
                        {"output_spatial_dimensions", Attr(Dims{2, 0})},
                        {"window_reversal", Attr(Dims{0, 1})},
                        {"padding", padding({1, 0, 1, 2})}}));
  r.push_back(conv_row("without windows", {1, 2, 2}, {2, 2, 3}, {}));
}

Row window_row(std::string name, const ir::OpDef& def, Dims shape, const Attrs& attrs,
               bool moving_init) {
  std::vector<Dims> shapes = {std::move(shape)};
  if (moving_init) shapes.push_back({});
  return program("reduce_window " + name, shapes, [&](Builder& b, std::vector<Expr> v) {
    Expr init = moving_init ? v[1] : ir::reduction_identity(b, def, kF64);
    return std::vector<Expr>{
        {&b, b.one(ops::kReduceWindow, {v[0].v, init.v}, attrs, {ir::binary_region(def, kF64)})}};
  });
}

void add_window_rows(std::vector<Row>& r) {
  Attrs pool{{"window_dimensions", Attr(Dims{1, 3})},
             {"window_strides", Attr(Dims{1, 2})},
             {"padding", padding({0, 0, 1, 2})}};
  Attrs odd{{"window_dimensions", Attr(Dims{2, 3})},
            {"window_strides", Attr(Dims{2, 1})},
            {"base_dilations", Attr(Dims{1, 2})},
            {"window_dilations", Attr(Dims{2, 3})},
            {"padding", padding({2, 1, -1, 4})}};
  for (const ir::OpDef* d : {&ops::kAdd, &ops::kMultiply, &ops::kMaximum, &ops::kMinimum}) {
    std::string name(d->name);
    r.push_back(window_row(name, *d, {2, 6}, pool, false));
    r.push_back(window_row(name + " dilated", *d, {5, 4}, odd, false));
    r.push_back(window_row(name + " from a value", *d, {2, 4}, pool, true));
  }
  // log(e^a + e^b), of a body that is no single op.
  GraphPtr lse = region({kScalar, kScalar}, [](Builder&, auto p) {
    return std::vector<Expr>{ir::unary(
        ops::kLog, ir::unary(ops::kExponential, p[0]) + ir::unary(ops::kExponential, p[1]))};
  });
  r.push_back(
      program("reduce_window by logaddexp", {{2, 5}, {}}, [&](Builder& b, std::vector<Expr> v) {
        return std::vector<Expr>{{&b, b.one(ops::kReduceWindow, {v[0].v, v[1].v}, pool, {lse})}};
      }));
  r.push_back(program("reduce by logaddexp", {{2, 5, 3}, {}}, [&](Builder& b, std::vector<Expr> v) {
    return std::vector<Expr>{{&b, b.one(ops::kReduce, {v[0].v, v[1].v},
                                        Attrs{{"dimensions", Attr(Dims{2, 1})}}, {lse})}};
  }));
  for (const ir::OpDef* d : {&ops::kMultiply, &ops::kMaximum})
    r.push_back(program("reduce from a value", {{2, 5}, {}}, [&](Builder& b, std::vector<Expr> v) {
      return std::vector<Expr>{
          {&b, b.one(ops::kReduce, {v[0].v, v[1].v}, Attrs{{"dimensions", Attr(Dims{1})}},
                     {ir::binary_region(*d, kF64)})}};
    }));
  // (a, p) and (b, q) -> (a + b c, p q) with c captured: two operands, mapped captures.
  GraphPtr affine = region({kScalar, kScalar, kScalar, kScalar, kScalar}, [](Builder&, auto p) {
    return std::vector<Expr>{p[0] + p[1] * p[2], p[1] * p[3] + 0.0 * p[4]};
  });
  r.push_back(
      program("reduce of two operands", {{3, 4}, {3, 4}, {}}, [&](Builder& b, std::vector<Expr> v) {
        ValueId zero = b.splat(kF64, {}, 0), one = b.splat(kF64, {}, 1);
        ir::ValueIds y =
            b.op(ops::kReduce, {v[0].v, v[1].v, zero, one, v[2].v},
                 Attrs{{"dimensions", Attr(Dims{1})}, {"num_captures", Attr(1)}}, {affine});
        return std::vector<Expr>{{&b, y[0]}, {&b, y[1]}};
      }));
  r.push_back(
      program("select_and_scatter", {{2, 7}, {2, 3}, {}}, [&](Builder& b, std::vector<Expr> v) {
        GraphPtr ge = region({kScalar, kScalar}, [](Builder&, auto p) {
          return std::vector<Expr>{ir::compare(p[0], p[1], "GE")};
        });
        return std::vector<Expr>{{&b, b.one(ops::kSelectAndScatter, {v[0].v, v[1].v, v[2].v},
                                            Attrs{{"window_dimensions", Attr(Dims{1, 3})},
                                                  {"window_strides", Attr(Dims{1, 2})}},
                                            {ge, ir::binary_region(ops::kAdd, kF64)})}};
      }));
}

// Domains of ops outside of which they or their derivatives are not finite.
std::pair<double, double> domain(const ir::OpDef& def) {
  static const std::pair<const ir::OpDef*, std::pair<double, double>> kDomains[] = {
      {&ops::kAcosh, {1.2, 3}}, {&ops::kRemainder, {1.1, 1.9}}, {&ops::kPolygamma, {1.2, 3}}};
  for (const auto& [op, d] : kDomains)
    if (op == &def) return d;
  return {0.2, 0.8};
}

// chlo.broadcast_add and so on, with operands of two ranks.
void add_broadcast_rows(std::vector<Row>& rows) {
  for (const ir::OpDef* def : ops::broadcast_ops()) {
    // Without derivative by an order, or, as JAX defines it, by a neighbour; bounds may cross.
    static constexpr std::string_view kNone[] = {"chlo.broadcast_polygamma", "chlo.broadcast_zeta",
                                                 "chlo.broadcast_next_after",
                                                 "chlo.broadcast_clamp"};
    if (!rules_of(*def).jvp ||
        std::find(std::begin(kNone), std::end(kNone), def->name) != std::end(kNone))
      continue;
    std::vector<Dims> shapes = {{2, 3}, {3}, {2, 3}};
    Builder b;
    std::vector<ValueId> args;
    for (int i = 0; i < def->min_operands; ++i)
      args.push_back(b.param(Type::tensor(kF64, shapes[static_cast<std::size_t>(i)])));
    try {
      ValueId y = b.one(*def, args);
      if (b.type(y) == Type::tensor(kF64, {2, 3}))
        rows.push_back({std::string(def->name), b.finish({y}), 1.1, 1.9});
    } catch (const Error&) {
      // Of integers, predicates or complex results.
    }
  }
}

// A row for every pointwise op of the table that has derivatives and no row yet.
void add_table_rows(std::vector<Row>& rows) {
  std::vector<const ir::OpDef*> have = covered_ops(rows);
  for (const ir::OpDef* def : ir::op_table()) {
    const OpRules& rules = rules_of(*def);
    if (!rules.jvp || !def->is(ir::kPointwise) || def->is(ir::kKernelOnly) ||
        def->max_operands != def->min_operands || def->min_operands < 1 || def->num_regions != 0 ||
        def == &ops::kZeta || std::find(have.begin(), have.end(), def) != have.end())
      continue;
    // Those that take no floats, or need attributes, are refused here.
    try {
      Builder b;
      std::vector<ValueId> args;
      for (int i = 0; i < def->min_operands; ++i)
        args.push_back(b.param(Type::tensor(kF64, {2, 3})));
      ValueId y = b.one(*def, args);
      if (b.type(y) != Type::tensor(kF64, {2, 3})) continue;
      auto [lo, hi] = domain(*def);
      GraphPtr g = b.finish({y});
      rows.push_back({std::string(def->name), g, lo, hi});
    } catch (const Error&) {
      continue;
    }
  }
}

void cover(const ir::Graph& g, std::vector<const ir::OpDef*>& r) {
  for (const ir::Op& op : g.ops) {
    r.push_back(op.def);
    for (const GraphPtr& region : op.regions) cover(*region, r);
  }
}

// Ops that are no pointwise ones and come in no other group.
void add_structured_rows(std::vector<Row>& r) {
  auto complex_of = [](Expr re, Expr im) { return ir::binary(ops::kComplex, re, im); };
  auto transform = [](Expr x, const char* type, Dims length) {
    return Expr{x.b, x.b->one(ops::kFft, {x.v},
                              Attrs{{"fft_type", Attr(ir::EnumAttr(type))},
                                    {"fft_length", Attr(std::move(length))}})};
  };
  for (const char* type : {"FFT", "IFFT"})
    r.push_back(
        program(std::string("fft ") + type, {{2, 6}, {2, 6}}, [&](Builder&, std::vector<Expr> a) {
          Expr y = transform(complex_of(a[0], a[1]), type, {6});
          return std::vector<Expr>{ir::unary(ops::kReal, y), ir::unary(ops::kImag, y)};
        }));
  for (std::int64_t n : {6, 5}) {
    r.push_back(program("fft RFFT", {{2, n}}, [&](Builder&, std::vector<Expr> a) {
      Expr y = transform(a[0], "RFFT", {n});
      return std::vector<Expr>{ir::unary(ops::kReal, y), ir::unary(ops::kImag, y)};
    }));
    r.push_back(
        program("fft IRFFT", {{2, n / 2 + 1}, {2, n / 2 + 1}}, [&](Builder&, std::vector<Expr> a) {
          return std::vector<Expr>{transform(complex_of(a[0], a[1]), "IRFFT", {n})};
        }));
  }
  r.push_back(program("cholesky", {{3, 3}}, [](Builder& b, std::vector<Expr> a) {
    Expr eye{&b,
             b.constant(HostArray::from(std::vector<double>{4, 0, 0, 0, 4, 0, 0, 0, 4}, {3, 3}))};
    Expr square = ir::dot_general(a[0], a[0], {}, {}, {1}, {1}) + eye;
    return std::vector<Expr>{{&b, b.one(ops::kCholesky, {square.v}, Attrs{{"lower", Attr(true)}})}};
  }));
  r.push_back(program(
      "triangular_solve", {{3, 3}, {3, 2}},
      [](Builder& b, std::vector<Expr> a) {
        return std::vector<Expr>{
            {&b, b.one(ops::kTriangularSolve, {a[0].v, a[1].v},
                       Attrs{{"left_side", Attr(true)},
                             {"lower", Attr(true)},
                             {"unit_diagonal", Attr(false)},
                             {"transpose_a", Attr(ir::EnumAttr("NO_TRANSPOSE"))}})}};
      },
      0.5, 1.5));
  r.push_back(program(
      "batch_norm_inference", {{2, 3, 2}, {3}, {3}, {3}, {3}},
      [](Builder& b, std::vector<Expr> a) {
        return std::vector<Expr>{
            {&b, b.one(ops::kBatchNormInference, {a[0].v, a[1].v, a[2].v, a[3].v, a[4].v},
                       Attrs{{"epsilon", Attr(0.1)}, {"feature_index", Attr(1)}})}};
      },
      0.3, 2));
  r.push_back(
      program("batch_norm_training", {{4, 3}, {3}, {3}}, [](Builder& b, std::vector<Expr> a) {
        ir::ValueIds y = b.op(ops::kBatchNormTraining, {a[0].v, a[1].v, a[2].v},
                              Attrs{{"epsilon", Attr(0.1)}, {"feature_index", Attr(1)}});
        return std::vector<Expr>{{&b, y[0]}, {&b, y[1]}, {&b, y[2]}};
      }));
  r.push_back(program(
      "batch_norm_grad", {{4, 3}, {3}, {3}, {3}, {4, 3}},
      [](Builder& b, std::vector<Expr> a) {
        ir::ValueIds y = b.op(ops::kBatchNormGrad, {a[0].v, a[1].v, a[2].v, a[3].v, a[4].v},
                              Attrs{{"epsilon", Attr(0.1)}, {"feature_index", Attr(1)}});
        return std::vector<Expr>{{&b, y[0]}, {&b, y[1]}, {&b, y[2]}};
      },
      0.3, 2));
  r.push_back(program(
      "polygamma", {{2, 3}},
      [](Builder& b, std::vector<Expr> a) {
        return std::vector<Expr>{{&b, b.one(ops::kPolygamma, {like(a[0], 2).v, a[0].v})}};
      },
      1.2, 3));
  r.push_back(program("convert to complex", {{3}}, [](Builder&, std::vector<Expr> a) {
    Expr z = ir::convert(a[0], DType::kC128);
    return std::vector<Expr>{ir::unary(ops::kReal, z * z)};
  }));
  r.push_back(program("case", {{3}, {3}}, [](Builder& b, std::vector<Expr> a) {
    std::vector<GraphPtr> branches;
    for (double factor : {1.0, 2.0, 3.0})
      branches.push_back(region({kVector, kVector}, [&](Builder&, auto p) {
        return std::vector<Expr>{ir::unary(ops::kSine, p[0] * factor) * p[1]};
      }));
    ValueId which = b.splat(DType::kI32, {}, 1);
    return std::vector<Expr>{{&b, b.op(ops::kCase, {which, a[0].v, a[1].v},
                                       Attrs{{"num_captures", Attr(2)}}, branches)[0]}};
  }));
  r.push_back(program("einsum", {{2, 3}, {3, 4}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{
        {&b, b.one(ops::kEinsum, {a[0].v, a[1].v},
                   Attrs{{"einsum_config", Attr("ij,jk->ki")},
                         {"result_types", Attr(ir::AttrList{Attr(Type::tensor(kF64, {4, 2}))})}})}};
  }));
  r.push_back(program("torch_index_select", {{4, 3}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{
        {&b, b.one(ops::kTorchIndexSelect, {a[0].v, index(b, {2, 0, 2}, {3}).v},
                   Attrs{{"dim", Attr(0)}, {"batch_dims", Attr(0)}})}};
  }));
  r.push_back(program("ragged_dot", {{5, 3}, {2, 3, 2}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{{&b, b.one(ops::kRaggedDot, {a[0].v, a[1].v, index(b, {2, 2}, {2}).v},
                                        Attrs{{"lhs_contracting_dimensions", Attr(Dims{1})},
                                              {"rhs_contracting_dimensions", Attr(Dims{1})},
                                              {"lhs_ragged_dimensions", Attr(Dims{0})},
                                              {"rhs_group_dimensions", Attr(Dims{0})}})}};
  }));
}

}  // namespace

std::vector<const ir::OpDef*> covered_ops(const std::vector<Row>& rows) {
  std::vector<const ir::OpDef*> r;
  for (const Row& row : rows) cover(*row.graph, r);
  return r;
}

std::vector<Row> rule_rows() {
  std::vector<Row> r;
  add_conv_rows(r);
  add_window_rows(r);
  for (const ir::OpDef* d :
       {&ops::kNegate, &ops::kExponential, &ops::kExponentialMinusOne, &ops::kLogistic, &ops::kTanh,
        &ops::kSine, &ops::kCosine, &ops::kSquare, &ops::kErf, &ops::kErfc, &ops::kAtan,
        &ops::kSinh, &ops::kCosh, &ops::kAsinh})
    r.push_back(unary_row(*d, -2, 2));
  for (const ir::OpDef* d : {&ops::kLog, &ops::kSqrt, &ops::kRsqrt, &ops::kCbrt, &ops::kAbs})
    r.push_back(unary_row(*d, 0.3, 2));
  for (const ir::OpDef* d :
       {&ops::kLogPlusOne, &ops::kErfInv, &ops::kAsin, &ops::kAcos, &ops::kAtanh, &ops::kTan})
    r.push_back(unary_row(*d, -0.8, 0.8));
  r.push_back(unary_row(ops::kAcosh, 1.2, 3));
  for (const ir::OpDef* d :
       {&ops::kAdd, &ops::kSubtract, &ops::kMultiply, &ops::kMaximum, &ops::kMinimum, &ops::kAtan2})
    r.push_back(binary_row(*d, -2, 2));
  for (const ir::OpDef* d : {&ops::kDivide, &ops::kPower}) r.push_back(binary_row(*d, 0.4, 2));
  r.push_back(binary_row(ops::kRemainder, 1.1, 1.9));
  r.push_back(program("select", {{2, 3}, {2, 3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::select(ir::compare(a[0], 0, "GT"), a[0] * a[1], a[1])};
  }));
  r.push_back(program("clamp", {{}, {2, 3}, {}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{
        {&b, b.one(ops::kClamp, {(a[0] * 0.1 - 0.5).v, a[1].v, (a[2] * 0.1 + 0.5).v})}};
  }));
  r.push_back(program("convert", {{3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{a[0] * ir::convert(ir::convert(a[0], kF64), kF64)};
  }));
  r.push_back(program("complex", {{3}, {3}}, [](Builder&, std::vector<Expr> a) {
    Expr z = ir::binary(ops::kComplex, a[0], a[1]);
    Expr w = z * z;
    return std::vector<Expr>{ir::unary(ops::kReal, w), ir::unary(ops::kImag, w),
                             ir::unary(ops::kAbs, z)};
  }));
  r.push_back(program("broadcast_in_dim", {{3, 1}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::broadcast_in_dim(a[0], {2, 4, 3}, {2, 1})};
  }));
  r.push_back(program("reshape", {{2, 3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::reshape(a[0], {3, 2})};
  }));
  r.push_back(program("transpose", {{2, 3, 4}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::transpose(a[0], {2, 0, 1})};
  }));
  r.push_back(program("reverse", {{2, 3}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{
        {&b, b.one(ops::kReverse, {a[0].v}, Attrs{{"dimensions", Attr(Dims{1})}})}};
  }));
  r.push_back(program("concatenate", {{2, 3}, {2, 1}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::concatenate(a, 1)};
  }));
  r.push_back(program("slice", {{5, 3}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::slice(a[0], {1, 0}, {5, 2}, {2, 1})};
  }));
  r.push_back(program("pad", {{3, 2}, {}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::pad(a[0], a[1], {1, -1}, {0, 2}, {1, 0})};
  }));
  r.push_back(program("dot_general", {{2, 3, 4}, {4, 2, 5}}, [](Builder&, std::vector<Expr> a) {
    return std::vector<Expr>{ir::dot_general(a[0], a[1], {0}, {1}, {2}, {0})};
  }));
  r.push_back(program(
      "dot_general of two contractions", {{3, 4, 2}, {4, 3}}, [](Builder&, std::vector<Expr> a) {
        return std::vector<Expr>{ir::dot_general(a[0], a[1], {}, {}, {0, 1}, {1, 0})};
      }));
  for (const ir::OpDef* d : {&ops::kAdd, &ops::kMultiply, &ops::kMaximum, &ops::kMinimum})
    r.push_back(
        program("reduce " + std::string(d->name), {{2, 3, 4}}, [&](Builder&, std::vector<Expr> a) {
          return std::vector<Expr>{ir::reduce(*d, a[0], {0, 2})};
        }));
  for (const ir::OpDef* d : {&ops::kCumsum, &ops::kCumprod, &ops::kCummax, &ops::kCummin})
    for (bool rev : {false, true})
      r.push_back(program(std::string(d->name), {{2, 5}}, [&](Builder& b, std::vector<Expr> a) {
        return std::vector<Expr>{
            {&b, b.one(*d, {a[0].v}, Attrs{{"dimension", Attr(1)}, {"reverse", Attr(rev)}})}};
      }));
  r.push_back(program("dynamic_slice", {{4, 5}}, [](Builder& b, std::vector<Expr> a) {
    ValueId i = index(b, {2}, {}).v, j = index(b, {9}, {}).v;
    return std::vector<Expr>{
        {&b, b.one(ops::kDynamicSlice, {a[0].v, i, j}, Attrs{{"slice_sizes", Attr(Dims{2, 3})}})}};
  }));
  r.push_back(
      program("dynamic_update_slice", {{4, 5}, {2, 3}}, [](Builder& b, std::vector<Expr> a) {
        ValueId i = index(b, {1}, {}).v, j = index(b, {7}, {}).v;
        return std::vector<Expr>{{&b, b.one(ops::kDynamicUpdateSlice, {a[0].v, a[1].v, i, j})}};
      }));
  r.push_back(program("gather", {{4, 5}}, [](Builder& b, std::vector<Expr> a) {
    lax::GatherDims g;
    g.offset_dims = {1};
    g.collapsed_slice_dims = {0};
    g.start_index_map = {0};
    g.index_vector_dim = 1;
    return std::vector<Expr>{lax::gather(a[0], index(b, {1, 1, 3}, {3}), g, {1, 5})};
  }));
  for (bool add : {true, false})
    r.push_back(program(add ? "scatter add" : "scatter set", {{4, 5}, {3, 5}},
                        [&](Builder& b, std::vector<Expr> a) {
                          lax::ScatterDims s;
                          s.update_window_dims = {1};
                          s.inserted_window_dims = {0};
                          s.scatter_dims_to_operand_dims = {0};
                          s.index_vector_dim = 1;
                          return std::vector<Expr>{lax::scatter(a[0], index(b, {1, 1, 9}, {3}),
                                                                a[1], s, add ? &ops::kAdd : nullptr,
                                                                false)};
                        }));
  r.push_back(program("sort", {{2, 5}, {2, 5}}, [](Builder& b, std::vector<Expr> a) {
    GraphPtr less = region({kScalar, kScalar, kScalar, kScalar}, [](Builder&, auto p) {
      return std::vector<Expr>{ir::compare(p[0], p[1], "LT")};
    });
    ir::ValueIds s = b.op(ops::kSort, {a[0].v, a[1].v},
                          Attrs{{"dimension", Attr(1)}, {"is_stable", Attr(true)}}, {less});
    return std::vector<Expr>{{&b, s[0]}, {&b, s[1]}};
  }));
  r.push_back(program("sort by a captured key", {{2, 5}, {}}, [](Builder& b, std::vector<Expr> a) {
    GraphPtr nearer = region({kScalar, kScalar, kScalar}, [](Builder&, auto p) {
      return std::vector<Expr>{
          ir::compare(ir::unary(ops::kAbs, p[0] - p[2]), ir::unary(ops::kAbs, p[1] - p[2]), "LT")};
    });
    return std::vector<Expr>{
        {&b,
         b.one(ops::kSort, {a[0].v, a[1].v},
               Attrs{{"dimension", Attr(1)}, {"is_stable", Attr(true)}, {"num_captures", Attr(1)}},
               {nearer})}};
  }));
  r.push_back(program("top_k", {{2, 5}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{{&b, b.op(ops::kTopK, {a[0].v}, Attrs{{"k", Attr(2)}})[0]}};
  }));
  r.push_back(scan_row(false));
  r.push_back(scan_row(true));
  r.push_back(branch_row(true));
  r.push_back(branch_row(false));
  r.push_back(while_row());
  for (const char* policy : {"nothing_saveable", "everything_saveable", "save_only_these_names:a"})
    r.push_back(remat_row(policy));
  r.push_back(program("call", {{3}}, [](Builder& b, std::vector<Expr> a) {
    GraphPtr body = region(
        {kVector}, [](Builder&, auto p) { return std::vector<Expr>{ir::unary(ops::kSine, p[0])}; });
    return std::vector<Expr>{{&b, b.one(ops::kCall, {a[0].v}, Attrs{{"name", Attr("f")}}, {body})}};
  }));
  r.push_back(program("optimization_barrier", {{3}}, [](Builder& b, std::vector<Expr> a) {
    return std::vector<Expr>{{&b, b.one(ops::kOptimizationBarrier, {a[0].v})}};
  }));
  add_structured_rows(r);
  add_broadcast_rows(r);
  add_table_rows(r);
  return r;
}

}  // namespace xylem::transform::testing
